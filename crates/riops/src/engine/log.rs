//! The log of single transactions, in files as pgbench writes them. A separate thread writes them: the files of a slow
//! device must not delay the transactions.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

use riops_script::random::Random;

use super::log_entry::{LogColumns, LogEntry, LoggedOutcome};
use super::log_sums::Sums;
use crate::host::output_file::create_visible;
use crate::plan::script::TransactionLog;
use crate::units::Nanos;

/// Number of entries that are passed to the thread at once.
const BATCH: usize = 512;
/// Maximum number of such batches that wait for the thread. Then the worker waits: a log is complete.
const BATCHES_MAX: usize = 2048;

/// The log of a worker.
#[derive(Debug)]
pub(super) struct Log {
    batch: Vec<LogEntry>,
    sender: Option<SyncSender<Vec<LogEntry>>>,
    writer: Option<JoinHandle<std::io::Result<()>>>,
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
            sender: Some(sender),
            writer: Some(writer),
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
        if let Some(sender) = &self.sender {
            // Fails only after an error of the file, which the end of the log returns.
            let _ = sender.send(batch);
        }
    }

    /// Writes everything and closes the file.
    pub(super) fn close(mut self) -> std::io::Result<()> {
        self.send();
        self.sender = None;
        match self.writer.take().map(JoinHandle::join) {
            Some(Ok(result)) => result,
            _ => Err(std::io::Error::other("the log was not written")),
        }
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
}
