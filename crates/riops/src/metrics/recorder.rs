//! What one worker counts. Workers share nothing; their recorders are merged at a stage's end.

use riops_wire::sqlstate::SqlState;
use serde::{Deserialize, Serialize};

use super::histogram::{Histogram, HistogramError};
use crate::units::Nanos;

/// Different SQLSTATEs that are told apart; the rest is counted together under the last one.
const ERRORS_MAX: usize = 64;

/// One kind of error: how often, and what the server said the first time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorEntry {
    /// Five characters.
    pub sqlstate: String,
    /// How often.
    pub count: u64,
    /// The first message of this kind.
    pub sample: String,
}

/// Errors by SQLSTATE, in the order of their first appearance; bounded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ErrorCounts(Vec<ErrorEntry>);

impl ErrorCounts {
    /// Counts one error.
    pub fn add(&mut self, sqlstate: SqlState, message: &str) {
        self.merge_entry(sqlstate.as_str(), 1, message);
    }

    fn merge_entry(&mut self, sqlstate: &str, count: u64, sample: &str) {
        let full = self.0.len() == ERRORS_MAX;
        let known = self.0.iter().position(|entry| entry.sqlstate == sqlstate);
        match known.or_else(|| full.then_some(ERRORS_MAX - 1)) {
            Some(position) => {
                if let Some(entry) = self.0.get_mut(position) {
                    entry.count += count;
                }
            }
            None => self.0.push(ErrorEntry {
                sqlstate: sqlstate.to_owned(),
                count,
                sample: sample.to_owned(),
            }),
        }
    }

    /// Adds all errors of `other`.
    pub fn merge(&mut self, other: &Self) {
        for entry in &other.0 {
            self.merge_entry(&entry.sqlstate, entry.count, &entry.sample);
        }
    }

    /// All errors.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().map(|entry| entry.count).sum()
    }

    /// The kinds, in the order of their first appearance.
    #[must_use]
    pub fn entries(&self) -> &[ErrorEntry] {
        &self.0
    }
}

/// What was measured of one operation of a workload.
#[derive(Debug, Clone)]
pub struct OperationTotals {
    /// Transactions that ended within the measurement.
    pub transactions: u64,
    /// Rows that they read or wrote, counted from the replies.
    pub rows: u64,
    /// Their statements.
    pub statements: u64,
    /// From the send to the end of the reply.
    pub service: Histogram,
    /// From the intended start to the end of the reply; only where a schedule sets one.
    pub response: Option<Histogram>,
}

/// What one worker counted in one interval of the series.
#[derive(Debug, Clone)]
pub struct IntervalPart {
    /// Position of the interval, from 0.
    pub index: usize,
    /// Transactions that ended in it.
    pub transactions: u64,
    /// Their rows.
    pub rows: u64,
    /// Errors in it.
    pub errors: u64,
    /// Response time where a schedule sets an intended start, else service time.
    pub latency: Histogram,
}

impl IntervalPart {
    /// Nothing counted yet.
    ///
    /// # Errors
    /// [`HistogramError::Unusable`]
    pub fn new() -> Result<Self, HistogramError> {
        Ok(Self {
            index: 0,
            transactions: 0,
            rows: 0,
            errors: 0,
            latency: Histogram::for_interval()?,
        })
    }

    fn clear(&mut self, index: usize) {
        self.index = index;
        self.transactions = 0;
        self.rows = 0;
        self.errors = 0;
        self.latency.clear();
    }
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
}

/// The counters of one worker. All memory is taken when it is made, but for the first error of
/// each kind.
#[derive(Debug)]
pub struct Recorder {
    operations: Vec<OperationTotals>,
    errors: ErrorCounts,
    interval: Box<IntervalPart>,
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
                    service: Histogram::new()?,
                    response: open_loop.then(Histogram::new).transpose()?,
                })
            })
            .collect::<Result<_, HistogramError>>()?;
        Ok(Self {
            operations,
            errors: ErrorCounts::default(),
            interval: Box::new(IntervalPart::new()?),
        })
    }

    /// Counts a transaction that ended within the measurement.
    pub fn transaction(&mut self, operation: usize, measured: Measured) {
        let Measured { service, response, rows, statements } = measured;
        self.interval.transactions += 1;
        self.interval.rows += rows;
        let Some(totals) = self.operations.get_mut(operation) else {
            return;
        };
        totals.transactions += 1;
        totals.rows += rows;
        totals.statements += u64::from(statements);
        totals.service.record(service);
        match &mut totals.response {
            Some(histogram) => {
                histogram.record(response);
                self.interval.latency.record(response);
            }
            None => self.interval.latency.record(service),
        }
    }

    /// Counts an error.
    pub fn error(&mut self, sqlstate: SqlState, message: &str) {
        self.interval.errors += 1;
        self.errors.add(sqlstate, message);
    }

    /// Hands out the current interval and goes on in `spare`, which becomes interval `index`.
    pub fn next_interval(
        &mut self,
        mut spare: Box<IntervalPart>,
        index: usize,
    ) -> Box<IntervalPart> {
        spare.clear(index);
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
        for (mine, theirs) in self.operations.iter_mut().zip(&other.operations) {
            mine.transactions += theirs.transactions;
            mine.rows += theirs.rows;
            mine.statements += theirs.statements;
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
        Measured { service: Nanos(service), response: Nanos(response), rows, statements: 1 }
    }

    #[test]
    fn errors_are_counted_by_code_and_bounded() {
        let mut counts = ErrorCounts::default();
        for number in 0..200 {
            let code = format!("{number:05}");
            counts.add(SqlState::parse(&code), "no");
            counts.add(SqlState::parse(&code), "again");
        }
        assert_eq!(counts.entries().len(), ERRORS_MAX);
        assert_eq!(counts.total(), 400);
        assert_eq!(counts.entries()[0].count, 2);
        assert_eq!(counts.entries()[0].sample, "no");
    }

    #[test]
    fn merged_recorders_hold_what_both_counted() {
        let mut first = Recorder::new(2, true).unwrap();
        let mut second = Recorder::new(2, true).unwrap();
        first.transaction(0, measured(10, 20, 5));
        second.transaction(0, measured(30, 40, 7));
        second.transaction(1, measured(50, 60, 1));
        second.error(SqlState::DISK_FULL, "full");
        first.merge(&second).unwrap();
        let [reads, updates] = first.operations() else { panic!("two operations") };
        assert_eq!((reads.transactions, reads.rows), (2, 12));
        assert_eq!(reads.service.max(), Nanos(30));
        assert_eq!(reads.response.as_ref().unwrap().max(), Nanos(40));
        assert_eq!((updates.transactions, updates.rows), (1, 1));
        assert_eq!(first.errors().total(), 1);
    }

    #[test]
    fn an_interval_is_handed_out_with_its_own_counts() {
        let mut recorder = Recorder::new(1, false).unwrap();
        recorder.transaction(0, measured(10, 10, 5));
        let spare = Box::new(IntervalPart::new().unwrap());
        let part = recorder.next_interval(spare, 1);
        assert_eq!((part.index, part.transactions, part.rows), (0, 1, 5));
        let part = recorder.next_interval(part, 2);
        assert_eq!((part.index, part.transactions, part.rows), (1, 0, 0));
        assert_eq!(part.latency.count(), 0);
    }
}
