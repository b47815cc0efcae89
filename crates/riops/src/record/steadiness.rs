//! How the rate or the response time changed over a stage.

use serde::{Deserialize, Serialize};

/// The rates at both ends of a stage, and whether its mean describes it. Source and thresholds:
/// `metrics::steadiness`.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct SteadinessRecord {
    /// Number of intervals.
    pub intervals: usize,
    /// Transactions per second in the first fifth of the intervals.
    pub first_fifth_transactions_per_s: f64,
    /// Transactions per second in the last fifth.
    pub last_fifth_transactions_per_s: f64,
    /// Rows per second in the first fifth of the intervals.
    pub first_fifth_rows_per_s: f64,
    /// Rows per second in the last fifth.
    pub last_fifth_rows_per_s: f64,
    /// Share of the intervals that MSER-5 truncates at the start or at the end, 0 to 0.5.
    pub truncated_share: f64,
    /// Share of the intervals whose rate is far below the median, 0 to 1.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub low_share: f64,
    /// The part of the stage that differs from the rest, if one does.
    pub shift: Option<Shift>,
    /// Whether the mean describes the stage.
    pub steady: bool,
}

/// A part of a stage that differs from the rest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Shift {
    /// Start, in seconds since the start of the measurement.
    pub from_s: f64,
    /// End, in seconds.
    pub to_s: f64,
    /// Whether the part lasts until the end.
    pub is_at_end: bool,
    /// Mean in the part: transactions per second, or the response time in microseconds.
    pub inside: f64,
    /// Mean in the rest.
    pub outside: f64,
    /// Whether it is a response time.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub of_response: bool,
}

impl Shift {
    /// Whether the response time grows: it is longer at the end, or shorter at the start.
    #[must_use]
    pub fn grows(&self) -> bool {
        let is_longer = self.inside > self.outside;
        self.of_response && (self.is_at_end && is_longer || self.from_s == 0.0 && !is_longer)
    }
}
