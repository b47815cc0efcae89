//! What one worker counts. Workers share nothing; their recorders are merged at a stage's end.

use riops_wire::sqlstate::SqlState;

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
    /// Transactions that ended within the measurement.
    pub transactions: u64,
    /// Rows that they read or wrote, counted from the replies.
    pub rows: u64,
    /// Their statements.
    pub statements: u64,
    /// Transactions that failed within the measurement, and were not sent again.
    pub failed: u64,
    /// Transactions whose connection broke within the measurement before their outcome was known.
    pub unknown: u64,
    /// Transactions of the first kind whose response time was beyond the limit.
    pub late: u64,
    /// From the (first) send to the end of the (last) reply.
    pub service: Histogram,
    /// From the intended start to the end of the reply; only where a schedule sets one.
    pub response: Option<Histogram>,
}

/// What is known of one transaction when it has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measured {
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
    /// Statements that were answered, by what they do.
    pub queries: Queries,
    /// How long single attempts took, whatever came of them; a transaction that was sent again has
    /// several.
    pub attempts: Histogram,
    /// The nodes of the target, where there are several.
    pub nodes: Vec<NodeTotals>,
    /// Transactions that were sent again.
    pub retries: u64,
    /// Connections that broke and were replaced.
    pub reconnects: u64,
    /// Starts that were left out since they could only become late.
    pub skipped: u64,
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
                    transactions: 0,
                    rows: 0,
                    statements: 0,
                    failed: 0,
                    unknown: 0,
                    late: 0,
                    service: Histogram::new()?,
                    response: open_loop.then(Histogram::new).transpose()?,
                })
            })
            .collect::<Result<_, HistogramError>>()?;
        Ok(Self {
            operations,
            errors: ErrorCounts::default(),
            interval: Box::new(IntervalPart::new(open_loop)?),
            queries: Queries::default(),
            attempts: Histogram::new()?,
            nodes: Vec::new(),
            retries: 0,
            reconnects: 0,
            skipped: 0,
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

    /// Counts on which node a transaction was that ended now, within the measurement.
    pub fn on_node(&mut self, node: usize, service: Nanos, now: Nanos) {
        self.gaps.success(now);
        if let Some(totals) = self.nodes.get_mut(node) {
            totals.transaction(service, now);
        }
        if let Some(count) = self.interval.nodes.get_mut(node) {
            *count += 1;
        }
    }

    /// Counts a broken connection that was replaced by one to this node.
    pub fn reconnected(&mut self, node: usize) {
        self.reconnects += 1;
        self.interval.reconnects += 1;
        if let Some(totals) = self.nodes.get_mut(node) {
            totals.reconnects += 1;
        }
    }

    /// Counts statements of a transaction that came to nothing.
    pub fn lost_queries(&mut self, queries: Queries) {
        self.queries.add(queries);
        self.interval.queries.add(queries);
    }

    /// Counts a transaction that ended within the measurement.
    pub fn transaction(&mut self, operation: usize, measured: Measured) {
        let Measured { service, response, rows, statements, queries, late } = measured;
        self.queries.add(queries);
        self.interval.queries.add(queries);
        self.interval.transactions += 1;
        self.interval.rows += rows;
        let Some(totals) = self.operations.get_mut(operation) else {
            return;
        };
        totals.transactions += 1;
        totals.rows += rows;
        totals.statements += u64::from(statements);
        totals.late += u64::from(late);
        self.interval.late += u64::from(late);
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
        self.interval.transactions += transactions;
        self.interval.rows += rows;
        let Some(totals) = self.operations.get_mut(operation) else {
            return;
        };
        totals.transactions += transactions;
        totals.rows += rows;
        totals.statements += transactions;
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
        self.interval.errors += 1;
        self.errors.add(sqlstate, message, retried, attempt);
        self.error_times.add(sqlstate, now);
        if retried {
            self.interval.retries += 1;
            self.retries += 1;
        }
        if let Some(totals) = self.nodes.get_mut(node) {
            totals.errors += 1;
            totals.retries += u64::from(retried);
            totals.error_times.add(sqlstate, now);
        }
    }

    /// Counts a transaction that failed, or whose outcome nobody knows.
    pub fn lost(&mut self, operation: usize, unknown: bool) {
        self.lost_many(operation, u64::from(!unknown), u64::from(unknown));
    }

    /// Counts transactions that failed, and others whose outcome nobody knows.
    pub fn lost_many(&mut self, operation: usize, failed: u64, unknown: u64) {
        self.interval.failed += failed + unknown;
        if let Some(totals) = self.operations.get_mut(operation) {
            totals.failed += failed;
            totals.unknown += unknown;
        }
    }

    /// Counts a start that was left out since it could only become late.
    pub fn skip(&mut self) {
        self.skipped += 1;
        self.interval.skipped += 1;
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
        self.queries.add(other.queries);
        self.attempts.merge(&other.attempts)?;
        for (mine, theirs) in self.nodes.iter_mut().zip(&other.nodes) {
            mine.merge(theirs)?;
        }
        self.retries += other.retries;
        self.reconnects += other.reconnects;
        self.skipped += other.skipped;
        self.connects.merge(&other.connects)?;
        self.away.merge(&other.away)?;
        if let (Some(mine), Some(theirs)) = (&mut self.start_lag, &other.start_lag) {
            mine.merge(theirs)?;
        }
        self.gaps.intersect(&other.gaps);
        self.error_times.merge(&other.error_times);
        for (mine, theirs) in self.operations.iter_mut().zip(&other.operations) {
            mine.transactions += theirs.transactions;
            mine.rows += theirs.rows;
            mine.statements += theirs.statements;
            mine.failed += theirs.failed;
            mine.unknown += theirs.unknown;
            mine.late += theirs.late;
            mine.service.merge(&theirs.service)?;
            if let (Some(mine), Some(theirs)) = (&mut mine.response, &theirs.response) {
                mine.merge(theirs)?;
            }
        }
        Ok(())
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

    fn measured(service: u64, response: u64, rows: u64) -> Measured {
        Measured {
            service: Nanos(service),
            response: Nanos(response),
            rows,
            statements: 1,
            queries: Queries { read: 1, ..Queries::default() },
            late: false,
        }
    }

    #[test]
    fn merged_recorders_hold_what_both_counted() {
        let mut first = Recorder::new(2, true).unwrap();
        let mut second = Recorder::new(2, true).unwrap();
        first.transaction(0, measured(10, 20, 5));
        second.transaction(0, measured(30, 40, 7));
        second.transaction(1, measured(50, 60, 1));
        second.error(&Failure {
            sqlstate: SqlState::DISK_FULL,
            message: "full",
            retried: false,
            attempt: Nanos(0),
            node: 0,
            now: Nanos(1),
        });
        first.merge(&second).unwrap();
        let [reads, updates] = first.operations() else { panic!("two operations") };
        assert_eq!((reads.transactions, reads.rows), (2, 12));
        assert_eq!(reads.service.max(), Nanos(30));
        assert_eq!(reads.response.as_ref().unwrap().max(), Nanos(40));
        assert_eq!((updates.transactions, updates.rows), (1, 1));
        assert_eq!((first.errors().total(), first.queries.read), (1, 3));
    }

    #[test]
    fn counts_of_a_server_are_added_to_totals_and_interval() {
        let mut recorder = Recorder::new(2, false).unwrap();
        recorder.transactions(1, 50, &[(Nanos(1_000), 3), (Nanos(2_000), 2)]);
        recorder.correct_longest(1, Nanos(1_990));
        let updates = &recorder.operations()[1];
        assert_eq!((updates.transactions, updates.rows, updates.statements), (5, 50, 5));
        assert_eq!(updates.service.count(), 5);
        assert_eq!(
            (updates.service.max(), updates.service.quantile(0.99)),
            (Nanos(1_990), Nanos(1_990))
        );
        assert_eq!((recorder.interval().transactions, recorder.interval().rows), (5, 50));
    }

    #[test]
    fn an_interval_is_handed_out_with_its_own_counts() {
        let mut recorder = Recorder::new(1, false).unwrap();
        recorder.transaction(0, measured(10, 10, 5));
        let spare = Box::new(IntervalPart::new(false).unwrap());
        let part = recorder.next_interval(spare, 1);
        assert_eq!((part.index, part.transactions, part.rows), (0, 1, 5));
        let part = recorder.next_interval(part, 2);
        assert_eq!((part.index, part.transactions, part.rows), (1, 0, 0));
        assert_eq!(part.service.count(), 0);
    }
}
