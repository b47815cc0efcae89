//! The counts of each interval of the series, with one entry each: columns and metrics take them from here.

use crate::record::{LiveTotals, Point, Record, StageRecord};

/// A number of events.
pub struct Count {
    /// Name of the column, and of the metric after `riops_`.
    pub key: &'static str,
    /// Description.
    pub help: &'static str,
    /// The number in an interval; `None` if another tool did not report it.
    pub in_interval: fn(&Point) -> Option<u64>,
    /// The number in the intervals of a stage so far.
    pub total: fn(&LiveTotals) -> u64,
    /// Whether it is counted only with a latency limit.
    needs_limit: bool,
}

/// Declares the entries, with the fields of the record that have the numbers.
macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident = $field:ident $key:literal $needs_limit:literal $help:literal;)+) => {
        $(
            $(#[$doc])*
            pub static $name: Count = Count {
                key: $key,
                help: $help,
                in_interval: |point| point.$field.into(),
                total: |totals| totals.$field,
                needs_limit: $needs_limit,
            };
        )+

        /// All counts.
        pub static COUNTS: [&Count; [$($key),+].len()] = [$(&$name),+];
    };
}

counts! {
    /// Transactions that succeeded.
    TRANSACTIONS = transactions "transactions" false
        "Transactions that succeeded since the start of the stage";
    /// Rows of these transactions.
    ROWS = rows "rows" false
        "Rows read or written by these transactions, counted from the replies";
    /// Errors.
    ERRORS = errors "errors" false
        "Errors, including those that were retried";
    /// Transactions that failed or whose outcome is unknown.
    FAILED = failed "failed_transactions" false
        "Transactions that failed or whose outcome is unknown";
    /// Retried transactions.
    RETRIES = retries "retries" false
        "Retries of transactions";
    /// Transactions that exceeded the latency limit.
    LATE = late "late_transactions" true
        "Transactions that exceeded the latency limit";
    /// Intended starts that were skipped.
    SKIPPED = skipped "skipped_starts" true
        "Intended starts that were skipped because the transaction would have been late";
    /// Broken connections that were replaced.
    RECONNECTS = reconnects "reconnects" false
        "Broken connections that were replaced";
}

impl Count {
    /// Returns whether the numbers of a stage are known. In an imported run, zero in the whole stage may also mean unknown.
    pub fn is_known(&self, record: &Record, stage: &StageRecord) -> bool {
        let is_counted = if self.needs_limit {
            record.plan.latency_limit.is_some()
        } else {
            record.imported.is_none()
        };
        let mut counts = stage.session_loop.series.iter().filter_map(self.in_interval);
        if is_counted {
            stage.session_loop.series.is_empty() || counts.next().is_some()
        } else {
            counts.any(|count| count > 0)
        }
    }
}

/// Returns a number of events of an interval per second; `None` for an empty interval.
pub fn per_second(count: u64, point: &Point) -> Option<f64> {
    (point.seconds > 0.0).then(|| count as f64 / point.seconds)
}
