//! The share of one kind of transactions: as requested and as executed.

use serde::{Deserialize, Serialize};

/// Deviations up to this are accepted: the percentage of a plan is an integer.
const DEVIATION_POINTS: f64 = 1.0;

/// The requested and the executed share of an operation in a stage with several kinds of transactions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MixRecord {
    /// Name of the operation.
    pub operation: String,
    /// Unit of the shares: `rows` or `transactions`.
    pub unit: String,
    /// Requested share, in percent.
    pub asked_percent: f64,
    /// Share within the measurement, in percent.
    pub executed_percent: f64,
    /// Deviation that the number of transactions explains, in percentage points: four binomial standard errors of
    /// the requested share, or one transaction more or less in each session.
    pub chance_points: f64,
}

impl MixRecord {
    /// Returns whether the executed share is the requested one, to one percentage point.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.deviation_points() <= DEVIATION_POINTS
    }

    /// Returns whether the executed share differs by more than the number of transactions explains.
    #[must_use]
    pub fn is_missed(&self) -> bool {
        !self.is_kept() && self.deviation_points() > self.chance_points
    }

    fn deviation_points(&self) -> f64 {
        (self.executed_percent - self.asked_percent).abs()
    }
}
