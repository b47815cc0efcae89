//! The part of a stage record that exists only for a session loop, with the nodes of a cluster.

use serde::{Deserialize, Serialize};

use super::censored::{Latencies, StoredTimes};
use super::counts::{
    DrainedRecord, ErrorEntry, Execution, Fairness, Outcomes, Queries, SessionRecord, WarmupRecord,
};
use super::database::LockWaits;
use super::histogram::StoredHistogram;
use super::latency::{HeatmapRecord, LatencySummary, PercentileInterval, ReportedLatency};
use super::operation::{CommandRecord, MixRecord, OperationRecord};
use super::samples::SampleSet;
use super::schedule::{LateRecord, ScheduleRecord, StepRecord};
use super::series::{Point, SteadinessRecord};
use crate::plan::LatencyKind;

/// A session that an error has ended, with `--on-error end-session`.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct EndedSessionRecord {
    /// Number of the session, from 0.
    pub session: u64,
    /// Number of its script in the plan, from 1.
    pub script: usize,
    /// Number of the command in the script, from 1.
    pub command: Option<usize>,
    /// Message of the error.
    pub message: String,
    /// The message of the server in lines, as libpq prints it; none for an error of the script.
    pub lines: Option<String>,
}

/// Results of sessions that repeat transactions. All fields are empty for a statement that ran once.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LoopRecord {
    /// Rows per read.
    pub batch: Option<u64>,
    /// Rows per update.
    pub update_batch: Option<u64>,
    /// Load method.
    pub method: Option<String>,
    /// Bytes per row, if they were measured.
    pub row_bytes: Option<u64>,
    /// Sampled transactions, if a scatterplot was requested.
    pub samples: Option<SampleSet>,
    /// Service times in microseconds: from the send to the end of the reply.
    pub service_us: Option<LatencySummary>,
    /// Response times in microseconds: from the intended start; only with a rate.
    pub response_us: Option<LatencySummary>,
    /// Latencies as another tool reported them, without a histogram; only in imported runs.
    pub reported_latency: Option<ReportedLatency>,
    /// Histogram of the service times.
    pub histogram: Option<StoredHistogram>,
    /// Histogram of the response times.
    pub response_histogram: Option<StoredHistogram>,
    /// Lower bounds of the latencies of the transactions that were due in the measurement and did not succeed in it: of
    /// the response times with a rate, otherwise of the service times. See `Latencies`.
    pub unfinished_histogram: Option<StoredHistogram>,
    /// The same lower bounds of the service times; only with a rate.
    pub unfinished_service_histogram: Option<StoredHistogram>,
    /// Outcomes of the transactions that ended within the measurement.
    pub outcomes: Option<Outcomes>,
    /// Transactions that were retried after an error.
    pub retries: u64,
    /// Transactions with at least one retry, regardless of their outcome.
    #[serde(skip_serializing_if = "crate::units::is_default")]
    pub retried: u64,
    /// Time in which all sessions connected before the first transaction, in seconds.
    pub connecting_s: Option<f64>,
    /// Sessions that an error has ended; at most 1,000.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ended_sessions: Vec<EndedSessionRecord>,
    /// Number of notices and warnings of the server during the stage.
    #[serde(skip_serializing_if = "crate::units::is_default")]
    pub notices: u64,
    /// Broken connections that were replaced.
    pub reconnects: u64,
    /// Statements of the transactions that ended within the measurement, by kind.
    #[serde(skip_serializing_if = "Queries::is_none")]
    pub queries: Queries,
    /// Service times of single attempts in microseconds, regardless of the outcome; only if transactions were
    /// retried.
    pub attempt_us: Option<LatencySummary>,
    /// The percentile of the plan, in microseconds: of the response time with a rate, otherwise of the
    /// service time.
    pub percentile_us: Option<f64>,
    /// The interval of the p99, or of a lower percentile with fewer transactions, of the same times.
    pub percentile_interval: Option<PercentileInterval>,
    /// Longest time without a successful transaction, in seconds; absent below 10 ms and with a loop in the server.
    pub longest_pause_s: Option<f64>,
    /// Time spent in transactions, per session.
    pub execution_s: Option<Execution>,
    /// Sessions that waited for locks, if they were sampled.
    pub lock_waits: Option<LockWaits>,
    /// The nodes of the target.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeRecord>,
    /// Transactions of the busiest node divided by the mean over the nodes; 1 is even. Only with several
    /// nodes.
    pub imbalance: Option<f64>,
    /// Transactions that exceeded the latency limit; only with a limit.
    pub late: Option<LateRecord>,
    /// Intended and actual starts; only with a rate.
    pub schedule: Option<ScheduleRecord>,
    /// The steps of the profile of the rate, if it has one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepRecord>,
    /// Transactions of the warm-up that were in flight when the measurement started; only for a run by count.
    pub warmup_in_flight: Option<WarmupRecord>,
    /// By how much the server's clock was set forward during a server-side loop, in seconds; negative if it was
    /// set back. Absent if no step was found.
    pub server_clock_step_s: Option<f64>,
    /// Time to connect during the measurement in microseconds, including settings and prepared statements.
    pub connect_us: Option<LatencySummary>,
    /// Results by kind of transaction.
    pub operations: Vec<OperationRecord>,
    /// Results of each command of the scripts, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<CommandRecord>,
    /// The requested and the executed share of an operation; only with a mix.
    pub mix: Option<MixRecord>,
    /// How the rate changed over the stage; absent with fewer than ten intervals.
    pub steadiness: Option<SteadinessRecord>,
    /// Errors by SQLSTATE.
    pub errors: Vec<ErrorEntry>,
    /// Transactions whose connection broke before their outcome was known, including warm-up and drain.
    /// `outcomes.unknown` counts only the measurement.
    pub unknown_commits: u64,
    /// Transactions that were in flight when the measurement ended.
    pub drained: DrainedRecord,
    /// Transactions per session; absent without any.
    #[serde(skip_serializing_if = "crate::units::is_default")]
    pub sessions_fairness: Fairness,
    /// Results of each session; empty with more than 1,000 sessions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub session_details: Vec<SessionRecord>,
    /// Latency over time, as counts; absent in records of earlier releases.
    pub latency_heatmap: Option<HeatmapRecord>,
    /// The time series.
    pub series: Vec<Point>,
}

impl LoopRecord {
    /// Returns the latency of the transactions: response times with a rate, otherwise service times.
    pub fn latency_us(&self) -> Option<&LatencySummary> {
        self.response_us.as_ref().or(self.service_us.as_ref())
    }

    /// Returns the service or the response times.
    pub fn summary_us(&self, kind: LatencyKind) -> Option<&LatencySummary> {
        kind.pick([&self.service_us, &self.response_us]).as_ref()
    }

    /// Returns the times of a kind; without one, the response times with a rate and the service times otherwise.
    pub fn times(&self, kind: Option<LatencyKind>) -> StoredTimes<'_> {
        let summaries = [&self.service_us, &self.response_us];
        let histograms = [&self.histogram, &self.response_histogram];
        let unfinished = [&self.unfinished_service_histogram, &self.unfinished_histogram];
        StoredTimes::for_kind(kind, summaries, histograms, unfinished)
    }

    /// Returns the number of intended starts that were skipped: of another tool without the others.
    pub fn skipped_starts(&self) -> Option<u64> {
        let schedule = self.schedule.as_ref().map(|schedule| schedule.skipped);
        schedule.or(self.late.map(|late| late.skipped))
    }

    /// Returns the number of errors.
    pub fn error_count(&self) -> u64 {
        self.errors.iter().map(|error| error.count).sum()
    }

    /// Returns the histogram of the same times.
    pub fn latency_histogram(&self) -> Option<&StoredHistogram> {
        self.response_histogram.as_ref().or(self.histogram.as_ref())
    }

    /// Returns the same times with the lower bounds of those that are missing; `None` without a histogram, or with a
    /// damaged one.
    pub fn latencies(&self) -> Option<Latencies> {
        Latencies::stored(self.latency_histogram()?, self.unfinished_histogram.as_ref()).ok()
    }
}

/// The counters of one node of `YugabyteDB`. Values are absent if the node did not respond.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeUse {
    /// CPU use of the tserver, in processors, on average.
    pub cpu_cores: Option<f64>,
    /// Storage read requests per second.
    pub storage_reads_per_s: Option<f64>,
    /// Storage write requests per second.
    pub storage_writes_per_s: Option<f64>,
    /// `RocksDB` seeks per second.
    pub seeks_per_s: Option<f64>,
    /// Hit ratio of the block cache, 0 to 1.
    pub block_cache_hit_share: Option<f64>,
    /// Transaction conflicts per second.
    pub conflicts_per_s: Option<f64>,
}

/// Role of a node.
// Records store the serialized names, so they are independent of the variant names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// Accepts writes.
    #[serde(rename = "primary")]
    Primary,
    /// Read-only: a standby or a read replica.
    #[serde(rename = "replica")]
    Replica,
}

/// One node of the target.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeRecord {
    /// Host and port.
    pub node: String,
    /// Primary or replica.
    pub role: Role,
    /// `cloud.region.zone`, if the cluster reports it.
    pub placement: Option<String>,
    /// Whether the node did not respond at the end.
    #[serde(default)]
    pub down: bool,
    /// The longest time without a successful transaction, for any reason, in seconds; only with several
    /// nodes.
    pub longest_pause_s: Option<f64>,
    /// Sessions connected to the node at the end.
    pub sessions: u64,
    /// Transactions on the node that ended within the measurement.
    pub transactions: u64,
    /// These transactions per second.
    pub transactions_per_s: f64,
    /// Share of all transactions, 0 to 1.
    pub share: f64,
    /// Service times in microseconds.
    pub service_us: Option<LatencySummary>,
    /// Errors within the measurement.
    pub errors: u64,
    /// Retried transactions.
    pub retries: u64,
    /// Transactions that failed.
    pub failed: u64,
    /// Transactions whose outcome is unknown, in all phases.
    pub unknown_commits: u64,
    /// Broken connections that were replaced by a connection to this node.
    pub reconnects: u64,
    /// Outages around errors, by SQLSTATE.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<OutageRecord>,
    /// Counters of the node itself.
    #[serde(flatten)]
    pub usage: Option<NodeUse>,
}

/// A time around errors without a successful transaction on a node.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutageRecord {
    /// SQLSTATE of the errors.
    pub sqlstate: String,
    /// Length in seconds.
    pub without_success_s: f64,
    /// Time during which the rate of the intervals stayed below 90 % of the earlier rate, in seconds.
    pub below_90_percent_s: Option<f64>,
    /// Time from the last success until the rate reached 90 % of the earlier rate again, in seconds; absent
    /// if it did not.
    pub until_90_percent_s: Option<f64>,
}
