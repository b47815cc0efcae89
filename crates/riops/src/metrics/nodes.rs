//! Counters of one node of a server with several nodes, collected by one worker.

use super::counters::Counters;
use super::outage::{ErrorTimes, Gaps};
use crate::record::{Histogram, HistogramError};
use crate::units::Nanos;

/// Counters of one node.
#[derive(Debug, Clone)]
pub struct NodeTotals {
    /// Counters; transactions with an unknown outcome are counted in all phases.
    pub counters: Counters,
    /// Service times: from the first send to the end of the last reply.
    pub service: Histogram,
    /// Periods without a success on this node.
    pub gaps: Gaps,
    /// Times of errors on this node, by SQLSTATE.
    pub error_times: ErrorTimes,
}

impl NodeTotals {
    /// Creates empty counters.
    ///
    /// # Errors
    /// Returns [`HistogramError::Unusable`] if a histogram cannot be created or merged.
    pub fn new() -> Result<Self, HistogramError> {
        Ok(Self {
            counters: Counters::default(),
            service: Histogram::new()?,
            gaps: Gaps::default(),
            error_times: ErrorTimes::default(),
        })
    }

    /// Records the service time of a transaction that ended at `now`.
    pub(super) fn success(&mut self, service: Nanos, now: Nanos) {
        self.service.record(service);
        self.gaps.success(now);
    }

    /// Adds the counters of the same node from another worker.
    ///
    /// # Errors
    /// Returns [`HistogramError::Unusable`] if a histogram cannot be created or merged.
    pub fn merge(&mut self, other: &Self) -> Result<(), HistogramError> {
        self.counters.merge(&other.counters);
        self.service.merge(&other.service)?;
        self.gaps.intersect(&other.gaps);
        self.error_times.merge(&other.error_times);
        Ok(())
    }
}

/// Returns the imbalance between nodes: the transactions of the busiest node divided by the mean per
/// node. 1 means an even distribution; with n nodes, n means that one node runs all transactions.
/// `None` without transactions.
#[must_use]
pub fn imbalance(transactions: &[u64]) -> Option<f64> {
    let total: u64 = transactions.iter().sum();
    let most = transactions.iter().copied().max()?;
    (total > 0).then(|| most as f64 * transactions.len() as f64 / total as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imbalance_is_one_for_an_even_distribution_and_n_if_one_of_n_nodes_runs_everything() {
        assert_eq!(imbalance(&[10, 10, 10]), Some(1.0));
        assert_eq!(imbalance(&[30, 0, 0]), Some(3.0));
        assert_eq!(imbalance(&[20, 10]), Some(2.0 * 20.0 / 30.0));
        assert_eq!((imbalance(&[]), imbalance(&[0, 0])), (None, None));
    }

    #[test]
    fn merging_intersects_the_gaps_of_all_workers() {
        let second = |number: u64| Nanos(number * 1_000_000_000);
        let mut first = NodeTotals::new().unwrap();
        let mut other = NodeTotals::new().unwrap();
        for totals in [&mut first, &mut other] {
            totals.gaps.begin(Nanos(0));
        }
        first.success(Nanos(5), second(3));
        other.success(Nanos(7), second(2));
        other.success(Nanos(9), second(4));
        first.merge(&other).unwrap();
        assert_eq!((first.service.count(), first.service.max()), (3, Nanos(9)));
        assert!((first.gaps.longest_s().unwrap() - 2.0).abs() < 1e-9);
    }
}
