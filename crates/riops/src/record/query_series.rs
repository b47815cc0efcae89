//! The values of queries of the user over time.

use serde::{Deserialize, Serialize};

/// What a query returned over a stage.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct QuerySeries {
    /// Name.
    pub name: String,
    /// The statement.
    pub sql: String,
    /// The values that were read.
    pub points: Vec<QueryPoint>,
    /// Number of executions that failed, took too long or did not return a number.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub failures: u64,
    /// The first of these errors.
    pub error: Option<String>,
}

/// A value of a query.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct QueryPoint {
    /// Time of the result, in seconds since the measurement started.
    pub t_s: f64,
    /// The value.
    pub value: f64,
}

impl QuerySeries {
    /// Returns the mean of the values.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        let sum: f64 = self.points.iter().map(|point| point.value).sum();
        (!self.points.is_empty()).then(|| sum / self.points.len() as f64)
    }

    /// Returns the largest value.
    #[must_use]
    pub fn max(&self) -> Option<f64> {
        self.points.iter().map(|point| point.value).reduce(f64::max)
    }

    /// Returns the value that was read last up to a time.
    #[must_use]
    pub fn at(&self, t_s: f64) -> Option<f64> {
        let before = self.points.partition_point(|point| point.t_s <= t_s);
        Some(self.points.get(before.checked_sub(1)?)?.value)
    }
}
