//! The steps of the profile of a rate.

use serde::{Deserialize, Serialize};

use super::latency::LatencySummary;
use crate::plan::RateStep;

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
    #[must_use]
    pub fn missing_share(&self) -> Option<f64> {
        (self.due > 0).then(|| 1.0 - self.answered as f64 / self.due as f64)
    }
}
