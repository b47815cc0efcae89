//! Counters of one worker. Workers share no state; their recorders are merged at the end of a stage.

use super::commands::Commands;
use super::counters::{Counter, Counters, counts_of};
use super::errors::ErrorCounts;
use super::events::{EventSource, Failure, Measured, NodeTotals, OperationTotals, Unsuccessful};
use super::interval::IntervalPart;
use super::outage::{ErrorTimes, Gaps};
use super::samples::Samples;
use super::slots::Slots;
use super::steps::{Fate, Steps};
use riops_model::record::{Histogram, HistogramError, Latencies};
use riops_model::units::Nanos;

/// Number of transactions after which they are added to the counters and histograms. Between two of them, the server
/// uses the same caches: adding each at once would load a dozen cache lines for it.
const PENDING_MAX: usize = 64;

/// Counters of one worker. All memory is allocated at creation, except for the first error of each
/// kind.
#[derive(Debug)]
pub struct Recorder {
    /// Transactions not added yet, oldest first.
    pending: Vec<Measured>,
    /// The operations, in the order of their stage.
    pub operations: Vec<OperationTotals>,
    /// The errors.
    pub errors: ErrorCounts,
    /// The current interval.
    pub interval: Box<IntervalPart>,
    /// Counts that belong to no operation.
    counters: Counters,
    /// Durations of single attempts, regardless of their outcome; a retried transaction has several
    /// attempts. Complete after [`Self::finish`].
    pub attempts: Histogram,
    /// Whether the attempts differ from the transactions, so that they are recorded separately.
    has_other_attempts: bool,
    /// Counters per node; empty for a single node.
    pub nodes: Vec<NodeTotals>,
    /// Durations of connection attempts during the measurement.
    pub connects: Histogram,
    /// Start delays while a session was idle: delays caused by the client.
    pub start_lag: Option<Histogram>,
    /// Poll-loop stalls: the periods in which the worker did not poll its sockets. A reply that arrives
    /// during a stall waits up to that long before it is read.
    pub poll_stalls: Histogram,
    /// Periods without a success.
    pub gaps: Gaps,
    /// Times of errors, by SQLSTATE.
    pub error_times: ErrorTimes,
    /// Successes over time.
    pub slots: Slots,
    /// Longest delay of a start.
    pub lag_max: Nanos,
    /// For how long the starts waited that no session took.
    unstarted: Histogram,
    /// The steps of the profile of a rate.
    pub steps: Steps,
    /// Sampled transactions, if requested.
    pub samples: Option<Samples>,
    /// Commands of scripts.
    pub commands: Commands,
}

impl Recorder {
    /// Creates counters for this many operations; with `open_loop`, also histograms of response times.
    ///
    /// # Errors
    /// Returns [`HistogramError::Unusable`] if a histogram cannot be created.
    pub fn new(operations: usize, open_loop: bool) -> Result<Self, HistogramError> {
        let operations = (0..operations)
            .map(|_| {
                Ok(OperationTotals {
                    counters: Counters::default(),
                    service: Latencies::new()?,
                    response: open_loop.then(Latencies::new).transpose()?,
                })
            })
            .collect::<Result<_, HistogramError>>()?;
        Ok(Self {
            pending: Vec::with_capacity(PENDING_MAX),
            operations,
            errors: ErrorCounts::default(),
            interval: Box::new(IntervalPart::new(open_loop)?),
            counters: Counters::default(),
            attempts: Histogram::new()?,
            has_other_attempts: false,
            nodes: Vec::new(),
            connects: Histogram::for_interval()?,
            start_lag: open_loop.then(Histogram::for_interval).transpose()?,
            poll_stalls: Histogram::for_interval()?,
            gaps: Gaps::default(),
            error_times: ErrorTimes::default(),
            slots: Slots::default(),
            lag_max: Nanos(0),
            unstarted: Histogram::for_interval()?,
            steps: Steps::default(),
            samples: None,
            commands: Commands::default(),
        })
    }

    /// Counts `nodes` nodes separately. A single node needs no separate counters.
    ///
    /// # Errors
    /// Returns [`HistogramError::Unusable`] if a histogram cannot be created.
    pub fn count_nodes(&mut self, nodes: usize) -> Result<(), HistogramError> {
        if nodes > 1 {
            self.nodes = (0..nodes).map(|_| NodeTotals::new()).collect::<Result<_, _>>()?;
            self.interval.nodes = vec![0; nodes];
        }
        Ok(())
    }

    /// Starts counting at `start`.
    pub fn begin(&mut self, start: Nanos) {
        self.gaps.begin(start);
        self.slots.begin(start);
        self.steps.begin(start);
        self.nodes.iter_mut().for_each(|node| node.gaps.begin(start));
    }

    /// Adds counts to the current interval, to the operation (or to the stage without an operation),
    /// and to the node if nodes are counted separately.
    #[inline]
    pub fn count<const KINDS: usize>(
        &mut self,
        origin: EventSource,
        counts: [(Counter, u64); KINDS],
    ) {
        self.interval.counters.add(counts);
        let operation = origin.operation.and_then(|operation| self.operations.get_mut(operation));
        operation.map_or(&mut self.counters, |totals| &mut totals.counters).add(counts);
        if let Some(totals) = origin.node.and_then(|node| self.nodes.get_mut(node)) {
            totals.counters.add(counts);
        }
    }

    /// Counts a successful transaction of the measurement, at the latest at the end of the interval.
    pub fn transaction(&mut self, measured: Measured) {
        self.pending.push(measured);
        if self.pending.len() == PENDING_MAX {
            self.add_pending();
        }
    }

    /// Counts an attempt that failed.
    pub fn failed_attempt(&mut self, attempt: Nanos) {
        self.separate_attempts();
        self.attempts.record(attempt);
    }

    /// Records the attempts separately from now on. Until now, each transaction was one attempt.
    fn separate_attempts(&mut self) {
        if std::mem::replace(&mut self.has_other_attempts, true) {
            return;
        }
        for totals in &self.operations {
            // All histograms of attempts and service times have the same bounds.
            let _ = self.attempts.merge(&totals.service.observed);
        }
    }

    fn add_pending(&mut self) {
        let mut pending = std::mem::take(&mut self.pending);
        pending.drain(..).for_each(|measured| self.add(&measured));
        self.pending = pending;
    }

    /// Adds everything that is still to be counted.
    pub fn finish(&mut self) {
        self.add_pending();
        self.commands.finish();
        self.separate_attempts();
    }

    fn add(&mut self, measured: &Measured) {
        let Measured { operation, node, service, response, attempt, now, .. } = *measured;
        if attempt != service {
            self.separate_attempts();
        }
        if self.has_other_attempts {
            self.attempts.record(attempt);
        }
        let origin = EventSource { operation: Some(operation), node: Some(node) };
        let counts = [
            (Counter::Transactions, 1),
            (Counter::Rows, measured.rows),
            (Counter::Statements, measured.statements.into()),
            (Counter::Late, measured.late.into()),
            (Counter::Retried, measured.retried.into()),
        ];
        self.count(origin, counts);
        self.count(origin, counts_of(measured.queries));
        self.gaps.success(now);
        self.slots.success(now, response);
        if let Some(totals) = self.nodes.get_mut(node) {
            totals.service.record(service);
            totals.gaps.success(now);
        }
        if let Some(count) = self.interval.nodes.get_mut(node) {
            *count += 1;
        }
        let Some(totals) = self.operations.get_mut(operation) else {
            return;
        };
        totals.service.observed.record(service);
        self.interval.service.record(service);
        if let (Some(total), Some(interval)) = (&mut totals.response, &mut self.interval.response) {
            total.observed.record(response);
            interval.record(response);
            self.steps.add(Fate::Answered, response, now);
            self.lag_max = self.lag_max.max(Nanos(response.0.saturating_sub(service.0)));
        }
    }

    /// Adds single-statement transactions that were counted elsewhere: the total number of rows, and
    /// the frequency of each service time.
    pub fn transactions(&mut self, operation: usize, rows: u64, latencies: &[(Nanos, u64)]) {
        let transactions: u64 = latencies.iter().map(|(_, count)| count).sum();
        let counts = [
            (Counter::Transactions, transactions),
            (Counter::Rows, rows),
            (Counter::Statements, transactions),
        ];
        self.count(EventSource::operation(operation), counts);
        let Some(totals) = self.operations.get_mut(operation) else {
            return;
        };
        for &(latency, count) in latencies {
            totals.service.observed.record_many(latency, count);
            self.interval.service.record_many(latency, count);
        }
    }

    /// Sets the exact longest service time of an operation, if the recorded values were only bucket
    /// boundaries.
    pub fn set_exact_max_service(&mut self, operation: usize, longest: Nanos) {
        if let Some(totals) = self.operations.get_mut(operation) {
            totals.service.observed.set_exact_max(longest);
        }
    }

    /// Adds the times of a transaction that did not succeed within the measurement.
    pub fn unsuccessful(&mut self, transaction: &Unsuccessful) {
        let Unsuccessful { fate, operation, service, response, now } = *transaction;
        self.steps.add(fate, response, now);
        if let Some(totals) = self.operations.get_mut(operation) {
            let is_drained = fate == Fate::Drained;
            let add = if is_drained { Latencies::drained } else { Latencies::unfinished };
            add(&mut totals.service, service);
            if let Some(of_response) = &mut totals.response {
                add(of_response, response);
            }
        }
    }

    /// Adds the time for which a start had waited at `now` that no session took.
    pub fn record_unstarted(&mut self, fate: Fate, waited: Nanos, now: Nanos) {
        self.steps.add(fate, waited, now);
        self.unstarted.record(waited);
    }

    /// Counts an error.
    pub fn error(&mut self, error: &Failure<'_>) {
        let Failure { sqlstate, message, retried, attempt, node, now } = *error;
        let counts = [(Counter::Errors, 1), (Counter::Retries, retried.into())];
        self.count(EventSource::node(node), counts);
        self.errors.add(sqlstate, message, retried, attempt);
        self.error_times.add(sqlstate, now);
        if let Some(totals) = self.nodes.get_mut(node) {
            totals.error_times.add(sqlstate, now);
        }
    }

    /// Records the numbers of overdue starts and of busy sessions at the end of the current interval.
    pub fn set_backlog(&mut self, backlog: u64, busy: u64) {
        self.interval.backlog = backlog;
        self.interval.busy = busy;
    }

    /// Returns the current interval and continues in `spare`, which becomes interval `index`.
    pub fn next_interval(
        &mut self,
        mut spare: Box<IntervalPart>,
        index: usize,
    ) -> Box<IntervalPart> {
        self.add_pending();
        spare.clear(index);
        // Newly allocated parts do not have the number of nodes yet.
        spare.nodes.resize(self.interval.nodes.len(), 0);
        std::mem::replace(&mut self.interval, spare)
    }

    /// Adds all counters of `other` except its current interval.
    ///
    /// # Errors
    /// Returns [`HistogramError::Unusable`] if the histograms have different bounds.
    pub fn merge(&mut self, other: &Self) -> Result<(), HistogramError> {
        self.errors.merge(&other.errors);
        self.commands.merge(&other.commands)?;
        self.counters.merge(&other.counters);
        self.attempts.merge(&other.attempts)?;
        for (mine, theirs) in self.nodes.iter_mut().zip(&other.nodes) {
            mine.merge(theirs)?;
        }
        self.connects.merge(&other.connects)?;
        self.lag_max = self.lag_max.max(other.lag_max);
        self.unstarted.merge(&other.unstarted)?;
        self.steps.merge(&other.steps)?;
        self.poll_stalls.merge(&other.poll_stalls)?;
        if let (Some(mine), Some(theirs)) = (&mut self.start_lag, &other.start_lag) {
            mine.merge(theirs)?;
        }
        self.gaps.intersect(&other.gaps);
        self.slots.merge(&other.slots);
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

    /// Returns the counters of the whole stage.
    pub fn counters(&self) -> Counters {
        let mut counters = self.counters;
        self.operations.iter().for_each(|totals| counters.merge(&totals.counters));
        counters
    }

    /// Returns the service times of all operations, and their response times with a schedule.
    ///
    /// # Errors
    /// Returns [`HistogramError::Unusable`] if a histogram cannot be created.
    pub fn latencies(&self) -> Result<(Latencies, Option<Latencies>), HistogramError> {
        let has_response = self.operations.iter().any(|totals| totals.response.is_some());
        let (mut service, mut response) =
            (Latencies::new()?, has_response.then(Latencies::new).transpose()?);
        for totals in &self.operations {
            service.merge(&totals.service)?;
            if let (Some(all), Some(own)) = (&mut response, &totals.response) {
                all.merge(own)?;
            }
        }
        if let Some(response) = &mut response {
            response.merge_unfinished(&self.unstarted)?;
        }
        Ok((service, response))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use riops_model::record::Queries;
    use riops_wire::sqlstate::SqlState;

    fn measured(operation: usize, service: u64, response: u64, rows: u64) -> Measured {
        Measured {
            operation,
            node: 0,
            service: Nanos(service),
            response: Nanos(response),
            attempt: Nanos(service),
            rows,
            statements: 1,
            queries: Queries { read: 1, ..Queries::default() },
            late: false,
            retried: false,
            now: Nanos(0),
        }
    }

    fn nonzero(counters: &Counters) -> Vec<(Counter, u64)> {
        let entry = |&counter: &Counter| (counter, counters.get(counter));
        Counter::ALL.iter().map(entry).filter(|&(_, count)| count > 0).collect()
    }

    /// Returns the counts of this many transactions from [`measured`].
    fn reads(transactions: u64, rows: u64) -> [(Counter, u64); 4] {
        [
            (Counter::Transactions, transactions),
            (Counter::Rows, rows),
            (Counter::Statements, transactions),
            (Counter::ReadQueries, transactions),
        ]
    }

    #[test]
    fn merges_every_counter_and_copies_it_from_the_interval_to_the_point() {
        for &counter in Counter::ALL {
            let mut first = Recorder::new(1, false).unwrap();
            let mut second = Recorder::new(1, false).unwrap();
            let origin = EventSource { operation: Some(0), node: Some(1) };
            for recorder in [&mut first, &mut second] {
                recorder.count_nodes(2).unwrap();
                recorder.count(origin, [(counter, 2)]);
                recorder.count(EventSource::default(), [(counter, 1)]);
            }
            let mut part = first.interval.clone();
            part.merge(&second.interval).unwrap();
            assert_eq!(nonzero(&part.counters), [(counter, 6)]);
            let point = part.point(1.0, 1.0, 95.0);
            let in_point = match counter {
                Counter::Transactions => point.transactions,
                Counter::Rows => point.rows,
                Counter::ReadQueries => point.queries.read,
                Counter::WriteQueries => point.queries.write,
                Counter::OtherQueries => point.queries.other,
                Counter::Failed | Counter::Unknown => point.failed,
                Counter::Late => point.late.unwrap_or_default(),
                Counter::Skipped => point.skipped,
                Counter::Errors => point.errors,
                Counter::Retries => point.retries,
                Counter::Retried => point.retried,
                Counter::Reconnects => point.reconnects,
                // Not part of the time series.
                Counter::Statements => 6,
            };
            assert_eq!(in_point, 6, "{counter:?}");
            part.clear(1);
            assert_eq!(nonzero(&part.counters), []);
            first.merge(&second).unwrap();
            assert_eq!(nonzero(&first.counters()), [(counter, 6)]);
            assert_eq!(nonzero(&first.operations[0].counters), [(counter, 4)]);
            assert_eq!(nonzero(&first.nodes[0].counters), []);
            assert_eq!(nonzero(&first.nodes[1].counters), [(counter, 4)]);
        }
    }

    #[test]
    fn counts_a_transaction_for_its_operation_its_node_and_its_interval() {
        let mut recorder = Recorder::new(2, true).unwrap();
        recorder.count_nodes(2).unwrap();
        recorder.transaction(Measured { node: 1, ..measured(1, 10, 20, 5) });
        recorder.finish();
        assert_eq!(nonzero(&recorder.counters()), reads(1, 5));
        assert_eq!(nonzero(&recorder.interval.counters), reads(1, 5));
        assert_eq!(recorder.interval.nodes, [0, 1]);
        let [other, operation] = recorder.operations.as_slice() else { panic!("two operations") };
        let [other_node, node] = recorder.nodes.as_slice() else { panic!("two nodes") };
        for (counters, service, counted) in [
            (&operation.counters, &operation.service.observed, 1),
            (&node.counters, &node.service, 1),
            (&other.counters, &other.service.observed, 0),
            (&other_node.counters, &other_node.service, 0),
        ] {
            assert_eq!(counters.get(Counter::Transactions), counted);
            assert_eq!(counters.get(Counter::Rows), 5 * counted);
            assert_eq!(service.count(), counted);
        }
    }

    #[test]
    fn attempts_equal_transactions_until_a_transaction_is_retried() {
        let attempts = |retried: &[(u64, u64)], failed: &[u64]| {
            let mut recorder = Recorder::new(2, false).unwrap();
            for position in 0..2 * PENDING_MAX as u64 {
                recorder.transaction(measured(usize::from(position % 2 == 0), 10, 10, 1));
            }
            for &attempt in failed {
                recorder.failed_attempt(Nanos(attempt));
            }
            for &(service, attempt) in retried {
                let attempt = Nanos(attempt);
                recorder.transaction(Measured { attempt, ..measured(0, service, service, 1) });
            }
            recorder.transaction(measured(0, 10, 10, 1));
            recorder.finish();
            recorder.attempts.recorded().map(|(value, count)| (value.0, count)).collect::<Vec<_>>()
        };
        let count = 2 * PENDING_MAX as u64 + 1;
        assert_eq!(attempts(&[], &[]), [(10, count)]);
        assert_eq!(attempts(&[(30, 20)], &[]), [(10, count), (20, 1)]);
        assert_eq!(
            attempts(&[(50, 20), (90, 10)], &[30, 40]),
            [(10, count + 1), (20, 1), (30, 1), (40, 1)]
        );
    }

    #[test]
    fn merging_adds_the_counters_of_both_recorders() {
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
        first.finish();
        second.finish();
        first.merge(&second).unwrap();
        let [selects, updates] = first.operations.as_slice() else { panic!("two operations") };
        assert_eq!(nonzero(&selects.counters), reads(2, 12));
        assert_eq!(selects.service.observed.max(), Nanos(30));
        assert_eq!(selects.response.as_ref().unwrap().observed.max(), Nanos(40));
        assert_eq!(nonzero(&updates.counters), reads(1, 1));
        assert_eq!(first.counters().get(Counter::Errors), 1);
        assert_eq!(first.errors.entries[0].count, 1);
    }

    #[test]
    fn adds_counts_of_a_server_side_loop_to_totals_and_interval() {
        let mut recorder = Recorder::new(2, false).unwrap();
        recorder.transactions(1, 50, &[(Nanos(1_000), 3), (Nanos(2_000), 2)]);
        recorder.set_exact_max_service(1, Nanos(1_990));
        let updates = &recorder.operations[1];
        let counted = [(Counter::Transactions, 5), (Counter::Rows, 50), (Counter::Statements, 5)];
        assert_eq!(nonzero(&updates.counters), counted);
        assert_eq!(updates.service.observed.count(), 5);
        assert_eq!(
            (updates.service.observed.max(), updates.service.observed.quantile(0.99)),
            (Nanos(1_990), Nanos(1_990))
        );
        assert_eq!(nonzero(&recorder.interval.counters), counted);
    }

    #[test]
    fn returns_each_interval_with_its_own_counts() {
        let mut recorder = Recorder::new(1, false).unwrap();
        recorder.transaction(measured(0, 10, 10, 5));
        let spare = Box::new(IntervalPart::new(false).unwrap());
        let part = recorder.next_interval(spare, 1);
        assert_eq!((part.index, nonzero(&part.counters)), (0, reads(1, 5).to_vec()));
        let part = recorder.next_interval(part, 2);
        assert_eq!((part.index, nonzero(&part.counters)), (1, vec![]));
        assert_eq!(part.service.count(), 0);
    }
}
