//! The test `bulk-insert`: its tables, and the ids that its sessions insert.

use super::OltpDataset;
use crate::server::Dialect;
use crate::workload::tables::{Job, Table};
use crate::workload::values::{INT_OID, Values};
use crate::workload::{fill, statements};
use riops_model::record::Effects;

const CREATE_TABLE: &str = include_str!("../../../sql/oltp/create_bulk_table.sql");
const CONTENTS: &str = include_str!("../../../sql/oltp/bulk_contents.sql");
/// Query for the highest id of a table, or 0.
pub(super) const HIGHEST_ID: &str = include_str!("../../../sql/oltp/highest_id.sql");

/// Returns an empty table.
pub(super) fn table(name: String, dialect: Dialect) -> Table {
    Table {
        create: vec![fill(dialect.sql(CREATE_TABLE), &[("table", &name)])],
        jobs: 0,
        job: Box::new(|_| Job::Sql { sql: String::new(), rows: 0 }),
        frozen_copy: None,
        finish: Vec::new(),
        zeros: Vec::new(),
        rows: 0,
        name,
    }
}

pub(super) fn contents_sql(dataset: &OltpDataset) -> Vec<String> {
    dataset.table_names().map(|table| fill(CONTENTS, &[("table", &table)])).collect()
}

/// Returns the statement with its parameter types.
pub(super) fn insert(table: &str, rows: u32) -> (String, Vec<u32>) {
    statements::insert(table, &[("id", INT_OID), ("k", INT_OID)], rows as usize)
}

/// The ids of a session: consecutive ones in each statement. Like sysbench's threads, each session inserts into a
/// separate table, as far as there are tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ids {
    /// The table, numbered from 0.
    pub(super) table: u32,
    next: i64,
    /// Distance between the first ids of two statements.
    step: i64,
    rows: u32,
}

/// A session among others.
#[derive(Debug, Clone, Copy)]
pub(super) struct Share {
    /// Number of the session, from 0.
    pub(super) session: u32,
    /// Number of all sessions.
    pub(super) sessions: u32,
}

impl Ids {
    /// Returns the ids of one of the sessions, which share `highest.len()` tables with these highest ids.
    pub(super) fn new(highest: &[i64], share: Share, rows: u32) -> Self {
        let Share { session, sessions } = share;
        let tables = u32::try_from(highest.len()).unwrap_or(u32::MAX).max(1);
        let table = session % tables;
        let sharing = (sessions.saturating_sub(table)).div_ceil(tables).max(1);
        let above = highest.get(table as usize).copied().unwrap_or(0);
        Self {
            table,
            next: above + 1 + i64::from(session / tables) * i64::from(rows),
            step: i64::from(sharing) * i64::from(rows),
            rows,
        }
    }

    /// Returns the first id of the next statement.
    pub(super) fn take(&mut self) -> i64 {
        let first = self.next;
        self.next += self.step;
        first
    }

    /// Writes the rows from `first` on, and returns their effects. As in sysbench, `k` is the id.
    pub(super) fn write(&self, first: i64, values: &mut Values<'_>) -> Effects {
        let mut effects = Effects { inserted: self.rows.into(), ..Effects::default() };
        for id in first..first + i64::from(self.rows) {
            let value = i32::try_from(id).unwrap_or(i32::MAX);
            values.int(value);
            values.int(value);
            effects.added += id.unsigned_abs();
        }
        effects
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_insert_different_ids_above_the_existing_ones() {
        let first = |session| {
            let mut ids = Ids::new(&[0, 100], Share { session, sessions: 3 }, 10);
            (ids.table, ids.take(), ids.take())
        };
        // Sessions 0 and 2 share the first table.
        assert_eq!([first(0), first(1), first(2)], [(0, 1, 21), (1, 101, 111), (0, 11, 31)]);
    }

    #[test]
    fn a_statement_has_a_parameter_for_each_value() {
        let (sql, types) = insert("riops.sbtest1", 2);
        assert_eq!(sql, "insert into riops.sbtest1 (id, k) values ($1, $2), ($3, $4)");
        assert_eq!(types, [INT_OID; 4]);
    }
}
