//! Compliance with the schedule of a rate and with the latency limit.

use serde::{Deserialize, Serialize};

use super::latency::LatencySummary;

/// Transactions that exceeded the latency limit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LateRecord {
    /// The limit, in microseconds.
    pub limit_us: f64,
    /// Transactions that exceeded the limit, measured from the intended start.
    pub transactions: u64,
    /// Transactions that were not sent because they would have been late.
    pub skipped: u64,
}

/// Intended and actual starts of transactions.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ScheduleRecord {
    /// Intended starts within the measurement.
    pub intended: u64,
    /// Intended starts at which a transaction was sent.
    pub sent: u64,
    /// Intended starts that were skipped because the transaction would have been late.
    pub skipped: u64,
    /// Intended starts that still waited for a free session at the end.
    pub waiting: u64,
    /// Transactions in flight at the end, which were due in the measurement and not answered in it.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub unanswered: u64,
    /// Waiting time of the oldest of the waiting starts, in microseconds.
    pub oldest_wait_us: f64,
    /// Starts of the warm-up that still waited for a free session when the measurement started.
    #[serde(default)]
    pub backlog_at_start: u64,
    /// Longest time between the intended and the actual start, in microseconds, including waits for a free session.
    pub lag_max_us: Option<f64>,
    /// Scheduling delay of the client when a session was free, in microseconds.
    pub start_lag_us: Option<LatencySummary>,
}
