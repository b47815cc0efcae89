//! The time series of a stage, and how the rate or the response time changed over it.

use serde::{Deserialize, Serialize};

use super::counts::Queries;
use super::histogram::StoredHistogram;
use super::latency::LatencySummary;
use crate::stats::is_percentile_shown;

/// One interval of a stage.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// End of the interval, in seconds since the measurement started.
    pub t_s: f64,
    /// Length of the interval, in seconds.
    pub seconds: f64,
    /// Transactions that ended in the interval.
    pub transactions: u64,
    /// Rows of these transactions.
    pub rows: u64,
    /// Errors.
    pub errors: u64,
    /// Transactions that failed or whose outcome is unknown.
    #[serde(default)]
    pub failed: u64,
    /// Transactions that exceeded the latency limit; absent if another tool did not report them.
    pub late: Option<u64>,
    /// Intended starts that were skipped because the transaction would have been late.
    #[serde(default)]
    pub skipped: u64,
    /// Retried transactions.
    #[serde(default)]
    pub retries: u64,
    /// Intended starts that were due but not sent at the end of the interval; only with a rate.
    pub backlog: Option<u64>,
    /// Sessions with a transaction in flight at the end of the interval; only with a rate.
    pub busy: Option<u64>,
    /// Broken connections that were replaced.
    #[serde(default)]
    pub reconnects: u64,
    /// Statements of the transactions that ended in the interval, by kind.
    #[serde(default, skip_serializing_if = "Queries::is_none")]
    pub queries: Queries,
    /// Transactions of each node; empty with a single node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<u64>,
    /// The percentile of the plan, in microseconds: of the response time with a rate, otherwise of the
    /// service time.
    pub percentile_us: Option<f64>,
    /// Mean latency in microseconds; only of another tool that reported it.
    pub mean_us: Option<f64>,
    /// Median service time in microseconds; absent if no transaction ended in the interval.
    pub p50_us: Option<f64>,
    /// 99th percentile of the service time, in microseconds.
    pub p99_us: Option<f64>,
    /// 99.99th percentile of the service time, in microseconds; absent with fewer than 100,000 transactions.
    pub p9999_us: Option<f64>,
    /// Maximum service time, in microseconds.
    pub max_us: Option<f64>,
    /// Median response time in microseconds; only with a rate.
    pub response_p50_us: Option<f64>,
    /// 99th percentile of the response time, in microseconds.
    pub response_p99_us: Option<f64>,
    /// 99.99th percentile of the response time, in microseconds; absent with fewer than 100,000 transactions.
    pub response_p9999_us: Option<f64>,
    /// Maximum response time, in microseconds.
    pub response_max_us: Option<f64>,
    /// Lowest and highest rate of transactions per second of the intervals of `--interval` that the point covers; absent if it covers one.
    pub transactions_per_s_range: Option<(f64, f64)>,
    /// The latencies of the interval, for merging the series with the series of other clients.
    pub histograms: Option<Box<PointHistograms>>,
    /// Transactions with at least one retry; only while the run is in progress.
    #[serde(skip)]
    pub retried: u64,
    /// Mean and standard deviation of the latency in microseconds; only while the run is in progress.
    #[serde(skip)]
    pub mean_stdev_us: Option<(f64, f64)>,
    /// Mean delay of the starts in microseconds; only with a rate and while the run is in progress.
    #[serde(skip)]
    pub lag_us: Option<f64>,
    /// The intervals since the previous checkpoint, if the interval ends at one.
    pub checkpoint: Option<Box<Checkpoint>>,
}

impl Point {
    /// Widens the range of the rates of a point that covers this interval.
    pub fn cover(&mut self, interval: &Self) {
        let rate = interval.transactions as f64 / interval.seconds.max(f64::MIN_POSITIVE);
        let (least, most) = self.transactions_per_s_range.unwrap_or((rate, rate));
        self.transactions_per_s_range = Some((least.min(rate), most.max(rate)));
    }

    /// Sets the latencies of the transactions from the percentiles of service and response times in microseconds; 100
    /// is the maximum.
    pub fn set_latencies(
        &mut self,
        service: impl Fn(f64) -> Option<f64>,
        response: impl Fn(f64) -> Option<f64>,
    ) {
        (self.p50_us, self.response_p50_us) = (service(50.0), response(50.0));
        (self.p99_us, self.response_p99_us) = (service(99.0), response(99.0));
        if is_percentile_shown(self.transactions, 99.99, 1.0) {
            (self.p9999_us, self.response_p9999_us) = (service(99.99), response(99.99));
        }
        (self.max_us, self.response_max_us) = (service(100.0), response(100.0));
    }
}

/// The latencies of an interval, with two significant digits.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PointHistograms {
    /// Service times.
    pub service: StoredHistogram,
    /// Response times; only with a rate.
    pub response: Option<StoredHistogram>,
}

/// The counts and latencies between two checkpoints.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// All intervals as one.
    pub point: Point,
    /// Response times with a rate, otherwise service times, in microseconds; absent if no transaction ended.
    pub latency: Option<LatencySummary>,
}

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
    pub fn grows(&self) -> bool {
        let is_longer = self.inside > self.outside;
        self.of_response && (self.is_at_end && is_longer || self.from_s == 0.0 && !is_longer)
    }
}
