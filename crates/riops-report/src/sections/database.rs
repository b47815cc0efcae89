//! What the database counted during a stage.

use crate::sections::items_of_stages;
use crate::table::{Cell, Table, number_column, text_column};
use riops_model::record::{DatabaseCounters, DatabaseUse, Record};
use riops_model::units::format::{bytes_text, count, duration_us, rate};

/// A counter of the database.
type Counter = (&'static str, fn(&DatabaseUse) -> Option<String>);

/// The counters of the database, in the names of its views.
const COUNTERS: [Counter; 31] = [
    ("table blocks found in shared buffers", |usage| Some(count(usage.blocks?.heap_blks_hit))),
    ("table blocks read", |usage| Some(count(usage.blocks?.heap_blks_read))),
    ("index blocks found in shared buffers", |usage| Some(count(usage.blocks?.idx_blks_hit))),
    ("index blocks read", |usage| Some(count(usage.blocks?.idx_blks_read))),
    ("blocks per read transaction", |usage| Some(rate(usage.blocks_per_read?))),
    ("blocks of the database found in shared buffers", |usage| {
        since(usage, |counters| counters.blks_hit).map(count)
    }),
    ("blocks of the database read", |usage| since(usage, |counters| counters.blks_read).map(count)),
    ("transactions committed", |usage| since(usage, |counters| counters.xact_commit).map(count)),
    ("transactions rolled back", |usage| {
        since(usage, |counters| counters.xact_rollback).map(count)
    }),
    ("rows returned by scans", |usage| since(usage, |counters| counters.tup_returned).map(count)),
    ("rows fetched by index scans", |usage| {
        since(usage, |counters| counters.tup_fetched).map(count)
    }),
    ("deadlocks", |usage| since(usage, |counters| counters.deadlocks).map(count)),
    ("temporary files", |usage| since(usage, |counters| counters.temp_files).map(count)),
    ("size of temporary files", |usage| {
        since(usage, |counters| counters.temp_bytes).map(bytes_text)
    }),
    ("rows updated", |usage| Some(count(usage.row_versions?.updated))),
    ("HOT updates among them", |usage| Some(count(usage.row_versions?.hot_updated))),
    ("dead row versions at the end", |usage| Some(count(usage.row_versions?.dead))),
    ("vacuums", |usage| Some(count(usage.row_versions?.vacuums))),
    ("WAL records", |usage| Some(count(usage.wal?.records))),
    ("WAL full page images", |usage| Some(count(usage.wal?.full_page_images))),
    ("size of the full page images", |usage| Some(bytes_text(usage.wal?.full_page_bytes?))),
    ("WAL size", |usage| Some(bytes_text(usage.wal?.bytes))),
    ("waits for locks longer than deadlock_timeout", |usage| Some(count(usage.locks?.long_waits))),
    ("time of these waits", |usage| Some(duration_us(usage.locks?.long_waits_ms as f64 * 1e3))),
    ("table locks beyond the fast path", |usage| Some(count(usage.locks?.beyond_fast_path))),
    ("scheduled checkpoints", |usage| Some(count(usage.checkpoints?.timed))),
    ("requested checkpoints", |usage| Some(count(usage.checkpoints?.requested))),
    ("buffers written by checkpoints", |usage| Some(count(usage.checkpoints?.buffers_written))),
    ("evictions by client backends", |usage| Some(count(usage.client_io?.evictions))),
    ("size of the tables after the stage", |usage| {
        Some(bytes_text(usage.sizes_after?.table_bytes))
    }),
    ("size of the indexes after the stage", |usage| {
        Some(bytes_text(usage.sizes_after?.index_bytes))
    }),
];

/// Counters of the stage.
fn since(usage: &DatabaseUse, pick: fn(&DatabaseCounters) -> u64) -> Option<u64> {
    Some(pick(usage.after.as_ref()?).saturating_sub(pick(usage.before.as_ref()?)))
}

/// Counters as rows, stages as columns.
pub(crate) fn table(record: &Record) -> Table {
    let stages: Vec<_> = items_of_stages(record, |stage| &stage.database).collect();
    let rows = COUNTERS.iter().filter_map(|(name, pick)| {
        let values: Vec<_> = stages.iter().map(|(_, usage)| pick(usage)).collect();
        let is_counted = values.iter().any(Option::is_some);
        let cells = values.into_iter().map(Cell::from);
        is_counted.then(|| std::iter::once((*name).into()).chain(cells).collect())
    });
    let is_single = stages.len() == 1;
    let columns = stages
        .iter()
        .map(|(stage, _)| number_column(if is_single { "value" } else { &stage.name }));
    let columns = std::iter::once(text_column("counter")).chain(columns);
    Table::new("counters of the database", columns, rows)
        .with_note("of the whole stage, including warm-up and drain")
}
