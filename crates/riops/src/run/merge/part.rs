//! The runs that are merged, and why they cannot be.

use crate::record::{AgentRecord, HistogramError, Record, StageRecord};

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
    /// Leaves out what was not measured: the stages from the first one on that ended before its measurement began. Without any
    /// stage, the client has no result.
    pub(super) fn leave_out_unmeasured(&mut self) {
        let Some(record) = &mut self.record else {
            return;
        };
        let is_measured = |stage: &StageRecord| stage.seconds > 0.0;
        let measured = record.stages.iter().position(|stage| !is_measured(stage));
        record.stages.truncate(measured.unwrap_or(record.stages.len()));
        if record.stages.is_empty() {
            let reason = record.failure.as_deref().unwrap_or(record.status.as_str());
            self.agent.failure = Some(format!("ended before it measured: {reason}"));
            self.agent.run = Some(record.id);
            self.record = None;
        }
    }

    /// Returns the part of a client of which nothing else is known. Its number is that of its share, otherwise `number`.
    #[must_use]
    pub fn of(number: u32, record: Record) -> Self {
        let number = record.plan.share.map_or(number, |share| share.agent);
        let host = record.client.machine.host.clone();
        Self { agent: AgentRecord { number, host, ..AgentRecord::default() }, record: Some(record) }
    }
}
