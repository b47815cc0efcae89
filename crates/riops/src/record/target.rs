//! The database under test and its dataset.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::device::{DiskLimit, Storage};
use crate::plan::DatasetPlan;
use crate::server::Flavor;

/// The database under test.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TargetRecord {
    /// Kind of server.
    // The enum of `server` itself: a plain enum whose stored spelling is pinned variant by variant.
    #[serde(rename = "flavour")]
    pub flavor: Flavor,
    /// `server_version`.
    pub server_version: String,
    /// `version()`: with compiler and platform.
    pub version_text: String,
    /// Compiler flags, if the role may see them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compiler_flags: Option<String>,
    /// Whether it is the embedded server of riops.
    pub embedded: bool,
    /// Address to which riops connected.
    pub address: String,
    /// Name of the database.
    pub database: String,
    /// TLS version and cipher suite of the control connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encryption: Option<String>,
    /// Connection pooler or proxy between riops and the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pooler: Option<String>,
    /// File system and device of the server's data, if they are on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<Storage>,
    /// What this device can deliver, if it was measured before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_limit: Option<DiskLimit>,
    /// Settings that differ from their defaults, and those that every result depends on.
    pub settings: BTreeMap<String, String>,
    /// The dataset; absent if the workload needs none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dataset: Option<DatasetRecord>,
}

/// The dataset of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DatasetRecord {
    /// Dataset generation id.
    pub id: String,
    /// Its parameters.
    #[serde(flatten)]
    pub parameters: DatasetPlan,
}
