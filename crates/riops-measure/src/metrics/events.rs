//! The counts of a worker: transactions, errors, and the totals of an operation and of a node.

use riops_wire::sqlstate::SqlState;

use super::counters::Counters;
use super::outage::{ErrorTimes, Gaps};
use super::steps::Fate;
use riops_model::record::{Histogram, HistogramError, Latencies, Queries};
use riops_model::units::Nanos;

/// Measurements of one operation of a workload.
#[derive(Debug, Clone)]
pub struct OperationTotals {
    /// Counters.
    pub counters: Counters,
    /// Service times: from the first send to the end of the last reply.
    pub service: Latencies,
    /// Response times: from the intended start to the end of the reply; only with a schedule.
    pub response: Option<Latencies>,
}

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
pub fn imbalance(transactions: &[u64]) -> Option<f64> {
    let total: u64 = transactions.iter().sum();
    let most = transactions.iter().copied().max()?;
    (total > 0).then(|| most as f64 * transactions.len() as f64 / total as f64)
}

/// Operation and node of an event, if known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EventSource {
    /// Operation, from 0.
    pub operation: Option<usize>,
    /// Node, from 0.
    pub node: Option<usize>,
}

impl EventSource {
    /// Returns the origin of an event of an operation on an unspecified node.
    pub fn operation(operation: usize) -> Self {
        Self { operation: Some(operation), node: None }
    }

    /// Returns the origin of an event on a node without a specific operation.
    pub fn node(node: usize) -> Self {
        Self { operation: None, node: Some(node) }
    }
}

/// Measurements of one successful transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measured {
    /// Operation, from 0.
    pub operation: usize,
    /// Node, from 0.
    pub node: usize,
    /// Service time: from the send to the end of the reply.
    pub service: Nanos,
    /// Response time: from the intended start to the end of the reply.
    pub response: Nanos,
    /// Duration of the last attempt; without a retry, the service time.
    pub attempt: Nanos,
    /// Number of rows, counted from the reply.
    pub rows: u64,
    /// Number of statements.
    pub statements: u32,
    /// Answered statements, in all attempts.
    pub queries: Queries,
    /// Whether the response time exceeds the limit.
    pub late: bool,
    /// Whether it was retried.
    pub retried: bool,
    /// End of the transaction.
    pub now: Nanos,
}

/// Times of a transaction that did not succeed within the measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unsuccessful {
    /// Outcome.
    pub fate: Fate,
    /// Operation, from 0.
    pub operation: usize,
    /// Service time.
    pub service: Nanos,
    /// Response time: from the intended start.
    pub response: Nanos,
    /// End of the transaction.
    pub now: Nanos,
}

/// An error of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure<'a> {
    /// SQLSTATE.
    pub sqlstate: SqlState,
    /// Message from the server.
    pub message: &'a str,
    /// Whether the transaction is retried.
    pub retried: bool,
    /// Duration of the failed attempt.
    pub attempt: Nanos,
    /// Node, from 0.
    pub node: usize,
    /// Time of the error.
    pub now: Nanos,
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
        let second = |seconds: u64| Nanos(seconds * 1_000_000_000);
        let mut first = NodeTotals::new().unwrap();
        let mut other = NodeTotals::new().unwrap();
        for totals in [&mut first, &mut other] {
            totals.gaps.begin(Nanos(0));
        }
        let success = |totals: &mut NodeTotals, service, now| {
            totals.service.record(service);
            totals.gaps.success(now);
        };
        success(&mut first, Nanos(5), second(3));
        success(&mut other, Nanos(7), second(2));
        success(&mut other, Nanos(9), second(4));
        first.merge(&other).unwrap();
        assert_eq!((first.service.count(), first.service.max()), (3, Nanos(9)));
        assert!((first.gaps.longest_s().unwrap() - 2.0).abs() < 1e-9);
    }
}
