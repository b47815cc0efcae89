//! Why an import failed.

use crate::record::SCHEMA;
use crate::server::ConnectionError;
use crate::store::StoreError;

/// Results that cannot be imported. Nothing was stored.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// A file cannot be read.
    #[error("cannot read {file}: {source}")]
    Read {
        /// Name of the file.
        file: String,
        /// Reason.
        source: std::io::Error,
    },
    /// The format is unknown.
    #[error(
        "cannot recognize the format of {0}; specify it with --from (json, ybio, pgbench-log, pgbench-aggregate, pgbench, sysbench)"
    )]
    UnknownFormat(String),
    /// A line does not belong to the format.
    #[error("{file}, line {line}: {reason}")]
    Line {
        /// Name of the file.
        file: String,
        /// Number of the line, from 1.
        line: u64,
        /// Reason.
        reason: String,
    },
    /// The contents are incomplete or contradict each other.
    #[error("{file}: {reason}")]
    Contents {
        /// Name of the file.
        file: String,
        /// Reason.
        reason: String,
    },
    /// A record was written by a newer version of riops.
    #[error(
        "{file}, line {line}: the record has schema {schema}, but this riops supports only {SCHEMA}; use a newer riops"
    )]
    Newer {
        /// Name of the file.
        file: String,
        /// Number of the line, from 1.
        line: u64,
        /// Schema of the record.
        schema: u64,
    },
    /// `--started-at` fits only one run.
    #[error("--started-at fits only one run, but the files contain {0}; import them one by one")]
    SeveralRuns(usize),
    /// `--started-at` contradicts the results.
    #[error("--started-at is not supported: the results contain the start of the run")]
    StartIsKnown,
    /// Another run with this id is stored.
    #[error(
        "run {0} is stored already with different contents; remove it first with `riops runs rm {0}`, or import into another store (--store)"
    )]
    Conflict(String),
    /// The table of ybio cannot be read.
    #[error(
        "cannot read the table benchruns: {0}; specify the database and schema of ybio with -d"
    )]
    Database(Box<ConnectionError>),
    /// The store cannot be accessed.
    #[error(transparent)]
    Store(Box<StoreError>),
}

impl From<ConnectionError> for ImportError {
    fn from(error: ConnectionError) -> Self {
        Self::Database(Box::new(error))
    }
}

impl From<StoreError> for ImportError {
    fn from(error: StoreError) -> Self {
        Self::Store(Box::new(error))
    }
}

impl ImportError {
    /// An error in a line, from 1.
    pub(super) fn line(file: &str, line: u64, reason: impl Into<String>) -> Self {
        Self::Line { file: file.to_owned(), line, reason: reason.into() }
    }

    pub(super) fn contents(file: &str, reason: impl Into<String>) -> Self {
        Self::Contents { file: file.to_owned(), reason: reason.into() }
    }
}
