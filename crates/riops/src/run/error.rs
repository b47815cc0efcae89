//! Why a run gave no record.

use crate::dataset::DatasetError;
use crate::engine::EngineError;
use crate::metrics::HistogramError;
use crate::plan::PlanError;
use crate::server::{ConnectionError, ServerError};

/// Why a run gave no record. What ends a run after its first stage is part of the record.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The plan cannot be run.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The plan cannot be run on this server or from this machine.
    #[error("{0}")]
    Unsuitable(String),
    /// Something that the run needs is missing or in the way.
    #[error("{0}")]
    Precondition(String),
    /// The server cannot be used.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// A connection or a statement failed.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// The dataset cannot be made, used or dropped.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// A stage did not come to a measurement.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A histogram cannot be written.
    #[error(transparent)]
    Histogram(#[from] HistogramError),
    /// A part of the run failed.
    #[error("{part}: {source}")]
    Part {
        /// What failed.
        part: String,
        /// Why.
        source: Box<RunError>,
    },
}

/// What kind of error it is, for an exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The user ended it.
    Interrupted,
    /// The plan is wrong, or contradicts the server.
    Usage,
    /// An access path is not as expected.
    NotValid,
    /// Anything else.
    Failed,
}

impl RunError {
    /// What kind of error it is.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        let of_connection = |error: &ConnectionError| match error {
            ConnectionError::Interrupted => ErrorKind::Interrupted,
            _ => ErrorKind::Failed,
        };
        match self {
            Self::Part { source, .. } => source.kind(),
            Self::Plan(_)
            | Self::Unsuitable(_)
            | Self::Server(ServerError::TransactionPool(_))
            | Self::Dataset(
                DatasetError::Differs { .. }
                | DatasetError::Unsupported { .. }
                | DatasetError::Unadoptable(_)
                | DatasetError::Server(ServerError::TransactionPool(_)),
            ) => ErrorKind::Usage,
            Self::Engine(EngineError::AccessPath { .. }) => ErrorKind::NotValid,
            Self::Connection(error)
            | Self::Server(ServerError::Connection(error))
            | Self::Dataset(
                DatasetError::Connection(error)
                | DatasetError::Server(ServerError::Connection(error)),
            )
            | Self::Engine(EngineError::Connect { source: error, .. }) => of_connection(error),
            _ => ErrorKind::Failed,
        }
    }

    /// Whether a stage that failed with it did not start.
    pub(super) fn is_of_a_start(&self) -> bool {
        match self {
            Self::Part { source, .. } => source.is_of_a_start(),
            Self::Engine(EngineError::Connect { .. } | EngineError::AccessPath { .. }) => true,
            _ => false,
        }
    }

    /// Whether a stage that failed with it has certainly changed nothing.
    pub(super) fn came_before_any_statement(&self) -> bool {
        match self {
            Self::Part { source, .. } => source.came_before_any_statement(),
            Self::Engine(_) => self.is_of_a_start(),
            _ => true,
        }
    }
}

/// Names the part of a run that failed.
pub(super) trait Part<T> {
    /// The same, with the part in front of the error.
    fn part(self, part: impl FnOnce() -> String) -> Result<T, RunError>;
}

impl<T, E: Into<RunError>> Part<T> for Result<T, E> {
    fn part(self, part: impl FnOnce() -> String) -> Result<T, RunError> {
        self.map_err(|error| RunError::Part { part: part(), source: Box::new(error.into()) })
    }
}
