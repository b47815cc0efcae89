//! The figures of an experiment: their values in one run, and their estimates from several.

use serde::Serialize;

use super::super::comparison::Percentile;
use super::super::format::{duration_us, rate};
use super::super::words;
use crate::plan::Stop;
use crate::record::{NodeRecord, Record, StageRecord};
use crate::stats::{Direction, Interval, summary};

/// A figure of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StudyFigure {
    /// Transactions per second.
    TransactionsPerS,
    /// Statements per second.
    StatementsPerS,
    /// Rows per second.
    RowsPerS,
    /// Written rows per second, if rows are also read.
    RowsWrittenPerS,
    /// Loaded data, in MB (10^6 bytes) per second.
    LoadMbS,
    /// Duration of a statement that ran once, or of a fixed amount of work, in seconds.
    Seconds,
    /// Median latency, in microseconds.
    P50Us,
    /// 95th percentile of the latency, in microseconds.
    P95Us,
    /// 99th percentile of the latency, in microseconds.
    P99Us,
    /// Errors per second.
    ErrorsPerS,
    /// CPU use of the server, in processors; with several nodes the mean of the nodes.
    ServerCpus,
    /// CPU use of riops, in processors.
    ClientCpus,
    /// Read from the device, in MB (10^6 bytes) per second.
    ReadMbS,
    /// Written to the device, in MB (10^6 bytes) per second.
    WriteMbS,
}

/// A figure estimated from several runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Estimate {
    /// The mean of the runs; a percentile is that of the merged histograms.
    pub value: f64,
    /// The 95 % interval of the mean, from the values of the runs; absent with fewer than three.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
    /// The value of each run, oldest first.
    pub runs: Vec<f64>,
}

impl StudyFigure {
    /// All figures, in the order of reports.
    pub const ALL: [Self; 14] = [
        Self::TransactionsPerS,
        Self::StatementsPerS,
        Self::RowsPerS,
        Self::RowsWrittenPerS,
        Self::LoadMbS,
        Self::Seconds,
        Self::P50Us,
        Self::P95Us,
        Self::P99Us,
        Self::ErrorsPerS,
        Self::ServerCpus,
        Self::ClientCpus,
        Self::ReadMbS,
        Self::WriteMbS,
    ];

    /// Returns the spelling in JSON and CSV.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TransactionsPerS => "transactions_per_s",
            Self::StatementsPerS => "statements_per_s",
            Self::RowsPerS => "rows_per_s",
            Self::RowsWrittenPerS => "rows_written_per_s",
            Self::LoadMbS => "load_mb_s",
            Self::Seconds => "seconds",
            Self::P50Us => "p50_us",
            Self::P95Us => "p95_us",
            Self::P99Us => "p99_us",
            Self::ErrorsPerS => "errors_per_s",
            Self::ServerCpus => "server_cpus",
            Self::ClientCpus => "client_cpus",
            Self::ReadMbS => "read_mb_s",
            Self::WriteMbS => "write_mb_s",
        }
    }

    /// Returns the name in tables, with the unit of a rate.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::TransactionsPerS => "TPS",
            Self::StatementsPerS => "QPS",
            Self::RowsPerS => "rows/s",
            Self::RowsWrittenPerS => "rows written/s",
            Self::LoadMbS => "MB/s",
            Self::Seconds => "duration",
            Self::P50Us => "p50",
            Self::P95Us => "p95",
            Self::P99Us => "p99",
            Self::ErrorsPerS => "errors/s",
            Self::ServerCpus => "server CPU",
            Self::ClientCpus => "client CPU",
            Self::ReadMbS => "read MB/s",
            Self::WriteMbS => "write MB/s",
        }
    }

    /// Returns a value as text. CPU use is a percentage of one processor.
    #[must_use]
    pub fn text(self, value: f64) -> String {
        match self {
            Self::P50Us | Self::P95Us | Self::P99Us => duration_us(value),
            Self::Seconds => duration_us(value * 1e6),
            Self::ServerCpus | Self::ClientCpus => format!("{:.0}%", value * 100.0),
            Self::ReadMbS | Self::WriteMbS | Self::LoadMbS | Self::ErrorsPerS if value == 0.0 => {
                "0".to_owned()
            }
            _ => rate(value),
        }
    }

    /// Returns which direction is better.
    #[must_use]
    pub fn direction(self) -> Direction {
        match self {
            Self::TransactionsPerS
            | Self::StatementsPerS
            | Self::RowsPerS
            | Self::RowsWrittenPerS
            | Self::LoadMbS
            | Self::ReadMbS
            | Self::WriteMbS => Direction::HigherIsBetter,
            Self::Seconds
            | Self::P50Us
            | Self::P95Us
            | Self::P99Us
            | Self::ErrorsPerS
            | Self::ServerCpus
            | Self::ClientCpus => Direction::LowerIsBetter,
        }
    }

    /// Whether the figure is a percentile of the latency.
    #[must_use]
    pub fn is_latency(self) -> bool {
        self.percentile().is_some()
    }

    fn percentile(self) -> Option<Percentile> {
        match self {
            Self::P50Us => Some(Percentile::P50),
            Self::P95Us => Some(Percentile::P95),
            Self::P99Us => Some(Percentile::P99),
            _ => None,
        }
    }

    /// Returns its value in one run; `None` if it was not measured or has too few samples.
    pub(super) fn of(self, record: &Record, stage: &StageRecord) -> Option<f64> {
        let ran_once = stage.statement.is_some();
        let of_loop = |value: f64| (!ran_once).then_some(value);
        let device = || stage.io.as_ref()?.device.as_ref();
        let words = words::of(&record.plan.work);
        match self {
            Self::TransactionsPerS => of_loop(stage.throughput.transactions_per_s),
            Self::StatementsPerS => of_loop(stage.throughput.statements_per_s)
                .filter(|_| record.plan.work.spec().counts_statements()),
            Self::RowsPerS => of_loop(stage.throughput.rows_per_s)
                .filter(|_| words.has_rows() && !words.counts_transactions()),
            Self::RowsWrittenPerS => rows_written_per_s(stage),
            Self::LoadMbS => {
                let bytes = stage.session_loop.row_bytes? as f64;
                of_loop(bytes * stage.throughput.rows_per_s / 1e6)
            }
            Self::Seconds => (ran_once || !matches!(record.plan.stop, Stop::DurationS(_)))
                .then_some(stage.seconds),
            Self::P50Us | Self::P95Us | Self::P99Us => self.percentile()?.of(stage),
            Self::ErrorsPerS => errors_per_s(stage),
            Self::ServerCpus => server_cpus(stage),
            Self::ClientCpus => of_counters(stage, stage.client_cpu.as_ref()?.seconds),
            Self::ReadMbS => Some(device()?.read_mb_s),
            Self::WriteMbS => Some(device()?.write_mb_s),
        }
    }

    /// Returns the estimate from several runs; `None` if a run lacks the figure.
    pub(super) fn estimate(self, runs: &[(&Record, &StageRecord)]) -> Option<Estimate> {
        let values: Option<Vec<f64>> =
            runs.iter().map(|(record, stage)| self.of(record, stage)).collect();
        let mut estimate = estimate(&values?)?;
        if let (Some(percentile), true) = (self.percentile(), runs.len() > 1) {
            let stages: Vec<_> = runs.iter().map(|(_, stage)| *stage).collect();
            estimate = around(percentile.of_all(&stages)?, estimate);
        }
        Some(estimate)
    }
}

/// Returns the mean of several runs with its interval.
pub(super) fn estimate(values: &[f64]) -> Option<Estimate> {
    let found = summary(values)?;
    Some(Estimate { value: found.mean, interval: found.interval, runs: values.to_vec() })
}

/// The estimate with the percentile of the merged histograms. The interval is that of the mean of the runs,
/// extended to this value: a percentile of all latencies may be outside.
fn around(value: f64, estimate: Estimate) -> Estimate {
    let interval = estimate
        .interval
        .map(|interval| Interval { low: interval.low.min(value), high: interval.high.max(value) });
    Estimate { value, interval, ..estimate }
}

fn rows_written_per_s(stage: &StageRecord) -> Option<f64> {
    let is_read = |name: &str| matches!(name, "read" | "select");
    let (reads, writes): (Vec<_>, Vec<_>) = stage
        .session_loop
        .operations
        .iter()
        .filter(|each| each.rows > 0)
        .partition(|each| is_read(&each.name));
    let rows: u64 = writes.iter().map(|each| each.rows).sum();
    (!reads.is_empty() && rows > 0).then(|| rows as f64 / stage.seconds.max(f64::MIN_POSITIVE))
}

fn errors_per_s(stage: &StageRecord) -> Option<f64> {
    stage.session_loop.outcomes.as_ref()?;
    let errors: u64 = stage.session_loop.errors.iter().map(|error| error.count).sum();
    Some(errors as f64 / stage.seconds.max(f64::MIN_POSITIVE))
}

/// CPU time as a number of processors.
fn of_counters(stage: &StageRecord, cpu_s: f64) -> Option<f64> {
    let seconds = stage.counters_s.unwrap_or(stage.seconds);
    (seconds > 0.0).then(|| cpu_s / seconds)
}

/// CPU use of a node, in processors.
pub(super) fn node_cpus(node: &NodeRecord) -> Option<f64> {
    node.usage?.cpu_cores
}

fn server_cpus(stage: &StageRecord) -> Option<f64> {
    let nodes = &stage.session_loop.nodes;
    let known: Vec<f64> = nodes.iter().filter_map(node_cpus).collect();
    if known.is_empty() {
        return of_counters(stage, stage.server_cpu_s?);
    }
    let mean = known.iter().sum::<f64>() / known.len() as f64;
    // The figure of a node is that of its tserver. The PostgreSQL backends are visible if the only node is local.
    let backends = stage.server_cpu_s.filter(|_| nodes.len() == 1);
    let backends = backends.and_then(|cpu_s| of_counters(stage, cpu_s));
    Some(mean + backends.unwrap_or(0.0))
}
