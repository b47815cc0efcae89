//! Errors of runs without a record.

use crate::dataset::DatasetError;
use crate::engine::EngineError;
use crate::server::{ConnectionError, ServerError};
use riops_model::plan::PlanError;
use riops_model::record::HistogramError;

/// The error of a run without a record. An error after the first stage is part of the record instead.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The plan is invalid.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The plan is not supported by this server or this machine.
    #[error("{0}")]
    Unsuitable(String),
    /// The observed command cannot be started.
    #[error("cannot start the command \"{command}\": {source}")]
    Command {
        /// Its program.
        command: String,
        /// Reason of the failure.
        source: std::io::Error,
    },
    /// A precondition of the run is not met.
    #[error("{0}")]
    Precondition(String),
    /// The server is unsuitable.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// A connection or a statement failed.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// The dataset cannot be created, used or dropped.
    #[error(transparent)]
    Dataset(#[from] DatasetError),
    /// A stage gave no result.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// A histogram cannot be serialized.
    #[error(transparent)]
    Histogram(#[from] HistogramError),
    /// The server, the role or a pool permits fewer connections than the run needs.
    #[error("{source}; connections that the run needs at a time: {needed}")]
    TooFewConnections {
        /// Number of sessions, and of the connection that holds the lock on the dataset.
        needed: u64,
        /// Error of the connection that was not permitted.
        source: Box<RunError>,
    },
    /// An error with the failed operation.
    #[error("{context}: {source}")]
    Context {
        /// Operation that failed.
        context: String,
        /// Reason of the failure.
        source: Box<RunError>,
    },
}

/// The kind of an error, which determines the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The user interrupted the run.
    Interrupted,
    /// The plan is invalid or not supported by the server.
    Usage,
    /// An access path is not as expected.
    NotValid,
    /// The observed command does not exist.
    CommandNotFound,
    /// The observed command exists and cannot be started.
    CommandNotExecutable,
    /// Anything else.
    Failed,
}

impl RunError {
    /// Returns the kind of the error.
    pub fn kind(&self) -> ErrorKind {
        let of_connection = |error: &ConnectionError| match error {
            ConnectionError::Interrupted => ErrorKind::Interrupted,
            ConnectionError::TooFewNodes { .. } => ErrorKind::Usage,
            _ => ErrorKind::Failed,
        };
        match self.cause() {
            Self::Plan(_)
            | Self::Unsuitable(_)
            | Self::Server(ServerError::TransactionPool(_))
            | Self::Dataset(
                DatasetError::Differs { .. }
                | DatasetError::Unsupported { .. }
                | DatasetError::Unadoptable(_)
                | DatasetError::OtherSchema { .. }
                | DatasetError::Server(ServerError::TransactionPool(_)),
            ) => ErrorKind::Usage,
            Self::Command { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
                ErrorKind::CommandNotFound
            }
            Self::Command { .. } => ErrorKind::CommandNotExecutable,
            Self::Engine(EngineError::AccessPath { .. }) => ErrorKind::NotValid,
            Self::Engine(EngineError::Interrupted) => ErrorKind::Interrupted,
            _ => self.connection_error().map_or(ErrorKind::Failed, of_connection),
        }
    }

    /// Returns the error of the connection or of a statement, if it is the reason.
    pub fn connection_error(&self) -> Option<&ConnectionError> {
        match self.cause() {
            Self::Connection(error)
            | Self::Server(ServerError::Connection(error))
            | Self::Dataset(
                DatasetError::Connection(error)
                | DatasetError::Server(ServerError::Connection(error)),
            )
            | Self::Engine(EngineError::Connect { source: error, .. }) => Some(error),
            Self::Engine(EngineError::Clock { source, .. }) => Some(source),
            _ => None,
        }
    }

    /// Returns the error without the contexts that were added to it.
    fn cause(&self) -> &Self {
        match self {
            Self::Context { source, .. } | Self::TooFewConnections { source, .. } => source.cause(),
            error => error,
        }
    }

    /// Whether a session could not be opened because there are too many connections, or because a pool had none.
    pub(super) fn is_for_want_of_connections(&self) -> bool {
        matches!(self, Self::Engine(EngineError::Connect { source, .. }) if source.is_for_want_of_connections())
    }

    /// Whether the stage failed to start.
    pub(super) fn is_start_failure(&self) -> bool {
        matches!(
            self.cause(),
            Self::Engine(
                EngineError::Connect { .. }
                    | EngineError::Clock { .. }
                    | EngineError::AccessPath { .. }
                    | EngineError::NoStart(_)
                    | EngineError::Interrupted
            )
        )
    }

    /// Whether the error occurred before any statement of the stage, so that the stage has changed nothing.
    pub(super) fn precedes_any_statement(&self) -> bool {
        !matches!(self.cause(), Self::Engine(_)) || self.is_start_failure()
    }
}

/// Adds the failed operation to an error.
pub(super) trait Context<T> {
    /// Prefixes the error with the context.
    fn with_context(self, context: impl FnOnce() -> String) -> Result<T, RunError>;
}

impl<T, E: Into<RunError>> Context<T> for Result<T, E> {
    fn with_context(self, context: impl FnOnce() -> String) -> Result<T, RunError> {
        self.map_err(|error| RunError::Context {
            context: context(),
            source: Box::new(error.into()),
        })
    }
}
