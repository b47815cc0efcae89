//! The totals of a report of sysbench, or of its part up to a checkpoint.

use super::super::numbers::require_number;
use crate::record::{
    Execution, Histogram, HistogramError, LATENCIES_MAX, LatencySummary, Queries, ReportedLatency,
    StoredHistogram,
};
use crate::units::Nanos;
use crate::units::format::nearest_integer;

/// What the sections of a report contain.
#[derive(Debug, Default)]
pub(super) struct Totals {
    pub(super) has_sql: bool,
    pub(super) queries: Queries,
    pub(super) transactions: Option<u64>,
    pub(super) errors: u64,
    pub(super) reconnects: u64,
    /// Time since the start of the run.
    pub(super) seconds: Option<f64>,
    pub(super) latency: ReportedLatency,
    pub(super) sum_s: Option<f64>,
    /// Mean and standard deviation of the events of the threads, as text.
    pub(super) events: Option<String>,
    pub(super) execution: Option<Execution>,
    /// Values in milliseconds, and their counts.
    buckets: Vec<(f64, u64)>,
    /// Sum of these counts.
    counted: u64,
}

impl Totals {
    /// `0.499 |*                                        1`
    pub(super) fn bucket(&mut self, text: &str) -> Result<(), String> {
        if let Some((value, bar)) = text.split_once('|') {
            let count = require_number(bar.rsplit(' ').next().unwrap_or_default())?;
            self.count(count)?;
            self.buckets.push((require_number(value)?, count));
        }
        Ok(())
    }

    fn count(&mut self, count: u64) -> Result<(), String> {
        let counted = self.counted.checked_add(count).filter(|sum| *sum <= LATENCIES_MAX);
        self.counted = counted.ok_or("a count is out of range")?;
        Ok(())
    }

    /// Returns the totals of a run with checkpoints. Their percentiles, and how evenly the threads ran, cannot be
    /// added.
    pub(super) fn sum(checkpoints: Vec<Self>, last: Self) -> Result<Self, String> {
        if checkpoints.is_empty() {
            return Ok(last);
        }
        let mut all = Self { has_sql: true, seconds: last.seconds, ..Self::default() };
        let mut is_whole = true;
        for part in checkpoints.into_iter().chain([last]) {
            // The report of this part was cut off.
            is_whole &= part.sum_s.is_some() && part.latency.max_us.is_some();
            all.add(part)?;
        }
        if !is_whole {
            (all.sum_s, all.latency) = (None, ReportedLatency::default());
        }
        // The histogram of sysbench is that since the last checkpoint.
        if Some(all.counted) != all.transactions {
            all.buckets.clear();
        }
        let mean_s = all.sum_s.zip(all.transactions.filter(|count| *count > 0));
        all.latency.mean_us = mean_s.map(|(sum_s, count)| sum_s * 1e6 / count as f64);
        Ok(all)
    }

    fn add(&mut self, part: Self) -> Result<(), String> {
        let sum = |a: u64, b: u64| a.checked_add(b).ok_or("a count is out of range");
        let merge = |pick: fn(f64, f64) -> f64, a, b| [a, b].into_iter().flatten().reduce(pick);
        self.queries = Queries {
            read: sum(self.queries.read, part.queries.read)?,
            write: sum(self.queries.write, part.queries.write)?,
            other: sum(self.queries.other, part.queries.other)?,
        };
        let before = self.transactions.unwrap_or_default();
        self.transactions = part.transactions.map(|count| sum(before, count)).transpose()?;
        self.errors = sum(self.errors, part.errors)?;
        self.reconnects = sum(self.reconnects, part.reconnects)?;
        self.sum_s = merge(|a, b| a + b, self.sum_s, part.sum_s);
        self.latency.min_us = merge(f64::min, self.latency.min_us, part.latency.min_us);
        self.latency.max_us = merge(f64::max, self.latency.max_us, part.latency.max_us);
        self.count(part.counted)?;
        self.buckets.extend(part.buckets);
        Ok(())
    }

    /// Returns the number of threads: all transactions divided by the mean of a thread.
    pub(super) fn threads(&self) -> Option<u32> {
        let (mean, _) = self.events.as_ref()?.split_once('/')?;
        let mean: f64 = require_number(mean).ok().filter(|mean| *mean > 0.0)?;
        let threads = nearest_integer(self.transactions? as f64 / mean);
        Some(u32::try_from(threads).unwrap_or(u32::MAX))
    }

    /// Returns the histogram with the buckets of sysbench, each at its value, and its figures.
    pub(super) fn histogram(
        &self,
    ) -> Result<Option<(StoredHistogram, LatencySummary)>, HistogramError> {
        if self.buckets.is_empty() {
            return Ok(None);
        }
        let mut histogram = Histogram::new()?;
        for (ms, count) in &self.buckets {
            histogram.record_many(Nanos(nearest_integer(ms * 1e6)), *count);
        }
        if let Some(max_us) = self.latency.max_us {
            histogram.set_exact_max(Nanos(nearest_integer(max_us * 1e3)));
        }
        let exact = |summary: LatencySummary| LatencySummary {
            min: self.latency.min_us.unwrap_or(summary.min),
            mean: self.latency.mean_us.unwrap_or(summary.mean),
            ..summary
        };
        let summary = histogram.summary().map(exact);
        summary.map(|summary| histogram.stored().map(|stored| (stored, summary))).transpose()
    }
}
