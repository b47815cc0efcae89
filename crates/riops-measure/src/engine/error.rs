//! Errors of a stage without a result, and errors that end a session or its connection during a stage.

use std::fmt::Display;
use std::io;

use riops_wire::backend::ServerError;
use riops_wire::sqlstate::SqlState;

use crate::server::ConnectionError;
use riops_model::record::HistogramError;

/// Error of a stage that produced no result. An error during the measurement is part of the result instead.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A session could not be opened or set up.
    #[error("cannot open session {session} of {sessions}: {source}{}", advice(source))]
    Connect {
        /// Number of the session, from 1.
        session: usize,
        /// Number of sessions of the stage.
        sessions: usize,
        /// Error of the connection.
        source: ConnectionError,
    },
    /// The server's clock, on which the start and the end of a server-side loop are set, could not be read.
    #[error("cannot read the clock of the server for session {session} of {sessions}: {source}")]
    Clock {
        /// Number of the session, from 1.
        session: usize,
        /// Number of sessions of the stage.
        sessions: usize,
        /// Error of the connection or of the query.
        source: Box<ConnectionError>,
    },
    /// The operating system could not create a thread or a poller.
    #[error("cannot start a worker thread: {0}")]
    Worker(#[from] io::Error),
    /// The log of single transactions could not be created.
    #[error("cannot create the log of transactions: {0}")]
    Log(io::Error),
    /// The driver `io_uring` was requested and cannot be used.
    #[error("cannot use io_uring: {0}; run without --driver io-uring to use epoll")]
    NoRing(&'static str),
    /// The memory for the histograms could not be allocated.
    #[error(transparent)]
    Histogram(#[from] HistogramError),
    /// A statement does not use its expected access path before the run.
    #[error(
        "nothing was measured: statement \"{statement}\" does not use the expected access path ({expected}); the server's plan is:\n{plan}"
    )]
    AccessPath {
        /// Name of the prepared statement.
        statement: String,
        /// Expected access path.
        expected: String,
        /// The server's plan, one node per line.
        plan: String,
    },
    /// The user interrupted before the start.
    #[error("interrupted")]
    Interrupted,
    /// The clients that share the plan did not agree on a start.
    #[error("nothing was measured: {0}")]
    NoStart(String),
    /// A worker thread exited without a report.
    #[error("a worker thread exited unexpectedly")]
    WorkerLost,
}

/// Names of statements belong to one connection, except on servers such as `PGlite` and behind poolers that do not track
/// them.
fn advice(source: &ConnectionError) -> &'static str {
    match source {
        ConnectionError::Server(error) if error.sqlstate == SqlState::DUPLICATE_STATEMENT_NAME => {
            "; connections to this server share their prepared statements: use --protocol extended"
        }
        _ => "",
    }
}

impl EngineError {
    /// Creates the error of the session at `position` of the stage, from 0, if it could not be opened.
    pub(super) fn connect(position: u64, sessions: usize, source: ConnectionError) -> Self {
        Self::Connect { session: ordinal(position), sessions, source }
    }

    /// Creates the error of a session whose server's clock could not be read.
    pub(super) fn clock(position: u64, sessions: usize, source: ConnectionError) -> Self {
        Self::Clock { session: ordinal(position), sessions, source: Box::new(source) }
    }
}

fn ordinal(position: u64) -> usize {
    usize::try_from(position).unwrap_or(usize::MAX).saturating_add(1)
}

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
        /// Action that failed.
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
    pub(super) fn protocol(error: impl Display) -> Self {
        Self::Protocol(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use riops_wire::backend::ServerError;

    use super::*;

    #[test]
    fn a_shared_prepared_statement_has_advice() {
        let error = |sqlstate| {
            let error = ServerError {
                severity: "ERROR".to_owned(),
                sqlstate,
                message: "prepared statement".to_owned(),
                detail: None,
                hint: None,
                others: Vec::new(),
            };
            let source = ConnectionError::Server(Box::new(error));
            EngineError::Connect { session: 2, sessions: 2, source }.to_string()
        };
        let advice = "use --protocol extended";
        assert!(error(SqlState::DUPLICATE_STATEMENT_NAME).ends_with(advice));
        assert!(!error(SqlState::INVALID_STATEMENT_NAME).contains(advice));
    }
}
