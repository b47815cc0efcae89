//! Sums of the transactions of an interval, for the log of pgbench.

use std::io::Write;

use super::log_entry::{LogColumns, LogEntry, LoggedOutcome};
use crate::units::Nanos;

/// Sum, sum of squares, minimum and maximum of times in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Times {
    count: u64,
    sum: f64,
    squares: f64,
    min: f64,
    max: f64,
}

impl Times {
    fn add(&mut self, time: Nanos) {
        let us = time.as_micros();
        self.min = if self.count == 0 { us } else { self.min.min(us) };
        self.max = self.max.max(us);
        self.count += 1;
        self.sum += us;
        self.squares += us * us;
    }
}

/// The counts of an interval.
#[derive(Debug, Clone, Copy, Default)]
struct Interval {
    latency: Times,
    lag: Times,
    skipped: u64,
    retried: u64,
    retries: u64,
    serialization: u64,
    deadlock: u64,
}

/// The sums of consecutive intervals.
#[derive(Debug)]
pub(super) struct Sums {
    seconds: i128,
    /// Time since 1970 at which the clock of the entries was zero.
    zero_us: i128,
    /// Start of the current interval, in seconds since 1970.
    start_s: i128,
    interval: Interval,
}

impl Sums {
    /// Begins with the full second before `now`.
    pub(super) fn new(seconds: u32, zero_us: i128, now: Nanos) -> Self {
        let start_s = (zero_us + i128::from(now.0 / 1_000)) / 1_000_000;
        let seconds = i128::from(seconds.max(1));
        Self { seconds, zero_us, start_s, interval: Interval::default() }
    }

    /// Adds a transaction, after writing the intervals that ended before it.
    pub(super) fn add(
        &mut self,
        entry: &LogEntry,
        columns: LogColumns,
        out: &mut impl Write,
    ) -> std::io::Result<()> {
        let at_s = (self.zero_us + i128::from(entry.end.0 / 1_000)) / 1_000_000;
        while at_s >= self.start_s + self.seconds {
            self.end(columns, out)?;
            self.start_s += self.seconds;
        }
        let interval = &mut self.interval;
        match entry.outcome {
            LoggedOutcome::Succeeded(time) => {
                interval.latency.add(time);
                interval.lag.add(entry.lag);
            }
            LoggedOutcome::Skipped => interval.skipped += 1,
            LoggedOutcome::SerializationFailure => interval.serialization += 1,
            LoggedOutcome::Deadlock => interval.deadlock += 1,
            LoggedOutcome::Failed => {}
        }
        interval.retried += u64::from(entry.retries > 0);
        interval.retries += u64::from(entry.retries);
        Ok(())
    }

    /// Writes the current interval, which is also the last one at the end of the run, and clears it.
    pub(super) fn end(&mut self, columns: LogColumns, out: &mut impl Write) -> std::io::Result<()> {
        let interval = std::mem::take(&mut self.interval);
        let times = |times: Times| {
            let Times { sum, squares, min, max, .. } = times;
            format!("{sum:.0} {squares:.0} {min:.0} {max:.0}")
        };
        let lag = if columns.lag { interval.lag } else { Times::default() };
        let of = |shown: bool, number: u64| if shown { number } else { 0 };
        writeln!(
            out,
            "{} {} {} {} {} {} {} {} {}",
            self.start_s,
            interval.latency.count,
            times(interval.latency),
            times(lag),
            of(columns.skipped, interval.skipped),
            of(columns.retries, interval.retried),
            of(columns.retries, interval.retries),
            of(columns.failures, interval.serialization),
            of(columns.failures, interval.deadlock),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_interval_is_one_line_also_the_empty_and_the_last() {
        let columns = LogColumns { lag: true, retries: true, skipped: true, failures: true };
        let mut sums = Sums::new(2, 1_000_900_000, Nanos(0));
        let mut out = Vec::new();
        let mut add = |end_s: u64, outcome, retries| {
            let end = Nanos(end_s * 1_000_000_000);
            let lag = Nanos(1_000);
            let (session, transaction, operation) = (0, 1, 0);
            let entry = LogEntry { session, transaction, operation, outcome, lag, retries, end };
            sums.add(&entry, columns, &mut out).unwrap();
        };
        add(0, LoggedOutcome::Succeeded(Nanos(2_000)), 0);
        add(1, LoggedOutcome::Succeeded(Nanos(4_000)), 3);
        add(5, LoggedOutcome::Deadlock, 1);
        add(5, LoggedOutcome::Skipped, 0);
        sums.end(columns, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "1000 2 6 20 2 4 2 2 1 1 0 1 3 0 0",
                "1002 0 0 0 0 0 0 0 0 0 0 0 0 0 0",
                "1004 0 0 0 0 0 0 0 0 0 1 1 1 0 1"
            ]
        );
    }
}
