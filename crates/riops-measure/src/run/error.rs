//! Errors of runs without a record.

use crate::dataset::DatasetError;
use crate::engine::EngineError;
use crate::server::{ConnectionError, ServerError};
use riops_model::plan::PlanError;
use riops_model::record::HistogramError;
use riops_model::units::sql::identifier;

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
    /// The server cannot be brought into the state for the run.
    #[error(transparent)]
    CleanStart(#[from] CleanStartError),
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

/// Why the server could not be brought into the state for a run.
#[derive(Debug, thiserror::Error)]
pub enum CleanStartError {
    /// The role may not run CHECKPOINT.
    #[error(
        "role \"{role}\" has no privilege to run CHECKPOINT: {}, or omit it",
        checkpoint_hint(*.has_role, .role)
    )]
    Checkpoint {
        /// Name of the role.
        role: String,
        /// Whether the server has the predefined role `pg_checkpoint`.
        has_role: bool,
    },
    /// The tables of the dataset cannot be found.
    #[error("cannot find the tables of the dataset to vacuum them: {0}")]
    Dataset(#[from] DatasetError),
    /// The connection or a statement failed, or the user interrupted it.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
}

/// The predefined role `pg_checkpoint` exists since PostgreSQL 15.
fn checkpoint_hint(has_role: bool, role: &str) -> String {
    let role = identifier(role);
    if has_role {
        format!("grant it with `GRANT pg_checkpoint TO {role}`")
    } else {
        "before PostgreSQL 15, it requires a superuser".to_owned()
    }
}

impl CleanStartError {
    /// Returns whether the user interrupted the preparation.
    pub fn is_interrupted(&self) -> bool {
        matches!(
            self,
            Self::Connection(ConnectionError::Interrupted)
                | Self::Dataset(DatasetError::Connection(ConnectionError::Interrupted))
        )
    }
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
            | Self::CleanStart(
                CleanStartError::Connection(error)
                | CleanStartError::Dataset(DatasetError::Connection(error)),
            )
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

    /// Whether the plan needs a dataset with other parameters.
    pub fn needs_other_dataset(&self) -> bool {
        matches!(self.cause(), Self::Dataset(DatasetError::Differs { .. }))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_privilege_names_the_grant() {
        let error =
            |has_role| CleanStartError::Checkpoint { role: "my \"role".to_owned(), has_role };
        let text = error(true).to_string();
        assert!(text.contains("`GRANT pg_checkpoint TO \"my \"\"role\"`"), "{text}");
        let text = error(false).to_string();
        assert!(text.contains("superuser") && text.contains("omit it"), "{text}");
    }
}
