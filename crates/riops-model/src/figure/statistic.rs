//! The statistics of a latency, each with one entry: columns, metrics and texts take them from here. Percentiles of several runs
//! come from merged histograms, and all of them need enough samples.

use crate::plan::Quantity;
use crate::record::{
    AtLeast, Latencies, LatencyKind, LatencySummary, LoopRecord, Point, ReportedLatency,
    StageRecord,
};
use crate::stats::{effective_sample_size, is_percentile_shown};

/// Reads a value of an interval.
type OfPoint = fn(&Point) -> Option<f64>;

/// A statistic of a latency, in microseconds.
pub struct Statistic {
    /// Spelling in the record and in columns.
    pub key: &'static str,
    /// Name in texts.
    pub name: &'static str,
    /// Percent: 95 for the 95th percentile, 100 for the maximum; absent for what is not a percentile.
    pub percent: Option<f64>,
    /// The columns of the service and the response time.
    columns: [&'static str; 2],
    summary: fn(&LatencySummary) -> Option<f64>,
    /// The value that another tool reported; for a percentile, the value with the same percent.
    reported: Option<fn(&ReportedLatency) -> Option<f64>>,
    /// The service and the response time in an interval of the series, if it has them.
    points: Option<[OfPoint; 2]>,
}

/// Makes an entry without a value in an interval.
macro_rules! statistic {
    ($key:literal, $name:literal, $percent:expr, $summary:expr, $reported:expr) => {
        Statistic {
            key: $key,
            name: $name,
            percent: $percent,
            columns: [concat!("service_", $key, "_us"), concat!("response_", $key, "_us")],
            summary: $summary,
            reported: $reported,
            points: None,
        }
    };
    ($key:literal, $name:literal, $percent:literal, $summary:expr) => {
        statistic!($key, $name, Some($percent), $summary, None)
    };
}

/// All statistics, in the order of columns and texts.
pub static STATISTICS: [Statistic; 10] = [
    statistic!("min", "min", None, |summary| Some(summary.min), Some(|reported| reported.min_us)),
    statistic!(
        "mean",
        "mean",
        None,
        |summary| Some(summary.mean),
        Some(|reported| reported.mean_us)
    ),
    statistic!(
        "stdev",
        "stdev",
        None,
        |summary| Some(summary.stdev),
        Some(|reported| reported.stdev_us)
    ),
    statistic!("p50", "p50", 50.0, |summary| Some(summary.p50))
        .in_series([|point| point.p50_us, |point| point.response_p50_us]),
    statistic!("p90", "p90", 90.0, |summary| Some(summary.p90)),
    statistic!("p95", "p95", 95.0, |summary| Some(summary.p95)),
    statistic!("p99", "p99", 99.0, |summary| Some(summary.p99))
        .in_series([|point| point.p99_us, |point| point.response_p99_us]),
    statistic!("p999", "p99.9", 99.9, |summary| Some(summary.p999)),
    statistic!("p9999", "p99.99", 99.99, |summary| summary.p9999)
        .in_series([|point| point.p9999_us, |point| point.response_p9999_us]),
    statistic!(
        "max",
        "max",
        Some(100.0),
        |summary| Some(summary.max),
        Some(|reported| reported.max_us)
    )
    .in_series([|point| point.max_us, |point| point.response_max_us]),
];

impl Statistic {
    const fn in_series(self, points: [OfPoint; 2]) -> Self {
        Self { points: Some(points), ..self }
    }

    /// Returns the statistics that every interval of the series has.
    pub fn of_series() -> impl Iterator<Item = &'static Self> {
        STATISTICS.iter().filter(|statistic| statistic.points.is_some())
    }

    /// Returns the percentiles with the maximum.
    pub fn percentiles() -> impl Iterator<Item = &'static Self> {
        STATISTICS.iter().filter(|statistic| statistic.percent.is_some())
    }

    /// Returns the entry of a percentile.
    pub fn percentile(percent: f64) -> Option<&'static Self> {
        STATISTICS.iter().find(|statistic| statistic.percent == Some(percent))
    }

    /// Returns the entry with this key.
    pub fn named(key: &str) -> Option<&'static Self> {
        STATISTICS.iter().find(|statistic| statistic.key == key)
    }

    /// Whether the value in a summary is only a lower bound.
    pub fn is_bound(&self, summary: &LatencySummary) -> bool {
        self.key != "min" && summary.is_bound(self.percent)
    }

    /// Returns the name of the column with the value of a stage.
    pub fn column(&self, kind: LatencyKind) -> &'static str {
        kind.pick(self.columns)
    }

    /// Returns the name of the column with the number of latencies.
    pub fn count_column(kind: LatencyKind) -> &'static str {
        kind.pick(["service_count", "response_count"])
    }

    /// Returns the name of the column with the lowest percentile that is a lower bound.
    pub fn bound_column(kind: LatencyKind) -> &'static str {
        kind.pick(["service_lower_bound_from", "response_lower_bound_from"])
    }

    /// Returns the name of the value in the record of an interval.
    pub fn series_column(&self, kind: LatencyKind) -> &'static str {
        self.column(kind).trim_start_matches("service_")
    }

    /// Returns the share of a percentile as text: `0.99`.
    pub fn quantile(&self) -> Option<String> {
        // In floating point 99.9 / 100 is slightly above 0.999.
        self.percent.map(|percent| ((percent * 1e3).round() / 1e5).to_string())
    }

    /// Returns the value in a summary; `None` for a percentile with fewer than ten effective values beyond it.
    pub fn value(&self, summary: &LatencySummary) -> Option<f64> {
        let is_extreme = |percent: &f64| *percent == 100.0;
        let percent = self.percent.filter(|percent| !is_extreme(percent));
        let is_shown = percent.is_none_or(|percent| summary.is_shown(percent));
        (self.summary)(summary).filter(|_| is_shown)
    }

    /// Returns the value of a kind of latencies of a stage, as it was measured or as another tool reported it.
    pub fn of_loop(&self, session_loop: &LoopRecord, kind: LatencyKind) -> Option<f64> {
        if let Some(summary) = session_loop.summary_us(kind) {
            return self.value(summary);
        }
        let reported =
            session_loop.reported_latency.as_ref().filter(|reported| reported.kind == kind)?;
        match self.reported {
            Some(value) => value(reported),
            None => reported.percentile_us(self.percent?),
        }
    }

    /// Returns the value of a kind of latencies in an interval.
    pub fn of_point(&self, point: &Point, kind: LatencyKind) -> Option<f64> {
        kind.pick(self.points?)(point)
    }

    /// Returns the latency in an interval that users wait for: response times with a rate, otherwise service times.
    pub fn of_users(&self, point: &Point) -> Option<f64> {
        let latency = |kind| self.of_point(point, kind);
        latency(LatencyKind::Response).or_else(|| latency(LatencyKind::Service))
    }
}

/// Returns a percentile of the latency in one run, in microseconds.
pub(super) fn percentile_of(percent: f64, stage: &StageRecord) -> Option<AtLeast> {
    let latency = stage.session_loop.latency_us()?;
    let statistic = Statistic::percentile(percent)?;
    is_percentile_shown(latency.count, percent, effective_share(percent, stage))
        .then(|| statistic.value(latency))?
        .map(|value| AtLeast { value, is_bound: statistic.is_bound(latency) })
}

/// Returns a percentile over several runs, in microseconds, from their merged histograms.
pub(super) fn percentile_of_all<'a>(
    percent: f64,
    mut stages: impl Iterator<Item = &'a StageRecord>,
) -> Option<AtLeast> {
    let first = stages.next()?;
    let (mut all, mut share): (Latencies, f64) =
        (first.session_loop.latencies()?, effective_share(percent, first));
    for stage in stages {
        all.merge(&stage.session_loop.latencies()?).ok()?;
        share = share.min(effective_share(percent, stage));
    }
    let is_shown = is_percentile_shown(all.observed.count(), percent, share);
    all.figure(Quantity::Percentile(percent)).ok()?.filter(|_| is_shown)
}

/// Effective samples per sample, 0 to 1: transactions of one stall are not independent. From the numbers of latencies
/// beyond the percentile over time; in records of earlier releases, from the medians of the intervals.
fn effective_share(percent: f64, stage: &StageRecord) -> f64 {
    let latency = stage.session_loop.latency_us();
    if let Some((heatmap, latency)) = stage.session_loop.latency_heatmap.as_ref().zip(latency) {
        let us = Statistic::percentile(percent).and_then(|statistic| (statistic.summary)(latency));
        return us.map_or(1.0, |us| 1.0 / heatmap.dispersion(percent, us));
    }
    let series = stage.session_loop.series.iter();
    let medians: Vec<f64> =
        series.filter_map(|point| point.response_p50_us.or(point.p50_us)).collect();
    if medians.is_empty() {
        return 1.0;
    }
    effective_sample_size(&medians) / medians.len() as f64
}
