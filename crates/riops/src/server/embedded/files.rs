//! File operations whose errors name the operation and the file.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use super::error::{EmbeddedError, Result};
use crate::host::Interrupt;

/// Converts an I/O error into an error that names the operation and the path.
pub(super) fn file<'a>(
    action: &'static str,
    path: &'a Path,
) -> impl FnOnce(io::Error) -> EmbeddedError + 'a {
    move |source| EmbeddedError::File { action, path: path.to_owned(), source }
}

/// How often a lock is tried, and an interrupt is noticed.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Waits for a lock: a blocking wait would not end on a signal. Calls `on_wait` before the first wait.
///
/// # Errors
/// [`EmbeddedError::Interrupted`], or the error of `try_lock`: a file system without lock support is an error.
pub(super) fn await_lock(
    interrupt: &Interrupt,
    path: &Path,
    try_lock: impl Fn() -> std::result::Result<(), TryLockError>,
    on_wait: &dyn Fn(),
) -> Result<()> {
    let mut is_waiting = false;
    while let Err(error) = try_lock() {
        if let TryLockError::Error(source) = error {
            return Err(file("lock", path)(source));
        }
        if interrupt.requested() {
            return Err(EmbeddedError::Interrupted);
        }
        if !std::mem::replace(&mut is_waiting, true) {
            on_wait();
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(())
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

/// Writes a file that only its owner can read, completely or not at all.
pub(super) fn write_private(path: &Path, bytes: &[u8]) -> Result<()> {
    let fresh = path.with_added_extension("new");
    ignore_not_found(fs::remove_file(&fresh)).map_err(file("remove", &fresh))?;
    File::options()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&fresh)
        .and_then(|mut target| target.write_all(bytes))
        .and_then(|()| fs::rename(&fresh, path))
        .map_err(file("write", path))
}
