//! The latencies of a stage, including transactions that did not succeed within the measurement.
//!
//! A transaction that was due and did not succeed is in no histogram of latencies, although it was slow: the figures
//! would have a survivorship bias. Only a lower bound of its latency is known: the time that it waited until the end of
//! the measurement, or until it failed. Such observations are right-censored (Klein and Moeschberger, "Survival
//! Analysis", 2003, section 3.2). A percentile of all transactions has a lower limit, in which each such transaction has
//! its lower bound as latency, and an upper limit, in which its latency is infinite. If both limits agree with the
//! percentile of the successful transactions, this percentile is the value. Otherwise the value is the lower limit, and
//! is marked as a lower bound.

use super::histogram::{Histogram, HistogramError, StoredHistogram};
use super::latency::{LatencySummary, Moments};
use crate::plan::{LatencyKind, Quantity};
use crate::units::Nanos;

/// Relative difference that the missing transactions may make to a value: repeated runs differ by more.
const TOLERANCE: f64 = 0.05;
/// The percentile that decides whether mean and standard deviation are lower bounds: they depend on the tail.
const OF_MEAN: f64 = 99.0;

/// Latencies of the transactions that were due in a measurement.
#[derive(Debug, Clone)]
pub struct Latencies {
    /// Latencies of the transactions that succeeded within the measurement.
    pub observed: Histogram,
    /// Latencies of the transactions in flight at its end that succeeded later.
    drained: Histogram,
    /// Lower bounds of the latencies of the other transactions.
    unfinished: Histogram,
}

/// A value, or a lower bound of the value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AtLeast {
    /// The value.
    pub value: f64,
    /// Whether the real value may be higher.
    pub is_bound: bool,
}

/// The stored latencies of a stage or of one kind of transaction.
#[derive(Debug, Clone, Copy)]
pub struct StoredTimes<'a> {
    summary: Option<&'a LatencySummary>,
    observed: Option<&'a StoredHistogram>,
    unfinished: Option<&'a StoredHistogram>,
}

impl<'a> StoredTimes<'a> {
    /// Returns the times of a kind. Each pair has the service times and then the response times; without a rate, the second lower
    /// bounds belong to the service times.
    pub(super) fn for_kind(
        kind: Option<LatencyKind>,
        summaries: [&'a Option<LatencySummary>; 2],
        histograms: [&'a Option<StoredHistogram>; 2],
        unfinished: [&'a Option<StoredHistogram>; 2],
    ) -> Self {
        let has_rate = LatencyKind::Response.pick(summaries).is_some();
        let main = if has_rate { LatencyKind::Response } else { LatencyKind::Service };
        let kind = kind.unwrap_or(main);
        let of_bounds = if kind == main { LatencyKind::Response } else { kind };
        Self {
            summary: kind.pick(summaries).as_ref(),
            observed: kind.pick(histograms).as_ref(),
            unfinished: of_bounds.pick(unfinished).as_ref(),
        }
    }

    /// Returns times without lower bounds.
    pub fn of_observed(
        observed: Option<&'a StoredHistogram>,
        summary: Option<&'a LatencySummary>,
    ) -> Self {
        Self { summary, observed, unfinished: None }
    }

    /// Returns the latencies; `None` without a histogram.
    ///
    /// # Errors
    /// Returns [`HistogramError`] if a histogram is damaged.
    pub fn latencies(self) -> Result<Option<Latencies>, HistogramError> {
        self.observed.map(|observed| Latencies::stored(observed, self.unfinished)).transpose()
    }

    /// Returns a statistic in microseconds; `None` without a successful transaction.
    ///
    /// # Errors
    /// Returns [`HistogramError`] if a histogram is damaged.
    pub fn figure(self, quantity: Quantity) -> Result<Option<AtLeast>, HistogramError> {
        // A histogram knows both only to its buckets.
        let exact = match quantity {
            Quantity::Mean => self.summary.map(|summary| summary.mean),
            Quantity::Percentile(100.0) => self.summary.map(|summary| summary.max),
            Quantity::Percentile(_) => None,
        };
        match exact.filter(|_| self.unfinished.is_none()) {
            Some(value) => Ok(Some(AtLeast { value, is_bound: false })),
            None => self.latencies()?.map_or(Ok(None), |latencies| latencies.figure(quantity)),
        }
    }
}

impl Latencies {
    /// Creates histograms without latencies.
    ///
    /// # Errors
    /// Returns [`HistogramError::Unusable`] if a histogram cannot be created.
    pub fn new() -> Result<Self, HistogramError> {
        Ok(Self {
            observed: Histogram::new()?,
            drained: Histogram::for_interval()?,
            unfinished: Histogram::for_interval()?,
        })
    }

    /// Returns the latencies of a record.
    ///
    /// # Errors
    /// Returns [`HistogramError`] if a histogram is damaged.
    pub fn stored(
        observed: &StoredHistogram,
        unfinished: Option<&StoredHistogram>,
    ) -> Result<Self, HistogramError> {
        let mut latencies = Self::new()?;
        latencies.observed.merge(&observed.decode()?)?;
        if let Some(unfinished) = unfinished {
            latencies.unfinished.merge(&unfinished.decode()?)?;
        }
        Ok(latencies)
    }

    /// Adds a transaction that succeeded after the end of the measurement. Never allocates.
    pub fn drained(&mut self, latency: Nanos) {
        self.drained.record(latency);
    }

    /// Adds a transaction whose latency is at least this. Never allocates.
    pub fn unfinished(&mut self, at_least: Nanos) {
        self.unfinished.record(at_least);
    }

    /// Adds all latencies of `other`.
    ///
    /// # Errors
    /// Returns [`HistogramError::Unusable`] if the bounds differ.
    pub fn merge(&mut self, other: &Self) -> Result<(), HistogramError> {
        self.observed.merge(&other.observed)?;
        self.drained.merge(&other.drained)?;
        self.unfinished.merge(&other.unfinished)
    }

    /// Adds lower bounds of transactions that belong to no operation.
    ///
    /// # Errors
    /// Returns [`HistogramError::Unusable`] if the bounds differ.
    pub fn merge_unfinished(&mut self, at_least: &Histogram) -> Result<(), HistogramError> {
        self.unfinished.merge(at_least)
    }

    /// Returns the lower bounds of the latencies that are not observed. A transaction in flight at the end is one of them
    /// only if it took longer than all before: otherwise it is like those in flight at the start, which are observed.
    pub fn bounds(&self) -> Histogram {
        let mut bounds = self.unfinished.clone();
        for (latency, count) in
            self.drained.recorded().filter(|bucket| bucket.0 > self.observed.max())
        {
            bounds.record_many(latency, count);
        }
        // The recorded ones have the error of the histogram.
        bounds.set_exact_max(self.drained.max().max(self.unfinished.max()));
        bounds
    }

    /// Returns the same for a record; `None` without any.
    ///
    /// # Errors
    /// Returns [`HistogramError`] if they cannot be encoded.
    pub fn stored_bounds(&self) -> Result<Option<StoredHistogram>, HistogramError> {
        let bounds = self.bounds();
        (bounds.count() > 0).then(|| bounds.stored()).transpose()
    }

    /// Returns a statistic in microseconds; `None` without a successful transaction.
    ///
    /// # Errors
    /// Returns [`HistogramError::Unusable`] if a histogram cannot be merged.
    pub fn figure(&self, quantity: Quantity) -> Result<Option<AtLeast>, HistogramError> {
        let all = WithBounds::from_latencies(self)?;
        Ok(match quantity {
            Quantity::Percentile(percent) => all.percentile(percent),
            Quantity::Mean => all.percentile(OF_MEAN).and_then(|tail| {
                Some(AtLeast { value: all.of_mean()?.figure(Quantity::Mean)?, ..tail })
            }),
        })
    }

    /// Returns the summary statistics of a record, in microseconds; `None` without a successful transaction.
    ///
    /// # Errors
    /// Returns [`HistogramError::Unusable`] if a histogram cannot be merged.
    pub fn summary(&self) -> Result<Option<LatencySummary>, HistogramError> {
        let all = WithBounds::from_latencies(self)?;
        let of_mean = all.of_mean().and_then(Histogram::summary);
        let Some((of_mean, observed)) = of_mean.zip(self.observed.summary()) else {
            return Ok(None);
        };
        // A start may have waited for less than any transaction takes.
        let (count, min) = (self.observed.count(), observed.min);
        let moments = Moments { mean: of_mean.mean, stdev: of_mean.stdev };
        let percentile = |percent| Some(all.percentile(percent)?.value);
        let mut summary = LatencySummary::new(count, min, moments, percentile);
        if let Some(summary) = &mut summary {
            summary.successful = (*summary != observed).then(|| Box::new(observed));
            let is_bound = |percent| all.percentile(percent).is_some_and(|at| at.is_bound);
            summary.lower_bound_from =
                LatencySummary::PERCENTS.into_iter().find(|percent| is_bound(*percent));
        }
        Ok(summary)
    }
}

/// The observed latencies, alone and with the lower bounds.
struct WithBounds<'a> {
    observed: &'a Histogram,
    /// Number of the lower bounds.
    bounds: u64,
    all: Histogram,
}

impl<'a> WithBounds<'a> {
    fn from_latencies(latencies: &'a Latencies) -> Result<Self, HistogramError> {
        let bounds = latencies.bounds();
        let mut all = latencies.observed.clone();
        all.merge(&bounds)?;
        Ok(Self { observed: &latencies.observed, bounds: bounds.count(), all })
    }

    fn percentile(&self, percent: f64) -> Option<AtLeast> {
        let observed = self.observed.percentile_us(percent)?;
        if self.bounds == 0 {
            return Some(AtLeast { value: observed, is_bound: false });
        }
        let lowest = self.all.percentile_us(percent)?;
        let highest = self.highest(percent);
        let is_near = |value: f64| value <= observed * (1.0 + TOLERANCE);
        if is_near(lowest) && highest.is_some_and(is_near) {
            return Some(AtLeast { value: observed, is_bound: false });
        }
        let is_bound = highest.is_none_or(|highest| highest > lowest * (1.0 + TOLERANCE));
        Some(AtLeast { value: lowest, is_bound })
    }

    /// Returns the percentile if all latencies that are not observed were infinite; `None` if it or the next one were one of
    /// them.
    fn highest(&self, percent: f64) -> Option<f64> {
        let observed = self.observed.count() as f64;
        let rank = percent / 100.0 * self.all.count() as f64;
        (rank < observed).then(|| self.observed.percentile_us(100.0 * rank / observed))?
    }

    /// Returns the latencies of mean and standard deviation: with the lower bounds only if they matter.
    fn of_mean(&self) -> Option<&Histogram> {
        let tail = self.percentile(OF_MEAN)?;
        Some(if tail.is_bound { &self.all } else { self.observed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Latencies of 1 ms, of which 3 % take `tail_ms`.
    fn latencies(count: u64, tail_ms: u64) -> Latencies {
        let mut latencies = Latencies::new().unwrap();
        latencies.observed.record_many(Nanos(MS), count - count * 3 / 100);
        latencies.observed.record_many(Nanos(tail_ms * MS), count * 3 / 100);
        latencies
    }

    fn at(latencies: &Latencies, percent: f64) -> (f64, bool) {
        let figure = latencies.figure(Quantity::Percentile(percent)).unwrap().unwrap();
        ((figure.value / 1e3 * 10.0).round() / 10.0, figure.is_bound)
    }

    #[test]
    fn values_equal_the_histogram_if_no_transaction_is_missing() {
        let latencies = latencies(10_000, 5);
        assert_eq!(latencies.summary().unwrap(), latencies.observed.summary());
        assert_eq!(Latencies::new().unwrap().summary().unwrap(), None);
    }

    #[test]
    fn a_stall_at_the_end_is_a_lower_bound_of_the_percentiles_that_it_can_change() {
        // The server hangs for the last 0.55 of 60 s at 2,000 transactions/s.
        let mut stalled = latencies(118_900, 2);
        for waiting in 0..1_100 {
            stalled.unfinished(Nanos(550 * MS - waiting * MS / 2));
        }
        assert_eq!(at(&stalled, 50.0), (1.0, false));
        assert_eq!(at(&stalled, 95.0), (1.0, false));
        let (p999, is_bound) = at(&stalled, 99.9);
        assert!(is_bound && (450.0..500.0).contains(&p999), "{p999}");
        let summary = stalled.summary().unwrap().unwrap();
        assert_eq!((summary.lower_bound_from, summary.count), (Some(99.9), 118_900));
        assert_eq!(Some(summary.of_successful()), stalled.observed.summary().as_ref());
        assert!(summary.p999 / 1e3 > 450.0 && summary.max / 1e3 >= 540.0, "{summary:?}");
        assert_eq!(stalled.observed.summary().unwrap().min, summary.min);
        stalled.unfinished(Nanos(1));
        (0..5_000).for_each(|_| stalled.unfinished(Nanos(1)));
        let summary = stalled.summary().unwrap().unwrap();
        assert_eq!((summary.min, summary.is_bound(None)), (1_000.0, true));
    }

    #[test]
    fn failures_at_a_timeout_hide_no_slow_transaction() {
        // 5 % end at a statement_timeout of 50 ms.
        let mut limited = latencies(9_500, 40);
        (0..500).for_each(|_| limited.unfinished(Nanos(50 * MS)));
        assert_eq!(at(&limited, 50.0), (1.0, false));
        let (p99, is_bound) = at(&limited, 99.0);
        assert!(is_bound && (49.5..=50.0).contains(&p99), "{p99}");
        // One of 10,000 changes only the longest latency.
        let mut one = latencies(9_999, 40);
        one.unfinished(Nanos(50 * MS));
        assert_eq!(one.summary().unwrap().unwrap().lower_bound_from, Some(100.0));
        assert_eq!(at(&one, 99.9), (40.0, false));
        let mean = one.figure(Quantity::Mean).unwrap().unwrap();
        assert!(!mean.is_bound && (mean.value - 2_166.0).abs() < 10.0, "{mean:?}");
    }

    #[test]
    fn transactions_in_flight_at_the_end_count_only_if_they_are_the_longest() {
        let mut usual = latencies(1_000, 5);
        (0..8).for_each(|_| usual.drained(Nanos(4 * MS)));
        assert_eq!(usual.summary().unwrap(), usual.observed.summary());
        usual.drained(Nanos(600 * MS));
        assert_eq!(at(&usual, 99.0), (5.0, false));
        assert_eq!(at(&usual, 100.0), (600.0, true));
    }

    #[test]
    fn stored_histograms_give_the_same_summary() {
        let mut measured = latencies(1_000, 5);
        (0..100).for_each(|_| measured.unfinished(Nanos(70 * MS)));
        let (observed, bounds) = (measured.observed.stored(), measured.bounds().stored());
        let read = Latencies::stored(&observed.unwrap(), Some(&bounds.unwrap())).unwrap();
        assert_eq!(at(&read, 99.0), at(&measured, 99.0));
        assert!(at(&read, 99.0).1);
    }
}
