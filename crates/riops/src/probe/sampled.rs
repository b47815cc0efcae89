//! What the sampler measured during a stage: plain data.

/// All counters over one interval. What was not counted is absent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProbePoint {
    /// Its end, from the start of the stage.
    pub t_s: f64,
    /// Its length.
    pub seconds: f64,
    /// Read from the device, in MB (10^6 bytes) per second.
    pub read_mb_s: Option<f64>,
    /// Written to it.
    pub write_mb_s: Option<f64>,
    /// Its reads per second.
    pub reads_per_s: Option<f64>,
    /// Its writes per second.
    pub writes_per_s: Option<f64>,
    /// Share of the time in which it had a request, 0 to 1.
    pub busy_share: Option<f64>,
    /// Share of all processors of this machine that was busy, 0 to 1.
    pub machine_busy_share: Option<f64>,
    /// Processors that the server's process and its parallel workers used.
    pub server_cpus: Option<f64>,
    /// Bytes of this machine's memory that are still to be written.
    pub dirty_bytes: Option<u64>,
    /// Write-ahead log, in MB per second.
    pub wal_mb_s: Option<f64>,
    /// Checkpoints that were started or asked for.
    pub checkpoints: Option<u64>,
    /// Written by checkpoints, in MB per second.
    pub checkpoint_mb_s: Option<f64>,
    /// Bytes of the database's files at its end.
    pub database_bytes: Option<u64>,
    /// How far the server says its command is.
    pub progress: Option<ServerProgress>,
}

/// How far a command of the server is, in its own units.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the columns of pg_stat_progress_…")]
pub struct ServerProgress {
    pub phase: String,
    pub done: u64,
    pub total: u64,
}

/// What a process waited for, and how much of the time.
#[derive(Debug, Clone, PartialEq)]
pub struct WaitShare {
    /// `IO:DataFileRead` as in `pg_stat_activity`; `CPU` where it waited for nothing.
    pub event: String,
    /// Share of the looks, 0 to 1.
    pub share: f64,
}

/// What was seen of a stage.
#[derive(Debug, Clone, Default, PartialEq)]
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
