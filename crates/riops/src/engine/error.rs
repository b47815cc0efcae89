//! Errors of a stage without a result.

use riops_wire::sqlstate::SqlState;

use crate::record::HistogramError;
use crate::server::ConnectionError;

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
    Worker(#[from] std::io::Error),
    /// The log of single transactions could not be created.
    #[error("cannot create the log of transactions: {0}")]
    Log(std::io::Error),
    /// The driver `io_uring` was requested and cannot be used.
    #[error("cannot use io_uring: {0}; run without --driver io-uring to use epoll")]
    NoRing(&'static str),
    /// The memory for the histograms could not be allocated.
    #[error(transparent)]
    Histogram(#[from] HistogramError),
    /// A statement does not use its expected access path before the run.
    #[error(
        "nothing was measured: statement \"{statement}\" does not use the expected access path ({expected}); the server's plan is:\n{found}"
    )]
    AccessPath {
        /// Name of the prepared statement.
        statement: String,
        /// Expected access path.
        expected: String,
        /// The server's plan, one node per line.
        found: String,
    },
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

/// Why a session with this number in the stage could not be started.
#[derive(Debug)]
pub(super) enum StartError {
    /// It could not be opened or set up.
    Connect(u64, ConnectionError),
    /// The clock of its server could not be read.
    Clock(u64, ConnectionError),
    /// The ring of its worker could not be created.
    Ring(std::io::Error),
    /// The log of its worker could not be created.
    Log(std::io::Error),
}

impl StartError {
    /// Returns the error of a stage with this many sessions.
    pub(super) fn into_engine_error(self, sessions: usize) -> EngineError {
        let from_one = |number| usize::try_from(number).unwrap_or(usize::MAX).saturating_add(1);
        match self {
            Self::Connect(number, source) => {
                EngineError::Connect { session: from_one(number), sessions, source }
            }
            Self::Clock(number, source) => {
                EngineError::Clock { session: from_one(number), sessions, source: Box::new(source) }
            }
            Self::Ring(error) => EngineError::Worker(error),
            Self::Log(error) => EngineError::Log(error),
        }
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
