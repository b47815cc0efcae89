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
    /// Creates the error of a session that could not be opened. `number` is that in the stage, from 0.
    pub(super) fn connect(number: u64, sessions: usize, source: ConnectionError) -> Self {
        Self::Connect { session: from_one(number), sessions, source }
    }

    /// Creates the error of a session whose server's clock could not be read.
    pub(super) fn clock(number: u64, sessions: usize, source: ConnectionError) -> Self {
        Self::Clock { session: from_one(number), sessions, source: Box::new(source) }
    }
}

fn from_one(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX).saturating_add(1)
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
