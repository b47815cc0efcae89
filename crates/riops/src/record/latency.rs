//! Latency summaries.

use serde::{Deserialize, Serialize};

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
    /// Maximum.
    pub max: f64,
}

#[cfg(test)]
impl LatencySummary {
    /// Returns a summary with the minimum, the mean and the median `p50_us`, and `p99_us` above the median.
    pub(crate) fn for_test(p50_us: f64, p99_us: f64) -> Self {
        Self {
            count: 10,
            min: p50_us,
            mean: p50_us,
            stdev: 0.0,
            p50: p50_us,
            p90: p99_us,
            p95: p99_us,
            p99: p99_us,
            p999: p99_us,
            max: p99_us,
        }
    }
}
