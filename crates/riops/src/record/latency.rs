//! Latency summaries.

use serde::{Deserialize, Serialize};

use crate::stats::percentile_shown;

/// Count, mean, standard deviation and percentiles of latencies, in microseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LatencySummary {
    /// Number of measured latencies.
    pub count: u64,
    /// Minimum.
    pub min: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation.
    pub stdev: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// 99.99th percentile; absent with fewer than 100,000 latencies, and in records of earlier releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p9999: Option<f64>,
    /// Maximum.
    pub max: f64,
    /// The percentiles from this one on are lower bounds, and so is the mean if p99 is one: transactions that did not
    /// succeed may have taken longer. Absent if all values are exact; 100 is the maximum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lower_bound_from: Option<f64>,
}

impl LatencySummary {
    /// The percentiles, in percent; 100 is the maximum.
    pub const PERCENTS: [f64; 7] = [50.0, 90.0, 95.0, 99.0, 99.9, 99.99, 100.0];

    /// Returns the summary of latencies with these percentiles, in percent; 100 is the maximum. `None` if one that is
    /// always present is not known.
    #[must_use]
    pub fn new(
        count: u64,
        (min, mean, stdev): (f64, f64, f64),
        percentile: impl Fn(f64) -> Option<f64>,
    ) -> Option<Self> {
        Some(Self {
            count,
            min,
            mean,
            stdev,
            p50: percentile(50.0)?,
            p90: percentile(90.0)?,
            p95: percentile(95.0)?,
            p99: percentile(99.0)?,
            p999: percentile(99.9)?,
            p9999: percentile(99.99).filter(|_| percentile_shown(count, 99.99, 1.0)),
            max: percentile(100.0)?,
            lower_bound_from: None,
        })
    }

    /// Whether a percentile, or the mean without one, is only a lower bound.
    #[must_use]
    pub fn is_bound(&self, percent: Option<f64>) -> bool {
        self.lower_bound_from.is_some_and(|from| percent.unwrap_or(99.0) >= from)
    }
}

#[cfg(test)]
impl LatencySummary {
    /// Returns a summary with the minimum, the mean and the median `p50_us`, and `p99_us` above the median.
    pub(crate) fn for_test(p50_us: f64, p99_us: f64) -> Self {
        let percentile = |percent| Some(if percent > 50.0 { p99_us } else { p50_us });
        Self::new(10, (p50_us, p50_us, 0.0), percentile).unwrap()
    }
}
