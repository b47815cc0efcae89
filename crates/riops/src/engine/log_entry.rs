//! A transaction in the log.

use crate::units::Nanos;

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoggedOutcome {
    /// It succeeded after this time since its intended start.
    Succeeded(Nanos),
    /// Its start was skipped.
    Skipped,
    /// It failed: with a serialization failure, with a deadlock, or otherwise.
    SerializationFailure,
    Deadlock,
    Failed,
}

/// A transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LogEntry {
    pub(super) session: u64,
    /// Number in the session, from 1.
    pub(super) transaction: u64,
    pub(super) operation: usize,
    pub(super) outcome: LoggedOutcome,
    /// Delay of the start.
    pub(super) lag: Nanos,
    pub(super) retries: u32,
    pub(super) end: Nanos,
}

/// What the lines contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of pgbench")]
pub(super) struct LogColumns {
    /// With a rate.
    pub(super) lag: bool,
    /// Unless transactions are tried only once.
    pub(super) retries: bool,
    /// Whether the limit on the latency skips starts.
    pub(super) skipped: bool,
    /// Whether failures are named by their type.
    pub(super) failures: bool,
}
