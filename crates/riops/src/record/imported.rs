//! The origin of imported results, and latencies that exist only as another tool reported them.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Where the start of an imported run comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartSource {
    /// From the results.
    Results,
    /// From the user.
    User,
    /// Estimated: the results do not contain it, and the file was last modified at the end of the run.
    FileTime,
    /// Unknown: the time of the import.
    ImportTime,
}

/// Origin of results that riops did not measure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportRecord {
    /// Format of the results: `pgbench-log`, `sysbench`, …
    pub format: String,
    /// Names of the files, without directories; empty for a database.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Time of the import.
    pub imported_at: Timestamp,
    /// Origin of the record's `started_at`.
    pub start: StartSource,
}

/// The start of the latencies.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LatencyKind {
    /// From the send.
    #[default]
    Service,
    /// From the intended start.
    Response,
}

impl LatencyKind {
    /// All kinds.
    pub const ALL: [Self; 2] = [Self::Service, Self::Response];
}

/// A percentile of the latencies.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ReportedPercentile {
    /// Percent: 95 for the 95th percentile.
    pub percent: f64,
    /// The latency, in microseconds.
    pub us: f64,
}

/// Latencies as another tool reported them, in microseconds. What it did not report is absent.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReportedLatency {
    /// The start of the latencies.
    pub kind: LatencyKind,
    /// Minimum.
    pub min_us: Option<f64>,
    /// Arithmetic mean.
    pub mean_us: Option<f64>,
    /// Standard deviation.
    pub stdev_us: Option<f64>,
    /// Percentiles, in ascending order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub percentiles: Vec<ReportedPercentile>,
    /// Maximum.
    pub max_us: Option<f64>,
}

impl ReportedLatency {
    /// Returns the latency of this percentile, if it was reported.
    #[must_use]
    pub fn percentile_us(&self, percent: f64) -> Option<f64> {
        let same = |each: &&ReportedPercentile| (each.percent - percent).abs() < 1e-9;
        self.percentiles.iter().find(same).map(|each| each.us)
    }
}

/// Whether a result can be relied on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Validity {
    /// riops verified it.
    Valid,
    /// riops found a reason against it.
    Invalid,
    /// Imported: riops verified nothing.
    NotVerified,
}
