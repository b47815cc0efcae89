//! The state of a dataset before a run: physical order, size, dead rows.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

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
    #[must_use]
    pub fn growth(&self) -> Option<f64> {
        let fresh = self.fresh?.bytes.filter(|&bytes| bytes > 0)?;
        Some(self.bytes? as f64 / fresh as f64)
    }

    /// Returns the share of dead row versions, 0 to 1.
    #[must_use]
    pub fn dead_share(&self) -> Option<f64> {
        let all = self.live_rows + self.dead_rows;
        (all > 0).then(|| self.dead_rows as f64 / all as f64)
    }

    /// Returns the updates divided by the live rows, and the share of HOT updates.
    #[must_use]
    pub fn updates_per_row(&self) -> Option<(f64, f64)> {
        let updated = self.updated_rows.filter(|&updated| updated > 0 && self.live_rows > 0)?;
        let hot = self.hot_updated_rows? as f64 / updated as f64;
        Some((updated as f64 / self.live_rows as f64, hot))
    }
}
