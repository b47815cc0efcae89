//! What a worker has to say at its end.

use super::super::findings::AccessFinding;
use super::super::session::{SessionError, SessionTally};
use crate::metrics::Recorder;
use crate::units::Nanos;
use crate::workload::transaction::Effects;

/// Everything that the database acknowledged, in all phases.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Acknowledged {
    /// Transactions.
    pub transactions: u64,
    /// Rows.
    pub rows: u64,
    /// Rows of transactions whose outcome is unknown, at most.
    pub rows_unknown: u64,
    /// Transactions whose outcome is unknown.
    pub transactions_unknown: u64,
    /// What has changed, for workloads that count it.
    pub effects: Effects,
    /// What may have changed beside that, at most.
    pub effects_unknown: Effects,
}

/// What became of the starts that a rate intended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Starts {
    /// Starts that fell into the measurement.
    pub intended: u64,
    /// Those of them that were still waiting for a free session at its end.
    pub waiting: u64,
    /// How long the oldest of these had waited.
    pub oldest_wait: Nanos,
}

#[derive(Debug)]
pub(in crate::engine) struct WorkerReport {
    pub(in crate::engine) recorder: Recorder,
    pub(in crate::engine) acknowledged: Vec<Acknowledged>,
    pub(in crate::engine) wrong_replies: u64,
    pub(in crate::engine) findings: Vec<AccessFinding>,
    pub(in crate::engine) sessions: Vec<SessionTally>,
    pub(in crate::engine) drained: u64,
    pub(in crate::engine) drained_max: Nanos,
    /// Transactions that were still under way at the end, and failed or are unknown.
    pub(in crate::engine) drained_lost: u64,
    pub(in crate::engine) last_end: Nanos,
    pub(in crate::engine) cpu_s: f64,
    /// Only where a rate is set.
    pub(in crate::engine) starts: Option<Starts>,
    /// Starts within the measurement that were taken.
    pub(super) starts_taken: u64,
    pub(in crate::engine) failure: Option<SessionError>,
}

impl WorkerReport {
    pub(in crate::engine) fn new(
        recorder: Recorder,
        operations: usize,
        measure_start: Nanos,
    ) -> Self {
        Self {
            recorder,
            acknowledged: vec![Acknowledged::default(); operations],
            wrong_replies: 0,
            findings: Vec::new(),
            sessions: Vec::new(),
            drained: 0,
            drained_max: Nanos(0),
            drained_lost: 0,
            last_end: measure_start,
            cpu_s: 0.0,
            starts: None,
            starts_taken: 0,
            failure: None,
        }
    }
}
