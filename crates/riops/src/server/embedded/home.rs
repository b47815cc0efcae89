//! The home directory of one embedded server: its files and directories.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use super::error::Result;
use super::files::file;
use super::postmaster;
use super::state::State;

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
        let path = self.path(name);
        File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(file("open", &path))
    }

    pub(super) fn read_state(&self) -> Option<State> {
        serde_json::from_slice(&fs::read(self.path("state.json")).ok()?).ok()
    }

    /// Returns the state of the server if it is running.
    pub(super) fn running(&self) -> Option<State> {
        let state = self.read_state()?;
        postmaster::is_running(&self.data(), state.pid).then_some(state)
    }

    pub(super) fn is_persistent(&self) -> bool {
        self.path("persistent").exists()
    }
}
