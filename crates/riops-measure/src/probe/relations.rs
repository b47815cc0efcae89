//! The tables that a stage read or changed, with their definitions, scans and changes: an index, a trigger or an option of the
//! storage changes the cost of every statement, also if riops did not create the table.

use std::collections::BTreeMap;

use crate::server::{Connection, Feature};
use riops_model::record::{IndexUse, RelationActivity, RelationRecord};

const ACTIVITY: &str = include_str!("../../sql/probe/activity.sql");
const INDEX_SCANS: &str = include_str!("../../sql/probe/index_scans.sql");
const DEFINITIONS: &str = include_str!("../../sql/probe/definitions.sql");
const INDEXES: &str = include_str!("../../sql/probe/indexes.sql");
/// Maximum number of tables in the result, the most active first.
const TABLES_MAX: usize = 20;
/// The limit of `index_scans.sql`.
const INDEXES_MAX: usize = 10_000;

/// The counters of all tables and indexes since their statistics were reset, by their ids.
#[derive(Debug, Clone, Default)]
pub(super) struct Activity {
    tables: BTreeMap<u32, RelationActivity>,
    /// `None` if the server does not count them, or has more indexes than are read: an index would seem to be unused.
    index_scans: Option<BTreeMap<u32, u64>>,
}

/// Returns the activity of all tables; `None` if the server does not count it.
pub(super) fn activity(connection: &mut Connection) -> Option<Activity> {
    let has_heap = connection.dialect().has(Feature::Heap);
    let mut rows = |sql: &str| -> Option<Vec<Vec<u64>>> {
        let value = |text: Option<String>| text?.parse().ok();
        let row = |row: Vec<Option<String>>| row.into_iter().map(value).collect();
        connection.query(sql).ok()?.into_iter().map(row).collect()
    };
    let id = |id: u64| u32::try_from(id).ok();
    let if_heap = |count: u64| has_heap.then_some(count);
    let table = |row: Vec<u64>| match row[..] {
        [
            table,
            sequential_scans,
            rows_scanned,
            index_scans,
            inserted,
            updated,
            hot_updated,
            deleted,
            vacuums,
            dead_rows,
        ] => {
            let activity = RelationActivity {
                sequential_scans,
                rows_scanned,
                index_scans,
                inserted,
                updated,
                hot_updated: if_heap(hot_updated),
                deleted,
                vacuums: if_heap(vacuums),
                dead_rows: if_heap(dead_rows),
            };
            Some((id(table)?, activity))
        }
        _ => None,
    };
    let index = |row: Vec<u64>| match row[..] {
        [index, scans] => Some((id(index)?, scans)),
        _ => None,
    };
    let tables = rows(ACTIVITY)?.into_iter().map(table).collect::<Option<_>>()?;
    let scans = rows(INDEX_SCANS).filter(|rows| rows.len() < INDEXES_MAX);
    let index_scans = scans.and_then(|rows| rows.into_iter().map(index).collect());
    Some(Activity { tables, index_scans })
}

/// Returns the tables that were active between two readings, with their definitions, scans and changes.
pub(super) fn touched(
    connection: &mut Connection,
    from: &Activity,
    to: &Activity,
) -> Option<Vec<RelationRecord>> {
    let active = active(from, to);
    if active.is_empty() {
        return None;
    }
    let ids: Vec<String> = active.iter().map(|(id, _)| id.to_string()).collect();
    let ids = ids.join(",");
    let rows = connection.query(&DEFINITIONS.replace("{relids}", &ids)).ok()?;
    let mut relations: Vec<RelationRecord> = Vec::new();
    for row in rows {
        let [Some(name), Some(part), Some(definition), bytes, index_bytes, toast_bytes, id] =
            <[Option<String>; 7]>::try_from(row).ok()?
        else {
            continue;
        };
        if relations.last().is_none_or(|last| last.name != name) {
            let size = |text: Option<String>| text.and_then(|text| text.parse().ok());
            let id = id.and_then(|id| id.parse::<u32>().ok());
            let activity = active.iter().find(|(active, _)| Some(*active) == id);
            relations.push(RelationRecord {
                name,
                bytes: size(bytes).unwrap_or_default(),
                index_bytes: size(index_bytes).unwrap_or_default(),
                toast_bytes: size(toast_bytes),
                parts: BTreeMap::new(),
                activity: activity.map(|(_, activity)| *activity),
                indexes: Vec::new(),
            });
        }
        if let Some(last) = relations.last_mut() {
            last.parts.insert(part, definition);
        }
    }
    let (Some(before), Some(after)) = (&from.index_scans, &to.index_scans) else {
        return Some(relations);
    };
    for row in connection.query(&INDEXES.replace("{relids}", &ids)).ok()? {
        let [Some(table), Some(name), Some(id), Some(bytes)] = row.as_slice() else { continue };
        let (Ok(id), Ok(bytes)) = (id.parse(), bytes.parse()) else { continue };
        let scans = |counted: &BTreeMap<u32, u64>| counted.get(&id).copied().unwrap_or(0);
        let scans = scans(after).saturating_sub(scans(before));
        if let Some(relation) = relations.iter_mut().find(|relation| relation.name == *table) {
            relation.indexes.push(IndexUse { name: name.clone(), bytes, scans });
        }
    }
    Some(relations)
}

/// The tables that were scanned or changed between two readings, the most active first, with their scans and changes.
fn active(from: &Activity, to: &Activity) -> Vec<(u32, RelationActivity)> {
    let since = |(id, now): (&u32, &RelationActivity)| {
        let before = from.tables.get(id).copied().unwrap_or_default();
        let grown = |pick: fn(&RelationActivity) -> u64| pick(now).saturating_sub(pick(&before));
        let if_counted = |pick: fn(&RelationActivity) -> Option<u64>| {
            Some(pick(now)?.saturating_sub(pick(&before).unwrap_or_default()))
        };
        let activity = RelationActivity {
            sequential_scans: grown(|table| table.sequential_scans),
            rows_scanned: grown(|table| table.rows_scanned),
            index_scans: grown(|table| table.index_scans),
            inserted: grown(|table| table.inserted),
            updated: grown(|table| table.updated),
            hot_updated: if_counted(|table| table.hot_updated),
            deleted: grown(|table| table.deleted),
            vacuums: if_counted(|table| table.vacuums),
            dead_rows: now.dead_rows,
        };
        (*id, activity)
    };
    let amount = |activity: &RelationActivity| {
        let scans = activity.sequential_scans + activity.index_scans;
        scans + activity.inserted + activity.updated + activity.deleted
    };
    let mut active: Vec<_> = to.tables.iter().map(since).collect();
    active.retain(|(_, activity)| amount(activity) > 0);
    active.sort_by_key(|(id, activity)| (std::cmp::Reverse(amount(activity)), *id));
    active.truncate(TABLES_MAX);
    active
}

#[cfg(test)]
mod tests {
    use super::*;

    fn activity(scans: impl Iterator<Item = (u32, u64)>) -> Activity {
        let table = |(id, index_scans)| {
            (
                id,
                RelationActivity { index_scans, dead_rows: Some(7), ..RelationActivity::default() },
            )
        };
        Activity { tables: scans.map(table).collect(), ..Activity::default() }
    }

    #[test]
    fn tables_without_activity_since_the_first_reading_are_left_out() {
        let from = activity([(1, 5), (2, 7)].into_iter());
        let to = activity([(1, 5), (2, 8), (3, 4)].into_iter());
        let grown: Vec<_> = active(&from, &to)
            .into_iter()
            .map(|(id, table)| (id, table.index_scans, table.dead_rows))
            .collect();
        assert_eq!(grown, [(3, 4, Some(7)), (2, 1, Some(7))]);
        let many = activity((0..100).map(|id| (id, u64::from(id) + 1)));
        assert_eq!(active(&Activity::default(), &many).len(), TABLES_MAX);
    }
}
