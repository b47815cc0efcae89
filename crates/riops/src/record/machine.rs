//! The client's machine; memory, pressure and process I/O of a stage.

use serde::{Deserialize, Serialize};

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
    /// Records of earlier releases have only that of the processors available to riops.
    #[must_use]
    pub fn counted_cpus(&self) -> usize {
        self.machine_cpus.unwrap_or(self.cpus)
    }
}

/// Memory at the end of a stage, from /proc/meminfo.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are those of /proc/meminfo")]
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

/// Traffic of the client's network interfaces except loopback, and segments of TCP.
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
