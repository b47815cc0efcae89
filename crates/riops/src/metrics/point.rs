//! One point of the time series: an interval of a run, over all workers.

use super::counters::{Counter, Counters};
use super::histogram::LatencySummary;
use super::queries::Queries;

/// One interval of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Point {
    /// End of the interval, in seconds since counting started.
    pub t_s: f64,
    /// Length of the interval, in seconds.
    pub seconds: f64,
    /// Successful transactions that ended in the interval.
    pub transactions: u64,
    /// Rows of these transactions.
    pub rows: u64,
    /// Errors in the interval.
    pub errors: u64,
    /// Transactions that failed or whose outcome is unknown.
    pub failed: u64,
    /// Transactions whose response time exceeds the limit.
    pub late: u64,
    /// Starts that were skipped because they could only become late.
    pub skipped: u64,
    /// Retries of transactions.
    pub retries: u64,
    /// Transactions with at least one retry.
    pub retried: u64,
    /// Overdue starts at the end of the interval; only with a target rate.
    pub backlog: Option<u64>,
    /// Sessions with a transaction in flight at the end of the interval; only with a target rate.
    pub busy: Option<u64>,
    /// Lost connections that were replaced.
    pub reconnects: u64,
    /// Answered statements of the transactions that ended in the interval.
    pub queries: Queries,
    /// Transactions per node; empty for a single node.
    pub nodes: Vec<u64>,
    /// Percentile selected in the plan, in microseconds: of the response time with a target rate,
    /// otherwise of the service time.
    pub percentile_us: Option<f64>,
    /// Median service time in microseconds; absent if no transaction ended in the interval.
    pub p50_us: Option<f64>,
    /// 99th percentile of the service time, in microseconds.
    pub p99_us: Option<f64>,
    /// Longest service time, in microseconds.
    pub max_us: Option<f64>,
    /// Median response time in microseconds; only with a target rate.
    pub response_p50_us: Option<f64>,
    /// 99th percentile of the response time, in microseconds.
    pub response_p99_us: Option<f64>,
    /// Longest response time, in microseconds.
    pub response_max_us: Option<f64>,
    /// Mean and standard deviation in microseconds: of the response time with a target rate, otherwise of the service
    /// time.
    pub mean_stdev_us: Option<(f64, f64)>,
    /// Mean delay of the starts in microseconds; only with a target rate.
    pub lag_us: Option<f64>,
    /// The sum of the intervals since the previous checkpoint, if this interval ends at one.
    pub checkpoint: Option<Box<Checkpoint>>,
}

/// The counts and latencies between two checkpoints.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Checkpoint {
    /// All intervals as one.
    pub point: Point,
    /// Response times with a target rate, otherwise service times; absent if no transaction ended.
    pub latency: Option<LatencySummary>,
}

impl Point {
    /// Adds the transactions of an interval, but not their latencies.
    pub(super) fn count_part(&mut self, counters: &Counters, nodes: &[u64]) {
        self.count(counters);
        for (mine, theirs) in self.nodes.iter_mut().zip(nodes) {
            *mine += theirs;
        }
    }

    /// Adds the counts that are part of the time series.
    pub(super) fn count(&mut self, counters: &Counters) {
        for &counter in Counter::ALL {
            let number = match counter {
                Counter::Transactions => &mut self.transactions,
                Counter::Rows => &mut self.rows,
                Counter::ReadQueries => &mut self.queries.read,
                Counter::WriteQueries => &mut self.queries.write,
                Counter::OtherQueries => &mut self.queries.other,
                Counter::Failed | Counter::Unknown => &mut self.failed,
                Counter::Late => &mut self.late,
                Counter::Skipped => &mut self.skipped,
                Counter::Errors => &mut self.errors,
                Counter::Retries => &mut self.retries,
                Counter::Reconnects => &mut self.reconnects,
                Counter::Retried => &mut self.retried,
                Counter::Statements => continue,
            };
            *number += counters.get(counter);
        }
    }
}
