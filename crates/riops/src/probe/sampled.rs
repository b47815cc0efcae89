//! What the sampler has seen of a stage: plain data, as the record keeps it.

use serde::{Deserialize, Serialize};

/// All counters over one interval. What was not counted is absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProbePoint {
    /// Its end, from the start of the stage.
    pub t_s: f64,
    /// Its length.
    pub seconds: f64,
    /// Read from the device, in MB (10^6 bytes) per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_mb_s: Option<f64>,
    /// Written to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_mb_s: Option<f64>,
    /// Its reads per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reads_per_s: Option<f64>,
    /// Its writes per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writes_per_s: Option<f64>,
    /// Share of the time in which it had a request, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_share: Option<f64>,
    /// Share of all processors of this machine that was busy, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_busy_share: Option<f64>,
    /// Processors that the server's process and its parallel workers used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_cpus: Option<f64>,
    /// Bytes of this machine's memory that are still to be written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dirty_bytes: Option<u64>,
    /// Write-ahead log, in MB per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wal_mb_s: Option<f64>,
    /// Checkpoints that were started or asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoints: Option<u64>,
    /// Written by checkpoints, in MB per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint_mb_s: Option<f64>,
    /// Bytes of the database's files at its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database_bytes: Option<u64>,
    /// How far the server says its command is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<ServerProgress>,
}

/// How far a command of the server is, in its own units.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the columns of pg_stat_progress_…")]
pub struct ServerProgress {
    pub phase: String,
    pub done: u64,
    pub total: u64,
}

/// What a process waited for, and how much of the time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaitShare {
    /// `IO:DataFileRead` as in `pg_stat_activity`; `CPU` where it waited for nothing.
    pub event: String,
    /// Share of the looks, 0 to 1.
    pub share: f64,
}

/// What was seen of a stage.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sampled {
    /// The points, in order.
    pub points: Vec<ProbePoint>,
    /// The most frequent wait first.
    pub waits: Vec<WaitShare>,
    /// How often somebody looked at the waits.
    pub looks: u64,
    /// CPU seconds that looking has cost, on both sides where both are here.
    pub cpu_s: f64,
}
