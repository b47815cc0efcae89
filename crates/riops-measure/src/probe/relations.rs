//! The tables that a stage read or changed, and what defines them: an index, a trigger or an option of the storage changes the
//! cost of every statement, also if riops did not create the table.

use std::collections::BTreeMap;

use crate::server::Connection;
use riops_model::record::RelationRecord;

const ACTIVITY: &str = include_str!("../../sql/probe/activity.sql");
const DEFINITIONS: &str = include_str!("../../sql/probe/definitions.sql");
/// Maximum number of tables in the result, the most active first.
const TABLES_MAX: usize = 20;

/// Scans and changed rows of each table since its statistics were reset, by the id of the table.
pub(super) type Activity = BTreeMap<u32, u64>;

/// Returns the activity of all tables; `None` if the server does not count it.
pub(super) fn activity(connection: &mut Connection) -> Option<Activity> {
    let rows = connection.query(ACTIVITY).ok()?;
    let table = |row: Vec<Option<String>>| match row.as_slice() {
        [Some(id), Some(activity)] => Some((id.parse().ok()?, activity.parse().ok()?)),
        _ => None,
    };
    rows.into_iter().map(table).collect()
}

/// Returns what defines the tables that were active between two readings.
pub(super) fn touched(
    connection: &mut Connection,
    from: &Activity,
    to: &Activity,
) -> Option<Vec<RelationRecord>> {
    let ids: Vec<String> = active(from, to).iter().map(u32::to_string).collect();
    if ids.is_empty() {
        return None;
    }
    let rows = connection.query(&DEFINITIONS.replace("{relids}", &ids.join(","))).ok()?;
    let mut relations: Vec<RelationRecord> = Vec::new();
    for row in rows {
        let [Some(name), Some(part), Some(definition), bytes, index_bytes] =
            <[Option<String>; 5]>::try_from(row).ok()?
        else {
            continue;
        };
        if relations.last().is_none_or(|last| last.name != name) {
            let size = |text: Option<String>| text.and_then(|text| text.parse().ok());
            relations.push(RelationRecord {
                name,
                bytes: size(bytes).unwrap_or_default(),
                index_bytes: size(index_bytes).unwrap_or_default(),
                parts: BTreeMap::new(),
            });
        }
        if let Some(last) = relations.last_mut() {
            last.parts.insert(part, definition);
        }
    }
    Some(relations)
}

/// The tables whose activity grew, the most active first.
fn active(from: &Activity, to: &Activity) -> Vec<u32> {
    let since = |(id, now): (&u32, &u64)| {
        let before = from.get(id).copied().unwrap_or_default();
        (now.saturating_sub(before), *id)
    };
    let mut active: Vec<_> = to.iter().map(since).filter(|(grown, _)| *grown > 0).collect();
    active.sort_by_key(|&(grown, id)| (std::cmp::Reverse(grown), id));
    active.into_iter().take(TABLES_MAX).map(|(_, id)| id).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_without_activity_since_the_first_reading_are_left_out() {
        let from = Activity::from([(1, 5), (2, 7)]);
        let to = Activity::from([(1, 5), (2, 8), (3, 4)]);
        assert_eq!(active(&from, &to), [3, 2]);
        let many: Activity = (0..100).map(|id| (id, u64::from(id) + 1)).collect();
        assert_eq!(active(&Activity::new(), &many).len(), TABLES_MAX);
    }
}
