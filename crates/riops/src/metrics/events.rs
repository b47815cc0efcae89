//! What a worker counts: transactions, errors, and the totals of an operation.

use riops_wire::sqlstate::SqlState;

use super::counters::Counters;
use crate::record::{Latencies, Queries};
use crate::units::Nanos;

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

impl OperationTotals {
    /// Adds the service and the response time of a transaction, each with `add`.
    pub(super) fn each(&mut self, service: Nanos, response: Nanos, add: fn(&mut Latencies, Nanos)) {
        add(&mut self.service, service);
        if let Some(of_response) = &mut self.response {
            add(of_response, response);
        }
    }
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
    #[must_use]
    pub fn operation(operation: usize) -> Self {
        Self { operation: Some(operation), node: None }
    }

    /// Returns the origin of an event on a node without a specific operation.
    #[must_use]
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
