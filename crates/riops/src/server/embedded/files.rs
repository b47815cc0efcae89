//! File operations whose errors name the operation and the file.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::Path;

use super::error::{EmbeddedError, Result};

/// Converts an I/O error into an error that names the operation and the path.
pub(super) fn file<'a>(
    action: &'static str,
    path: &'a Path,
) -> impl FnOnce(io::Error) -> EmbeddedError + 'a {
    move |source| EmbeddedError::File { action, path: path.to_owned(), source }
}

/// Returns whether the lock was acquired. A file system without lock support is an error.
pub(super) fn try_lock(lock: &File, path: &Path) -> Result<bool> {
    match lock.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(source)) => Err(file("lock", path)(source)),
    }
}

/// Ignores the error of removing a file that does not exist.
pub(super) fn ignore_not_found(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

pub(super) fn remove_marker(path: &Path) -> Result<()> {
    ignore_not_found(fs::remove_file(path)).map_err(file("remove", path))
}
