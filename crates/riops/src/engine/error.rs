//! Errors of a stage without a result.

use crate::metrics::HistogramError;
use crate::server::ConnectionError;

/// Error of a stage that produced no result. An error during the measurement is part of the result instead.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A session could not be opened or set up.
    #[error("cannot open session {session} of {sessions}: {source}")]
    Connect {
        /// Number of the session, from 1.
        session: usize,
        /// Number of sessions of the stage.
        sessions: usize,
        /// Error of the connection.
        source: ConnectionError,
    },
    /// The operating system could not create a thread or a poller.
    #[error("cannot start a worker thread: {0}")]
    Worker(#[from] std::io::Error),
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
