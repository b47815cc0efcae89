//! Counters of the machine and the server over time, what the sessions did, the values of queries of the user, and the
//! active session history.

use serde::{Deserialize, Serialize};

use super::database::LockWaits;
use crate::stats::median;
use crate::units::texts;

/// All counters over one interval. Values that were not measured are absent.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ProbePoint {
    /// End of the interval, in seconds since the stage started.
    pub t_s: f64,
    /// Length of the interval, in seconds.
    pub seconds: f64,
    /// MB (10^6 bytes) read from the device per second.
    pub read_mb_s: Option<f64>,
    /// MB written to the device per second.
    pub write_mb_s: Option<f64>,
    /// Device reads per second.
    pub reads_per_s: Option<f64>,
    /// Device writes per second.
    pub writes_per_s: Option<f64>,
    /// Share of the time with at least one request in flight, 0 to 1.
    pub busy_share: Option<f64>,
    /// Busy share of all processors of this machine, 0 to 1.
    pub machine_busy_share: Option<f64>,
    /// CPU time of a fixed piece of work on this machine at the end of the interval, in microseconds.
    pub processor_work_us: Option<f64>,
    /// CPU use of the server process and its parallel workers, in processors.
    pub server_cpus: Option<f64>,
    /// Dirty memory of this machine at the end of the interval, in bytes.
    pub dirty_bytes: Option<u64>,
    /// Memory of the server's processes at the end of the interval that they do not share, in bytes: catalogs, plans, sorts.
    pub server_memory_bytes: Option<u64>,
    /// MB of write-ahead log per second.
    pub wal_mb_s: Option<f64>,
    /// Checkpoints that were started or requested.
    pub checkpoints: Option<u64>,
    /// MB written by checkpoints per second.
    pub checkpoint_mb_s: Option<f64>,
    /// Size of the database at the end of the interval, in bytes.
    pub database_bytes: Option<u64>,
    /// Progress of the statement, as reported by the server.
    pub progress: Option<ServerProgress>,
    /// Wait events since the stage started; only while it is in progress.
    #[serde(skip)]
    pub waits: Vec<WaitShare>,
}

impl Sampled {
    /// Returns the speed of the processor in each interval, relative to the median of the first three; empty if it was not
    /// measured.
    pub fn processor_speeds(&self) -> Vec<f64> {
        let first = self.first_work_us();
        self.works_us().filter(|work| *work > 0.0).map(|work| first / work).collect()
    }

    /// Returns the CPU time of the fixed piece of work at the start: the median of the first three intervals, in microseconds.
    pub fn first_work_us(&self) -> f64 {
        median(&self.works_us().take(3).collect::<Vec<f64>>())
    }

    /// Returns the memory of the server's processes at the first point and at its highest, in bytes.
    pub fn server_memory_bytes(&self) -> Option<(u64, u64)> {
        let memory = || self.points.iter().filter_map(|point| point.server_memory_bytes);
        memory().next().zip(memory().max())
    }

    fn works_us(&self) -> impl Iterator<Item = f64> {
        self.points.iter().filter_map(|point| point.processor_work_us)
    }

    /// Returns the share of the session time in which sessions waited for anything but their client, 0 to 1.
    pub fn server_wait_share(&self) -> f64 {
        self.waits.iter().filter(|wait| wait.is_of_server()).map(|wait| wait.share).sum()
    }

    /// Returns the mean CPU time of the fixed piece of work, in microseconds.
    pub fn processor_work_us(&self) -> Option<f64> {
        let works: Vec<f64> = self.works_us().collect();
        (!works.is_empty()).then(|| works.iter().sum::<f64>() / works.len() as f64)
    }
}

impl WaitShare {
    /// Whether a process of the server waits for something else than its client.
    pub fn is_of_server(&self) -> bool {
        !matches!(TimePart::of_event(&self.event), None | Some(TimePart::Cpu | TimePart::Network))
    }
}

impl ProbePoint {
    /// Returns the share of the current phase of a statement that is done, 0 to 1: as reported by the server, or else
    /// from the size of the database before the statement and its expected growth, in bytes.
    pub fn share_done(&self, growth: Option<(u64, u64)>) -> Option<f64> {
        let share = |done: u64, total: u64| {
            (total > 0).then(|| (done as f64 / total as f64).clamp(0.0, 1.0))
        };
        match (&self.progress, growth, self.database_bytes) {
            (Some(progress), ..) => share(progress.done, progress.total),
            (None, Some((before, growth)), Some(now)) => share(now.saturating_sub(before), growth),
            _ => None,
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

/// One wait event of the server process, or of the sessions of a loop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaitShare {
    /// `IO:DataFileRead` as in `pg_stat_activity`; `CPU` if the process did not wait;
    /// `idle` for a session that waited for its client.
    pub event: String,
    /// Share of the samples with this event, 0 to 1.
    pub share: f64,
}

/// Other active sessions of the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OtherSessions {
    /// `application_name`, or the kind of the process.
    pub name: String,
    /// Mean number of active sessions.
    pub active: f64,
}

/// Sessions of one application that held locks for which the sessions of a loop waited.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Blocker {
    /// `application_name`, or the kind of the process.
    pub name: String,
    /// State as in `pg_stat_activity`: `active`, `idle in transaction`, …
    pub state: String,
    /// Whether they are sessions of the run.
    pub is_own: bool,
    /// Share of the waits for locks, 0 to 1.
    pub share: f64,
}

impl OtherSessions {
    /// Whether it sends the changes of the run to a standby or a subscriber, and is no other load.
    pub fn is_replication(&self) -> bool {
        self.name.starts_with("replication to ")
    }
}

/// The counters of a stage over time, and the wait events of the server process or of the sessions.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Sampled {
    /// The intervals, in order.
    pub points: Vec<ProbePoint>,
    /// Wait events, the most frequent first.
    pub waits: Vec<WaitShare>,
    /// Other active sessions of the server, the most active first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<OtherSessions>,
    /// Sessions that held the locks for which the sessions of a loop waited, the most frequent first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blockers: Vec<Blocker>,
    /// The time of the sessions by what they did, from the same samples.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub session_time: Vec<SessionTime>,
    /// Extension of the server whose samples were used instead.
    pub session_time_source: Option<String>,
    /// Mean number of sessions in the samples, if riops only observed them.
    pub observed_sessions: Option<f64>,
    /// Most connections of a loop to the server in a sample, with idle ones, if they are fewer than its sessions: a pooler shares
    /// them. The connection that takes the sample is another one.
    pub backends_max: Option<u64>,
    /// Steps of the system clock of this machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clock_steps: Vec<ClockStep>,
    /// Number of samples of the wait events.
    pub looks: u64,
    /// CPU time of sampling, in seconds; includes the server's share if the server is on this machine.
    pub cpu_s: f64,
    /// Sessions that waited for locks, which are stored with the loop.
    #[serde(skip)]
    pub lock_waits: LockWaits,
    /// The databases of the sessions that riops only observed.
    #[serde(skip)]
    pub databases: Vec<String>,
}

/// A step of the system clock.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ClockStep {
    /// When it was noticed, in seconds since the start of the measurement.
    pub t_s: f64,
    /// By how much the clock was set forward, in seconds; negative if it was set back.
    pub step_s: f64,
}

/// Values that a query returned over a stage.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct QuerySeries {
    /// Name.
    pub name: String,
    /// The statement.
    pub sql: String,
    /// The values that were read.
    pub points: Vec<QueryPoint>,
    /// Number of executions that failed, took too long or did not return a number.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub failures: u64,
    /// The first of these errors.
    pub error: Option<String>,
}

/// A value of a query.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct QueryPoint {
    /// Time of the result, in seconds since the measurement started.
    pub t_s: f64,
    /// The value.
    pub value: f64,
}

impl QuerySeries {
    /// Returns the mean of the values.
    pub fn mean(&self) -> Option<f64> {
        let sum: f64 = self.points.iter().map(|point| point.value).sum();
        (!self.points.is_empty()).then(|| sum / self.points.len() as f64)
    }

    /// Returns the largest value.
    pub fn max(&self) -> Option<f64> {
        self.points.iter().map(|point| point.value).reduce(f64::max)
    }

    /// Returns the value that was read last up to a time.
    pub fn at(&self, t_s: f64) -> Option<f64> {
        let before = self.points.partition_point(|point| point.t_s <= t_s);
        Some(self.points.get(before.checked_sub(1)?)?.value)
    }
}

/// Activity of the sessions and requests of a node, from its active session history. Waits of YSQL for the tserver contain the
/// time of the events of the tserver: components must not be added up.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ActivityRecord {
    /// Host and port of the node.
    pub node: String,
    /// `YSQL`, `TServer`, …
    pub component: String,
    /// Class of the event.
    pub class: String,
    /// The event.
    pub event: String,
    /// Mean number of sessions or requests with this event.
    pub active: f64,
}

/// Activity of a session at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimePart {
    /// Between two transactions, in the client.
    Client,
    /// Between two transactions, while it connects again.
    Connecting,
    /// In a transaction whose script waits (`\sleep`).
    Think,
    /// In a transaction, while the server does nothing for it: network, client, queues.
    Network,
    /// Its process runs.
    Cpu,
    /// Its process waits for a processor. Without scheduler statistics, this is part of `Cpu`.
    RunQueue,
    /// It is active without a wait event, and its process neither runs nor waits for a processor: blocked in the kernel, or by code
    /// that reports no wait event.
    Active,
    /// Waits for a block that is read.
    Read,
    /// Waits for a block that is written, or for a table that grows.
    Write,
    /// Waits for the write-ahead log.
    Wal,
    /// Waits for temporary files.
    Temporary,
    /// Waits for other I/O.
    OtherIo,
    /// Waits for a lightweight lock or a buffer pin.
    LwLock,
    /// Waits for a lock.
    Lock,
    /// Waits for another process.
    Ipc,
    /// Waits for a time to pass.
    Timeout,
    /// Waits for something else, such as an extension.
    Other,
}

/// A part of the time of all sessions, from samples.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SessionTime {
    /// Activity of the sessions.
    pub part: TimePart,
    /// Share of their time, 0 to 1.
    pub share: f64,
    /// Half the width of the 95% interval of the share; absent with fewer than four samples.
    pub reach: Option<f64>,
}

texts!(
    /// Returns its name.
    TimePart::name {
        Client: "client",
        Connecting: "connecting",
        Think: "think time",
        Network: "network and queue",
        Cpu: "CPU",
        RunQueue: "run queue",
        Active: "active without wait event",
        Read: "reads",
        Write: "writes",
        Wal: "WAL",
        Temporary: "temporary files",
        OtherIo: "other I/O",
        LwLock: "LWLock",
        Lock: "lock",
        Ipc: "IPC",
        Timeout: "timeout",
        Other: "other waits",
    }
);

impl TimePart {
    /// Number of parts.
    pub const COUNT: usize = Self::ALL.len();

    /// Returns the part of a sampled event, as in [`WaitShare`](super::WaitShare); `None` if the session has nothing to do.
    /// Names of events differ in case between versions of PostgreSQL.
    pub fn of_event(event: &str) -> Option<Self> {
        let (kind, name) = event.split_once(':').unwrap_or((event, ""));
        let name = name.to_ascii_lowercase();
        let starts = |starts: &[&str]| starts.iter().any(|start| name.starts_with(start));
        Some(match kind {
            "idle" => return None,
            "CPU" => Self::Cpu,
            "Client" | "idle in transaction" => Self::Network,
            "IO" | "LWLock" if starts(&["wal"]) => Self::Wal,
            "LWLock" | "IPC" if starts(&["bufferio"]) => Self::Read,
            "IO" if starts(&["datafileread", "datafileprefetch", "aio", "slruread"]) => Self::Read,
            "IO" if starts(&["datafile", "slru"]) => Self::Write,
            "IO" if starts(&["buffile"]) => Self::Temporary,
            "IO" => Self::OtherIo,
            "LWLock" | "Buffer" | "BufferPin" => Self::LwLock,
            "Lock" => Self::Lock,
            "IPC" => Self::Ipc,
            "Timeout" => Self::Timeout,
            _ => Self::Other,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_all_versions_belong_to_a_part() {
        for (event, part) in [
            ("CPU", TimePart::Cpu),
            ("IO:WALSync", TimePart::Wal),
            ("IO:WalSync", TimePart::Wal),
            ("LWLock:WALWrite", TimePart::Wal),
            ("LWLock:BufferIO", TimePart::Read),
            ("IPC:BufferIo", TimePart::Read),
            ("IO:AioIoCompletion", TimePart::Read),
            ("IO:DataFileRead", TimePart::Read),
            ("IO:DataFileExtend", TimePart::Write),
            ("IO:BuffileWrite", TimePart::Temporary),
            ("IO:SlruRead", TimePart::Read),
            ("IO:ControlFileSync", TimePart::OtherIo),
            ("LWLock:ProcArray", TimePart::LwLock),
            ("BufferPin:BufferPin", TimePart::LwLock),
            ("Lock:transactionid", TimePart::Lock),
            ("IPC:SyncRep", TimePart::Ipc),
            ("Timeout:PgSleep", TimePart::Timeout),
            ("Extension:Extension", TimePart::Other),
            ("Client:ClientRead", TimePart::Network),
            ("idle in transaction", TimePart::Network),
        ] {
            assert_eq!(TimePart::of_event(event), Some(part), "{event}");
        }
        assert_eq!(TimePart::of_event("idle"), None);
    }
}
