//! Results of one kind of transaction.

use serde::{Deserialize, Serialize};

use super::convert::from_measured;
use super::latency::LatencySummary;
use crate::workload::effects::{self, EffectsByTable};

/// Totals of changes, which can be verified in the database.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Effects {
    /// Inserted rows.
    pub inserted: u64,
    /// Rows of the initial load that were deleted and inserted again.
    pub reinserted: u64,
    /// Deleted rows.
    pub deleted: u64,
    /// Growth of the sum of a column, from increments and from inserted rows.
    pub added: u64,
}

from_measured!(Effects from effects::Effects { inserted, reinserted, deleted, added });

impl Effects {
    /// Returns whether nothing changed.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// Settles the ledger from the record, if the run itself could not report its changes.
impl From<Effects> for effects::Effects {
    fn from(recorded: Effects) -> Self {
        let Effects { inserted, reinserted, deleted, added } = recorded;
        Self { inserted, reinserted, deleted, added }
    }
}

/// Changes of one table, which can be verified in the database.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TableEffects {
    /// Number of the table, from 1.
    pub table: u32,
    /// Inserted rows.
    pub inserted: u64,
    /// Rows of the initial load that were deleted and inserted again.
    pub reinserted: u64,
    /// Deleted rows.
    pub deleted: u64,
    /// Growth of the sum of a column, from increments and from inserted rows.
    pub added: u64,
}

/// Returns the effects of each table for the record.
pub(super) fn by_table(all: &EffectsByTable) -> Vec<TableEffects> {
    let entry = |(table, effects): (u32, effects::Effects)| {
        let effects::Effects { inserted, reinserted, deleted, added } = effects;
        TableEffects { table, inserted, reinserted, deleted, added }
    };
    all.iter().map(entry).collect()
}

/// Returns the effects of each table from a record. Earlier versions recorded only the `total`, which is then
/// not attributed to a table.
#[must_use]
pub fn effects_by_table(recorded: &[TableEffects], total: Effects) -> EffectsByTable {
    let mut all = EffectsByTable::default();
    if recorded.is_empty() {
        all.add_to(effects::UNATTRIBUTED, total.into());
    }
    for &TableEffects { table, inserted, reinserted, deleted, added } in recorded {
        all.add_to(table, effects::Effects { inserted, reinserted, deleted, added });
    }
    all
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the signature that serde requires")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The transactions of one kind.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct OperationRecord {
    /// Number of the kind among all of its stage, from 1; 0 in earlier records.
    #[serde(default)]
    pub number: usize,
    /// Name of the kind.
    pub name: String,
    /// Transactions that ended within the measurement.
    pub transactions: u64,
    /// Rows of these transactions.
    pub rows: u64,
    /// Transactions that were acknowledged in all phases.
    pub acknowledged_transactions: u64,
    /// Rows that were acknowledged in all phases. The database must contain them.
    pub acknowledged_rows: u64,
    /// Rows of transactions whose connection broke before their outcome was known.
    #[serde(default)]
    pub unknown_rows: u64,
    /// Totals of the acknowledged changes, for workloads that count them.
    #[serde(default, skip_serializing_if = "Effects::is_none")]
    pub effects: Effects,
    /// Upper bounds of the changes with an unknown outcome.
    #[serde(default, skip_serializing_if = "Effects::is_none")]
    pub unknown_effects: Effects,
    /// The same acknowledged changes by table.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<TableEffects>,
    /// The same upper bounds by table.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown_tables: Vec<TableEffects>,
    /// Block accesses per transaction, in tables and indexes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks_per_transaction: Option<f64>,
    /// Transactions that failed within the measurement.
    #[serde(default)]
    pub failed: u64,
    /// Transactions with at least one retry, regardless of their outcome.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retried: u64,
    /// Transactions within the measurement whose outcome is unknown.
    #[serde(default)]
    pub unknown: u64,
    /// Starts that were skipped, if the kind of a transaction is chosen before its start.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub skipped: u64,
    /// Response times in microseconds; only with a rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_us: Option<LatencySummary>,
    /// Service times in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_us: Option<LatencySummary>,
    /// Histogram of the service times in nanoseconds: HDR V2, compressed, base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<String>,
}
