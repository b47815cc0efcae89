//! The load generator: its machine and its CPU use.

use serde::{Deserialize, Serialize};

use super::latency::LatencySummary;
use super::machine::MachineFacts;
use crate::plan::Driver;

/// The load generator.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    /// Whether it is unknown where the server runs: the address is that of this machine, but the server is behind a
    /// pooler, a tunnel, or the port of a container.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub server_may_be_here: bool,
}

impl ClientRecord {
    /// Whether the server is on the same machine, or may be, and riops may use all its processors.
    pub(crate) fn shares_processors(&self) -> bool {
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
pub(crate) const THROTTLED_SHARE: f64 = 0.1;

/// From this share of the time on, waiting for a processor delays every transaction by as much.
const RUN_QUEUE_SHARE: f64 = 0.1;

impl ClientCpu {
    /// Whether the workers waited for a processor long enough to delay the transactions.
    #[must_use]
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

impl ClientLimit {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Worker,
        Self::Machine,
        Self::Quota,
        Self::Connectors,
        Self::RunQueue,
        Self::PollLoop,
    ];

    /// Whether it is the machine of the client, which other processes use as well.
    #[must_use]
    pub fn is_of_machine(self) -> bool {
        matches!(self, Self::Machine | Self::RunQueue | Self::PollLoop)
    }

    /// Returns a description.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Self::Worker => "a worker had no idle time",
            Self::Machine => "all processors of this machine were busy",
            Self::Quota => "the CPU quota of the cgroup was exhausted",
            Self::Connectors => "the threads that open connections had no idle time",
            Self::RunQueue => "the workers waited for a processor",
            Self::PollLoop => "replies waited for the poll loop",
        }
    }
}
