//! Effects of changes, as numbers that can be queried from the database, by table. Pure, and without
//! allocation in steady state.

use std::collections::BTreeMap;

use riops_model::record::{Effects, TableEffects};
use serde::{Deserialize, Serialize};

/// Number of tables that one transaction may change: each of the three kinds of changes of sysbench picks its
/// own, and one more entry for changes of further tables, which are not attributed to a table.
const TABLES_MAX: usize = 4;
/// Table number of changes that are not attributed to a table.
pub const UNATTRIBUTED: u32 = 0;

/// Effects of one transaction on each of its tables. Tables are numbered from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct TransactionEffects {
    entries: [(u32, Effects); TABLES_MAX],
    /// Number of entries in use. The others are zero, and their memory is not touched without changes.
    used: u32,
}

impl Default for TransactionEffects {
    // A derived implementation is not inlined in each transaction.
    #[inline]
    fn default() -> Self {
        Self { entries: [(UNATTRIBUTED, Effects::default()); TABLES_MAX], used: 0 }
    }
}

impl TransactionEffects {
    /// Returns the effects on one table.
    #[inline]
    pub fn on_table(table: u32, effects: Effects) -> Self {
        let mut all = Self::default();
        all.add(table, effects);
        all
    }

    /// Adds effects on a table.
    #[inline]
    pub fn add(&mut self, table: u32, effects: Effects) {
        if effects.is_none() {
            return;
        }
        let used = self.used as usize;
        if let Some(entry) = self.entries.iter_mut().take(used).find(|entry| entry.0 == table) {
            entry.1 = entry.1.and(effects);
        } else if let Some(entry) = self.entries.get_mut(used) {
            *entry = (table, effects);
            self.used += 1;
        } else {
            // The last entry then contains the changes of all further tables.
            let [.., last] = &mut self.entries;
            *last = (UNATTRIBUTED, last.1.and(effects));
        }
    }

    /// Removes all effects.
    #[inline]
    pub fn clear(&mut self) {
        if self.used > 0 {
            *self = Self::default();
        }
    }

    /// Becomes a copy of `other`.
    pub fn copy_from(&mut self, other: &Self) {
        if self.used > 0 || other.used > 0 {
            *self = *other;
        }
    }

    /// Returns the sum of both.
    pub fn and(mut self, other: Self) -> Self {
        for (table, effects) in other.iter() {
            self.add(table, effects);
        }
        self
    }

    /// Returns whether nothing changed.
    pub fn is_none(&self) -> bool {
        self.used == 0
    }

    /// Returns the changed tables with their effects.
    pub fn iter(&self) -> impl Iterator<Item = (u32, Effects)> + '_ {
        self.entries.iter().copied().take(self.used as usize)
    }

    /// Returns the effects on all tables together.
    pub fn total(&self) -> Effects {
        self.iter().map(|(_, effects)| effects).fold(Effects::default(), Effects::and)
    }
}

/// Effects of many transactions, by the number of the table, from 1. Number 0 stands for changes that are not
/// attributed to a table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "BTreeMap<u32, Effects>", into = "BTreeMap<u32, Effects>")]
pub struct EffectsByTable(Vec<Effects>);

impl EffectsByTable {
    /// Adds the effects of a transaction.
    #[inline]
    pub fn add(&mut self, effects: &TransactionEffects) {
        for (table, effects) in effects.iter() {
            self.add_to(table, effects);
        }
    }

    /// Adds effects on one table.
    #[inline]
    pub fn add_to(&mut self, table: u32, effects: Effects) {
        // A registry or a record with a damaged entry must not allocate without bound.
        let table = if table > TABLE_NUMBER_MAX { UNATTRIBUTED } else { table };
        self.replace(table, |entry| entry.and(effects));
    }

    /// Removes the effects of a transaction.
    pub fn remove(&mut self, effects: &TransactionEffects) {
        for (table, effects) in effects.iter() {
            self.replace(table, |entry| entry.without(effects));
        }
    }

    /// Adds all effects of `other`.
    pub fn merge(&mut self, other: &Self) {
        for (table, effects) in other.iter() {
            self.add_to(table, effects);
        }
    }

    /// Replaces the effects on a table.
    #[inline]
    fn replace(&mut self, table: u32, change: impl Fn(Effects) -> Effects) {
        let table = table as usize;
        if self.0.len() <= table {
            self.0.resize(table + 1, Effects::default());
        }
        if let Some(entry) = self.0.get_mut(table) {
            *entry = change(*entry);
        }
    }

    /// Returns the effects on a table.
    pub fn on_table(&self, table: u32) -> Effects {
        self.0.get(table as usize).copied().unwrap_or_default()
    }

    /// Returns the changed tables with their effects.
    pub fn iter(&self) -> impl Iterator<Item = (u32, Effects)> + '_ {
        (0..).zip(self.0.iter().copied()).filter(|(_, effects)| !effects.is_none())
    }

    /// Returns whether nothing changed.
    pub fn is_none(&self) -> bool {
        self.iter().next().is_none()
    }

    /// Returns the effects on all tables together.
    pub fn total(&self) -> Effects {
        self.iter().map(|(_, effects)| effects).fold(Effects::default(), Effects::and)
    }

    /// Returns the effects of each table for the record.
    pub fn recorded(&self) -> Vec<TableEffects> {
        self.iter().map(|(table, effects)| TableEffects { table, effects }).collect()
    }

    /// Returns the effects of each table from a record. Earlier versions recorded only the `total`, which is then not
    /// attributed to a table.
    pub fn from_record(recorded: &[TableEffects], total: Effects) -> Self {
        let mut all = Self::default();
        if recorded.is_empty() {
            all.add_to(UNATTRIBUTED, total);
        }
        for entry in recorded {
            all.add_to(entry.table, entry.effects);
        }
        all
    }
}

impl From<BTreeMap<u32, Effects>> for EffectsByTable {
    fn from(map: BTreeMap<u32, Effects>) -> Self {
        let mut all = Self::default();
        for (table, effects) in map {
            all.add_to(table, effects);
        }
        all
    }
}

/// Largest table number that is read from a registry or a record, far above any dataset.
const TABLE_NUMBER_MAX: u32 = 1_000_000;

impl From<EffectsByTable> for BTreeMap<u32, Effects> {
    fn from(all: EffectsByTable) -> Self {
        all.iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(added: u64) -> Effects {
        Effects { added, ..Effects::default() }
    }

    #[test]
    fn adds_the_effects_of_each_table_separately() {
        let mut effects = TransactionEffects::on_table(3, added(5));
        effects.add(1, added(2));
        effects.add(3, added(1));
        assert_eq!(effects.iter().collect::<Vec<_>>(), [(3, added(6)), (1, added(2))]);
        let mut all = EffectsByTable::default();
        all.add(&effects);
        all.add(&TransactionEffects::on_table(1, added(10)));
        assert_eq!(
            (all.on_table(1), all.on_table(2), all.on_table(3)),
            (added(12), added(0), added(6))
        );
        assert_eq!(all.total(), added(18));
        all.remove(&effects);
        assert_eq!((all.on_table(1), all.on_table(3)), (added(10), added(0)));
        let json = serde_json::to_string(&all).unwrap();
        assert_eq!(json, r#"{"1":{"inserted":0,"reinserted":0,"deleted":0,"added":10}}"#);
        let read: EffectsByTable = serde_json::from_str(&json).unwrap();
        assert_eq!(read.total(), all.total());
    }

    #[test]
    fn attributes_no_change_to_a_wrong_table() {
        let mut effects = TransactionEffects::default();
        for table in 1..=6 {
            effects.add(table, added(1));
        }
        effects.add(2, added(1));
        let expected = [(1, added(1)), (2, added(2)), (3, added(1)), (UNATTRIBUTED, added(3))];
        assert_eq!(effects.iter().collect::<Vec<_>>(), expected);
        assert_eq!(effects.total(), added(7));
    }
}
