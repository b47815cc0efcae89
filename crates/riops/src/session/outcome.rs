//! How a run ends: with a record, which is in the store, or in a file if it cannot be stored; or without one.

use std::fmt;
use std::path::PathBuf;

use crate::fleet::FleetError;
use crate::host::{Interrupt, OutputFile};
use crate::record::Record;
use crate::run::RunError;
use crate::store::{self, Store, StoreError, StoreLocation};
use crate::units::text::{json_text, shell_word};

/// Failure of a run that has no record.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The run failed before its first result.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The clients could not meet.
    #[error(transparent)]
    Fleet(#[from] FleetError),
    /// The fleet ended without the record of this client, which is in a file.
    #[error(transparent)]
    NotStored(#[from] NotStored),
}

/// A run that has ended.
#[derive(Debug)]
pub struct Ran {
    /// The record of the fleet if this agent has stored it, otherwise of this client.
    pub record: Record,
    /// Whether it was stored.
    pub saved: Saved,
    /// Id of the record of the fleet, and the exit code of its run.
    pub of_fleet: Option<(String, u8)>,
}

/// Whether a record was stored.
#[derive(Debug)]
pub enum Saved {
    /// It was not to be stored.
    No,
    /// It is in this store.
    In(String),
    /// It could not be stored.
    Failed(NotStored),
}

impl Saved {
    /// Returns the failure.
    ///
    /// # Errors
    /// [`NotStored`] if it could not be stored.
    pub fn into_result(self) -> Result<(), NotStored> {
        match self {
            Self::Failed(error) => Err(error),
            Self::No | Self::In(_) => Ok(()),
        }
    }
}

/// A record that could not be stored: the disk is full, or the connection to the store was lost.
#[derive(Debug)]
pub struct NotStored {
    reason: String,
    /// The file with the record, or why there is none.
    kept: Result<PathBuf, String>,
}

impl fmt::Display for NotStored {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = &self.reason;
        match &self.kept {
            Ok(path) => {
                let (shown, word) = (path.display(), shell_word(&path.display().to_string()));
                write!(
                    formatter,
                    "{reason}; the record is in {shown}: store it with `riops runs import {word}`"
                )
            }
            Err(failures) => write!(formatter, "{reason}; the record is lost: {failures}"),
        }
    }
}

impl std::error::Error for NotStored {}

impl NotStored {
    /// Writes a record to a file in the current directory, otherwise in the directory for temporary files.
    pub fn keep(record: &Record, reason: &dyn std::error::Error) -> Self {
        let name = format!("riops-run-{}.json", record.id);
        let folders = [std::env::current_dir().ok(), Some(std::env::temp_dir())];
        let mut failures = Vec::new();
        for path in folders.into_iter().flatten().map(|folder| folder.join(&name)) {
            let text = json_text(record).map_err(std::io::Error::from);
            match text.and_then(|text| OutputFile::write(&path, text.as_bytes())) {
                Ok(()) => return Self { reason: reason.to_string(), kept: Ok(path) },
                Err(failure) => {
                    failures.push(format!("cannot write {}: {failure}", path.display()));
                }
            }
        }
        Self { reason: reason.to_string(), kept: Err(failures.join("; ")) }
    }
}

/// Stores a record in the open store, or opens it.
pub(super) fn save(open: Option<&Store>, location: &StoreLocation, record: &Record) -> Saved {
    let save = |store: &Store| {
        match store.save(record) {
            // Another agent of the fleet has stored it, and has ended since.
            Err(StoreError::Exists(_)) if !record.agents.is_empty() => Ok(store.location()),
            saved => saved.map(|()| store.location()),
        }
    };
    let saved = match open {
        Some(store) => save(store),
        // An interrupt has ended the run, which is stored.
        None => store::open(location, &Interrupt::new()).and_then(|store| save(&store)),
    };
    // A failed save must not prevent the result from being shown.
    saved.map_or_else(|error| Saved::Failed(NotStored::keep(record, &error)), Saved::In)
}
