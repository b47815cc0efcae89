//! The database under test: its product, its dataset, and the state of the dataset before a run.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::device::{Disk, DiskLimit, Storage};
use crate::plan::DatasetPlan;

/// The database under test.
#[serde_with::skip_serializing_none]
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
    pub compiler_flags: Option<String>,
    /// Whether the server is the embedded server of riops.
    pub embedded: bool,
    /// Address of the server.
    pub address: String,
    /// Name of the database.
    pub database: String,
    /// TLS version and cipher suite of the control connection.
    pub encryption: Option<String>,
    /// Connection pooler or proxy between riops and the server.
    pub pooler: Option<String>,
    /// Limits that the operating system sets for the server, if it is on this machine.
    pub limits: Option<ServerLimits>,
    /// File system and device of the measured tables, if the server is on this machine.
    pub storage: Option<Storage>,
    /// Maximum rates of this device, if they were measured before.
    pub disk_limit: Option<DiskLimit>,
    /// The disks of the server, below partitions and logical volumes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<Disk>,
    /// Settings with which the sessions start and that differ from their defaults, and settings that affect every result.
    pub settings: BTreeMap<String, String>,
    /// The defaults of these settings, as far as they have no unit.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub setting_defaults: BTreeMap<String, String>,
    /// The dataset; absent if the workload needs none.
    pub dataset: Option<DatasetRecord>,
}

/// Limits that the operating system sets for the processes of a server.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerLimits {
    /// Processors on which they may run (affinity, cpuset).
    pub cpus: usize,
    /// CPU quota of the cgroup, in processors.
    pub cgroup_cpus: Option<f64>,
    /// Memory limit of the cgroup, in bytes.
    pub cgroup_memory_bytes: Option<u64>,
}

/// The dataset of a run.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DatasetRecord {
    /// Dataset generation id.
    pub id: String,
    /// State of the tables before the run; absent if the run creates its tables, and for YugabyteDB.
    pub condition: Option<ConditionRecord>,
    /// Other sessions that held a lock on the dataset at the start or at the end of the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub other_users: Vec<String>,
    /// Parameters of the dataset.
    #[serde(flatten)]
    pub parameters: DatasetPlan,
}

/// Flavor of a server. Only displayed and stored: what a server can do is asked of its dialect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Flavor(Cow<'static, str>);

impl Flavor {
    /// Creates the flavor that records store under this name.
    pub const fn named(name: &'static str) -> Self {
        Self(Cow::Borrowed(name))
    }
}

impl Default for Flavor {
    /// PostgreSQL, or a compatible database that does not identify itself.
    fn default() -> Self {
        Self::named("postgresql")
    }
}

impl fmt::Display for Flavor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match &*self.0 {
            // Records store these two in lower case.
            "postgresql" => "PostgreSQL",
            "yugabytedb" => "YugabyteDB",
            other => other,
        })
    }
}

/// The state of the tables of a dataset before a run. Values are absent if they are not known.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConditionRecord {
    /// Number of keys whose rows were located, in up to eight of the tables.
    pub sampled_keys: u64,
    /// Correlation of the order of the keys and the physical order of their rows, −1 to 1, from this sample.
    pub order_correlation: Option<f64>,
    /// Share of the sampled keys whose row is in the same block as the row of the next key, 0 to 1.
    pub neighbors_share: Option<f64>,
    /// Size of the tables and their indexes, without free space maps and visibility maps.
    pub bytes: Option<u64>,
    /// Live rows, as estimated by the server.
    pub live_rows: u64,
    /// Dead row versions, as estimated by the server.
    pub dead_rows: u64,
    /// Updated rows since the statistics of the server began.
    pub updated_rows: Option<u64>,
    /// HOT updates among them.
    pub hot_updated_rows: Option<u64>,
    /// Earliest of the last vacuums of the tables, manual or automatic.
    pub vacuumed_at: Option<Timestamp>,
    /// Earliest of the last ANALYZE of the tables: how old the statistics of the planner are.
    pub analyzed_at: Option<Timestamp>,
    /// The same values after the preparation; absent for tables that riops did not prepare.
    pub fresh: Option<FreshCondition>,
}

/// The state of a dataset after its preparation.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct FreshCondition {
    /// Correlation of the order of the keys and the physical order of their rows.
    pub order_correlation: Option<f64>,
    /// Share of the sampled keys whose row is in the same block as the row of the next key.
    pub neighbors_share: Option<f64>,
    /// Size of the tables and their indexes.
    pub bytes: Option<u64>,
}

impl ConditionRecord {
    /// Returns the size divided by the size after the preparation.
    pub fn growth(&self) -> Option<f64> {
        let fresh = self.fresh?.bytes.filter(|&bytes| bytes > 0)?;
        Some(self.bytes? as f64 / fresh as f64)
    }

    /// Returns the share of dead row versions, 0 to 1.
    pub fn dead_share(&self) -> Option<f64> {
        let all = self.live_rows + self.dead_rows;
        (all > 0).then(|| self.dead_rows as f64 / all as f64)
    }

    /// Returns the updates divided by the live rows, and the share of HOT updates.
    pub fn updates_per_row(&self) -> Option<(f64, f64)> {
        let updated = self.updated_rows.filter(|&updated| updated > 0 && self.live_rows > 0)?;
        let hot = self.hot_updated_rows? as f64 / updated as f64;
        Some((updated as f64 / self.live_rows as f64, hot))
    }
}
