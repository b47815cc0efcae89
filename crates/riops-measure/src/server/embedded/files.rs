//! File operations whose errors name the operation and the file.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::error::{EmbeddedError, Result};
use crate::host::Interrupt;

/// Converts an I/O error into an error that names the operation and the path.
pub(super) fn file<'a>(
    action: &'static str,
    path: &'a Path,
) -> impl FnOnce(io::Error) -> EmbeddedError + 'a {
    move |source| EmbeddedError::File { action, path: path.to_owned(), source }
}

/// Waits for a lock. Calls `on_wait` before the first wait.
///
/// # Errors
/// [`EmbeddedError::Interrupted`], or the error of `try_lock`.
pub(super) fn await_lock(
    interrupt: &Interrupt,
    path: &Path,
    try_lock: impl Fn() -> std::result::Result<(), TryLockError>,
    on_wait: &dyn Fn(),
) -> Result<()> {
    let locked = crate::host::await_lock(interrupt, try_lock, on_wait);
    if locked.map_err(file("lock", path))? { Ok(()) } else { Err(EmbeddedError::Interrupted) }
}

/// Ignores the error of removing a file that does not exist.
pub(super) fn ignore_not_found(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Called before each change of a file: a test stops here, as if riops were killed.
#[cfg(not(test))]
#[expect(clippy::unnecessary_wraps, reason = "the one of the tests fails")]
fn step() -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
use killed::step;

pub(super) fn remove_marker(path: &Path) -> Result<()> {
    step().and_then(|()| ignore_not_found(fs::remove_file(path))).map_err(file("remove", path))
}

pub(super) fn create_dir(path: &Path) -> Result<()> {
    step().and_then(|()| fs::create_dir(path)).map_err(file("create directory", path))
}

pub(super) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    step().and_then(|()| fs::rename(from, to))
}

pub(super) fn remove_dir(path: &Path) -> io::Result<()> {
    step().and_then(|()| fs::remove_dir(path))
}

/// Removes a file, or a directory with its contents.
pub(super) fn remove_dir_all_or_file(path: &Path) -> Result<()> {
    let is_folder = path.is_dir() && !path.is_symlink();
    let remove = || if is_folder { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    step().and_then(|()| remove()).map_err(file("remove", path))
}

/// Creates a file that only its owner can read.
pub(super) fn create_private(path: &Path) -> io::Result<File> {
    step().and_then(|()| File::options().write(true).create_new(true).mode(0o600).open(path))
}

/// Writes a file that only its owner can read, completely or not at all.
pub(super) fn write_private(path: &Path, bytes: &[u8]) -> Result<()> {
    let fresh = path.with_added_extension("new");
    remove_marker(&fresh)?;
    create_private(&fresh)
        .and_then(|mut target| target.write_all(bytes))
        .and_then(|()| rename(&fresh, path))
        .map_err(file("write", path))
}

/// Stops a test at any change of a file, as if riops were killed.
#[cfg(test)]
pub(super) mod killed {
    use std::cell::Cell;
    use std::io;

    thread_local! {
        static LEFT: Cell<Option<u32>> = const { Cell::new(None) };
    }

    /// Calls `act`, which changes nothing any more after this number of changes. Returns whether it would have.
    pub(in super::super) fn after(changes: u32, act: impl FnOnce()) -> bool {
        LEFT.set(Some(changes));
        act();
        LEFT.replace(None).is_none_or(|left| left == 0)
    }

    pub(super) fn step() -> io::Result<()> {
        match LEFT.get() {
            None => Ok(()),
            Some(0) => Err(io::Error::other("killed")),
            Some(left) => {
                LEFT.set(Some(left - 1));
                Ok(())
            }
        }
    }
}
