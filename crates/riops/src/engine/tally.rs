//! Work of the sessions: plain data.

use super::backend::Backend;
use crate::units::Nanos;

/// Work of one session for one operation within the measurement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of transactions.
    pub transactions: u64,
    /// Number of rows.
    pub rows: u64,
    /// Longest service time, in nanoseconds.
    pub longest: Nanos,
    /// Sum of the service times, in nanoseconds.
    pub busy: Nanos,
}

/// Work of one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionTally {
    /// Number of the session in the stage, from 0.
    pub number: u64,
    /// Number of the node of its last connection, from 0.
    pub node: usize,
    /// Process id of the backend of its last connection.
    pub process: i32,
    /// That backend with its start time, if the workload terminates sessions.
    pub backend: Option<Backend>,
    /// Number of transactions that were started in all phases.
    pub started: u64,
    /// Work by operation.
    pub operations: Vec<Tally>,
}

impl SessionTally {
    /// Returns the number of transactions of all operations.
    #[must_use]
    pub fn transactions(&self) -> u64 {
        self.operations.iter().map(|tally| tally.transactions).sum()
    }
}
