//! What one worker counts. Workers share nothing; their recorders are merged at a stage's end.

use riops_wire::sqlstate::SqlState;
use serde::{Deserialize, Serialize};

use super::histogram::{Histogram, HistogramError};
use super::outage::{ErrorTimes, Gaps};
use super::timeline::Point;
use crate::units::Nanos;

/// Different SQLSTATEs that are told apart; the rest is counted together under the last one.
const ERRORS_MAX: usize = 64;

/// Further messages of one kind that are kept, beside the first.
const SAMPLES_MAX: usize = 4;

/// One kind of error: how often, and what the server said.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ErrorEntry {
    /// Five characters.
    pub sqlstate: String,
    /// How often.
    pub count: u64,
    /// How often the transaction was then sent again.
    #[serde(default)]
    pub retried: u64,
    /// The first message of this kind.
    pub sample: String,
    /// Up to four more that differ.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_samples: Vec<String>,
    /// The longest time around such an error in which no transaction succeeded, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_success_s: Option<f64>,
    /// From the last success before that time to the end of the first interval that reached 90 %
    /// of the former rate, in seconds; absent where none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_90_percent_s: Option<f64>,
}

impl ErrorEntry {
    fn keep_sample(&mut self, sample: &str) {
        let known = self.sample == sample || self.more_samples.iter().any(|known| known == sample);
        if !known && self.more_samples.len() < SAMPLES_MAX {
            self.more_samples.push(sample.to_owned());
        }
    }
}

/// Errors by SQLSTATE, in the order of their first appearance; bounded.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ErrorCounts(Vec<ErrorEntry>);

impl ErrorCounts {
    /// Counts one error; `retried` says that the transaction is sent again.
    pub fn add(&mut self, sqlstate: SqlState, message: &str, retried: bool) {
        self.merge_entry(&ErrorEntry {
            sqlstate: sqlstate.as_str().to_owned(),
            count: 1,
            retried: u64::from(retried),
            sample: message.to_owned(),
            ..ErrorEntry::default()
        });
    }

    fn merge_entry(&mut self, new: &ErrorEntry) {
        let full = self.0.len() == ERRORS_MAX;
        let known = self.0.iter().position(|entry| entry.sqlstate == new.sqlstate);
        let Some(position) = known.or_else(|| full.then_some(ERRORS_MAX - 1)) else {
            return self.0.push(new.clone());
        };
        if let Some(entry) = self.0.get_mut(position) {
            entry.count += new.count;
            entry.retried += new.retried;
            for sample in std::iter::once(&new.sample).chain(&new.more_samples) {
                entry.keep_sample(sample);
            }
        }
    }

    /// Adds all errors of `other`.
    pub fn merge(&mut self, other: &Self) {
        other.0.iter().for_each(|entry| self.merge_entry(entry));
    }

    /// All errors.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.iter().map(|entry| entry.count).sum()
    }

    /// The kinds, to be completed with what only the whole stage knows.
    pub fn entries_mut(&mut self) -> &mut [ErrorEntry] {
        &mut self.0
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
    /// Transactions that failed in it or whose outcome is unknown.
    pub failed: u64,
    /// Transactions that were late.
    pub late: u64,
    /// Starts that were left out since they could only become late.
    pub skipped: u64,
    /// Transactions that were sent again.
    pub retries: u64,
    /// Starts that were due at its end and had not happened; only where a schedule sets them.
    pub backlog: u64,
    /// Service times.
    pub service: Histogram,
    /// Response times; only where a schedule sets an intended start.
    pub response: Option<Histogram>,
}

impl IntervalPart {
    /// Nothing counted yet.
    ///
    /// # Errors
    /// [`HistogramError::Unusable`]
    pub fn new(open_loop: bool) -> Result<Self, HistogramError> {
        Ok(Self {
            index: 0,
            transactions: 0,
            rows: 0,
            errors: 0,
            failed: 0,
            late: 0,
            skipped: 0,
            retries: 0,
            backlog: 0,
            service: Histogram::for_interval()?,
            response: open_loop.then(Histogram::for_interval).transpose()?,
        })
    }

    fn clear(&mut self, index: usize) {
        self.index = index;
        self.transactions = 0;
        self.rows = 0;
        self.errors = 0;
        self.failed = 0;
        self.late = 0;
        self.skipped = 0;
        self.retries = 0;
        self.backlog = 0;
        self.service.clear();
        if let Some(response) = &mut self.response {
            response.clear();
        }
    }
}

impl IntervalPart {
    /// Adds what another worker counted in the same interval.
    ///
    /// # Errors
    /// [`HistogramError::Unusable`]
    pub fn merge(&mut self, other: &Self) -> Result<(), HistogramError> {
        self.transactions += other.transactions;
        self.rows += other.rows;
        self.errors += other.errors;
        self.failed += other.failed;
        self.late += other.late;
        self.skipped += other.skipped;
        self.retries += other.retries;
        self.backlog += other.backlog;
        self.service.merge(&other.service)?;
        if let (Some(mine), Some(theirs)) = (&mut self.response, &other.response) {
            mine.merge(theirs)?;
        }
        Ok(())
    }

    /// The interval as a point of the series: it ends at `t_s` and is `seconds` long.
    #[must_use]
    pub fn point(&self, t_s: f64, seconds: f64) -> Point {
        let service = Some(&self.service).filter(|histogram| histogram.count() > 0);
        let response = self.response.as_ref().filter(|histogram| histogram.count() > 0);
        let at = |histogram: Option<&Histogram>, quantile: f64| {
            histogram.map(|histogram| histogram.quantile(quantile).as_micros())
        };
        let max = |histogram: Option<&Histogram>| histogram.map(|each| each.max().as_micros());
        Point {
            t_s,
            seconds,
            transactions: self.transactions,
            rows: self.rows,
            errors: self.errors,
            failed: self.failed,
            late: self.late,
            skipped: self.skipped,
            retries: self.retries,
            backlog: self.response.as_ref().map(|_| self.backlog),
            p50_us: at(service, 0.50),
            p99_us: at(service, 0.99),
            max_us: max(service),
            response_p50_us: at(response, 0.50),
            response_p99_us: at(response, 0.99),
            response_max_us: max(response),
        }
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
    /// Whether the response time is beyond the limit.
    pub late: bool,
}

/// The counters of one worker. All memory is taken when it is made, but for the first error of
/// each kind.
#[derive(Debug)]
pub struct Recorder {
    operations: Vec<OperationTotals>,
    errors: ErrorCounts,
    interval: Box<IntervalPart>,
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
            retries: 0,
            reconnects: 0,
            skipped: 0,
            connects: Histogram::for_interval()?,
            start_lag: open_loop.then(Histogram::for_interval).transpose()?,
            away: Histogram::for_interval()?,
            gaps: Gaps::default(),
            error_times: ErrorTimes::default(),
        })
    }

    /// Counts a transaction that ended within the measurement.
    pub fn transaction(&mut self, operation: usize, measured: Measured) {
        let Measured { service, response, rows, statements, late } = measured;
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

    /// Counts an error of `now`; `retried` says that the transaction is sent again.
    pub fn error(&mut self, sqlstate: SqlState, message: &str, retried: bool, now: Nanos) {
        self.interval.errors += 1;
        self.errors.add(sqlstate, message, retried);
        self.error_times.add(sqlstate, now);
        if retried {
            self.interval.retries += 1;
            self.retries += 1;
        }
    }

    /// Counts a transaction that failed, or whose outcome nobody knows.
    pub fn lost(&mut self, operation: usize, unknown: bool) {
        self.interval.failed += 1;
        if let Some(totals) = self.operations.get_mut(operation) {
            totals.failed += u64::from(!unknown);
            totals.unknown += u64::from(unknown);
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
            late: false,
        }
    }

    #[test]
    fn errors_are_counted_by_code_and_bounded() {
        let mut counts = ErrorCounts::default();
        for number in 0..200 {
            let code = format!("{number:05}");
            counts.add(SqlState::parse(&code), "no", false);
            counts.add(SqlState::parse(&code), "again", true);
        }
        assert_eq!(counts.entries().len(), ERRORS_MAX);
        assert_eq!(counts.total(), 400);
        assert_eq!(counts.entries()[0].count, 2);
        assert_eq!(counts.entries()[0].sample, "no");
        assert_eq!((counts.entries()[0].retried, counts.entries()[0].more_samples.len()), (1, 1));
        for number in 0..100 {
            counts.add(SqlState::parse("00000"), &format!("sample {number}"), false);
        }
        assert_eq!(counts.entries()[0].more_samples.len(), SAMPLES_MAX);
    }

    #[test]
    fn merged_recorders_hold_what_both_counted() {
        let mut first = Recorder::new(2, true).unwrap();
        let mut second = Recorder::new(2, true).unwrap();
        first.transaction(0, measured(10, 20, 5));
        second.transaction(0, measured(30, 40, 7));
        second.transaction(1, measured(50, 60, 1));
        second.error(SqlState::DISK_FULL, "full", false, Nanos(1));
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
        let spare = Box::new(IntervalPart::new(false).unwrap());
        let part = recorder.next_interval(spare, 1);
        assert_eq!((part.index, part.transactions, part.rows), (0, 1, 5));
        let part = recorder.next_interval(part, 2);
        assert_eq!((part.index, part.transactions, part.rows), (1, 0, 0));
        assert_eq!(part.service.count(), 0);
    }
}
