//! The record of one run: plain data, versioned, the only thing that reports read.
//!
//! Schema 1. Changes only add: what is written today can be read by every later version. Units are
//! in the names; what is absent was not measured, and is never zero.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::metrics::{ErrorEntry, LatencySummary, Point};
use crate::plan::{RowsDataset, RunPlan};
use crate::probe::DeviceUse;
use crate::target::Flavour;
use crate::target::machine::MachineFacts;
use crate::workload::verify::Check;

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
    /// Whether the figures may be used.
    pub verdict: Verdict,
}

/// The database that was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TargetRecord {
    /// Which relative of PostgreSQL.
    pub flavour: Flavour,
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
    pub rows: RowsDataset,
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
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Throughput {
    pub transactions_per_s: f64,
    pub rows_per_s: f64,
    pub statements_per_s: f64,
}

/// One result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StageRecord {
    /// Its name.
    pub name: String,
    /// `loop`: sessions that repeat transactions.
    pub kind: String,
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
    /// What the device of the server's data did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub io: Option<IoRecord>,
    /// The cost of riops itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_cpu: Option<ClientCpu>,
    /// Share of all processors of the client's machine that was busy, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_busy_share: Option<f64>,
    /// The time series.
    pub series: Vec<Point>,
}

/// One kind of transaction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    /// Its service times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_us: Option<LatencySummary>,
    /// The same whole: HDR V2, compressed, base64, nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<String>,
}

/// Transactions that ended after the measurement: in no other figure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DrainedRecord {
    /// How many.
    pub transactions: u64,
    /// Service time of the longest.
    pub max_us: f64,
}

/// Transactions per session.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it: transactions of a session")]
pub struct Fairness {
    pub min: u64,
    pub mean: f64,
    pub max: u64,
    pub stdev: f64,
}

/// What the device did, per second.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IoRecord {
    /// Physical reads per second from the device.
    pub piops: f64,
    /// The device's own figures.
    #[serde(flatten)]
    pub device: DeviceUse,
}

/// What riops itself used.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ClientCpu {
    /// CPU seconds, user and system, of the whole process.
    pub seconds: f64,
    /// The same per transaction that ended in the measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub us_per_transaction: Option<f64>,
    /// CPU of the busiest worker, as share of one processor, 0 to 1.
    pub share_of_client: f64,
    /// Whether a worker was so busy that it may have been the limit.
    pub limited: bool,
}

/// One look at one plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessRecord {
    /// Name of the prepared statement.
    pub statement: String,
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
}

/// Whether the figures may be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// Yes or no.
    pub valid: bool,
    /// Why not.
    pub reasons: Vec<String>,
}
