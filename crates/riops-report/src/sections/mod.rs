//! Parts of the closing text that every workload shares.

pub(super) mod agents;
pub(super) mod bottleneck;
pub(super) mod condition;
pub(super) mod cost;
pub(super) mod database;
pub(super) mod failures;
pub(super) mod mix;
pub(super) mod nodes;
pub(super) mod operations;
pub(super) mod profile;
pub(super) mod proof;
pub(super) mod queries;
pub(super) mod sessions;
pub(super) mod sources;
pub(super) mod statements;
pub(super) mod steadiness;
pub(super) mod tables;
pub(super) mod time;
pub(super) mod undecided;
pub(super) mod waits;
pub(super) mod why;
pub(super) mod window;

use crate::table::Cell;
use riops_model::record::{Record, StageRecord};
use riops_model::units::format::duration_us;

/// The name of a stage, if the run has several.
pub(super) fn stage_name<'a>(record: &Record, stage: &'a StageRecord) -> &'a str {
    if record.stages.len() > 1 { &stage.name } else { "" }
}

/// The same before a text: `load, copy: `.
pub(super) fn stage_prefix(record: &Record, stage: &StageRecord) -> String {
    if record.stages.len() > 1 { format!("{}: ", stage.name) } else { String::new() }
}

/// The items of all stages, each with its stage.
fn items_of_stages<'a, I: IntoIterator>(
    record: &'a Record,
    items: impl Fn(&'a StageRecord) -> I,
) -> impl Iterator<Item = (&'a StageRecord, I::Item)> {
    let of_stage =
        move |stage: &'a StageRecord| items(stage).into_iter().map(move |item| (stage, item));
    record.stages.iter().flat_map(of_stage)
}

/// All items, if there are several.
fn several<T>(all: &[T]) -> &[T] {
    if all.len() > 1 { all } else { &[] }
}

/// A time in a table.
fn seconds(seconds: Option<f64>) -> Cell {
    seconds.map(|seconds| duration_us(seconds * 1e6)).into()
}
