//! Latency summaries, measured or as another tool reported them.

use serde::{Deserialize, Serialize};

use super::heatmap::HeatmapRecord;
use crate::stats::percentile_shown;

/// Count, mean, standard deviation and percentiles of latencies, in microseconds.
#[serde_with::skip_serializing_none]
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
    pub p9999: Option<f64>,
    /// Maximum.
    pub max: f64,
    /// The percentiles from this one on are lower bounds, and so is the mean if p99 is one: transactions that did not
    /// succeed may have taken longer. Absent if all values are exact; 100 is the maximum.
    pub lower_bound_from: Option<f64>,
    /// Percentiles beyond this one have fewer than ten effective values beyond them, because the slow transactions were
    /// those of a few stalls. Absent if only their number matters.
    pub shown_to: Option<f64>,
}

/// The 95% interval of a percentile within a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PercentileInterval {
    /// The percentile, in percent.
    pub percent: f64,
    /// Lower limit, in microseconds.
    pub low_us: f64,
    /// Upper limit, in microseconds.
    pub high_us: f64,
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
            shown_to: None,
        })
    }

    /// Notes which percentiles have ten effective values beyond them, if the latencies are not independent over time.
    pub fn limit_percentiles(&mut self, heatmap: &HeatmapRecord) {
        let values = [self.p50, self.p90, self.p95, self.p99, self.p999, self.p9999.unwrap_or(0.0)];
        let mut last = 0.0;
        for (percent, us) in Self::PERCENTS.into_iter().zip(values) {
            // Of the following ones, the number alone is too small.
            if !percentile_shown(self.count, percent, 1.0) {
                break;
            }
            if !percentile_shown(self.count, percent, 1.0 / heatmap.dispersion(percent, us)) {
                self.shown_to = Some(last);
                break;
            }
            last = percent;
        }
    }

    /// Whether a percentile has ten effective values beyond it.
    #[must_use]
    pub fn is_shown(&self, percent: f64) -> bool {
        percentile_shown(self.count, percent, 1.0) && self.shown_to.is_none_or(|to| percent <= to)
    }

    /// Whether a percentile, or the mean without one, is only a lower bound.
    #[must_use]
    pub fn is_bound(&self, percent: Option<f64>) -> bool {
        self.lower_bound_from.is_some_and(|from| percent.unwrap_or(99.0) >= from)
    }
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

#[cfg(test)]
impl LatencySummary {
    /// Returns a summary with the minimum, the mean and the median `p50_us`, and `p99_us` above the median.
    pub(crate) fn for_test(p50_us: f64, p99_us: f64) -> Self {
        let percentile = |percent| Some(if percent > 50.0 { p99_us } else { p50_us });
        Self::new(10, (p50_us, p50_us, 0.0), percentile).unwrap()
    }
}
