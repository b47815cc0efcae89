//! The catalog of figures, each with one entry: figures of a stage that are compared, estimated, followed over time
//! or charted, the statistics of a latency, the counts of an interval, and the bottleneck of a stage. Pure.

mod bottleneck;
mod count;
mod required;
mod statistic;
mod summary;
mod thresholds;
mod time;
mod value;

pub use bottleneck::*;
pub use count::*;
pub use statistic::*;
pub use summary::*;
pub use thresholds::*;
pub use time::*;
pub use value::*;

use serde::{Deserialize, Serialize};

use crate::plan::facts::{price_per_hour, vcpus};
use crate::plan::{Stop, WorkPlan};
use crate::record::{AtLeast, CostRecord, NodeRecord, Point, Record, StageRecord};
use crate::stats::Direction::{HigherIsBetter, LowerIsBetter};
use crate::stats::{Direction, Interval, mean_intervals, summary};
use crate::units::format::bytes_each;
use crate::units::{duration_us, rate, texts};

/// The unit of the values of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A number of events per second.
    PerSecond,
    /// MB (10^6 bytes) per second.
    MbPerSecond,
    /// A number of microseconds.
    Microseconds,
    /// A number of seconds.
    Seconds,
    /// A number of processors, shown as a percentage of one.
    Processors,
    /// A number of bytes.
    Bytes,
    /// A number of events.
    Events,
    /// An amount in the currency of the price.
    Money,
}

/// The properties of a figure.
struct Entry {
    /// Spelling in JSON, CSV and options.
    key: &'static str,
    /// Name, with the unit of a rate.
    name: &'static str,
    /// Heading of the column of a table.
    heading: &'static str,
    unit: Unit,
    better: Direction,
    value: Source,
    /// Whether comparisons and histories show it, of the percentiles.
    is_compared: bool,
}

/// How the value of a figure is found.
enum Source {
    /// In the record of one run.
    Of(fn(&Record, &StageRecord) -> Option<f64>),
    /// A percentile of the latency.
    Percentile(f64),
    /// In a command of a script.
    Command(usize),
    /// In the costs of a transaction.
    Cost(fn(&CostRecord) -> Option<f64>),
}

use Source::{Command, Cost, Of, Percentile};
use Unit::{Bytes, Events, MbPerSecond, Microseconds, Money, PerSecond, Processors};

impl Entry {
    const fn compared(self) -> Self {
        Self { is_compared: true, ..self }
    }

    const fn under(self, heading: &'static str) -> Self {
        Self { heading, ..self }
    }
}

const fn higher(key: &'static str, name: &'static str, unit: Unit, value: Source) -> Entry {
    Entry { key, name, heading: name, unit, better: HigherIsBetter, value, is_compared: false }
}

const fn lower(key: &'static str, name: &'static str, unit: Unit, value: Source) -> Entry {
    Entry { better: LowerIsBetter, ..higher(key, name, unit, value) }
}

/// A percentile of the latency: of the response time with a rate, otherwise of the service time.
const fn latency(key: &'static str, name: &'static str, percent: f64) -> Entry {
    lower(key, name, Microseconds, Percentile(percent))
}

/// A cost of a transaction: a field of `CostRecord`.
macro_rules! cost {
    ($field:ident, $name:literal, $unit:expr) => {
        lower(
            concat!(stringify!($field), "_per_transaction"),
            $name,
            $unit,
            Cost(|cost| cost.$field),
        )
    };
}

/// Declares the figures that every stage may have, in the order of reports, each with its entry.
macro_rules! figures {
    ($($(#[$doc:meta])* $name:ident = $entry:expr;)+) => {
        /// A figure of a stage.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Figure {
            $($(#[$doc])* $name,)+
            /// Mean latency of a command of a script, in microseconds: its position in the record of the stage.
            CommandUs(usize),
        }

        /// A kind of costs that can be judged. WAL and blocks do not depend on what else the machine does, so they decide where a rate
/// cannot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CostKind {
    /// The write-ahead log.
    Wal,
    /// Blocks, in shared buffers and beyond them.
    Blocks,
    /// CPU time of the server.
    Cpu,
    /// Instructions of the server.
    Instructions,
}

texts!(
    /// Returns the spelling in options.
    CostKind::option {
        Wal: "cost:wal",
        Blocks: "cost:blocks",
        Cpu: "cost:cpu",
        Instructions: "cost:instructions",
    }
);

impl CostKind {
    /// Returns its figures.
    pub fn figures(self) -> &'static [Figure] {
        match self {
            Self::Wal => &[Figure::WalBytesPerTransaction],
            Self::Blocks => &[Figure::BlocksHitPerTransaction, Figure::BlocksReadPerTransaction],
            Self::Cpu => &[Figure::ServerCpuUsPerTransaction],
            Self::Instructions => &[Figure::ServerInstructionsPerTransaction],
        }
    }
}

impl Figure {
            /// All figures that every stage may have, in the order of reports.
            pub const ALL: [Self; [$(stringify!($name)),+].len()] = [$(Self::$name),+];

            fn entry(self) -> Entry {
                match self {
                    $(Self::$name => $entry,)+
                    Self::CommandUs(at) => lower("command_us", "command", Microseconds, Command(at)),
                }
            }
        }
    };
}

figures! {
    /// Transactions per second.
    TransactionsPerS = higher("transactions_per_s", "transactions/s", PerSecond, Of(|_, stage| {
        of_loop(stage, stage.throughput.transactions_per_s)
    })).under("TPS");
    /// Statements per second.
    StatementsPerS = higher("statements_per_s", "statements/s", PerSecond, Of(statements_per_s)).under("QPS");
    /// Rows per second.
    RowsPerS = higher("rows_per_s", "rows/s", PerSecond, Of(rows_per_s));
    /// Written rows per second, if rows are also read.
    RowsWrittenPerS =
        higher("rows_written_per_s", "rows written/s", PerSecond, Of(|_, stage| rows_written_per_s(stage)));
    /// Loaded data, in MB (10^6 bytes) per second.
    LoadMbS = higher("load_mb_s", "MB/s", MbPerSecond, Of(|_, stage| load_mb_s(stage)));
    /// Duration of a statement that ran once, or of a fixed amount of work, in seconds.
    Seconds = lower("seconds", "duration", Unit::Seconds, Of(seconds));
    /// Median latency, in microseconds.
    P50Us = latency("p50_us", "p50", 50.0).compared();
    /// 95th percentile of the same.
    P95Us = latency("p95_us", "p95", 95.0);
    /// 99th percentile of the same.
    P99Us = latency("p99_us", "p99", 99.0).compared();
    /// 99.9th percentile of the same.
    P999Us = latency("p999_us", "p99.9", 99.9).compared();
    /// 99.99th percentile of the same.
    P9999Us = latency("p9999_us", "p99.99", 99.99).compared();
    /// Price of a million transactions, from the price of the server.
    PricePerMillionTransactions = lower("price_per_million_transactions", "price of 1M transactions", Money, Of(|record, stage| {
        let per_hour = price_per_hour(&record.plan.facts)?;
        Some(per_hour / 3_600.0 / successes_per_s(stage)? * 1e6)
    })).under("price/1M tx");
    /// Transactions for a unit of money.
    TransactionsPerPrice = higher("transactions_per_price", "transactions per unit of money", Events, Of(|record, stage| {
        Some(successes_per_s(stage)? * 3_600.0 / price_per_hour(&record.plan.facts)?)
    })).under("tx/money");
    /// Transactions per second for each virtual processor of the server.
    TransactionsPerSPerVcpu = higher("transactions_per_s_per_vcpu", "transactions/s per vCPU", PerSecond, Of(|record, stage| {
        Some(successes_per_s(stage)? / vcpus(&record.plan.facts)?)
    })).under("TPS/vCPU");
    /// Errors per second.
    ErrorsPerS = lower("errors_per_s", "errors/s", PerSecond, Of(|_, stage| errors_per_s(stage)));
    /// CPU use of the server, in processors; with several nodes the mean of the nodes.
    ServerCpus = lower("server_cpus", "server CPU", Processors, Of(|_, stage| server_cpus(stage)));
    /// CPU use of riops, in processors.
    ClientCpus = lower("client_cpus", "client CPU", Processors, Of(|_, stage| {
        of_counters(stage, stage.client_cpu.as_ref()?.seconds)
    }));
    /// Read from the device, in MB (10^6 bytes) per second.
    ReadMbS = higher("read_mb_s", "read MB/s", MbPerSecond, Of(|_, stage| Some(device(stage)?.read_mb_s)));
    /// Written to the device, in MB (10^6 bytes) per second.
    WriteMbS = higher("write_mb_s", "write MB/s", MbPerSecond, Of(|_, stage| Some(device(stage)?.write_mb_s)));
    /// CPU time of all processes of the server for a transaction.
    ServerCpuUsPerTransaction = cost!(server_cpu_us, "server CPU", Microseconds);
    /// Time in which processes of the server waited for a processor.
    ServerRunQueueUsPerTransaction = cost!(server_run_queue_us, "server run queue", Microseconds);
    /// Instructions of the server in user mode.
    ServerInstructionsPerTransaction = cost!(server_instructions, "server instructions", Events);
    /// CPU time of riops.
    ClientCpuUsPerTransaction = cost!(client_cpu_us, "client CPU", Microseconds);
    /// Context switches of the machine of the client.
    ContextSwitchesPerTransaction = cost!(context_switches, "context switches", Events);
    /// Accesses to blocks in shared buffers.
    BlocksHitPerTransaction = cost!(blocks_hit, "blocks hit", Events);
    /// Accesses to blocks that were not there.
    BlocksReadPerTransaction = cost!(blocks_read, "blocks read", Events);
    /// Blocks that its statements changed first.
    BlocksDirtiedPerTransaction = cost!(blocks_dirtied, "blocks dirtied", Events);
    /// Blocks that sessions and checkpoints wrote.
    BlocksWrittenPerTransaction = cost!(blocks_written, "blocks written", Events);
    /// Bytes of write-ahead log.
    WalBytesPerTransaction = cost!(wal_bytes, "WAL", Bytes);
    /// Records of write-ahead log.
    WalRecordsPerTransaction = cost!(wal_records, "WAL records", Events);
    /// Full-page images in it.
    WalFullPageImagesPerTransaction = cost!(wal_full_page_images, "full-page images", Events);
    /// Bytes of the full-page images.
    WalFullPageBytesPerTransaction = cost!(wal_full_page_bytes, "full-page bytes", Bytes);
    /// Locks of tables that did not fit into the fast path of a session.
    LocksBeyondFastPathPerTransaction = cost!(locks_beyond_fast_path, "locks beyond the fast path", Events);
    /// Bytes of temporary files.
    TemporaryBytesPerTransaction = cost!(temporary_bytes, "temporary files", Bytes);
    /// Reads of the disks of the server.
    DeviceReadsPerTransaction = cost!(device_reads, "device reads", Events);
    /// Bytes read from them.
    DeviceReadBytesPerTransaction = cost!(device_read_bytes, "read from devices", Bytes);
    /// Writes of the disks of the server.
    DeviceWritesPerTransaction = cost!(device_writes, "device writes", Events);
    /// Bytes written to them.
    DeviceWrittenBytesPerTransaction = cost!(device_written_bytes, "written to devices", Bytes);
    /// Bytes received by the machine of the client.
    ReceivedBytesPerTransaction = cost!(received_bytes, "network received", Bytes);
    /// Bytes sent by it.
    SentBytesPerTransaction = cost!(sent_bytes, "network sent", Bytes);
    /// Growth of the tables.
    TableBytesPerTransaction = cost!(table_bytes, "growth of tables", Bytes);
    /// Growth of the indexes.
    IndexBytesPerTransaction = cost!(index_bytes, "growth of indexes", Bytes);
}

/// The transactions per second of a session loop; `None` without any.
fn successes_per_s(stage: &StageRecord) -> Option<f64> {
    of_loop(stage, stage.throughput.transactions_per_s).filter(|per_s| *per_s > 0.0)
}

/// Returns a key without its unit.
fn without_unit(key: &'static str) -> &'static str {
    key.strip_suffix("_per_s").or_else(|| key.strip_suffix("_us")).unwrap_or(key)
}

impl Figure {
    /// The figures that need facts about the server.
    pub const OF_FACTS: [Self; 3] = [
        Self::PricePerMillionTransactions,
        Self::TransactionsPerPrice,
        Self::TransactionsPerSPerVcpu,
    ];

    /// Returns the percentiles that comparisons and histories show.
    pub fn compared_percentiles() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|figure| figure.entry().is_compared)
    }

    /// Returns what a transaction cost.
    pub fn costs() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|figure| figure.is_cost())
    }

    /// Whether the figure is a cost of a transaction.
    pub fn is_cost(self) -> bool {
        matches!(self.entry().value, Cost(_))
    }

    /// Returns the spelling in JSON, CSV and options.
    pub fn as_str(self) -> &'static str {
        self.entry().key
    }

    /// Returns the spelling in options: the key without its unit.
    pub fn option(self) -> &'static str {
        without_unit(self.as_str())
    }

    /// Returns the name, with the unit of a rate.
    pub fn name(self) -> &'static str {
        self.entry().name
    }

    /// Returns the heading of the column of a table.
    pub fn heading(self) -> &'static str {
        self.entry().heading
    }

    /// Returns the unit of the values.
    pub fn unit(self) -> Unit {
        self.entry().unit
    }

    /// Returns which direction is better.
    pub fn direction(self) -> Direction {
        self.entry().better
    }

    /// Whether the figure is a percentile of the latency.
    pub fn is_percentile(self) -> bool {
        self.percent().is_some()
    }

    /// Returns the percent of a percentile of the latency.
    pub fn percent(self) -> Option<f64> {
        match self.entry().value {
            Percentile(percent) => Some(percent),
            _ => None,
        }
    }

    /// Returns a value as text, with its unit unless it is a rate.
    pub fn text(self, value: f64) -> String {
        match self.unit() {
            Unit::Bytes | Unit::Events if value < 0.0 => format!("-{}", self.text(-value)),
            Unit::PerSecond | Unit::MbPerSecond if value == 0.0 => "0".to_owned(),
            Unit::PerSecond | Unit::MbPerSecond | Unit::Events | Unit::Money => rate(value),
            Unit::Microseconds => duration_us(value),
            Unit::Seconds => duration_us(value * 1e6),
            Unit::Processors => format!("{:.0}%", value * 100.0),
            Unit::Bytes => bytes_each(value),
        }
    }

    /// Returns the value in one run; `None` if it was not measured or has too few samples.
    pub fn value(self, record: &Record, stage: &StageRecord) -> Option<f64> {
        match self.entry().value {
            Of(value) => value(record, stage),
            Percentile(percent) => Some(statistic::percentile_of(percent, stage)?.value),
            Command(at) => Some(stage.session_loop.commands.get(at)?.service_us.as_ref()?.mean),
            Cost(value) => value(stage.cost.as_ref()?),
        }
    }

    /// Whether the value in one run is only a lower bound.
    pub fn is_bound(self, stage: &StageRecord) -> bool {
        match self.entry().value {
            Percentile(percent) => {
                statistic::percentile_of(percent, stage).is_some_and(|value| value.is_bound)
            }
            _ => false,
        }
    }

    /// Returns the value in one run; `None` also if it is only a lower bound.
    pub fn exact(self, record: &Record, stage: &StageRecord) -> Option<f64> {
        self.value(record, stage).filter(|_| !self.is_bound(stage))
    }

    /// Returns the value of several runs together: the percentile of their merged histograms, otherwise the geometric
    /// mean, or the arithmetic one if a value is not positive; `None` if a run has no value.
    pub fn of_all(self, runs: &[Summary<'_>]) -> Option<AtLeast> {
        if let Percentile(percent) = self.entry().value {
            return statistic::percentile_of_all(percent, runs.iter().map(|run| run.stage));
        }
        Some(AtLeast { value: Estimate::geometric(&self.values(runs)?)?.value, is_bound: false })
    }

    fn values(self, runs: &[Summary<'_>]) -> Option<Vec<f64>> {
        runs.iter().map(|run| self.value(run.record, run.stage)).collect()
    }

    /// Returns the estimate from several runs; `None` if a run lacks the figure.
    pub fn estimate(self, runs: &[Summary<'_>]) -> Option<Estimate> {
        let at_least = runs.iter().any(|run| self.is_bound(run.stage));
        let estimate = Estimate { at_least, ..Estimate::geometric(&self.values(runs)?)? };
        if self.is_percentile() && runs.len() > 1 {
            return Some(estimate.around(self.of_all(runs)?));
        }
        Some(estimate)
    }
}

/// A figure estimated from several runs.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Estimate {
    /// The mean of the runs: for figures the geometric mean, as in comparisons. A percentile is computed from
    /// the merged histograms.
    pub value: f64,
    /// The 95 % interval of the mean, from the values of the runs; absent with fewer than three.
    pub interval: Option<Interval>,
    /// The value of each run, oldest first.
    pub runs: Vec<f64>,
    /// Whether the value, or the value of a run, is only a lower bound.
    #[serde(skip_serializing_if = "crate::units::is_default")]
    pub at_least: bool,
}

impl Estimate {
    /// Returns the arithmetic mean of several runs with its interval.
    pub fn arithmetic(values: &[f64]) -> Option<Self> {
        let summary = summary(values)?;
        let (value, runs) = (summary.mean, values.to_vec());
        Some(Self { value, interval: summary.interval, runs, at_least: false })
    }

    /// Returns the geometric mean of several runs with its interval; the arithmetic one if a value is zero.
    pub fn geometric(values: &[f64]) -> Option<Self> {
        let logs: Option<Vec<f64>> =
            values.iter().map(|value| (*value > 0.0).then(|| value.ln())).collect();
        let Some(logs) = logs.filter(|logs| logs.len() > 1) else {
            return Self::arithmetic(values);
        };
        let arithmetic = Self::arithmetic(values)?;
        let value = (logs.iter().sum::<f64>() / logs.len() as f64).exp();
        let interval = mean_intervals(&[logs]).pop().flatten();
        let interval = interval
            .filter(|_| arithmetic.interval.is_some())
            .map(|logs| Interval { low: logs.low.exp(), high: logs.high.exp() });
        Some(Self { value, interval, ..arithmetic })
    }

    /// Returns the estimate with the percentile of the merged histograms as its value. The interval of the mean of
    /// the runs is extended to this value: a percentile of all latencies may be outside.
    fn around(self, AtLeast { value, is_bound }: AtLeast) -> Self {
        let at_least = self.at_least || is_bound;
        let interval = self.interval.map(|interval| Interval {
            low: interval.low.min(value),
            high: interval.high.max(value),
        });
        Self { value, interval, at_least, ..self }
    }
}

impl Figure {
    /// Returns the throughput that a workload counts: of transactions, or of rows.
    pub fn throughput_of(work: &WorkPlan) -> Self {
        let counts_transactions = work.traits().counts_transactions;
        if counts_transactions { Self::TransactionsPerS } else { Self::RowsPerS }
    }

    /// Returns what this throughput counts in an interval.
    pub fn count_in(self, point: &Point) -> u64 {
        if self == Self::RowsPerS { point.rows } else { point.transactions }
    }
}

/// A value that a statement that ran once does not have.
fn of_loop(stage: &StageRecord, value: f64) -> Option<f64> {
    (!stage.is_timed()).then_some(value)
}

fn rows_per_s(record: &Record, stage: &StageRecord) -> Option<f64> {
    let counts_rows = Figure::throughput_of(&record.plan.work) == Figure::RowsPerS;
    of_loop(stage, stage.throughput.rows_per_s).filter(|_| counts_rows)
}

fn statements_per_s(record: &Record, stage: &StageRecord) -> Option<f64> {
    let is_counted = !record.plan.work.traits().has_no_statements;
    of_loop(stage, stage.throughput.statements_per_s).filter(|_| is_counted)
}

fn rows_written_per_s(stage: &StageRecord) -> Option<f64> {
    let is_read = |name: &str| matches!(name, "read" | "select");
    let (reads, writes): (Vec<_>, Vec<_>) = stage
        .session_loop
        .operations
        .iter()
        .filter(|operation| operation.rows > 0)
        .partition(|operation| is_read(&operation.name));
    let rows: u64 = writes.iter().map(|operation| operation.rows).sum();
    (!reads.is_empty() && rows > 0).then(|| rows as f64 / stage.seconds.max(f64::MIN_POSITIVE))
}

fn load_mb_s(stage: &StageRecord) -> Option<f64> {
    let bytes = stage.session_loop.row_bytes? as f64;
    of_loop(stage, bytes * stage.throughput.rows_per_s / 1e6)
}

fn seconds(record: &Record, stage: &StageRecord) -> Option<f64> {
    let is_given = matches!(record.plan.stop, Stop::DurationS(_));
    (stage.is_timed() || !is_given).then_some(stage.seconds)
}

fn errors_per_s(stage: &StageRecord) -> Option<f64> {
    stage.session_loop.outcomes.as_ref()?;
    Some(stage.session_loop.error_count() as f64 / stage.seconds.max(f64::MIN_POSITIVE))
}

/// CPU time as a number of processors.
fn of_counters(stage: &StageRecord, cpu_s: f64) -> Option<f64> {
    let seconds = stage.counters_s.unwrap_or(stage.seconds);
    (seconds > 0.0).then(|| cpu_s / seconds)
}

/// Returns the CPU use of a node, in processors.
pub fn node_cpus(node: &NodeRecord) -> Option<f64> {
    node.usage?.cpu_cores
}

fn server_cpus(stage: &StageRecord) -> Option<f64> {
    let nodes = &stage.session_loop.nodes;
    let known: Vec<f64> = nodes.iter().filter_map(node_cpus).collect();
    if known.is_empty() {
        return of_counters(stage, stage.server_cpu_s?);
    }
    let mean = known.iter().sum::<f64>() / known.len() as f64;
    // The CPU use of a node covers only its tserver. The PostgreSQL backends are visible if the only node is local.
    let backends = stage.server_cpu_s.filter(|_| nodes.len() == 1);
    let backends = backends.and_then(|cpu_s| of_counters(stage, cpu_s));
    Some(mean + backends.unwrap_or(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spelling_in_json_is_the_key() {
        for figure in Figure::ALL {
            assert_eq!(serde_json::to_value(figure).unwrap(), figure.as_str());
        }
    }

    #[test]
    fn values_have_their_units() {
        let text = |figure: Figure, value| figure.text(value);
        assert_eq!(text(Figure::TransactionsPerS, 77_901.4), "77,901");
        assert_eq!(text(Figure::P999Us, 1_420.0), "1.42 ms");
        assert_eq!(text(Figure::Seconds, 2.5), "2.50 s");
        assert_eq!(text(Figure::ServerCpus, 0.49), "49%");
        assert_eq!(text(Figure::ReadMbS, 0.0), "0");
    }

    #[test]
    fn the_price_follows_from_the_rate_and_the_facts() {
        let mut record: Record =
            serde_json::from_str(include_str!("../../tests/records/rows.json")).unwrap();
        record.stages[0].throughput.transactions_per_s = 1_000.0;
        let value = |record: &Record, figure: Figure| figure.value(record, &record.stages[0]);
        assert_eq!(value(&record, Figure::PricePerMillionTransactions), None);
        let facts = [("price", "3.6 USD/h"), ("vcpu", "8"), ("instance", "large")];
        record.plan.facts =
            facts.map(|(name, value)| (name.to_owned(), value.to_owned())).into_iter().collect();
        // A million transactions take 1,000 s, each of which costs 0.001.
        let price = value(&record, Figure::PricePerMillionTransactions).unwrap();
        assert!((price - 1.0).abs() < 1e-9, "{price}");
        let transactions = value(&record, Figure::TransactionsPerPrice).unwrap();
        assert!((transactions - 1e6).abs() < 1e-3, "{transactions}");
        assert_eq!(value(&record, Figure::TransactionsPerSPerVcpu), Some(125.0));
    }
}
