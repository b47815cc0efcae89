//! The home directory of one embedded server: its files and directories.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::error::{EmbeddedError, Result};
use super::files::open_lock;
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
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.path("data")
    }

    /// Returns the path of the server log.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.path("server.log")
    }

    /// Returns the home directory itself.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn open_lock(&self, name: &str) -> Result<File> {
        open_lock(&self.path(name))
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
        self.is_server_of(&state).then_some(state)
    }

    /// Whether the server that riops started is running: process ids are reused, also by a server that the user
    /// started on this data directory.
    fn is_server_of(&self, state: &State) -> bool {
        let has_started = |started: &String| {
            postmaster::pid_file(&self.data()).is_none_or(|found| found.started == *started)
        };
        postmaster::is_running(&self.data(), state.pid)
            && state.started.as_ref().is_none_or(has_started)
    }

    /// Fails if a server that riops did not start is running on the data directory.
    ///
    /// # Errors
    /// [`EmbeddedError::ForeignServer`].
    pub(super) fn require_no_other_server(&self) -> Result<()> {
        let Some(found) = postmaster::pid_file(&self.data()) else {
            return Ok(());
        };
        // A backend in single-user mode writes its process id as a negative number.
        let single = found.pid.saturating_neg();
        if found.pid < 0 && postmaster::is_running(&self.data(), single) {
            return Err(EmbeddedError::ForeignServer { data: self.data(), pid: single });
        }
        let Some(state) = self.read_state() else {
            return Ok(());
        };
        // Before it is initialized and between two starts, the state has no process.
        if postmaster::is_running(&self.data(), found.pid)
            && state.started.as_ref().is_some_and(|started| *started != found.started)
        {
            return Err(EmbeddedError::ForeignServer { data: self.data(), pid: found.pid });
        }
        Ok(())
    }

    pub(super) fn is_persistent(&self) -> bool {
        self.path("persistent").exists()
    }
}
