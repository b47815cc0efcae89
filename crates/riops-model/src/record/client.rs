//! The load generator: its machine and its CPU use, and load that neither riops nor the server under test caused.

use serde::{Deserialize, Serialize};

use super::latency::LatencySummary;
use super::probes::OtherSessions;
use crate::plan::Driver;
use crate::units::{percent, texts};

/// The load generator.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientRecord {
    /// riops version.
    pub riops_version: String,
    /// The machine of the client.
    #[serde(flatten)]
    pub machine: MachineFacts,
    /// Number of worker threads.
    pub workers: u32,
    /// How they waited for their sockets: `epoll` or `io-uring`.
    pub driver: Option<Driver>,
    /// Whether the server runs on the same machine.
    pub shares_machine_with_server: bool,
    /// Whether it is unknown where the server runs: the address belongs to this machine, but the server is behind a
    /// pooler, a tunnel, or the port of a container.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub server_may_be_here: bool,
}

impl ClientRecord {
    /// Whether the server is on the same machine, or may be, and riops may use all its processors.
    pub fn shares_processors(&self) -> bool {
        let machine = &self.machine;
        let is_shared = self.shares_machine_with_server || self.server_may_be_here;
        is_shared && machine.counted_cpus() == machine.cpus
    }
}

/// CPU use and scheduling delay of riops during a stage.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ClientCpu {
    /// CPU seconds of the whole process, user and system.
    pub seconds: f64,
    /// CPU microseconds per transaction that ended within the measurement.
    pub us_per_transaction: Option<f64>,
    /// CPU of the busiest worker as a share of one processor, 0 to 1.
    pub share_of_client: f64,
    /// CPU of each worker as a share of one processor, 0 to 1.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub worker_shares: Vec<f64>,
    /// Largest share of the time in which a worker was runnable but waited for a processor, 0 to 1.
    pub run_queue_share: Option<f64>,
    /// CPU of the busiest thread that opens connections, as a share of one processor; only if sessions
    /// reconnect on purpose.
    pub connector_share: Option<f64>,
    /// Share of the periods of the CPU quota in which the cgroup of riops had to wait, 0 to 1.
    pub throttled_share: Option<f64>,
    /// Lengths of poll-loop stalls, in microseconds. A reply that arrives during a stall is read late by at
    /// most that much.
    pub away_us: Option<LatencySummary>,
    /// Resources of the client that were exhausted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<ClientLimit>,
    /// Whether the client may have been the bottleneck. Records of earlier versions judge only the busiest
    /// worker.
    pub limited: bool,
}

/// From this share of the periods on, a CPU quota limits whom it is for.
pub const THROTTLED_SHARE: f64 = 0.1;

/// From this share of the time on, waiting for a processor delays every transaction by as much.
const RUN_QUEUE_SHARE: f64 = 0.1;

impl ClientCpu {
    /// Whether the workers waited for a processor long enough to delay the transactions.
    pub fn is_contended(&self) -> bool {
        self.run_queue_share.is_some_and(|share| share >= RUN_QUEUE_SHARE)
    }
}

/// A resource of the client that can be the bottleneck.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientLimit {
    /// A worker had no idle time.
    Worker,
    /// All processors of the client's machine were busy.
    Machine,
    /// The CPU quota of the cgroup was exhausted.
    Quota,
    /// The threads that open connections had no idle time.
    Connectors,
    /// The workers waited for a processor.
    RunQueue,
    /// Replies waited for the poll loop.
    PollLoop,
}

texts!(
    /// Returns a description.
    ClientLimit::text {
        Worker: "a worker had no idle time",
        Machine: "all processors of this machine were busy",
        Quota: "the CPU quota of the cgroup was exhausted",
        Connectors: "the threads that open connections had no idle time",
        RunQueue: "the workers waited for a processor",
        PollLoop: "replies waited for the poll loop",
    }
);

impl ClientLimit {
    /// Whether it is the machine of the client, which other processes use as well.
    pub fn is_of_machine(self) -> bool {
        matches!(self, Self::Machine | Self::RunQueue | Self::PollLoop)
    }
}

/// The machine of the client. Unknown values are absent.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineFacts {
    /// Host name.
    pub host: String,
    /// Operating system, release and architecture.
    pub kernel: String,
    /// Processors available to riops.
    pub cpus: usize,
    /// Processors of the whole machine, which affinity or a CPU quota can withhold from riops.
    pub machine_cpus: Option<usize>,
    /// Memory available to riops, in bytes.
    pub memory_bytes: u64,
    /// Model name of the processors.
    pub cpu_model: Option<String>,
    /// Frequency governor: `performance`, `powersave`, …
    pub cpu_governor: Option<String>,
    /// Clock of the kernel: a slow one makes every reading of the time expensive.
    pub clock_source: Option<String>,
    /// Transparent huge pages: `always`, `madvise` or `never`.
    pub transparent_huge_pages: Option<String>,
    /// CPU limit of the cgroup, in processors.
    pub cgroup_cpus: Option<f64>,
    /// Memory limit of the cgroup, in bytes.
    pub cgroup_memory_bytes: Option<u64>,
    /// Hypervisor or container runtime.
    pub virtualization: Option<String>,
}

impl MachineFacts {
    /// Returns the number of processors to which the CPU counters of the machine and of its processes refer.
    /// Records of earlier releases have only the number of processors available to riops.
    pub fn counted_cpus(&self) -> usize {
        self.machine_cpus.unwrap_or(self.cpus)
    }

    /// Formats a share of all processors, in the unit of every CPU use: 100% is one processor.
    pub fn cpu_text(&self, share: f64) -> String {
        percent(share * self.counted_cpus() as f64)
    }

    /// Formats a share of all processors beside all of them: `96% of 200%`.
    pub fn cpu_of_all_text(&self, share: f64) -> String {
        format!("{} of {}", self.cpu_text(share), self.cpu_text(1.0))
    }
}

/// Memory at the end of a stage, from /proc/meminfo.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are from /proc/meminfo")]
pub struct Memory {
    pub total_bytes: u64,
    pub available_bytes: u64,
    pub cached_bytes: u64,
    pub dirty_bytes: u64,
}

/// Pressure stall information: share of the time during which at least one task of the machine waited, from 0
/// to 1. Source: Documentation/accounting/psi.rst of the Linux kernel.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Pressure {
    /// Waited for a processor.
    pub cpu_share: f64,
    /// Waited for memory.
    pub memory_share: f64,
    /// Waited for I/O.
    pub io_share: f64,
}

/// Traffic of the client's network interfaces except loopback, and segments of TCP: also of a server on the same machine with another
/// network namespace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct NetworkUse {
    /// MB (10^6 bytes) received per second.
    pub received_mb_s: f64,
    /// MB sent per second.
    pub sent_mb_s: f64,
    /// Packets with errors and dropped ones, in both directions.
    pub errors: u64,
    /// Segments sent.
    pub segments: u64,
    /// Segments among them that were sent again.
    pub retransmitted: u64,
}

/// Bytes that processes read and wrote, from /proc/PID/io.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadBytes {
    /// Bytes read by system calls, from a device or from the page cache.
    pub all: u64,
    /// Bytes read from a device, including read-ahead.
    pub device: u64,
    /// Bytes written by system calls, to a device or to the page cache.
    #[serde(default)]
    pub written: u64,
}

/// Load of other processes, other sessions and other virtual machines during a stage. Values are absent if they
/// could not be observed.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Neighbors {
    /// CPU of processes that belong neither to riops nor to the server, as a share of all processors of the
    /// client's machine, 0 to 1. Absent if the stage was too short for a share in percent.
    pub cpu_share: Option<f64>,
    /// CPU in user mode that no visible process explains, as a share of all processors, 0 to 1: CPU of other containers, or
    /// of hidden processes. Absent if the server may be one of them.
    pub unseen_cpu_share: Option<f64>,
    /// The busiest of these processes, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<NeighborProcess>,
    /// CPU time that the hypervisor withheld, as a share of all processors, 0 to 1.
    pub steal_share: Option<f64>,
    /// MB (10^6 bytes) per second that other processes read from the device of the server's data.
    pub device_read_mb_s: Option<f64>,
    /// Requests per second with which other processes read from it, a lower bound: the requests that the bytes of server
    /// and client do not explain, in blocks of the server.
    pub device_reads_per_s: Option<f64>,
    /// MB per second that other processes wrote to this device.
    pub device_write_mb_s: Option<f64>,
    /// Other active sessions of the server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<OtherSessions>,
}

impl Neighbors {
    /// Returns the CPU of other processes, visible or not, as a share of all processors, 0 to 1.
    pub fn all_cpu_share(&self) -> Option<f64> {
        Some(self.cpu_share? + self.unseen_cpu_share.unwrap_or_default())
    }
}

/// Processes of one name that belong neither to riops nor to the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NeighborProcess {
    /// Name of the program.
    pub name: String,
    /// Processors used.
    pub cpus: f64,
}
