//! `pgbench --log --aggregate-interval`: a line per interval.
//!
//! `start count sum_latency sum_latency² min max [sum_lag sum_lag² min_lag max_lag [skipped [retried retries
//! [serialization deadlock [other]]]]]`; times in microseconds. Up to version 14, the columns of options that
//! are off are missing; from 15 on they are 0. Each thread writes a file.
//!
//! pgbench rounds the start down to a full second, so the first interval is up to a second shorter than the others. It
//! does not write the last one unless it is complete; riops does. No length of such an interval is in the log: it is
//! estimated from the rate of the complete ones.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::super::error::ImportError;
use super::super::input::Input;
use super::super::numbers::parse_number;
use super::super::results::RunResults;
use super::{OUT_OF_RANGE, TOOL};
use crate::plan::ImportedRun;
use crate::record::{LatencyKind, LoopRecord, Point, ReportedLatency, StageRecord};

/// Number of columns without options, and with the options of version 19.
const COLUMNS_MIN: usize = 6;
const COLUMNS_MAX: usize = 16;
/// Columns up to version 14 with `--rate` and `--latency-limit`: its count includes skipped transactions.
const COLUMNS_WITH_SKIPPED: usize = 11;
/// How much shorter the first interval can be, in seconds: the start is rounded down to a full one.
const ROUNDING_S: f64 = 1.0;

/// Sums over one interval, or over all.
#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    count: u64,
    latency_us: f64,
    squares: f64,
    min_us: Option<f64>,
    max_us: Option<f64>,
    lag_us: f64,
    skipped: u64,
    retries: u64,
    serialization: u64,
    deadlock: u64,
    other: u64,
}

impl Sums {
    fn parse(line: &str) -> Result<(i64, Self), String> {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        if !(COLUMNS_MIN..=COLUMNS_MAX).contains(&fields.len()) {
            return Err(format!(
                "expected {COLUMNS_MIN} to {COLUMNS_MAX} columns, as pgbench --aggregate-interval writes them, found {}",
                fields.len()
            ));
        }
        let text = |at: usize| fields.get(at).copied().unwrap_or("0");
        let wrong = |what: &str, at: usize| {
            format!("expected a {what} in column {}, found \"{}\"", at + 1, text(at))
        };
        let integer = |at: usize| parse_number(text(at)).ok_or_else(|| wrong("count", at));
        let decimal = |at: usize| {
            let value = parse_number(text(at)).filter(|value: &f64| *value >= 0.0);
            value.ok_or_else(|| wrong("number", at))
        };
        let start = super::second(i64::try_from(integer(0)?).unwrap_or(i64::MAX))?;
        let mut count = integer(1)?;
        if fields.len() == COLUMNS_WITH_SKIPPED {
            let skipped: u64 = integer(10)?;
            count = count.checked_sub(skipped).ok_or("more transactions skipped than counted")?;
        }
        let some = |us: f64| (count > 0).then_some(us);
        let sums = Self {
            count,
            latency_us: decimal(2)?,
            squares: decimal(3)?,
            min_us: some(decimal(4)?),
            max_us: some(decimal(5)?),
            lag_us: decimal(6)?,
            skipped: integer(10)?,
            retries: integer(12)?,
            serialization: integer(13)?,
            deadlock: integer(14)?,
            other: integer(15)?,
        };
        Ok((start, sums))
    }

    fn add(&mut self, other: &Self) -> Result<(), String> {
        let sum = |a: u64, b: u64| a.checked_add(b).ok_or(OUT_OF_RANGE);
        let merge = |pick: fn(f64, f64) -> f64, a, b| [a, b].into_iter().flatten().reduce(pick);
        self.count = sum(self.count, other.count)?;
        self.latency_us += other.latency_us;
        self.squares += other.squares;
        self.min_us = merge(f64::min, self.min_us, other.min_us);
        self.max_us = merge(f64::max, self.max_us, other.max_us);
        self.lag_us += other.lag_us;
        self.skipped = sum(self.skipped, other.skipped)?;
        self.retries = sum(self.retries, other.retries)?;
        self.serialization = sum(self.serialization, other.serialization)?;
        self.deadlock = sum(self.deadlock, other.deadlock)?;
        self.other = sum(self.other, other.other)?;
        // All attempts, so that no part of this sum overflows.
        sum(self.count, sum(self.serialization, sum(self.deadlock, self.other)?)?)?;
        Ok(())
    }

    fn failed(&self) -> u64 {
        self.serialization + self.deadlock + self.other
    }

    fn latency(&self) -> Option<ReportedLatency> {
        let count = (self.count > 0).then_some(self.count as f64)?;
        let mean = self.latency_us / count;
        Some(ReportedLatency {
            // With a rate, pgbench measures from the intended start; without one there is no lag.
            kind: if self.lag_us > 0.0 { LatencyKind::Response } else { LatencyKind::Service },
            min_us: self.min_us,
            mean_us: Some(mean),
            // The formula of pgbench; rounding can make it negative.
            stdev_us: Some((self.squares / count - mean * mean).max(0.0).sqrt()),
            percentiles: Vec::new(),
            max_us: self.max_us,
        })
    }
}

/// The intervals of the file of a thread, by their start.
type File = BTreeMap<i64, Sums>;

/// An interval of the run, with the transactions of all threads.
#[derive(Debug, Clone, Copy, Default)]
struct Interval {
    seconds: f64,
    sums: Sums,
}

/// Returns the run in the aggregated log files of all threads of one pgbench.
pub(in crate::import) fn aggregate(group: Vec<Input>) -> Result<RunResults, ImportError> {
    let name = group.first().map(|input| input.name.clone()).unwrap_or_default();
    let failed = |reason: String| ImportError::contents(&name, reason);
    let mut files: Vec<File> = Vec::new();
    for input in group {
        let mut file = File::new();
        input.for_each_line(|_, line| {
            let (start, sums) = Sums::parse(line)?;
            file.entry(start).or_default().add(&sums)
        })?;
        // A thread that ended before its first interval wrote nothing.
        files.extend(Some(file).filter(|file| !file.is_empty()));
    }
    let length_s = interval_s(&files).map_err(failed)?;
    let merged = merged(&files, length_s).map_err(failed)?;
    let intervals = with_lengths(&merged, length_s);
    let mut all = Sums::default();
    for interval in &intervals {
        all.add(&interval.sums).map_err(failed)?;
    }
    let seconds: f64 = intervals.iter().map(|interval| interval.seconds).sum();
    let first_s = files.iter().filter_map(|file| file.keys().next()).min().copied();
    let mut results = RunResults {
        run: ImportedRun { tool: TOOL.to_owned(), ..ImportedRun::default() },
        started_at: first_s.and_then(|second| Timestamp::from_second(second).ok()),
        stage: StageRecord {
            seconds,
            transactions: all.count,
            session_loop: session_loop(&all, &intervals),
            ..StageRecord::default()
        },
        ..RunResults::default()
    };
    results.fact("aggregate interval", &format!("{length_s} s"));
    let whole_s = length_s as f64;
    let edges = [("first interval", intervals.first()), ("last interval", intervals.last())];
    for (name, interval) in edges {
        if let Some(interval) = interval.filter(|interval| interval.seconds < whole_s) {
            results.fact(name, &format!("{:.3} s (estimated from the rate)", interval.seconds));
        }
    }
    if all.lag_us > 0.0 {
        results
            .fact("mean schedule lag", &format!("{:.1} us", all.lag_us / all.count.max(1) as f64));
        results.fact("number of transactions skipped", &all.skipped);
    }
    if merged.left_out > 0 {
        results.notices.push(format!(
            "{name}: {} transactions at the end were left out: not all threads wrote these intervals",
            merged.left_out
        ));
    }
    Ok(results)
}

/// The length of the intervals: the smallest distance between two starts of a thread, of which all others are
/// multiples.
fn interval_s(files: &[File]) -> Result<i64, String> {
    let starts = files.iter().flat_map(|file| file.keys().zip(file.keys().skip(1)));
    let distances: Vec<i64> = starts.map(|(one, next)| next - one).collect();
    let length = *distances.iter().min().ok_or(
        "the log needs at least two intervals: the length of an interval is unknown with one",
    )?;
    let other = distances.iter().find(|distance| *distance % length != 0);
    other.map_or(Ok(length), |distance| Err(different(length, *distance)))
}

fn different(one_s: i64, other_s: i64) -> String {
    format!(
        "the intervals have different lengths ({one_s} s and {other_s} s): import the files of different runs separately"
    )
}

/// The intervals of all threads.
struct Merged {
    /// Sum of the intervals in which threads started.
    ramp: Sums,
    /// Number of these intervals.
    ramp_intervals: u32,
    /// Intervals that all threads wrote.
    complete: Vec<Sums>,
    /// Transactions of the intervals that only some threads wrote, after the end of the others.
    left_out: u64,
}

fn merged(files: &[File], length_s: i64) -> Result<Merged, String> {
    let keys = || files.iter().filter_map(|file| file.keys().next().zip(file.keys().next_back()));
    let first_s = keys().map(|(first, _)| *first).min().unwrap_or_default();
    // The start of a thread may be in the next second.
    let position = |start_s: i64| (start_s - first_s + length_s / 2).div_euclid(length_s);
    let mut intervals: BTreeMap<i64, Sums> = BTreeMap::new();
    for (start_s, sums) in files.iter().flatten() {
        let at = position(*start_s);
        let shift_s = (start_s - first_s - at * length_s).abs();
        if shift_s > 1 {
            return Err(different(length_s, shift_s));
        }
        intervals.entry(at).or_default().add(sums)?;
    }
    let started = keys().map(|(first, _)| position(*first)).max().unwrap_or_default();
    let ended = keys().map(|(_, last)| position(*last)).min().unwrap_or_default();
    if ended < started {
        return Err("the log has no interval that all threads wrote".to_owned());
    }
    let mut ramp = Sums::default();
    for (_, sums) in intervals.range(..=started) {
        ramp.add(sums)?;
    }
    let complete = (started + 1..=ended).map(|at| intervals.get(&at).copied().unwrap_or_default());
    let left_out = intervals.range(ended + 1..).map(|(_, sums)| sums.count).sum();
    let ramp_intervals = u32::try_from(started + 1).map_err(|_| OUT_OF_RANGE)?;
    Ok(Merged { ramp, ramp_intervals, complete: complete.collect(), left_out })
}

/// Returns the intervals with their lengths; the lengths of the first and the last interval are estimated. Without an
/// interval between them, the last one counts in full.
fn with_lengths(merged: &Merged, length_s: i64) -> Vec<Interval> {
    let (ramp, complete, whole_s) = (merged.ramp, merged.complete.as_slice(), length_s as f64);
    let (middle, last) = match complete.split_last() {
        Some((last, middle)) if !middle.is_empty() => (middle, Some(last)),
        _ => (complete, None),
    };
    let transactions: u64 = middle.iter().map(|sums| sums.count).sum();
    let per_s = transactions as f64 / (middle.len() as f64 * whole_s);
    let estimated_s = |sums: &Sums| if per_s > 0.0 { sums.count as f64 / per_s } else { whole_s };
    let ramp_s = f64::from(merged.ramp_intervals) * whole_s;
    let first_s = estimated_s(&ramp).clamp(ramp_s - ROUNDING_S, ramp_s);
    let first = Interval { seconds: first_s, sums: ramp };
    let full = |sums: &Sums| Interval { seconds: whole_s, sums: *sums };
    let last = last.map(|sums| {
        let expected = per_s * whole_s;
        // A smaller number within three standard deviations is chance.
        let is_whole = sums.count as f64 >= expected - 3.0 * expected.sqrt();
        let seconds = if is_whole { whole_s } else { estimated_s(sums) };
        Interval { seconds, sums: *sums }
    });
    std::iter::once(first)
        .chain(middle.iter().map(full))
        .chain(last)
        .filter(|interval| interval.seconds > 0.0)
        .collect()
}

fn session_loop(all: &Sums, intervals: &[Interval]) -> LoopRecord {
    let reported = all.latency();
    let has_lag = reported.as_ref().is_some_and(|latency| latency.kind == LatencyKind::Response);
    let mut t_s = 0.0;
    let series = intervals.iter().map(|Interval { seconds, sums }| {
        t_s += seconds;
        Point {
            t_s,
            seconds: *seconds,
            transactions: sums.count,
            errors: sums.failed(),
            failed: sums.failed(),
            skipped: sums.skipped,
            retries: sums.retries,
            mean_us: (sums.count > 0).then(|| sums.latency_us / sums.count as f64),
            max_us: sums.max_us.filter(|_| !has_lag),
            response_max_us: sums.max_us.filter(|_| has_lag),
            ..Point::default()
        }
    });
    LoopRecord {
        reported_latency: reported,
        // Failures are logged only with --failures-detailed: none is not known to be zero.
        outcomes: (all.failed() > 0).then(|| super::outcomes(all.count, all.failed())),
        retries: all.retries,
        late: super::skipped(all.skipped),
        errors: super::errors([("40001", all.serialization), ("40P01", all.deadlock)]),
        series: series.collect(),
        ..LoopRecord::default()
    }
}
