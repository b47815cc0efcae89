//! The database under test and its dataset.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::condition::ConditionRecord;
use super::device::{Disk, DiskLimit, Storage};
use super::flavor::Flavor;
use crate::plan::DatasetPlan;

/// The database under test.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TargetRecord {
    /// Flavor of the database.
    #[serde(rename = "flavour")]
    pub flavor: Flavor,
    /// The setting `server_version`.
    pub server_version: String,
    /// Result of `version()`, with compiler and platform.
    pub version_text: String,
    /// Compiler flags of the server, if visible to the role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compiler_flags: Option<String>,
    /// Whether the server is the embedded server of riops.
    pub embedded: bool,
    /// Address of the server.
    pub address: String,
    /// Name of the database.
    pub database: String,
    /// TLS version and cipher suite of the control connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encryption: Option<String>,
    /// Connection pooler or proxy between riops and the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pooler: Option<String>,
    /// What the operating system permits the server, if it is on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<ServerLimits>,
    /// File system and device of the measured tables, if the server is on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<Storage>,
    /// Maximum rates of this device, if they were measured before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_limit: Option<DiskLimit>,
    /// The disks of the server, below partitions and logical volumes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<Disk>,
    /// Settings that differ from their defaults, and settings that affect every result.
    pub settings: BTreeMap<String, String>,
    /// The defaults of these settings, as far as they have no unit.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub setting_defaults: BTreeMap<String, String>,
    /// The dataset; absent if the workload needs none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dataset: Option<DatasetRecord>,
}

/// What the operating system permits the processes of a server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerLimits {
    /// Processors on which they may run (affinity, cpuset).
    pub cpus: usize,
    /// CPU quota of the cgroup, in processors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup_cpus: Option<f64>,
    /// Memory limit of the cgroup, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup_memory_bytes: Option<u64>,
}

/// The dataset of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DatasetRecord {
    /// Dataset generation id.
    pub id: String,
    /// State of the tables before the run; absent if the run creates its tables, and for YugabyteDB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<ConditionRecord>,
    /// Other sessions that held a lock on the dataset at the start or at the end of the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_users: Vec<String>,
    /// Parameters of the dataset.
    #[serde(flatten)]
    pub parameters: DatasetPlan,
}
