//! The stages of runs, in the order of the rows of a table.

use crate::record::{Record, StageRecord};
use crate::report::words;

/// A stage and its number, from 1.
#[derive(Clone, Copy)]
pub(super) struct Row<'a> {
    pub(super) record: &'a Record,
    pub(super) number: u64,
    pub(super) stage: &'a StageRecord,
}

impl<'a> Row<'a> {
    pub(super) fn all(records: &'a [Record]) -> impl Iterator<Item = Self> {
        records.iter().flat_map(|record| {
            let stages = (1..).zip(&record.stages);
            stages.map(move |(number, stage)| Self { record, number, stage })
        })
    }

    /// Whether the workload has rows.
    pub(super) fn has_rows(&self) -> bool {
        words::of(&self.record.plan.work).measure().has_rows
    }
}
