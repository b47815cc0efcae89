//! The runs that are merged, and why they cannot be.

use crate::record::{AgentRecord, HistogramError, Record};

/// Failure to merge records.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// The runs are not parts of one load.
    #[error("cannot merge the runs: {0}")]
    Unfit(String),
    /// A histogram is damaged.
    #[error(transparent)]
    Histogram(#[from] HistogramError),
}

/// A run to be merged, with what is known about its client besides its record.
#[derive(Debug, Clone)]
pub struct Part {
    /// Number, host, clock and heartbeats of the client.
    pub agent: AgentRecord,
    /// Its record; `None` if the client was lost.
    pub record: Option<Record>,
}

impl Part {
    /// Returns the part of a client of which nothing else is known. Its number is that of its share, otherwise `number`.
    #[must_use]
    pub fn of(number: u32, record: Record) -> Self {
        let number = record.plan.share.map_or(number, |share| share.agent);
        let host = record.client.machine.host.clone();
        Self { agent: AgentRecord { number, host, ..AgentRecord::default() }, record: Some(record) }
    }
}
