//! Compliance with the schedule of a rate, its steps, and the latency limit.

use serde::{Deserialize, Serialize};

use super::latency::LatencySummary;
use crate::plan::RateStep;

/// Transactions that exceeded the latency limit. Values that another tool did not report are absent.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct LateRecord {
    /// The limit, in microseconds.
    pub limit_us: Option<f64>,
    /// Transactions that exceeded the limit, measured from the intended start.
    pub transactions: Option<u64>,
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

/// The transactions that were due in a step of the profile of a rate. `due` is the sum of the counts below it.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepRecord {
    /// The requested rate.
    #[serde(flatten)]
    pub step: RateStep,
    /// Start of the step, in seconds since the start of the measurement.
    pub start_s: f64,
    /// Intended starts in the step.
    pub due: u64,
    /// Transactions that succeeded within the measurement, also after the end of the step.
    pub answered: u64,
    /// Transactions that failed or whose outcome is unknown.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub failed: u64,
    /// Intended starts that were skipped because the transaction would have been late.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub skipped: u64,
    /// Transactions in flight at the end of the measurement.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub unanswered: u64,
    /// Intended starts that waited for a free session at the end of the measurement.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub not_started: u64,
    /// Response times of these transactions, in microseconds; absent if none succeeded.
    pub response_us: Option<LatencySummary>,
}

impl StepRecord {
    /// Returns the share of the transactions that were due and did not succeed, 0 to 1; `None` if none was due.
    pub fn missing_share(&self) -> Option<f64> {
        (self.due > 0).then(|| 1.0 - self.answered as f64 / self.due as f64)
    }
}
