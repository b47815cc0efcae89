//! The load generator: its machine and its CPU use.

use serde::{Deserialize, Serialize};

use super::latency::LatencySummary;
use super::machine::MachineFacts;

/// The load generator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClientRecord {
    /// riops version.
    pub riops_version: String,
    /// The machine of the client.
    #[serde(flatten)]
    pub machine: MachineFacts,
    /// Number of worker threads.
    pub workers: u32,
    /// Whether the server runs on the same machine.
    pub shares_machine_with_server: bool,
}

/// CPU use and scheduling delay of riops during a stage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClientCpu {
    /// CPU seconds of the whole process, user and system.
    pub seconds: f64,
    /// CPU microseconds per transaction that ended within the measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub us_per_transaction: Option<f64>,
    /// CPU of the busiest worker as a share of one processor, 0 to 1.
    pub share_of_client: f64,
    /// CPU of each worker as a share of one processor, 0 to 1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub worker_shares: Vec<f64>,
    /// Lengths of poll-loop stalls, in microseconds. A reply that arrives during a stall is read late by at
    /// most that much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub away_us: Option<LatencySummary>,
    /// Whether a worker was so busy that it may have been the bottleneck.
    pub limited: bool,
}
