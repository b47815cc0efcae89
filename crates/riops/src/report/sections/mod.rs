//! Parts of the closing text that every workload shares.

pub(super) mod agents;
pub(super) mod bottleneck;
pub(super) mod condition;
pub(super) mod cost;
pub(super) mod failures;
pub(super) mod mix;
pub(super) mod nodes;
pub(super) mod profile;
pub(super) mod proof;
pub(super) mod queries;
pub(super) mod sources;
pub(super) mod statements;
pub(super) mod steadiness;
pub(super) mod time;
pub(super) mod waits;
pub(super) mod why;
pub(super) mod window;

use crate::record::{Record, StageRecord};

/// The name of a stage, if the run has several.
pub(super) fn stage_name<'a>(record: &Record, stage: &'a StageRecord) -> &'a str {
    if record.stages.len() > 1 { &stage.name } else { "" }
}

/// The same before a text: `load, copy: `.
pub(super) fn stage_prefix(record: &Record, stage: &StageRecord) -> String {
    if record.stages.len() > 1 { format!("{}: ", stage.name) } else { String::new() }
}
