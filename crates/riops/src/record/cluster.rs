//! The nodes of a cluster.

use serde::{Deserialize, Serialize};

use super::latency::LatencySummary;

/// The counters of one node of `YugabyteDB`. Values are absent if the node did not respond.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeUse {
    /// CPU use of the tserver, in processors, on average.
    pub cpu_cores: Option<f64>,
    /// Storage read requests per second.
    pub storage_reads_per_s: Option<f64>,
    /// Storage write requests per second.
    pub storage_writes_per_s: Option<f64>,
    /// `RocksDB` seeks per second.
    pub seeks_per_s: Option<f64>,
    /// Hit ratio of the block cache, 0 to 1.
    pub block_cache_hit_share: Option<f64>,
    /// Transaction conflicts per second.
    pub conflicts_per_s: Option<f64>,
}

/// Role of a node.
// Records store the serialized names, so they are independent of the variant names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// Accepts writes.
    #[serde(rename = "primary")]
    Primary,
    /// Read-only: a standby or a read replica.
    #[serde(rename = "replica")]
    Replica,
}

/// One node of the target.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeRecord {
    /// Host and port.
    pub node: String,
    /// Primary or replica.
    pub role: Role,
    /// `cloud.region.zone`, if the cluster reports it.
    pub placement: Option<String>,
    /// Whether the node did not respond at the end.
    #[serde(default)]
    pub down: bool,
    /// The longest time without a successful transaction, for any reason, in seconds; only with several
    /// nodes.
    pub longest_pause_s: Option<f64>,
    /// Sessions connected to the node at the end.
    pub sessions: u64,
    /// Transactions on the node that ended within the measurement.
    pub transactions: u64,
    /// These transactions per second.
    pub transactions_per_s: f64,
    /// Share of all transactions, 0 to 1.
    pub share: f64,
    /// Service times in microseconds.
    pub service_us: Option<LatencySummary>,
    /// Errors within the measurement.
    pub errors: u64,
    /// Retried transactions.
    pub retries: u64,
    /// Transactions that failed.
    pub failed: u64,
    /// Transactions whose outcome is unknown, in all phases.
    pub unknown_commits: u64,
    /// Broken connections that were replaced by a connection to this node.
    pub reconnects: u64,
    /// Outages around errors, by SQLSTATE.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<OutageRecord>,
    /// Counters of the node itself.
    #[serde(flatten)]
    pub usage: Option<NodeUse>,
}

/// A time around errors without a successful transaction on a node.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutageRecord {
    /// SQLSTATE of the errors.
    pub sqlstate: String,
    /// Length in seconds.
    pub without_success_s: f64,
    /// Time during which the rate of the intervals stayed below 90 % of the earlier rate, in seconds.
    pub below_90_percent_s: Option<f64>,
    /// Time from the last success until the rate reached 90 % of the earlier rate again, in seconds; absent
    /// if it did not.
    pub until_90_percent_s: Option<f64>,
}
