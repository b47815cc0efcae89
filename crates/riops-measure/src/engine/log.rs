//! The log of single transactions, in files as pgbench writes them. A separate thread writes them: the files of a slow
//! device must not delay the transactions.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

use riops_script::random::Random;

use crate::host::output_file::create_visible;
use riops_model::plan::script::TransactionLog;
use riops_model::units::Nanos;

/// Number of entries that are passed to the thread at once.
const BATCH: usize = 512;
/// Maximum number of such batches that wait for the thread. Then the worker waits: a log is complete.
const BATCHES_MAX: usize = 2048;

/// How a transaction ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoggedOutcome {
    /// It succeeded after this time since its intended start.
    Succeeded(Nanos),
    /// Its start was skipped.
    Skipped,
    /// It failed: with a serialization failure, with a deadlock, or otherwise.
    SerializationFailure,
    Deadlock,
    Failed,
}

/// A transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LogEntry {
    pub(super) session: u64,
    /// Number in the session, from 1.
    pub(super) transaction: u64,
    pub(super) operation: usize,
    pub(super) outcome: LoggedOutcome,
    /// Delay of the start.
    pub(super) lag: Nanos,
    pub(super) retries: u32,
    pub(super) end: Nanos,
}

/// Columns of the lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of pgbench")]
pub(super) struct LogColumns {
    /// With a rate.
    pub(super) lag: bool,
    /// Unless transactions are tried only once.
    pub(super) retries: bool,
    /// Whether the limit on the latency skips starts.
    pub(super) skipped: bool,
    /// Whether failures are named by their type.
    pub(super) failures: bool,
}

/// The log of a worker.
#[derive(Debug)]
pub(super) struct Log {
    batch: Vec<LogEntry>,
    sender: SyncSender<Vec<LogEntry>>,
    writer: JoinHandle<std::io::Result<()>>,
    /// Random numbers that select the logged transactions, and their share.
    sampling: Option<(Random, f64)>,
}

impl Log {
    /// Creates the file of a worker. `now` is the current time of the clock of the entries.
    pub(super) fn create(
        log: &TransactionLog,
        columns: LogColumns,
        worker: usize,
        seed: Option<u64>,
        now: Nanos,
    ) -> std::io::Result<Self> {
        let process = std::process::id();
        let name = match worker {
            0 => format!("{}.{process}", log.prefix),
            _ => format!("{}.{process}.{worker}", log.prefix),
        };
        // As with pgbench, programs follow it during the run.
        let file = create_visible(Path::new(&name))
            .map_err(|error| std::io::Error::new(error.kind(), format!("{name}: {error}")))?;
        let file = BufWriter::new(file);
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let zero_us =
            i128::try_from(since_1970.as_micros()).unwrap_or(0) - i128::from(now.0 / 1_000);
        let sums = log.aggregate_s.map(|seconds| Sums::new(seconds, zero_us, now));
        let (sender, entries) = sync_channel(BATCHES_MAX);
        let writing = Writing { file, columns, zero_us, sums };
        let writer = std::thread::Builder::new()
            .name("riops-log".to_owned())
            .spawn(move || writing.run(&entries))?;
        let samples = log.sampling_rate < 1.0;
        Ok(Self {
            batch: Vec::with_capacity(BATCH),
            sender,
            writer,
            sampling: samples.then(|| (Random::new(seed.unwrap_or_default()), log.sampling_rate)),
        })
    }

    /// Adds a transaction.
    pub(super) fn add(&mut self, entry: LogEntry) {
        if let Some((random, share)) = &mut self.sampling
            && random.fraction() > *share
        {
            return;
        }
        self.batch.push(entry);
        if self.batch.len() == BATCH {
            self.send();
        }
    }

    fn send(&mut self) {
        let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH));
        // Fails only after an error of the file, which the end of the log returns.
        let _ = self.sender.send(batch);
    }

    /// Writes everything and closes the file.
    pub(super) fn close(mut self) -> std::io::Result<()> {
        self.send();
        drop(self.sender);
        let lost = |_| Err(std::io::Error::other("the log was not written"));
        self.writer.join().unwrap_or_else(lost)
    }
}

/// The state of the thread that writes.
struct Writing {
    file: BufWriter<File>,
    columns: LogColumns,
    /// Time since 1970 at which the clock of the entries was zero.
    zero_us: i128,
    sums: Option<Sums>,
}

impl Writing {
    fn run(mut self, entries: &Receiver<Vec<LogEntry>>) -> std::io::Result<()> {
        for batch in entries {
            for entry in batch {
                match &mut self.sums {
                    Some(sums) => sums.add(&entry, self.columns, &mut self.file)?,
                    None => write_entry(&entry, self.columns, self.zero_us, &mut self.file)?,
                }
            }
        }
        if let Some(sums) = &mut self.sums {
            sums.end(self.columns, &mut self.file)?;
        }
        self.file.flush()
    }
}

/// Writes a line: client, number, time, script, end in seconds and microseconds since 1970, and what the columns add.
fn write_entry(
    entry: &LogEntry,
    columns: LogColumns,
    zero_us: i128,
    out: &mut impl Write,
) -> std::io::Result<()> {
    let LogEntry { session, transaction, operation, outcome, lag, retries, end } = entry;
    write!(out, "{session} {transaction} ")?;
    match outcome {
        LoggedOutcome::Succeeded(time) => write!(out, "{}", time.0 / 1_000)?,
        LoggedOutcome::Skipped => write!(out, "skipped")?,
        LoggedOutcome::SerializationFailure if columns.failures => write!(out, "serialization")?,
        LoggedOutcome::Deadlock if columns.failures => write!(out, "deadlock")?,
        _ => write!(out, "failed")?,
    }
    let at_us = zero_us + i128::from(end.0 / 1_000);
    write!(out, " {operation} {} {}", at_us / 1_000_000, at_us % 1_000_000)?;
    if columns.lag {
        let lag_us = match outcome {
            LoggedOutcome::Succeeded(_) => lag.0 / 1_000,
            _ => 0,
        };
        write!(out, " {lag_us}")?;
    }
    if columns.retries {
        write!(out, " {retries}")?;
    }
    writeln!(out)
}

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
        let column = |is_shown: bool, count: u64| if is_shown { count } else { 0 };
        writeln!(
            out,
            "{} {} {} {} {} {} {} {} {}",
            self.start_s,
            interval.latency.count,
            times(interval.latency),
            times(lag),
            column(columns.skipped, interval.skipped),
            column(columns.retries, interval.retried),
            column(columns.retries, interval.retries),
            column(columns.failures, interval.serialization),
            column(columns.failures, interval.deadlock),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_the_columns_of_pgbench() {
        let entry = LogEntry {
            session: 3,
            transaction: 7,
            operation: 1,
            outcome: LoggedOutcome::Succeeded(Nanos(2_345_678)),
            lag: Nanos(9_999),
            retries: 2,
            end: Nanos(5_000_000_000),
        };
        let line = |outcome, lag, retries, failures| {
            let columns = LogColumns { lag, retries, skipped: true, failures };
            let mut out = Vec::new();
            write_entry(&LogEntry { outcome, ..entry }, columns, 1_000_000_123, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        let succeeded = entry.outcome;
        assert_eq!(line(succeeded, false, false, false), "3 7 2345 1 1005 123\n");
        assert_eq!(line(succeeded, true, true, false), "3 7 2345 1 1005 123 9 2\n");
        assert_eq!(line(LoggedOutcome::Skipped, true, false, false), "3 7 skipped 1 1005 123 0\n");
        let deadlock = LoggedOutcome::Deadlock;
        assert_eq!(line(deadlock, false, true, false), "3 7 failed 1 1005 123 2\n");
        assert_eq!(line(deadlock, false, true, true), "3 7 deadlock 1 1005 123 2\n");
    }

    #[test]
    fn writes_one_line_per_interval_including_the_empty_and_the_last() {
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
