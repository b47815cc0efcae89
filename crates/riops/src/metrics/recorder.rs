//! What one worker counts. Workers share nothing; their recorders are merged at a stage's end.

use riops_wire::sqlstate::SqlState;

use super::counters::{Counter, Counters};
use super::errors::ErrorCounts;
use super::histogram::{Histogram, HistogramError};
use super::interval::IntervalPart;
use super::nodes::NodeTotals;
use super::outage::{ErrorTimes, Gaps};
use super::queries::Queries;
use super::samples::Samples;
use crate::units::Nanos;

/// What was measured of one operation of a workload.
#[derive(Debug, Clone)]
pub struct OperationTotals {
    /// What was counted of it.
    pub counters: Counters,
    /// From the (first) send to the end of the (last) reply.
    pub service: Histogram,
    /// From the intended start to the end of the reply; only where a schedule sets one.
    pub response: Option<Histogram>,
}

/// Operation and node of an event, where known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Origin {
    /// The operation, from 0.
    pub operation: Option<usize>,
    /// The node, from 0.
    pub node: Option<usize>,
}

impl Origin {
    /// An operation, on no particular node.
    #[must_use]
    pub fn operation(operation: usize) -> Self {
        Self { operation: Some(operation), node: None }
    }

    /// A node, of no particular operation.
    #[must_use]
    pub fn node(node: usize) -> Self {
        Self { operation: None, node: Some(node) }
    }
}

/// What is known of one transaction when it has succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measured {
    /// Its operation, from 0.
    pub operation: usize,
    /// Its node, from 0.
    pub node: usize,
    /// From the send to the end of the reply.
    pub service: Nanos,
    /// From the intended start to the end of the reply.
    pub response: Nanos,
    /// Rows, counted from the reply.
    pub rows: u64,
    /// Statements.
    pub statements: u32,
    /// Statements that were answered, in all attempts.
    pub queries: Queries,
    /// Whether the response time is beyond the limit.
    pub late: bool,
    /// When it ended.
    pub now: Nanos,
}

/// What is known of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure<'a> {
    /// Its code.
    pub sqlstate: SqlState,
    /// What the server said.
    pub message: &'a str,
    /// Whether the transaction is sent again.
    pub retried: bool,
    /// How long the attempt took that ended so.
    pub attempt: Nanos,
    /// On which node, from 0.
    pub node: usize,
    /// When.
    pub now: Nanos,
}

/// The counters of one worker. All memory is taken when it is made, but for the first error of
/// each kind.
#[derive(Debug)]
pub struct Recorder {
    operations: Vec<OperationTotals>,
    errors: ErrorCounts,
    interval: Box<IntervalPart>,
    /// Counts of no operation.
    counters: Counters,
    /// How long single attempts took, whatever came of them; a transaction that was sent again has
    /// several.
    pub attempts: Histogram,
    /// The nodes of the target, where there are several.
    pub nodes: Vec<NodeTotals>,
    /// How long connections took that were made during the measurement.
    pub connects: Histogram,
    /// How late a start was for which a session was free: the client's own lateness.
    pub start_lag: Option<Histogram>,
    /// How long the worker was away from its poll each time: what arrives meanwhile waits up to as
    /// long before it is seen.
    pub away: Histogram,
    /// When nothing succeeded.
    pub gaps: Gaps,
    /// When which errors occurred.
    pub error_times: ErrorTimes,
    /// Single transactions, where they are wanted.
    pub samples: Option<Samples>,
}

impl Recorder {
    /// Counters for this many operations; with `open_loop` response times are kept too.
    ///
    /// # Errors
    /// [`HistogramError::Unusable`]
    pub fn new(operations: usize, open_loop: bool) -> Result<Self, HistogramError> {
        let operations = (0..operations)
            .map(|_| {
                Ok(OperationTotals {
                    counters: Counters::default(),
                    service: Histogram::new()?,
                    response: open_loop.then(Histogram::new).transpose()?,
                })
            })
            .collect::<Result<_, HistogramError>>()?;
        Ok(Self {
            operations,
            errors: ErrorCounts::default(),
            interval: Box::new(IntervalPart::new(open_loop)?),
            counters: Counters::default(),
            attempts: Histogram::new()?,
            nodes: Vec::new(),
            connects: Histogram::for_interval()?,
            start_lag: open_loop.then(Histogram::for_interval).transpose()?,
            away: Histogram::for_interval()?,
            gaps: Gaps::default(),
            error_times: ErrorTimes::default(),
            samples: None,
        })
    }

    /// Counts for so many nodes apart; for one node the totals are its own.
    ///
    /// # Errors
    /// [`HistogramError::Unusable`]
    pub fn count_nodes(&mut self, nodes: usize) -> Result<(), HistogramError> {
        if nodes > 1 {
            self.nodes = (0..nodes).map(|_| NodeTotals::new()).collect::<Result<_, _>>()?;
            self.interval.nodes = vec![0; nodes];
        }
        Ok(())
    }

    /// Counting begins.
    pub fn begin(&mut self, start: Nanos) {
        self.gaps.begin(start);
        self.nodes.iter_mut().for_each(|node| node.gaps.begin(start));
    }

    /// Adds to the current interval, to the operation or else the stage, and to the node, where nodes
    /// are counted apart.
    #[inline]
    pub fn count<const KINDS: usize>(&mut self, origin: Origin, counts: [(Counter, u64); KINDS]) {
        self.interval.counters.add(counts);
        let operation = origin.operation.and_then(|operation| self.operations.get_mut(operation));
        operation.map_or(&mut self.counters, |totals| &mut totals.counters).add(counts);
        if let Some(totals) = origin.node.and_then(|node| self.nodes.get_mut(node)) {
            totals.counters.add(counts);
        }
    }

    /// Counts a transaction that succeeded within the measurement.
    pub fn transaction(&mut self, measured: Measured) {
        let Measured { operation, node, service, response, now, .. } = measured;
        let origin = Origin { operation: Some(operation), node: Some(node) };
        let counts = [
            (Counter::Transactions, 1),
            (Counter::Rows, measured.rows),
            (Counter::Statements, measured.statements.into()),
            (Counter::Late, measured.late.into()),
        ];
        self.count(origin, counts);
        self.count(origin, measured.queries.counts());
        self.gaps.success(now);
        if let Some(totals) = self.nodes.get_mut(node) {
            totals.success(service, now);
        }
        if let Some(count) = self.interval.nodes.get_mut(node) {
            *count += 1;
        }
        let Some(totals) = self.operations.get_mut(operation) else {
            return;
        };
        totals.service.record(service);
        self.interval.service.record(service);
        if let (Some(total), Some(interval)) = (&mut totals.response, &mut self.interval.response) {
            total.record(response);
            interval.record(response);
        }
    }

    /// Counts transactions of one statement each that somebody else has counted: `rows` in all, and
    /// how often each service time occurred.
    pub fn transactions(&mut self, operation: usize, rows: u64, latencies: &[(Nanos, u64)]) {
        let transactions: u64 = latencies.iter().map(|(_, count)| count).sum();
        let counts = [
            (Counter::Transactions, transactions),
            (Counter::Rows, rows),
            (Counter::Statements, transactions),
        ];
        self.count(Origin::operation(operation), counts);
        let Some(totals) = self.operations.get_mut(operation) else {
            return;
        };
        for &(latency, count) in latencies {
            totals.service.record_many(latency, count);
            self.interval.service.record_many(latency, count);
        }
    }

    /// Says how long the longest service time of an operation was, where only that is exact.
    pub fn correct_longest(&mut self, operation: usize, longest: Nanos) {
        if let Some(totals) = self.operations.get_mut(operation) {
            totals.service.correct_max(longest);
        }
    }

    /// Counts an error.
    pub fn error(&mut self, error: &Failure<'_>) {
        let Failure { sqlstate, message, retried, attempt, node, now } = *error;
        let counts = [(Counter::Errors, 1), (Counter::Retries, retried.into())];
        self.count(Origin::node(node), counts);
        self.errors.add(sqlstate, message, retried, attempt);
        self.error_times.add(sqlstate, now);
        if let Some(totals) = self.nodes.get_mut(node) {
            totals.error_times.add(sqlstate, now);
        }
    }

    /// Says how many starts were due and had not happened when the current interval ended.
    pub fn note_backlog(&mut self, backlog: u64) {
        self.interval.backlog = backlog;
    }

    /// Hands out the current interval and goes on in `spare`, which becomes interval `index`.
    pub fn next_interval(
        &mut self,
        mut spare: Box<IntervalPart>,
        index: usize,
    ) -> Box<IntervalPart> {
        spare.clear(index);
        // Only new memory does not know how many nodes there are.
        spare.nodes.resize(self.interval.nodes.len(), 0);
        std::mem::replace(&mut self.interval, spare)
    }

    /// The current interval.
    #[must_use]
    pub fn interval(&self) -> &IntervalPart {
        &self.interval
    }

    /// Adds all that `other` counted but its current interval.
    ///
    /// # Errors
    /// [`HistogramError::Unusable`] where the two were made for different stages.
    pub fn merge(&mut self, other: &Self) -> Result<(), HistogramError> {
        self.errors.merge(&other.errors);
        self.counters.merge(&other.counters);
        self.attempts.merge(&other.attempts)?;
        for (mine, theirs) in self.nodes.iter_mut().zip(&other.nodes) {
            mine.merge(theirs)?;
        }
        self.connects.merge(&other.connects)?;
        self.away.merge(&other.away)?;
        if let (Some(mine), Some(theirs)) = (&mut self.start_lag, &other.start_lag) {
            mine.merge(theirs)?;
        }
        self.gaps.intersect(&other.gaps);
        self.error_times.merge(&other.error_times);
        for (mine, theirs) in self.operations.iter_mut().zip(&other.operations) {
            mine.counters.merge(&theirs.counters);
            mine.service.merge(&theirs.service)?;
            if let (Some(mine), Some(theirs)) = (&mut mine.response, &theirs.response) {
                mine.merge(theirs)?;
            }
        }
        Ok(())
    }

    /// What was counted of the whole stage.
    #[must_use]
    pub fn counters(&self) -> Counters {
        let mut counters = self.counters;
        self.operations.iter().for_each(|totals| counters.merge(&totals.counters));
        counters
    }

    /// The operations, in the order of their stage.
    #[must_use]
    pub fn operations(&self) -> &[OperationTotals] {
        &self.operations
    }

    /// The errors, to be completed with what only the whole stage knows.
    pub fn errors_mut(&mut self) -> &mut ErrorCounts {
        &mut self.errors
    }

    /// The errors.
    #[must_use]
    pub fn errors(&self) -> &ErrorCounts {
        &self.errors
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(operation: usize, service: u64, response: u64, rows: u64) -> Measured {
        Measured {
            operation,
            node: 0,
            service: Nanos(service),
            response: Nanos(response),
            rows,
            statements: 1,
            queries: Queries { read: 1, ..Queries::default() },
            late: false,
            now: Nanos(0),
        }
    }

    fn some(numbers: &Counters) -> Vec<(Counter, u64)> {
        let number = |&counter: &Counter| (counter, numbers.get(counter));
        Counter::ALL.iter().map(number).filter(|&(_, number)| number > 0).collect()
    }

    /// What [`measured`] counts for so many transactions.
    fn reads(transactions: u64, rows: u64) -> [(Counter, u64); 4] {
        [
            (Counter::Transactions, transactions),
            (Counter::Rows, rows),
            (Counter::Statements, transactions),
            (Counter::ReadQueries, transactions),
        ]
    }

    #[test]
    fn every_counter_is_merged_and_handed_from_its_interval_to_the_point() {
        for &counter in Counter::ALL {
            let mut first = Recorder::new(1, false).unwrap();
            let mut second = Recorder::new(1, false).unwrap();
            let origin = Origin { operation: Some(0), node: Some(1) };
            for recorder in [&mut first, &mut second] {
                recorder.count_nodes(2).unwrap();
                recorder.count(origin, [(counter, 2)]);
                recorder.count(Origin::default(), [(counter, 1)]);
            }
            let mut part = first.interval().clone();
            part.merge(second.interval()).unwrap();
            assert_eq!(some(&part.counters), [(counter, 6)]);
            let point = part.point(1.0, 1.0, 95.0);
            let in_point = match counter {
                Counter::Transactions => point.transactions,
                Counter::Rows => point.rows,
                Counter::ReadQueries => point.queries.read,
                Counter::WriteQueries => point.queries.write,
                Counter::OtherQueries => point.queries.other,
                Counter::Failed | Counter::Unknown => point.failed,
                Counter::Late => point.late,
                Counter::Skipped => point.skipped,
                Counter::Errors => point.errors,
                Counter::Retries => point.retries,
                Counter::Reconnects => point.reconnects,
                // Not in the series.
                Counter::Statements => 6,
            };
            assert_eq!(in_point, 6, "{counter:?}");
            part.clear(1);
            assert_eq!(some(&part.counters), []);
            first.merge(&second).unwrap();
            assert_eq!(some(&first.counters()), [(counter, 6)]);
            assert_eq!(some(&first.operations()[0].counters), [(counter, 4)]);
            assert_eq!(some(&first.nodes[0].counters), []);
            assert_eq!(some(&first.nodes[1].counters), [(counter, 4)]);
        }
    }

    #[test]
    fn a_transaction_counts_for_its_operation_its_node_and_its_interval() {
        let mut recorder = Recorder::new(2, true).unwrap();
        recorder.count_nodes(2).unwrap();
        recorder.transaction(Measured { node: 1, ..measured(1, 10, 20, 5) });
        assert_eq!(some(&recorder.counters()), reads(1, 5));
        assert_eq!(some(&recorder.interval().counters), reads(1, 5));
        assert_eq!(recorder.interval().nodes, [0, 1]);
        let [other, operation] = recorder.operations() else { panic!("two operations") };
        let [elsewhere, node] = recorder.nodes.as_slice() else { panic!("two nodes") };
        for (counters, service, counted) in [
            (&operation.counters, &operation.service, 1),
            (&node.counters, &node.service, 1),
            (&other.counters, &other.service, 0),
            (&elsewhere.counters, &elsewhere.service, 0),
        ] {
            assert_eq!(counters.get(Counter::Transactions), counted);
            assert_eq!(counters.get(Counter::Rows), 5 * counted);
            assert_eq!(service.count(), counted);
        }
    }

    #[test]
    fn merged_recorders_hold_what_both_counted() {
        let mut first = Recorder::new(2, true).unwrap();
        let mut second = Recorder::new(2, true).unwrap();
        first.transaction(measured(0, 10, 20, 5));
        second.transaction(measured(0, 30, 40, 7));
        second.transaction(measured(1, 50, 60, 1));
        second.error(&Failure {
            sqlstate: SqlState::DISK_FULL,
            message: "full",
            retried: false,
            attempt: Nanos(0),
            node: 0,
            now: Nanos(1),
        });
        first.merge(&second).unwrap();
        let [selects, updates] = first.operations() else { panic!("two operations") };
        assert_eq!(some(&selects.counters), reads(2, 12));
        assert_eq!(selects.service.max(), Nanos(30));
        assert_eq!(selects.response.as_ref().unwrap().max(), Nanos(40));
        assert_eq!(some(&updates.counters), reads(1, 1));
        assert_eq!(first.counters().get(Counter::Errors), 1);
        assert_eq!(first.errors().entries()[0].count, 1);
    }

    #[test]
    fn counts_of_a_server_are_added_to_totals_and_interval() {
        let mut recorder = Recorder::new(2, false).unwrap();
        recorder.transactions(1, 50, &[(Nanos(1_000), 3), (Nanos(2_000), 2)]);
        recorder.correct_longest(1, Nanos(1_990));
        let updates = &recorder.operations()[1];
        let counted = [(Counter::Transactions, 5), (Counter::Rows, 50), (Counter::Statements, 5)];
        assert_eq!(some(&updates.counters), counted);
        assert_eq!(updates.service.count(), 5);
        assert_eq!(
            (updates.service.max(), updates.service.quantile(0.99)),
            (Nanos(1_990), Nanos(1_990))
        );
        assert_eq!(some(&recorder.interval().counters), counted);
    }

    #[test]
    fn an_interval_is_handed_out_with_its_own_counts() {
        let mut recorder = Recorder::new(1, false).unwrap();
        recorder.transaction(measured(0, 10, 10, 5));
        let spare = Box::new(IntervalPart::new(false).unwrap());
        let part = recorder.next_interval(spare, 1);
        assert_eq!((part.index, some(&part.counters)), (0, reads(1, 5).to_vec()));
        let part = recorder.next_interval(part, 2);
        assert_eq!((part.index, some(&part.counters)), (1, vec![]));
        assert_eq!(part.service.count(), 0);
    }
}
