//! `pgbench --log --aggregate-interval`: a line per interval.
//!
//! `start count sum_latency sum_latency² min max [sum_lag sum_lag² min_lag max_lag [skipped [retried retries
//! [serialization deadlock [other]]]]]`; times in microseconds. Up to version 14, the columns of options that
//! are off are missing; from 15 on they are 0. Each thread writes a file.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::super::error::ImportError;
use super::super::found::Found;
use super::super::input::Input;
use super::super::number::number;
use super::{OUT_OF_RANGE, TOOL};
use crate::plan::ImportedRun;
use crate::record::{
    ErrorEntry, LatencyKind, LoopRecord, Outcomes, Point, ReportedLatency, StageRecord,
};

/// Columns without options, and with those of version 19.
const COLUMNS_MIN: usize = 6;
const COLUMNS_MAX: usize = 16;

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
        let whole = |at: usize| -> Result<u64, String> {
            let text = fields.get(at).copied().unwrap_or("0");
            number(text)
                .ok_or_else(|| format!("expected a count in column {}, found \"{text}\"", at + 1))
        };
        let decimal = |at: usize| -> Result<f64, String> {
            let text = fields.get(at).copied().unwrap_or("0");
            let found = number(text).filter(|number: &f64| *number >= 0.0);
            found.ok_or_else(|| format!("expected a number in column {}, found \"{text}\"", at + 1))
        };
        let start = super::second(i64::try_from(whole(0)?).unwrap_or(i64::MAX))?;
        let count = whole(1)?;
        let some = |us: f64| (count > 0).then_some(us);
        Ok((
            start,
            Self {
                count,
                latency_us: decimal(2)?,
                squares: decimal(3)?,
                min_us: some(decimal(4)?),
                max_us: some(decimal(5)?),
                lag_us: decimal(6)?,
                skipped: whole(10)?,
                retries: whole(12)?,
                serialization: whole(13)?,
                deadlock: whole(14)?,
                other: whole(15)?,
            },
        ))
    }

    fn add(&mut self, other: &Self) -> Result<(), String> {
        let sum = |a: u64, b: u64| a.checked_add(b).ok_or(OUT_OF_RANGE);
        let of = |pick: fn(f64, f64) -> f64, a: Option<f64>, b: Option<f64>| match (a, b) {
            (Some(a), Some(b)) => Some(pick(a, b)),
            (a, b) => a.or(b),
        };
        self.count = sum(self.count, other.count)?;
        self.latency_us += other.latency_us;
        self.squares += other.squares;
        self.min_us = of(f64::min, self.min_us, other.min_us);
        self.max_us = of(f64::max, self.max_us, other.max_us);
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

/// Returns the run in the aggregated log files of all threads of one pgbench.
pub(in crate::import) fn aggregate(group: Vec<Input>) -> Result<Found, ImportError> {
    let name = group.first().map(|input| input.name.clone()).unwrap_or_default();
    let mut intervals: BTreeMap<i64, Sums> = BTreeMap::new();
    for input in group {
        input.for_each_line(|_, line| {
            let (start, sums) = Sums::parse(line)?;
            intervals.entry(start).or_default().add(&sums)
        })?;
    }
    let length = interval_s(&intervals).map_err(|reason| ImportError::contents(&name, reason))?;
    let mut all = Sums::default();
    for sums in intervals.values() {
        all.add(sums).map_err(|reason| ImportError::contents(&name, reason))?;
    }
    let first = intervals.keys().next().copied().unwrap_or_default();
    let last = intervals.keys().next_back().copied().unwrap_or_default();
    let mut found = Found {
        run: ImportedRun { tool: TOOL.to_owned(), ..ImportedRun::default() },
        started_at: Timestamp::from_second(first).ok(),
        stage: StageRecord {
            seconds: (last - first + length) as f64,
            transactions: all.count,
            session_loop: session_loop(&all, &intervals, (first, length)),
            ..StageRecord::default()
        },
        ..Found::default()
    };
    found.fact("aggregate interval", &format!("{length} s"));
    if all.lag_us > 0.0 {
        found.fact("mean schedule lag", &format!("{:.1} us", all.lag_us / all.count.max(1) as f64));
        found.fact("number of transactions skipped", &all.skipped);
    }
    Ok(found)
}

/// The length of the intervals: the smallest distance between two starts, of which all others are multiples.
fn interval_s(intervals: &BTreeMap<i64, Sums>) -> Result<i64, String> {
    let distances = || {
        let starts = intervals.keys();
        starts.clone().zip(starts.skip(1)).map(|(one, next)| next - one)
    };
    let length = distances().min().ok_or(
        "the log needs at least two intervals: the length of an interval is unknown with one",
    )?;
    match distances().find(|distance| distance % length != 0) {
        None => Ok(length),
        Some(distance) => Err(format!(
            "the intervals have different lengths ({length} s and {distance} s): import the files of different runs separately"
        )),
    }
}

fn session_loop(
    all: &Sums,
    intervals: &BTreeMap<i64, Sums>,
    (first, length): (i64, i64),
) -> LoopRecord {
    let reported = all.latency();
    let has_lag = reported.as_ref().is_some_and(|each| each.kind == LatencyKind::Response);
    let series = intervals.iter().map(|(start, sums)| Point {
        t_s: (start - first + length) as f64,
        seconds: length as f64,
        transactions: sums.count,
        errors: sums.failed(),
        failed: sums.failed(),
        skipped: sums.skipped,
        retries: sums.retries,
        max_us: sums.max_us.filter(|_| !has_lag),
        response_max_us: sums.max_us.filter(|_| has_lag),
        ..Point::default()
    });
    let entry = |(sqlstate, count): (&str, u64)| ErrorEntry {
        sqlstate: sqlstate.to_owned(),
        count,
        ..ErrorEntry::default()
    };
    let errors = [("40001", all.serialization), ("40P01", all.deadlock)];
    LoopRecord {
        reported_latency: reported,
        // Failures are logged only with --failures-detailed: none is not known to be zero.
        outcomes: (all.failed() > 0).then(|| Outcomes {
            attempted: all.count + all.failed(),
            succeeded: all.count,
            failed: all.failed(),
            unknown: 0,
        }),
        retries: all.retries,
        errors: errors.into_iter().filter(|(_, count)| *count > 0).map(entry).collect(),
        series: series.collect(),
        ..LoopRecord::default()
    }
}
