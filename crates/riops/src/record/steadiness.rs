//! How the rate changed over a stage.

use serde::{Deserialize, Serialize};

/// The rates at both ends of a stage, and whether its mean describes it. Source and thresholds:
/// `metrics::steadiness`.
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
    /// Whether the mean describes the stage.
    pub steady: bool,
}
