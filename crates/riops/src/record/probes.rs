//! Counters of the machine and the server over time.

use serde::{Deserialize, Serialize};

use super::convert::from_measured;
use crate::probe::sampler;

/// All counters over one interval. Values that were not measured are absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProbePoint {
    /// End of the interval, in seconds since the stage started.
    pub t_s: f64,
    /// Length of the interval, in seconds.
    pub seconds: f64,
    /// MB (10^6 bytes) read from the device per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_mb_s: Option<f64>,
    /// MB written to the device per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_mb_s: Option<f64>,
    /// Device reads per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reads_per_s: Option<f64>,
    /// Device writes per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub writes_per_s: Option<f64>,
    /// Share of the time with at least one request in flight, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_share: Option<f64>,
    /// Busy share of all processors of this machine, 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_busy_share: Option<f64>,
    /// CPU use of the server process and its parallel workers, in processors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_cpus: Option<f64>,
    /// Dirty memory of this machine at the end of the interval, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dirty_bytes: Option<u64>,
    /// MB of write-ahead log per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wal_mb_s: Option<f64>,
    /// Checkpoints that were started or requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoints: Option<u64>,
    /// MB written by checkpoints per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint_mb_s: Option<f64>,
    /// Size of the database at the end of the interval, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database_bytes: Option<u64>,
    /// Progress of the statement, as reported by the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<ServerProgress>,
}

impl From<sampler::ProbePoint> for ProbePoint {
    fn from(measured: sampler::ProbePoint) -> Self {
        let sampler::ProbePoint {
            t_s,
            seconds,
            read_mb_s,
            write_mb_s,
            reads_per_s,
            writes_per_s,
            busy_share,
            machine_busy_share,
            server_cpus,
            dirty_bytes,
            wal_mb_s,
            checkpoints,
            checkpoint_mb_s,
            database_bytes,
            progress,
        } = measured;
        Self {
            t_s,
            seconds,
            read_mb_s,
            write_mb_s,
            reads_per_s,
            writes_per_s,
            busy_share,
            machine_busy_share,
            server_cpus,
            dirty_bytes,
            wal_mb_s,
            checkpoints,
            checkpoint_mb_s,
            database_bytes,
            progress: progress.map(Into::into),
        }
    }
}

/// Progress of a statement, in the units of the `pg_stat_progress_…` view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the columns of pg_stat_progress_…")]
pub struct ServerProgress {
    pub phase: String,
    pub done: u64,
    pub total: u64,
}

from_measured!(ServerProgress from sampler::ServerProgress { phase, done, total });

/// One wait event of the server process, or of the sessions of a loop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaitShare {
    /// `IO:DataFileRead` as in `pg_stat_activity`; `CPU` if the process did not wait;
    /// `idle` for a session that waited for its client.
    pub event: String,
    /// Share of the samples with this event, 0 to 1.
    pub share: f64,
}

from_measured!(WaitShare from sampler::WaitShare { event, share });

/// Other active sessions of the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OtherSessions {
    /// `application_name`, or the kind of the process.
    pub name: String,
    /// Mean number of active sessions.
    pub active: f64,
}

from_measured!(OtherSessions from sampler::OtherSessions { name, active });

/// The counters of a stage over time, and the wait events of the server process or of the sessions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sampled {
    /// The intervals, in order.
    pub points: Vec<ProbePoint>,
    /// Wait events, the most frequent first.
    pub waits: Vec<WaitShare>,
    /// Other active sessions of the server, the most active first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<OtherSessions>,
    /// Number of samples of the wait events.
    pub looks: u64,
    /// CPU time of sampling, in seconds; includes the server's share if the server is on this machine.
    pub cpu_s: f64,
}

impl From<sampler::Sampled> for Sampled {
    fn from(measured: sampler::Sampled) -> Self {
        // Lock waits are stored with the loop.
        let sampler::Sampled { points, waits, others, looks, cpu_s, lock_waits: _ } = measured;
        Self {
            points: points.into_iter().map(Into::into).collect(),
            waits: waits.into_iter().map(Into::into).collect(),
            others: others.into_iter().map(Into::into).collect(),
            looks,
            cpu_s,
        }
    }
}
