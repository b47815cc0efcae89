//! The record of one run: plain data, versioned, the only thing that reports read.
//!
//! Schema 1. Changes only add: what is written today can be read by every later version. Units are
//! in the names; what is absent was not measured, and is never zero.

mod build;
mod io;
mod nodes;
mod parts;
mod sessions;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::host::machine::MachineFacts;
use crate::metrics::{ErrorEntry, LatencySummary, Point, Queries, SampleSet};
use crate::plan::{DatasetPlan, RunPlan, Threshold};
use crate::probe::DeviceUse;
use crate::probe::caches::CacheState;
use crate::probe::database::DatabaseUse;
use crate::probe::disk::DiskLimit;
use crate::probe::memory::{Memory, Pressure};
use crate::probe::process::ReadBytes;
use crate::probe::sampler::Sampled;
use crate::probe::storage::Storage;
use crate::probe::waits::LockWaits;
use crate::server::Flavor;
use crate::workload::access::StorageRequests;
use crate::workload::cbc::{StatementPlan, VacuumRates};
use crate::workload::check::Check;
use crate::workload::transaction::Effects;

pub use build::{Measured, RunContext, build, build_parts};
pub use nodes::{NodeRecord, OutageRecord};
pub use parts::{Ending, MeasuredStatement, Part};

/// The version of this structure.
pub const SCHEMA: u32 = 1;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// As planned.
    Done,
    /// By an error; what was measured until then is here.
    Failed,
    /// By the user; what was measured until then is here.
    Interrupted,
}

impl Status {
    /// As it stands in the JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
        }
    }
}

/// All that is known of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// [`SCHEMA`]
    pub schema: u32,
    /// Version 7: sorts by time.
    pub id: Uuid,
    /// When it started.
    pub started_at: Timestamp,
    /// What was measured.
    pub workload: String,
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// More of them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub tags: BTreeMap<String, String>,
    /// What its user decided.
    pub plan: RunPlan,
    /// How it ended.
    pub status: Status,
    /// Why, where it did not end as planned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// The database.
    pub target: TargetRecord,
    /// riops itself and its machine.
    pub client: ClientRecord,
    /// The results.
    pub stages: Vec<StageRecord>,
    /// The access paths.
    pub accesses: Vec<AccessRecord>,
    /// The data afterwards.
    pub checks: Vec<Check>,
    /// What the result had to be.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thresholds: Vec<ThresholdRecord>,
    /// Whether the figures may be used.
    pub verdict: Verdict,
}

/// The database that was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TargetRecord {
    /// Which relative of PostgreSQL.
    #[serde(rename = "flavour")]
    pub flavor: Flavor,
    /// Its version.
    pub server_version: String,
    /// Its own words about its build.
    pub version_text: String,
    /// Its compiler flags, where the role may see them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compiler_flags: Option<String>,
    /// Whether it is riops's own server.
    pub embedded: bool,
    /// Where it listens.
    pub address: String,
    /// The database.
    pub database: String,
    /// TLS version and cipher suite of the control connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encryption: Option<String>,
    /// What stands between riops and the server, where something does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pooler: Option<String>,
    /// Where its data lie, where that is on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<Storage>,
    /// What the device of its data can do, where that was measured before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_limit: Option<DiskLimit>,
    /// Settings that were changed, and those that every figure is read by.
    pub settings: BTreeMap<String, String>,
    /// What was prepared.
    pub dataset: DatasetRecord,
}

/// The dataset that was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DatasetRecord {
    /// Of this making of it.
    pub id: String,
    /// Its parameters.
    #[serde(flatten)]
    pub parameters: DatasetPlan,
}

/// The load generator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClientRecord {
    /// Version of riops.
    pub riops_version: String,
    /// Its machine.
    #[serde(flatten)]
    pub machine: MachineFacts,
    /// Threads that drove the sessions.
    pub workers: u32,
    /// Whether the server runs on the same machine.
    pub shares_machine_with_server: bool,
}

/// Rates over the measurement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Throughput {
    pub transactions_per_s: f64,
    pub rows_per_s: f64,
    pub statements_per_s: f64,
}

/// One result.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StageRecord {
    /// Its name.
    pub name: String,
    /// `loop`: sessions that repeat transactions; `server_loop`: the same, repeated in the server;
    /// `statement`: one statement, run once.
    pub kind: String,
    /// The statement, where it is one that ran once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statement: Option<StatementRecord>,
    /// Rows that one read touches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<u64>,
    /// Rows that one update touches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_batch: Option<u64>,
    /// How rows got into the table, where it was a load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Bytes of one row, where that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row_bytes: Option<u64>,
    /// The sum of all service times, over all sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database_s: Option<f64>,
    /// Single transactions, where a picture was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<SampleSet>,
    /// What was done to the caches before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caches: Option<CacheState>,
    /// When the measurement began, on riops's clock: to find it in what others have noted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// Length of the measurement.
    pub seconds: f64,
    /// Connections.
    pub sessions: u32,
    /// Transactions that ended within the measurement.
    pub transactions: u64,
    /// Their rows, counted from the replies.
    pub rows: u64,
    /// Their statements.
    pub statements: u64,
    /// The same per second.
    pub throughput: Throughput,
    /// From the send to the end of the reply, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_us: Option<LatencySummary>,
    /// From the intended start; only where a schedule sets one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_us: Option<LatencySummary>,
    /// Service times in nanoseconds: HDR V2, compressed, base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<String>,
    /// Response times in the same form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_histogram: Option<String>,
    /// What became of the transactions that came to an end within the measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcomes: Option<Outcomes>,
    /// Transactions that were sent again after an error.
    #[serde(default)]
    pub retries: u64,
    /// Broken connections that were replaced.
    #[serde(default)]
    pub reconnects: u64,
    /// Statements that were answered, of the transactions that came to an end within the measurement.
    #[serde(default, skip_serializing_if = "Queries::is_none")]
    pub queries: Queries,
    /// How long single attempts took, whatever came of them; only where some were sent again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt_us: Option<LatencySummary>,
    /// The percentile that the plan names: of the response time where a rate is set, else of the service
    /// time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub percentile_us: Option<f64>,
    /// The time that a session spent in transactions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_s: Option<Execution>,
    /// Sessions that waited for locks, where somebody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock_waits: Option<LockWaits>,
    /// The nodes of the target.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeRecord>,
    /// The busiest node's transactions over those of an even share: 1 is even. Only where there are
    /// several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imbalance: Option<f64>,
    /// Transactions beyond the latency limit; only where one is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<LateRecord>,
    /// How the intended starts were kept; only where a rate is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<ScheduleRecord>,
    /// How long connections took that were made during the measurement, settings and statements
    /// included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect_us: Option<LatencySummary>,
    /// The kinds of transactions, apart.
    pub operations: Vec<OperationRecord>,
    /// Errors by SQLSTATE.
    pub errors: Vec<ErrorEntry>,
    /// Transactions whose connection broke before their outcome was known.
    pub unknown_commits: u64,
    /// Transactions that were still under way when the measurement ended.
    pub drained: DrainedRecord,
    /// How evenly the sessions were served.
    pub sessions_fairness: Fairness,
    /// Each session by itself; absent where there are too many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub session_details: Vec<SessionRecord>,
    /// Where the blocks came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io: Option<IoRecord>,
    /// What the database counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<DatabaseUse>,
    /// Memory of the server's machine at the end, where that is this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
    /// How much of the time something on that machine had to wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pressure: Option<Pressure>,
    /// The cost of riops itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_cpu: Option<ClientCpu>,
    /// Share of all processors of the client's machine that was busy, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_busy_share: Option<f64>,
    /// What the server's own processes of the sessions have read and written, where they may be looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_io: Option<ReadBytes>,
    /// The counters over time, and what the server's process waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probes: Option<Sampled>,
    /// The time series.
    pub series: Vec<Point>,
}

/// A statement that ran once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StatementRecord {
    /// The statement.
    pub sql: String,
    /// What the server said at its end: `SELECT 1`.
    pub tag: String,
    /// Plan and buffers, where it is a select.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<StatementPlan>,
    /// The rates that the server itself prints, where it is a VACUUM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vacuum: Option<VacuumRates>,
    /// CPU of the server's process that ran it, as a share of one processor, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_cpu_share: Option<f64>,
}

/// The time that sessions spent in transactions, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it: of a session")]
pub struct Execution {
    pub mean: f64,
    pub stdev: f64,
}

/// What became of transactions: attempted is the sum of the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Outcomes {
    pub attempted: u64,
    pub succeeded: u64,
    pub failed: u64,
    pub unknown: u64,
}

/// Transactions beyond the latency limit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LateRecord {
    /// The limit.
    pub limit_us: f64,
    /// Transactions that took longer, from the intended start.
    pub transactions: u64,
    /// Transactions that were not sent, since they could only become late.
    pub skipped: u64,
}

/// How the intended starts were kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScheduleRecord {
    /// Starts that fell into the measurement.
    pub intended: u64,
    /// Those of them at which a transaction was sent.
    pub sent: u64,
    /// Those that were left out, since the transaction could only become late.
    pub skipped: u64,
    /// Those that were still waiting for a free session at the end: in no latency figure.
    pub waiting: u64,
    /// How long the oldest of these had waited.
    pub oldest_wait_us: f64,
    /// How late the client was where a session was free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_lag_us: Option<LatencySummary>,
}

/// One kind of transaction.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct OperationRecord {
    /// Its name.
    pub name: String,
    /// Transactions that ended within the measurement.
    pub transactions: u64,
    /// Their rows.
    pub rows: u64,
    /// Transactions that were acknowledged in all phases.
    pub acknowledged_transactions: u64,
    /// Rows that were acknowledged in all phases: what has to be in the database.
    pub acknowledged_rows: u64,
    /// Rows of transactions whose connection broke before their outcome was known.
    #[serde(default)]
    pub unknown_rows: u64,
    /// What the acknowledged changes come to, for workloads that count it.
    #[serde(default, skip_serializing_if = "Effects::is_none")]
    pub effects: Effects,
    /// What those of unknown outcome come to, at most.
    #[serde(default, skip_serializing_if = "Effects::is_none")]
    pub unknown_effects: Effects,
    /// Block accesses of one transaction, in tables and indexes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks_per_transaction: Option<f64>,
    /// Transactions that failed within the measurement.
    #[serde(default)]
    pub failed: u64,
    /// Transactions whose outcome is unknown, within the measurement.
    #[serde(default)]
    pub unknown: u64,
    /// Its response times, where a rate is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_us: Option<LatencySummary>,
    /// Its service times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_us: Option<LatencySummary>,
    /// The same whole: HDR V2, compressed, base64, nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<String>,
}

/// Transactions that ended after the measurement: in no other figure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct DrainedRecord {
    /// How many.
    pub transactions: u64,
    /// Service time of the longest.
    pub max_us: f64,
    /// Transactions beside these that failed, never ended, or whose outcome is unknown.
    #[serde(default)]
    pub lost: u64,
}

/// Transactions per session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it: transactions of a session")]
pub struct Fairness {
    pub min: u64,
    pub mean: f64,
    pub max: u64,
    pub stdev: f64,
}

/// Where the blocks came from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IoRecord {
    /// Logical block reads per second in the dataset's tables and indexes: hits and reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub liops: Option<f64>,
    /// Physical reads per second from the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub piops: Option<f64>,
    /// Share of the logical reads that found their block in shared buffers, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hit_ratio: Option<f64>,
    /// Logical reads per row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks_per_row: Option<f64>,
    /// Where the rows' own blocks came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sources: Option<Sources>,
    /// Write-ahead log, in MB per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wal_mb_s: Option<f64>,
    /// Requests to the storage for each row, where the server has no blocks (`YugabyteDB`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_requests_per_row: Option<f64>,
    /// The figures of the device of the server's data.
    #[serde(flatten)]
    pub device: Option<DeviceUse>,
}

/// Shares of the accesses to the rows' blocks, each by its own counter, 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Sources {
    /// Found in shared buffers.
    pub buffers_share: f64,
    /// Found in the operating system's cache; what is left where the server's processes may not be
    /// looked at, absent where the device is not seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_cache_share: Option<f64>,
    /// Read from the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device_share: Option<f64>,
}

/// What one session did within the measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionRecord {
    /// Its number, from 1.
    pub number: u64,
    /// The process that served it last, where the server has such.
    pub server_process: i32,
    /// The node that it was on last, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// By kind of transaction.
    pub operations: Vec<SessionOperation>,
}

/// What one session did of one operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it; the longest service time")]
pub struct SessionOperation {
    pub name: String,
    pub transactions: u64,
    pub rows: u64,
    pub max_us: f64,
    #[serde(default)]
    pub execution_s: f64,
}

/// What riops itself used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClientCpu {
    /// CPU seconds, user and system, of the whole process.
    pub seconds: f64,
    /// The same per transaction that ended in the measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub us_per_transaction: Option<f64>,
    /// CPU of the busiest worker, as share of one processor, 0 to 1.
    pub share_of_client: f64,
    /// The same of each worker.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub worker_shares: Vec<f64>,
    /// How long a worker was away from its poll each time: a reply that arrives meanwhile is seen up
    /// to as much later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub away_us: Option<LatencySummary>,
    /// Whether a worker was so busy that it may have been the limit.
    pub limited: bool,
}

/// One look at one plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessRecord {
    /// Name of the prepared statement.
    pub statement: String,
    /// The stage, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    /// `before`, `middle` or `after`.
    pub moment: String,
    /// The access path that it promises.
    pub expected: String,
    /// The plan that was found, one node a line.
    pub found: String,
    /// Whether the promise was kept.
    pub held: bool,
    /// In how many sessions.
    pub sessions: u32,
    /// What the look itself asked of the storage (`YugabyteDB`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<StorageRequests>,
}

/// What the result had to be, and what it was.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThresholdRecord {
    /// The stage, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    /// As it was given.
    pub threshold: Threshold,
    /// The figure: microseconds for latencies; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<f64>,
    /// Whether it is what was wanted.
    pub held: bool,
    /// Whether it ended the run early.
    #[serde(default)]
    pub ended_run: bool,
}

/// Whether the figures may be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// Yes or no.
    pub valid: bool,
    /// Why not.
    pub reasons: Vec<String>,
}
