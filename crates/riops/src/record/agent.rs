//! The clients of a merged run. Each is a process with its own sessions; together they are the load.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::client::{ClientCpu, ClientRecord};
use super::latency::LatencySummary;
use super::status::Status;

/// One of the clients of a merged run.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentRecord {
    /// Number of the agent, from 0.
    pub number: u32,
    /// Name of its machine.
    pub host: String,
    /// Id of its run.
    pub run: Option<Uuid>,
    /// Its machine; absent if it was lost.
    pub client: Option<ClientRecord>,
    /// How its run ended; absent if it was lost.
    pub status: Option<Status>,
    /// Reason why its run did not end as planned, or why its results are missing.
    pub failure: Option<String>,
    /// Its clock, compared with that of the store.
    pub clock: Option<ClockRecord>,
    /// Longest time for which its process did not run, in seconds.
    pub stopped_s: Option<f64>,
    /// Its share of each stage.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stages: Vec<AgentStage>,
}

/// The share of one client in a stage.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentStage {
    /// Start of its measurement, by the clock of the store if that is known, otherwise by its own.
    pub started_at: Option<Timestamp>,
    /// Length of its measurement, in seconds.
    pub seconds: f64,
    /// Number of its sessions.
    pub sessions: u32,
    /// Its transactions that ended within the measurement.
    pub transactions: u64,
    /// These transactions per second.
    pub transactions_per_s: f64,
    /// Latency in microseconds: response times with a rate, otherwise service times.
    pub latency_us: Option<LatencySummary>,
    /// CPU use of its process, and the limits that it reached.
    pub client_cpu: Option<ClientCpu>,
}

/// The clock of a client, compared with that of the store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ClockRecord {
    /// By how much the clock of the store is ahead, in seconds.
    pub offset_s: f64,
    /// The offset is known to this many seconds: half the length of the interval that all exchanges allow.
    pub uncertainty_s: f64,
    /// Number of exchanges.
    pub exchanges: u64,
}
