//! Access paths, compared with the promised ones.

use serde::{Deserialize, Serialize};

use super::convert::from_measured;
use crate::workload::access;

/// Requests to the storage nodes of `YugabyteDB` by one execution of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StorageRequests {
    /// Read requests.
    pub reads: u64,
    /// Rows that these requests scanned, if the server counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows_scanned: Option<u64>,
    /// Rows of the statement.
    pub rows: u64,
}

from_measured!(StorageRequests from access::StorageRequests { reads, rows_scanned, rows });

/// The access path of a statement at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessRecord {
    /// Name of the prepared statement.
    pub statement: String,
    /// The stage, if there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    /// `before`, `middle` or `after`.
    pub moment: String,
    /// The promised access path.
    pub expected: String,
    /// The plan, one node a line.
    pub found: String,
    /// Whether the plan has the promised access path.
    pub held: bool,
    /// Number of sessions with this plan.
    pub sessions: u32,
    /// Storage requests of the EXPLAIN itself (`YugabyteDB`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<StorageRequests>,
}
