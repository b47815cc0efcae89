//! Numbers of scans of tables, as the server counts them: they show the executed plans, not the plans of an EXPLAIN.

use std::collections::BTreeMap;

use crate::server::Connection;
use riops_model::record::TableScans;

const SCANS: &str = include_str!("../../sql/probe/scans.sql");
/// Maximum number of tables in the result, the most scanned first.
const TABLES_MAX: usize = 20;

/// Numbers of sequential scans and of index scans by table.
pub(super) type Scans = BTreeMap<String, (u64, u64)>;

/// Returns the scans of all tables; `None` if the server does not count them.
pub(super) fn read(connection: &mut Connection) -> Option<Scans> {
    let rows = connection.query(SCANS).ok()?;
    let table = |row: Vec<Option<String>>| match <[Option<String>; 3]>::try_from(row) {
        Ok([Some(table), Some(sequential), Some(index)]) => {
            Some((table, (sequential.parse().ok()?, index.parse().ok()?)))
        }
        _ => None,
    };
    rows.into_iter().map(table).collect()
}

/// Returns the scans between two readings.
pub(super) fn between(from: &Scans, to: &Scans) -> Vec<TableScans> {
    let since = |(table, &(sequential, index)): (&String, &(u64, u64))| {
        let (sequential_before, index_before) = from.get(table).copied().unwrap_or_default();
        TableScans {
            table: table.clone(),
            sequential: sequential.saturating_sub(sequential_before),
            index: index.saturating_sub(index_before),
        }
    };
    let mut scans: Vec<_> = to.iter().map(since).collect();
    scans.sort_by_key(|table| std::cmp::Reverse(table.sequential + table.index));
    scans.truncate(TABLES_MAX);
    scans.retain(|table| table.sequential + table.index > 0);
    scans
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_scans_since_the_first_reading_and_sorts_tables_by_scans() {
        let scans = |tables: &[(&str, u64, u64)]| -> Scans {
            tables
                .iter()
                .map(|&(table, sequential, index)| (table.to_owned(), (sequential, index)))
                .collect()
        };
        let from = scans(&[("a", 5, 5), ("b", 1, 0)]);
        let changes = between(&from, &scans(&[("a", 5, 5), ("b", 3, 4), ("new", 0, 9)]));
        let changes: Vec<_> = changes
            .iter()
            .map(|table| (table.table.as_str(), table.sequential, table.index))
            .collect();
        assert_eq!(changes, [("new", 0, 9), ("b", 2, 4)]);
    }
}
