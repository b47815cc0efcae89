//! Errors of a fleet.

use crate::plan::PlanError;
use crate::record::HistogramError;
use crate::run::MergeError;
use crate::server::ConnectionError;

/// The error of an agent of a fleet.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// The store cannot be accessed.
    #[error("cannot access the store in which the fleet meets: {0}")]
    Store(#[from] ConnectionError),
    /// The server cannot be reached.
    #[error(transparent)]
    Server(ConnectionError),
    /// The plan cannot be divided.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The agent does not fit the fleet of this name.
    #[error("cannot join fleet \"{name}\": {reason}")]
    Refused {
        /// Name of the fleet.
        name: String,
        /// Reason.
        reason: String,
    },
    /// A fleet of this name has not ended.
    #[error("cannot found fleet \"{0}\": one of this name has not ended")]
    Occupied(String),
    /// The fleet does not start.
    #[error("fleet \"{name}\" does not start: {reason}")]
    NoStart {
        /// Name of the fleet.
        name: String,
        /// Reason.
        reason: String,
    },
    /// A time in the store is too far in the future.
    #[error(
        "the store says that the {what} of the fleet is in {in_s} s, more than {limit_s} s: its clock was set, or its tables were changed"
    )]
    TooFar {
        /// What happens then.
        what: &'static str,
        /// The time until then, in seconds.
        in_s: f64,
        /// The longest one.
        limit_s: u64,
    },
    /// The user has interrupted.
    #[error("interrupted")]
    Interrupted,
    /// Another agent could not merge or store the records.
    #[error("there is no record of the fleet: {0}")]
    NoRecord(String),
    /// The fleet has ended without this agent.
    #[error("fleet \"{0}\" has ended without this agent: it had no heartbeat for too long")]
    EndedWithout(String),
    /// The records do not fit.
    #[error(transparent)]
    Merge(#[from] MergeError),
    /// A histogram of an interval is damaged.
    #[error(transparent)]
    Histogram(#[from] HistogramError),
    /// A record or a plan is no JSON.
    #[error("cannot read or write what the agents of the fleet exchange: {0}")]
    Json(#[from] serde_json::Error),
    /// A record cannot be compressed or decompressed.
    #[error("cannot read or write the record of an agent: {0}")]
    Record(String),
    /// The thread for the heartbeats cannot be started.
    #[error("cannot start a thread: {0}")]
    Thread(#[from] std::io::Error),
}
