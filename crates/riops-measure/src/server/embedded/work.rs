//! The directory in which a data directory is initialized or removed.
//!
//! riops may be killed at any moment. Whatever it has left is recognized, because the directory is empty or contains its marker: the
//! marker is the first file in it, and the last one that is removed.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::cache::set_mode;
use super::error::{EmbeddedError, Result};
use super::files::{
    await_lock, create_dir, create_private, file, ignore_not_found, remove_dir,
    remove_dir_all_or_file, remove_marker, rename,
};
use super::home::Home;
use crate::host::Interrupt;

const NAME: &str = "initdb.riops";
const MARKER: &str = "created-by-riops";

/// The directory. It is removed on every exit path.
pub(super) struct WorkDirectory {
    folder: PathBuf,
    /// Its programs have it as well.
    lock: File,
}

impl WorkDirectory {
    /// Creates it. Removes one that a killed process left, after its programs have exited.
    pub(super) fn create(home: &Home, interrupt: &Interrupt) -> Result<Self> {
        let folder = home.path(NAME);
        let lock = home.open_lock("initdb.lock")?;
        await_lock(interrupt, &home.path("initdb.lock"), || lock.try_lock(), &|| {})?;
        remove_left(&folder)?;
        create_dir(&folder)?;
        // The server's user must reach the files in it.
        set_mode(&folder, 0o755)?;
        let created = Self { folder, lock };
        let marker = created.path(MARKER);
        create_private(&marker).map_err(file("write", &marker))?;
        Ok(created)
    }

    /// Whether a killed process has left one.
    pub(super) fn is_left(home: &Home) -> bool {
        home.path(NAME).exists()
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Returns the lock for a program, which holds it until it exits.
    pub(super) fn lock(&self) -> Result<Stdio> {
        Ok(self.lock.try_clone().map_err(file("lock", &self.folder))?.into())
    }

    /// Moves a directory into it.
    pub(super) fn take(&self, folder: &Path) -> Result<()> {
        rename(folder, &self.path("removed")).map_err(file("remove", folder))
    }

    /// Removes it with its contents.
    pub(super) fn remove(self) -> Result<()> {
        remove_left(&self.folder)
    }
}

impl Drop for WorkDirectory {
    fn drop(&mut self) {
        let _ = remove_left(&self.folder);
    }
}

/// Removes a directory that is empty or contains the marker, which is removed last.
fn remove_left(folder: &Path) -> Result<()> {
    let marker = folder.join(MARKER);
    if marker.is_file() {
        for entry in fs::read_dir(folder).map_err(file("read", folder))? {
            let path = entry.map_err(file("read", folder))?.path();
            if path != marker {
                remove_dir_all_or_file(&path)?;
            }
        }
        remove_marker(&marker)?;
    }
    match ignore_not_found(remove_dir(folder)) {
        Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => {
            Err(EmbeddedError::Foreign(folder.to_owned()))
        }
        removed => removed.map_err(file("remove", folder)),
    }
}
