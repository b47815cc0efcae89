//! One point of the series: an interval of a run, over all workers.

use super::counters::{Counter, Counters};
use super::queries::Queries;

/// One interval of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Point {
    /// The interval's end, in seconds since counting started.
    pub t_s: f64,
    /// Its length.
    pub seconds: f64,
    /// Transactions that ended in it.
    pub transactions: u64,
    /// Their rows.
    pub rows: u64,
    /// Errors in it.
    pub errors: u64,
    /// Transactions that failed in it or whose outcome is unknown.
    pub failed: u64,
    /// Transactions that were late.
    pub late: u64,
    /// Starts that were left out since they could only become late.
    pub skipped: u64,
    /// Transactions that were sent again.
    pub retries: u64,
    /// Starts that were due at its end and had not happened; only where a rate is set.
    pub backlog: Option<u64>,
    /// Broken connections that were replaced in it.
    pub reconnects: u64,
    /// Statements that were answered, of the transactions that ended in it.
    pub queries: Queries,
    /// Transactions of each node, where there are several.
    pub nodes: Vec<u64>,
    /// The percentile that the plan names, in microseconds: of the response time where a rate is set,
    /// else of the service time.
    pub percentile_us: Option<f64>,
    /// Median service time in microseconds; absent where nothing ended in the interval.
    pub p50_us: Option<f64>,
    /// 99th percentile of it.
    pub p99_us: Option<f64>,
    /// The longest.
    pub max_us: Option<f64>,
    /// Median response time in microseconds; only where a rate is set.
    pub response_p50_us: Option<f64>,
    /// 99th percentile of it.
    pub response_p99_us: Option<f64>,
    /// The longest.
    pub response_max_us: Option<f64>,
}

impl Point {
    /// Adds the counts that the series has.
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
                Counter::Statements => continue,
            };
            *number += counters.get(counter);
        }
    }
}
