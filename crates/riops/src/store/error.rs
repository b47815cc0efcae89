//! Errors of a store.

use crate::summary::{ColumnError, UnknownColumn};
use std::path::PathBuf;

use crate::server::ConnectionError;

/// Failure to store or find a record.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The directory cannot be created.
    #[error(
        "cannot create the directory {path} for the store: {source}; choose another file with --store"
    )]
    Folder {
        /// Path of the directory.
        path: PathBuf,
        /// Reason.
        source: std::io::Error,
    },
    /// The directory of a file other than the default one does not exist.
    #[error("the directory {} of the store {} does not exist: create it, or choose another file with --store", .0.parent().unwrap_or(.0).display(), .0.display())]
    NoFolder(PathBuf),
    /// An SQLite operation failed.
    #[error("cannot access the store {path}: {source}")]
    Sqlite {
        /// Path of the file.
        path: PathBuf,
        /// Error from SQLite.
        source: rusqlite::Error,
    },
    /// Another process has locked a SQLite file.
    #[error("the store {} is locked by another process", .0.display())]
    Locked(PathBuf),
    /// A PostgreSQL operation failed.
    #[error("cannot access the store {location}: {source}")]
    Postgresql {
        /// URL of the database, without its password.
        location: String,
        /// Error of the connection, or from the server.
        source: Box<ConnectionError>,
    },
    /// The store was written by another version of riops.
    #[error("the store {location} has format version {version}, and this riops supports only {known}: {}", if version > known {
        "use a newer riops"
    } else {
        "convert it: OLD-RIOPS runs export --all > runs.json, then `riops runs import runs.json` into a new store"
    })]
    Version {
        /// Path of the file, or URL of the database.
        location: String,
        /// Format version of the store.
        version: usize,
        /// The supported format version.
        known: usize,
    },
    /// A role with fewer rights owns the schema of a store that a superuser would use.
    #[error(
        "the schema riops_store of the store {location} belongs to role \"{owner}\", whose triggers would be executed with the rights of a superuser: connect as \"{owner}\", or change the owner"
    )]
    UntrustedOwner {
        /// URL of the database.
        location: String,
        /// Name of the owner.
        owner: String,
    },
    /// A SQLite file of another program.
    #[error("{} is not a store of riops: it has the tables of another program", .0.display())]
    NoStore(PathBuf),
    /// A value of a table has another type than riops stored.
    #[error(transparent)]
    Value(#[from] ColumnError),
    /// A record cannot be encoded or decoded as JSON.
    #[error("cannot read or write the record \"{id}\" as JSON: {source}")]
    Json {
        /// Id of the record.
        id: String,
        /// Reason.
        source: serde_json::Error,
    },
    /// The run is stored already.
    #[error("run \"{0}\" is stored already")]
    Exists(String),
    /// The run does not exist.
    #[error("run \"{0}\" not found in the store; list all runs with `riops runs list`")]
    NotFound(String),
    /// Several runs match.
    #[error("run id \"{prefix}\" is ambiguous: {count} runs match; give more characters of the id")]
    Ambiguous {
        /// Part of the id that was given.
        prefix: String,
        /// Number of matching runs.
        count: usize,
    },
    /// No run has this label, tag or id.
    #[error(
        "no stored run has the label, tag or id \"{text}\"{known}; list all runs with `riops runs list`"
    )]
    NoMatch {
        /// The text that was given.
        text: String,
        /// The most similar label, or the newest ones, as the end of a sentence; empty for a tag.
        known: String,
    },
    /// The store contains no runs.
    #[error("the store {0} has no runs yet; start one with `riops run rows`")]
    Empty(String),
    /// The experiment is stored already.
    #[error("experiment \"{0}\" is stored already")]
    ExperimentExists(String),
    /// The experiment does not exist.
    #[error("experiment \"{0}\" not found in the store")]
    ExperimentNotFound(String),
    /// Several experiments match.
    #[error(
        "experiment id \"{prefix}\" is ambiguous: {count} experiments match; give more characters of the id"
    )]
    AmbiguousExperiment {
        /// Part of the id that was given.
        prefix: String,
        /// Number of matching experiments.
        count: usize,
    },
    /// The store contains no experiments.
    #[error("the store {0} has no experiments yet; start one with `riops sweep`")]
    NoExperiments(String),
    /// The file that locks an experiment cannot be accessed.
    #[error(
        "cannot lock the file {path} of an experiment: {source}; the directory of the store must be writable"
    )]
    Lock {
        /// Path of the file.
        path: PathBuf,
        /// Reason.
        source: std::io::Error,
    },
    /// The order of a list is not a column.
    #[error(transparent)]
    UnknownColumn(#[from] UnknownColumn),
}

impl StoreError {
    /// The failure of an operation on the PostgreSQL database at this location.
    pub(super) fn postgresql(location: &str, source: ConnectionError) -> Self {
        Self::Postgresql { location: location.to_owned(), source: Box::new(source) }
    }

    /// Returns whether the connection to the database was lost, so that another one may succeed.
    pub(super) fn is_connection_lost(&self) -> bool {
        use ConnectionError::{Closed, Connect, Io, Protocol};
        matches!(self, Self::Postgresql { source, .. }
            if matches!(**source, Io(_) | Closed(_) | Connect { .. } | Protocol(_)))
    }
}
