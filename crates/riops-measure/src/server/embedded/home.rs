//! The home directory of one embedded server: its files and directories.

use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use rustix::fs::OFlags;

use super::error::{EmbeddedError, Result};
use super::files::file;
use super::postmaster;
use super::state::State;
use crate::host::files::{TEXT_BYTES_MAX, open_plain, rest_limited};

/// The home directory of one embedded server.
#[derive(Debug, Clone)]
pub struct Home {
    pub(super) folder: PathBuf,
}

impl Home {
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Returns the data directory.
    pub fn data(&self) -> PathBuf {
        self.path("data")
    }

    /// Returns the path of the server log.
    pub fn log(&self) -> PathBuf {
        self.path("server.log")
    }

    /// Opens a lock file, and creates it if necessary.
    pub(super) fn open_lock(&self, name: &str) -> Result<File> {
        let path = self.path(name);
        let mut options = File::options();
        options.create(true).truncate(false).write(true).mode(0o600);
        // The owner of the directory may be another user, who must not choose which file is created.
        options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
        options.open(&path).map_err(file("open", &path))
    }

    /// Reads a file that riops wrote. Another user may have put another one there.
    pub(super) fn read(&self, name: &str) -> std::io::Result<Vec<u8>> {
        rest_limited(&mut open_plain(&self.path(name))?, TEXT_BYTES_MAX)
    }

    pub(super) fn read_state(&self) -> Option<State> {
        serde_json::from_slice(&self.read("state.json").ok()?).ok()
    }

    /// Returns the state of the server if it is running.
    pub(super) fn running(&self) -> Option<State> {
        let state = self.read_state()?;
        // Process ids are reused, also by a server that the user started on this data directory.
        let has_started = |started: &String| {
            postmaster::pid_file(&self.data()).is_none_or(|file| file.started == *started)
        };
        (postmaster::is_running(&self.data(), state.pid)
            && state.started.as_ref().is_none_or(has_started))
        .then_some(state)
    }

    /// Fails if a server that riops did not start is running on the data directory.
    ///
    /// # Errors
    /// [`EmbeddedError::ForeignServer`].
    pub(super) fn require_no_other_server(&self) -> Result<()> {
        let Some(pid_file) = postmaster::pid_file(&self.data()) else {
            return Ok(());
        };
        // Before it is initialized and between two starts, the state has no process.
        let started = || self.read_state().and_then(|state| state.started);
        // A backend in single-user mode writes its process id as a negative number.
        let is_foreign =
            pid_file.pid < 0 || started().is_some_and(|started| started != pid_file.started);
        let (data, pid) = (self.data(), pid_file.pid.saturating_abs());
        if is_foreign && postmaster::is_running(&data, pid) {
            return Err(EmbeddedError::ForeignServer { data, pid });
        }
        Ok(())
    }

    pub(super) fn is_persistent(&self) -> bool {
        self.path("persistent").exists()
    }
}
