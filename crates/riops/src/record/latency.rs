//! Latency summaries.

use serde::{Deserialize, Serialize};

use super::convert::from_measured;
use crate::metrics;

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

from_measured!(LatencySummary from metrics::LatencySummary {
    count, min, mean, stdev, p50, p90, p95, p99, p999, max,
});
