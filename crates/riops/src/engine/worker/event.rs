//! What a worker sends to the main thread.

use super::super::error::EngineError;
use super::super::findings::AccessFinding;
use super::report::WorkerReport;
use crate::metrics::IntervalPart;

/// An event that a worker sends to the main thread.
#[derive(Debug)]
pub(in crate::engine) enum WorkerEvent {
    /// All sessions are connected, with the findings of their plan checks; or the first of them failed.
    Ready(Result<Vec<AccessFinding>, EngineError>),
    /// The last transaction has ended. Sent only to wake the main thread; the window has the count.
    Finished,
    /// The worker exited without a report.
    Lost,
    /// Counters of a completed interval.
    Interval(Box<IntervalPart>),
    /// The final report.
    Ended(Box<WorkerReport>),
}
