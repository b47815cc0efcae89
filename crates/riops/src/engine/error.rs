//! Why a stage gave no result.

use crate::metrics::HistogramError;
use crate::server::ConnectionError;

/// Why a stage gave no result at all. What ends it later is part of the result.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A session could not be opened or made ready.
    #[error("session {session} of {sessions} could not be opened: {source}")]
    Connect {
        /// Which, from 1.
        session: usize,
        /// Of how many.
        sessions: usize,
        /// Why.
        source: ConnectionError,
    },
    /// The operating system refused a thread or a poller.
    #[error("a worker could not be started: {0}")]
    Worker(#[from] std::io::Error),
    /// Memory for the histograms.
    #[error(transparent)]
    Histogram(#[from] HistogramError),
    /// A statement does not take the access path that it promises, before anything was measured.
    #[error(
        "the access path of {statement} is not kept: promised {expected}; the server would do this instead, so nothing was measured:\n{found}"
    )]
    AccessPath {
        /// Name of the prepared statement.
        statement: String,
        /// The promise.
        expected: String,
        /// The plan, one node a line.
        found: String,
    },
    /// A worker ended without its report.
    #[error("a worker ended unexpectedly")]
    WorkerLost,
}
