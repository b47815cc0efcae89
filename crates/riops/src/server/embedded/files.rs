//! Steps on files, whose errors name what was tried on what.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::Path;

use super::error::{EmbeddedError, Result};

/// Wraps an error of the file system with what was tried on what.
pub(super) fn file<'a>(
    action: &'static str,
    path: &'a Path,
) -> impl FnOnce(io::Error) -> EmbeddedError + 'a {
    move |source| EmbeddedError::File { action, path: path.to_owned(), source }
}

/// Whether the lock was free; a file system without locks is an error.
pub(super) fn try_lock(lock: &File, path: &Path) -> Result<bool> {
    match lock.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(source)) => Err(file("lock", path)(source)),
    }
}

/// What is not there need not be removed.
pub(super) fn absent(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

pub(super) fn remove_marker(path: &Path) -> Result<()> {
    absent(fs::remove_file(path)).map_err(file("remove", path))
}
