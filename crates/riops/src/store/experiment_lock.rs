//! Lets at most one process conduct an experiment.
//!
//! Both kinds of locks are released by the operating system or by the server when the process ends, however it ends.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;

use super::error::StoreError;
use crate::host::output_file::{create_private_directory, private_file};
use crate::record::ExperimentId;
use crate::server::Connection;
use crate::units::text::hash_text;

const LOCK: &str = include_str!("../../sql/store/experiment_lock.postgresql.sql");
/// A server that does not respond within this time is lost.
const RESPONSE_TIMEOUT: Duration = Duration::from_mins(1);
/// How often a file is opened again that another process removed at the same time.
const ATTEMPTS: usize = 20;
/// A symbolic link is not followed.
const NO_LINK: i32 = OFlags::NOFOLLOW.bits().cast_signed();

/// The locked experiment.
#[derive(Debug, Clone, Copy)]
pub(super) enum LockKey<'a> {
    /// The experiment with this id.
    Experiment(&'a ExperimentId),
    /// All experiments of the fleet with this name.
    Fleet(&'a str),
}

impl LockKey<'_> {
    /// Returns the key in a PostgreSQL store.
    fn text(self) -> String {
        match self {
            Self::Experiment(id) => id.to_string(),
            Self::Fleet(name) => format!("fleet {name}"),
        }
    }

    /// Returns the name of the lock file, which is in no other directory whatever the name of a fleet is.
    fn file_name(self) -> String {
        match self {
            Self::Experiment(id) => format!("{id}.lock"),
            Self::Fleet(name) => format!("fleet-{}.lock", hash_text(name)),
        }
    }
}

/// The right to conduct an experiment. Dropping it releases the right.
#[derive(Debug)]
pub struct ExperimentLock {
    _file: Option<FileLock>,
    /// The session that holds the lock, with the location of the store.
    session: Option<(String, Box<Connection>)>,
}

/// A locked file. Removes it when dropped, before the lock ends with the file.
#[derive(Debug)]
struct FileLock {
    path: PathBuf,
    _file: File,
}

impl Drop for FileLock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
        // Fails if the directory contains other locks.
        if let Some(directory) = self.path.parent() {
            let _ = fs::remove_dir(directory);
        }
    }
}

impl ExperimentLock {
    /// Fails if the lock was lost: its session on a PostgreSQL store has ended. A lock on a file cannot be lost.
    ///
    /// # Errors
    /// [`StoreError`] if the connection is broken.
    pub fn check(&mut self) -> Result<(), StoreError> {
        let Some((location, session)) = &mut self.session else {
            return Ok(());
        };
        session.set_deadline(Some(Instant::now() + RESPONSE_TIMEOUT));
        session.execute("").map_err(|source| StoreError::postgresql(location, source))
    }

    /// Locks a file beside the store; `None` if another process has locked it.
    pub(super) fn file(store: &Path, key: LockKey<'_>) -> Result<Option<Self>, StoreError> {
        let mut directory = store.as_os_str().to_owned();
        directory.push(".experiments");
        let path = PathBuf::from(directory).join(key.file_name());
        let locked = lock_file(&path);
        let locked = locked.map_err(|source| StoreError::Lock { path: path.clone(), source })?;
        let lock = |file| Self { _file: Some(FileLock { path, _file: file }), session: None };
        Ok(locked.map(lock))
    }

    /// Locks the experiment in a dedicated session; `None` if another session has locked it.
    pub(super) fn postgresql(
        location: &str,
        mut session: Connection,
        key: LockKey<'_>,
    ) -> Result<Option<Self>, StoreError> {
        session.set_deadline(Some(Instant::now() + RESPONSE_TIMEOUT));
        let rows = session.query_with(LOCK, &[Some(&key.text())]);
        let rows = rows.map_err(|source| StoreError::postgresql(location, source))?;
        let is_locked = rows.first().and_then(|row| row.first()?.as_deref()) == Some("t");
        let session = Some((location.to_owned(), Box::new(session)));
        Ok(is_locked.then_some(Self { _file: None, session }))
    }
}

/// Opens and locks a file.
fn lock_file(path: &Path) -> std::io::Result<Option<File>> {
    for _ in 0..ATTEMPTS {
        if let Some(directory) = path.parent() {
            create_private_directory(directory)?;
        }
        let mut options = private_file();
        let opened = options.truncate(false).write(true).custom_flags(NO_LINK).open(path);
        let file = match opened {
            // Another process removed the directory meanwhile.
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            opened => opened?,
        };
        // A lock file has no contents, and is removed afterwards.
        if file.metadata()?.len() > 0 {
            return Err(std::io::Error::other("the file is not a lock of riops: it is not empty"));
        }
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => return Ok(None),
            locked => locked?,
        }
        // The previous holder may have removed the file between the two calls. A third process would then
        // lock a new one.
        let is_same = fs::metadata(path).is_ok_and(|current| {
            file.metadata()
                .is_ok_and(|held| (held.dev(), held.ino()) == (current.dev(), current.ino()))
        });
        if is_same {
            return Ok(Some(file));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_private() {
        let folder = tempfile::tempdir().unwrap();
        let id = ExperimentId::random();
        let lock =
            ExperimentLock::file(&folder.path().join("runs.sqlite"), LockKey::Experiment(&id));
        let lock = lock.unwrap().unwrap();
        let directory = folder.path().join("runs.sqlite.experiments");
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!((mode(&directory), mode(&directory.join(format!("{id}.lock")))), (0o700, 0o600));
        drop(lock);
        assert!(!directory.exists());
    }

    #[test]
    fn only_an_empty_file_in_the_directory_of_the_locks_is_locked_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let (store, id) = (folder.path().join("runs.sqlite"), ExperimentId::random());
        let directory = folder.path().join("runs.sqlite.experiments");
        let locked = || ExperimentLock::file(&store, LockKey::Experiment(&id));
        let fleet = ExperimentLock::file(&store, LockKey::Fleet("../../other")).unwrap();
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
        drop(fleet);
        let (lock, other) = (directory.join(format!("{id}.lock")), folder.path().join("other"));
        fs::create_dir(&directory).unwrap();
        fs::write(&other, b"").unwrap();
        std::os::unix::fs::symlink(&other, &lock).unwrap();
        assert!(locked().is_err());
        fs::remove_file(&lock).unwrap();
        fs::write(&lock, b"[package]").unwrap();
        assert!(locked().unwrap_err().to_string().contains("not empty"));
        assert_eq!(fs::read(&lock).unwrap(), b"[package]");
        fs::write(&lock, b"").unwrap();
        drop(locked().unwrap().unwrap());
        assert!(!lock.exists() && other.exists());
    }
}
