//! Results of the sampler for one stage: plain data.

/// Counters of one interval. Unavailable values are absent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProbePoint {
    /// End of the interval, in seconds since the start of the stage.
    pub t_s: f64,
    /// Length of the interval, in seconds.
    pub seconds: f64,
    /// Read rate of the device, in MB (10^6 bytes) per second.
    pub read_mb_s: Option<f64>,
    /// Write rate of the device, in MB per second.
    pub write_mb_s: Option<f64>,
    /// Reads of the device per second.
    pub reads_per_s: Option<f64>,
    /// Writes of the device per second.
    pub writes_per_s: Option<f64>,
    /// Share of the time with at least one request in flight, 0 to 1.
    pub busy_share: Option<f64>,
    /// Share of all processors of this machine that was busy, 0 to 1.
    pub machine_busy_share: Option<f64>,
    /// Processors used by the server process and its parallel workers.
    pub server_cpus: Option<f64>,
    /// Dirty memory of this machine, in bytes.
    pub dirty_bytes: Option<u64>,
    /// Write-ahead log, in MB per second.
    pub wal_mb_s: Option<f64>,
    /// Number of checkpoints, timed and requested.
    pub checkpoints: Option<u64>,
    /// Write rate of checkpoints, in MB per second.
    pub checkpoint_mb_s: Option<f64>,
    /// Size of the database's files at the end of the interval, in bytes.
    pub database_bytes: Option<u64>,
    /// Progress of the command, as reported by the server.
    pub progress: Option<ServerProgress>,
}

impl ProbePoint {
    /// Returns the share of the current phase of a statement that is done, 0 to 1: as reported by the server, or else
    /// from the size of the database before the statement and its expected growth, in bytes.
    #[must_use]
    pub fn share_done(&self, growth: Option<(u64, u64)>) -> Option<f64> {
        let of = |done: u64, total: u64| {
            (total > 0).then(|| (done as f64 / total as f64).clamp(0.0, 1.0))
        };
        match (&self.progress, growth, self.database_bytes) {
            (Some(progress), ..) => of(progress.done, progress.total),
            (None, Some((before, growth)), Some(now)) => of(now.saturating_sub(before), growth),
            _ => None,
        }
    }
}

/// Progress of a command, in the server's own units.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "columns of pg_stat_progress_…")]
pub struct ServerProgress {
    pub phase: String,
    pub done: u64,
    pub total: u64,
}

/// A wait event and its share of the samples, of one process or of all sessions of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct WaitShare {
    /// Wait event as in `pg_stat_activity`, such as `IO:DataFileRead`; `CPU` without a wait event, `idle` for a session
    /// that waits for its client.
    pub event: String,
    /// Share of the samples, 0 to 1.
    pub share: f64,
}

/// Other active sessions of the server.
#[derive(Debug, Clone, PartialEq)]
pub struct OtherSessions {
    /// Name of the application, or the kind of the process.
    pub name: String,
    /// Mean number of active sessions.
    pub active: f64,
}

/// Sessions that waited for locks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LockWaits {
    /// Number of samples.
    pub samples: u64,
    /// Number of sessions that waited for a lock, summed over all samples.
    pub waiting: u64,
}

/// Samples of a stage.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sampled {
    /// Points, in order.
    pub points: Vec<ProbePoint>,
    /// Wait events, most frequent first.
    pub waits: Vec<WaitShare>,
    /// Other active sessions of the server, the most active first.
    pub others: Vec<OtherSessions>,
    /// Sessions that waited for locks.
    pub lock_waits: LockWaits,
    /// Number of wait event samples.
    pub looks: u64,
    /// CPU time used by sampling, in the client and in the server if it is local, in seconds.
    pub cpu_s: f64,
}
