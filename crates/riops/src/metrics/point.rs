//! One point of the time series: an interval of a run, over all workers.

use super::counters::{Counter, Counters};
use crate::record::Point;

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
