//! What the database counted during a stage.

use crate::sections::each;
use crate::table::{Cell, Table, number, word};
use riops_model::record::{DatabaseCounters, DatabaseUse, Record};
use riops_model::units::format::{bytes_text, count, rate};

/// A counter of the database.
type Counter = (&'static str, fn(&DatabaseUse) -> Option<String>);

/// The counters of the database, in the names of its views.
const COUNTERS: [Counter; 27] = [
    ("table blocks found in shared buffers", |each| Some(count(each.blocks?.heap_blks_hit))),
    ("table blocks read", |each| Some(count(each.blocks?.heap_blks_read))),
    ("index blocks found in shared buffers", |each| Some(count(each.blocks?.idx_blks_hit))),
    ("index blocks read", |each| Some(count(each.blocks?.idx_blks_read))),
    ("blocks per read transaction", |each| Some(rate(each.blocks_per_read?))),
    ("blocks of the database found in shared buffers", |each| {
        since(each, |counters| counters.blks_hit).map(count)
    }),
    ("blocks of the database read", |each| since(each, |found| found.blks_read).map(count)),
    ("transactions committed", |each| since(each, |found| found.xact_commit).map(count)),
    ("transactions rolled back", |each| since(each, |found| found.xact_rollback).map(count)),
    ("rows returned by scans", |each| since(each, |found| found.tup_returned).map(count)),
    ("rows fetched by index scans", |each| since(each, |found| found.tup_fetched).map(count)),
    ("deadlocks", |each| since(each, |found| found.deadlocks).map(count)),
    ("temporary files", |each| since(each, |found| found.temp_files).map(count)),
    ("size of temporary files", |each| since(each, |found| found.temp_bytes).map(bytes_text)),
    ("rows updated", |each| Some(count(each.row_versions?.updated))),
    ("HOT updates among them", |each| Some(count(each.row_versions?.hot_updated))),
    ("dead row versions at the end", |each| Some(count(each.row_versions?.dead))),
    ("vacuums", |each| Some(count(each.row_versions?.vacuums))),
    ("WAL records", |each| Some(count(each.wal?.records))),
    ("WAL full page images", |each| Some(count(each.wal?.full_page_images))),
    ("WAL size", |each| Some(bytes_text(each.wal?.bytes))),
    ("scheduled checkpoints", |each| Some(count(each.checkpoints?.timed))),
    ("requested checkpoints", |each| Some(count(each.checkpoints?.requested))),
    ("buffers written by checkpoints", |each| Some(count(each.checkpoints?.buffers_written))),
    ("evictions by client backends", |each| Some(count(each.client_io?.evictions))),
    ("size of the tables after the stage", |each| Some(bytes_text(each.sizes_after?.table_bytes))),
    ("size of the indexes after the stage", |each| Some(bytes_text(each.sizes_after?.index_bytes))),
];

/// Counters of the stage.
fn since(usage: &DatabaseUse, pick: fn(&DatabaseCounters) -> u64) -> Option<u64> {
    Some(pick(usage.after.as_ref()?).saturating_sub(pick(usage.before.as_ref()?)))
}

/// Counters as rows, stages as columns.
pub(crate) fn table(record: &Record) -> Table {
    let stages: Vec<_> = each(record, |stage| &stage.database).collect();
    let rows = COUNTERS.iter().filter_map(|(name, pick)| {
        let found: Vec<_> = stages.iter().map(|(_, usage)| pick(usage)).collect();
        let is_counted = found.iter().any(Option::is_some);
        let cells = found.into_iter().map(Cell::from);
        is_counted.then(|| std::iter::once((*name).into()).chain(cells).collect())
    });
    let is_single = stages.len() == 1;
    let columns =
        stages.iter().map(|(stage, _)| number(if is_single { "value" } else { &stage.name }));
    let columns = std::iter::once(word("counter")).chain(columns);
    Table::new("counters of the database", columns, rows)
        .with_note("of the whole stage, including warm-up and drain")
}
