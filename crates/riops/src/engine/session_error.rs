//! Errors that end a session or its connection.

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
            Self::Drain(_) => SqlState::UNKNOWN,
        }
    }

    pub(super) fn protocol(error: &dyn std::fmt::Display) -> Self {
        Self::Protocol(error.to_string())
    }
}
