//! Errors that end a session or its connection during a stage.

use std::io;

use riops_wire::backend::ServerError;
use riops_wire::sqlstate::SqlState;

/// Error that ends a session or its connection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// The server returned an error for a statement.
    #[error("statement failed: {0}")]
    Server(Box<ServerError>),
    /// The server returned an error for an EXPLAIN.
    #[error("EXPLAIN of statement \"{statement}\" failed: {error}")]
    Explain {
        /// Name of the statement.
        statement: String,
        /// Error of the server.
        error: Box<ServerError>,
    },
    /// The server closed the connection.
    #[error("server closed the connection during the run{}", .0.as_ref().map_or_else(String::new, |error| format!(": {error}")))]
    Closed(Option<Box<ServerError>>),
    /// Reading or writing failed.
    #[error("connection to the server was lost during the run: {0}")]
    Io(String),
    /// The server violated the wire protocol.
    #[error("protocol violation by the server: {0}")]
    Protocol(String),
    /// A lost connection could not be replaced.
    #[error("reconnect failed: {message}")]
    Reconnect {
        /// SQLSTATE of the server's error, or one of class 08.
        sqlstate: SqlState,
        /// Error of the last attempt.
        message: String,
    },
    /// The operating system of the client refused a thread, a timer or the wait for a socket. Not an error of
    /// the server.
    #[error("error on the client machine: {task}: {error}")]
    Client {
        /// What riops could not do.
        task: &'static str,
        /// Error of the operating system.
        error: String,
    },
    /// A transaction did not finish within the drain timeout.
    #[error("transaction did not finish within {0} s after the end of the measurement")]
    Drain(u64),
}

impl SessionError {
    /// Returns the SQLSTATE of the server's error, or one of class 08 for a lost connection.
    pub(super) fn sqlstate(&self) -> SqlState {
        match self {
            Self::Server(error) | Self::Explain { error, .. } | Self::Closed(Some(error)) => {
                error.sqlstate
            }
            Self::Closed(None) | Self::Io(_) => SqlState::CONNECTION_FAILURE,
            Self::Protocol(_) => SqlState::PROTOCOL_VIOLATION,
            Self::Reconnect { sqlstate, .. } => *sqlstate,
            Self::Drain(_) | Self::Client { .. } => SqlState::UNKNOWN,
        }
    }

    /// Creates the error of a task that failed on the client.
    pub(super) fn client(task: &'static str, error: &io::Error) -> Self {
        Self::Client { task, error: error.to_string() }
    }

    /// Creates the error of a reply that does not follow the protocol.
    pub(super) fn protocol(error: &dyn std::fmt::Display) -> Self {
        Self::Protocol(error.to_string())
    }
}
