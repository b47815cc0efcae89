//! The tables that a stage read or changed: sizes, scans, changed rows, and the use of their indexes.

use crate::document::Document;
use crate::sections::{items_of_stages, stage_name};
use crate::table::{Table, number_column, text_column};
use riops_model::record::{IndexUse, Record, RelationRecord, StageRecord};
use riops_model::units::format::{bytes_each, count, percent};

/// Tables that a text names.
const NAMED_MAX: usize = 5;

/// The tables with their scans and changes, for a text.
pub(crate) fn tables(document: &mut Document, stage: &StageRecord) {
    document.lines("tables", relations(stage).iter().take(NAMED_MAX).filter_map(text));
}

fn relations(stage: &StageRecord) -> &[RelationRecord] {
    stage.database.as_ref().map_or(&[], |database| &database.relations)
}

/// `public.t: 26.0 MB, indexes 12.0 MB, 2,000 index scans, 1,000 updated, 30 dead, HOT 97%, index t_n not used`.
fn text(relation: &RelationRecord) -> Option<String> {
    let activity = relation.activity.as_ref()?;
    let toast = relation.toast_bytes.filter(|bytes| *bytes > 0);
    let mut parts = vec![bytes_each(relation.bytes as f64)];
    parts.extend(toast.map(|bytes| format!("TOAST {} of it", bytes_each(bytes as f64))));
    if relation.index_bytes > 0 {
        parts.push(format!("indexes {}", bytes_each(relation.index_bytes as f64)));
    }
    let mut add = |amount: u64, what: &str| {
        if amount > 0 {
            parts.push(format!("{} {what}", count(amount)));
        }
    };
    add(activity.index_scans, "index scans");
    add(activity.sequential_scans, "sequential scans");
    add(activity.inserted, "rows inserted");
    add(activity.updated, "updated");
    add(activity.deleted, "deleted");
    add(activity.dead_rows.unwrap_or_default(), "dead");
    add(activity.vacuums.unwrap_or_default(), "vacuums");
    if let Some(share) = hot_share(relation) {
        parts.push(format!("HOT {}", percent(share)));
    }
    // An index costs time with each change.
    if activity.inserted + activity.updated + activity.deleted > 0 {
        let unused = relation.indexes.iter().filter(|index| is_unused(relation, index));
        parts.extend(unused.map(|index| format!("index {} not used", index.name)));
    }
    Some(format!("{}: {}", relation.name, parts.join(", ")))
}

/// Whether an index was not scanned, and checks no constraint: unique and exclusion constraints use their indexes without a scan.
fn is_unused(relation: &RelationRecord, IndexUse { name, scans, .. }: &IndexUse) -> bool {
    let definition = relation.parts.get(&format!("index {name}"));
    let is_unique = definition.is_none_or(|definition| definition.starts_with("UNIQUE "));
    *scans == 0 && !is_unique && !relation.parts.contains_key(&format!("constraint {name}"))
}

/// The share of the updates that were HOT, 0 to 1.
fn hot_share(relation: &RelationRecord) -> Option<f64> {
    let activity = relation.activity.as_ref()?;
    let hot_updated = activity.hot_updated.filter(|_| activity.updated > 0)?;
    Some(hot_updated as f64 / activity.updated as f64)
}

/// All tables of all stages.
pub(crate) fn table(record: &Record) -> Table {
    let rows = items_of_stages(record, relations);
    let rows = rows.filter_map(|(stage, relation)| Some((stage, relation, relation.activity?)));
    Table::from_items("tables", rows, |(stage, relation, activity)| {
        [
            (text_column("stage"), stage_name(record, stage).into()),
            (text_column("table"), relation.name.clone().into()),
            (number_column("size"), bytes_each(relation.bytes as f64).into()),
            (number_column("TOAST"), relation.toast_bytes.map(|bytes| bytes_each(bytes as f64)).into()),
            (number_column("sequential scans"), count(activity.sequential_scans).into()),
            (number_column("rows scanned"), count(activity.rows_scanned).into()),
            (number_column("index scans"), count(activity.index_scans).into()),
            (number_column("inserted"), count(activity.inserted).into()),
            (number_column("updated"), count(activity.updated).into()),
            (number_column("HOT"), hot_share(relation).map(percent).into()),
            (number_column("deleted"), count(activity.deleted).into()),
            (number_column("dead rows"), activity.dead_rows.map(count).into()),
            (number_column("vacuums"), activity.vacuums.map(count).into()),
        ]
    })
    .with_note("of all sessions of the server over the whole stage, with warm-up and drain; sizes and dead rows at its end")
}

/// All indexes of these tables.
pub(crate) fn indexes(record: &Record) -> Table {
    let rows = items_of_stages(record, relations).flat_map(|(stage, relation)| {
        relation.indexes.iter().map(move |index| (stage, relation, index))
    });
    Table::from_items("indexes", rows, |(stage, relation, index)| {
        let IndexUse { name, bytes, scans } = index;
        let definition = relation.parts.get(&format!("index {name}"));
        [
            (text_column("stage"), stage_name(record, stage).into()),
            (text_column("table"), relation.name.clone().into()),
            (text_column("index"), name.clone().into()),
            (text_column("definition"), definition.cloned().into()),
            (number_column("size"), bytes_each(*bytes as f64).into()),
            (number_column("scans"), count(*scans).into()),
        ]
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example_record;
    use riops_model::record::{DatabaseUse, RelationActivity};

    #[test]
    fn a_table_is_told_with_its_updates_and_its_unused_index() {
        let mut record = example_record();
        let index = |name: &str, scans| IndexUse { name: name.to_owned(), bytes: 5_000_000, scans };
        let relation = RelationRecord {
            name: "public.t".to_owned(),
            bytes: 26_000_000,
            index_bytes: 10_000_000,
            activity: Some(RelationActivity {
                index_scans: 2_000,
                updated: 1_000,
                hot_updated: Some(970),
                dead_rows: Some(30),
                ..RelationActivity::default()
            }),
            indexes: vec![index("t_pkey", 2_000), index("t_key", 0), index("t_n", 0)],
            parts: [
                ("t_pkey", "UNIQUE btree (id)"),
                ("t_key", "UNIQUE btree (k)"),
                ("t_n", "btree (n)"),
            ]
            .map(|(name, definition)| (format!("index {name}"), definition.to_owned()))
            .into(),
            ..RelationRecord::default()
        };
        let relations = vec![relation];
        record.stages[0].database = Some(DatabaseUse { relations, ..DatabaseUse::default() });
        let facts = crate::document::facts(|document| tables(document, &record.stages[0]));
        let text = "public.t: 26.0 MB, indexes 10.0 MB, 2,000 index scans, 1,000 updated, 30 dead, HOT 97%, index t_n not used";
        assert_eq!((facts[0].label.as_str(), &*facts[0].texts), ("tables", &[text.to_owned()][..]));
        let table = table(&record);
        let hot = table.columns.iter().position(|column| column.title == "HOT").unwrap();
        assert_eq!(table.rows[0][hot].text(), "97%");
        let scans: Vec<_> =
            indexes(&record).rows.iter().map(|row| row.last().unwrap().text().to_owned()).collect();
        assert_eq!(scans, ["2,000", "0", "0"]);
    }
}
