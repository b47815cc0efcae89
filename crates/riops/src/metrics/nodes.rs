//! What one worker counts of one node of the target. Only where there are several.

use super::counters::Counters;
use super::histogram::{Histogram, HistogramError};
use super::outage::{ErrorTimes, Gaps};
use crate::units::Nanos;

/// The counters of one node.
#[derive(Debug, Clone)]
pub struct NodeTotals {
    /// What was counted of it; transactions whose outcome is unknown, in all phases.
    pub counters: Counters,
    /// From the first send to the end of the last reply.
    pub service: Histogram,
    /// When nothing succeeded on it.
    pub gaps: Gaps,
    /// When which errors occurred on it.
    pub error_times: ErrorTimes,
}

impl NodeTotals {
    /// Nothing counted yet.
    ///
    /// # Errors
    /// [`HistogramError::Unusable`]
    pub fn new() -> Result<Self, HistogramError> {
        Ok(Self {
            counters: Counters::default(),
            service: Histogram::new()?,
            gaps: Gaps::default(),
            error_times: ErrorTimes::default(),
        })
    }

    /// Notes how long a transaction took that ended now.
    pub(super) fn success(&mut self, service: Nanos, now: Nanos) {
        self.service.record(service);
        self.gaps.success(now);
    }

    /// Adds what another worker counted of the same node.
    ///
    /// # Errors
    /// [`HistogramError::Unusable`]
    pub fn merge(&mut self, other: &Self) -> Result<(), HistogramError> {
        self.counters.merge(&other.counters);
        self.service.merge(&other.service)?;
        self.gaps.intersect(&other.gaps);
        self.error_times.merge(&other.error_times);
        Ok(())
    }
}

/// How unevenly the work is spread: the busiest node's transactions over those of an even share. 1 is
/// even; with n nodes, n means that one does all. `None` where there are none.
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
    fn an_even_spread_has_the_imbalance_one_and_one_busy_node_their_number() {
        assert_eq!(imbalance(&[10, 10, 10]), Some(1.0));
        assert_eq!(imbalance(&[30, 0, 0]), Some(3.0));
        assert_eq!(imbalance(&[20, 10]), Some(2.0 * 20.0 / 30.0));
        assert_eq!((imbalance(&[]), imbalance(&[0, 0])), (None, None));
    }

    #[test]
    fn only_when_no_worker_had_a_success_on_a_node_had_it_none() {
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
