//! Load that neither riops nor the server under test caused.

use serde::{Deserialize, Serialize};

use super::probes::OtherSessions;

/// Load of other processes, other sessions and other virtual machines during a stage. Values are absent if they
/// could not be observed.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Neighbors {
    /// CPU of processes that belong neither to riops nor to the server, as a share of all processors of the
    /// client's machine, 0 to 1. Absent if the stage was too short for a share in percent.
    pub cpu_share: Option<f64>,
    /// CPU in user mode that no visible process explains, as a share of all processors, 0 to 1: that of other containers, or
    /// of hidden processes. Absent if the server may be one of them.
    pub unseen_cpu_share: Option<f64>,
    /// The busiest of these processes, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<NeighborProcess>,
    /// CPU time that the hypervisor withheld, as a share of all processors, 0 to 1.
    pub steal_share: Option<f64>,
    /// MB (10^6 bytes) per second that other processes read from the device of the server's data.
    pub device_read_mb_s: Option<f64>,
    /// Requests per second with which other processes read from it, at least: those that the bytes of server and client do
    /// not explain, in blocks of the server.
    pub device_reads_per_s: Option<f64>,
    /// MB per second that other processes wrote to this device.
    pub device_write_mb_s: Option<f64>,
    /// Other active sessions of the server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sessions: Vec<OtherSessions>,
}

impl Neighbors {
    /// Returns the CPU of other processes, visible or not, as a share of all processors, 0 to 1.
    #[must_use]
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
