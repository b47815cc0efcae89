//! What differs between workloads when a record becomes text: the one dispatch of this layer.

mod cbc;
mod common;
mod load;
mod oltp;
mod ping;
mod point;
mod rows;

use super::block::Block;
use super::interval::interval_line;
use super::model::Summary;
use super::page::table::{Table, stages};
use super::sections::next::{Commands, Hint, scaling, stored_runs};
use crate::plan::work::{dispatch_dataset, dispatch_work};
use crate::plan::{DatasetPlan, Plan, WorkPlan};
use crate::record::Point;
use crate::record::{Record, StageRecord};

/// How a workload is reported. Every method but the first has the form that fits most.
pub(super) trait Words {
    /// What the sessions did.
    fn work(&self) -> String;

    /// How the sessions were driven; `None` where nothing is driven.
    fn setup(&self, summary: &Summary<'_>) -> Option<String> {
        let warmup = crate::units::Span(summary.record.plan.warmup());
        Some(format!("{} after {warmup} warm-up", summary.setup()))
    }

    /// A promised access path; the same text for all tables of a kind.
    fn access_path(&self, promised: &str, _: &Record) -> String {
        promised.to_owned()
    }

    /// The name of the figure.
    fn headline(&self) -> &'static str {
        "RIOPS"
    }

    /// Whether transactions per second are the figure, and not rows.
    fn counts_transactions(&self) -> bool {
        false
    }

    /// The whole result, where it has a shape of its own; false where it has not.
    fn own_result(&self, _: &mut Block, _: &Record) -> bool {
        false
    }

    /// What waiting for each other has cost the sessions.
    fn contention(&self, _: &mut Block, _: &Summary<'_>) {}

    /// More figures of the result, in the words of the tool that the workload replaces; false where there
    /// are none.
    fn totals(&self, _: &mut Block, _: &Summary<'_>) -> bool {
        false
    }

    /// What one latency of a stage belongs to.
    fn latency_of(&self, _: &StageRecord) -> String {
        "transaction".to_owned()
    }

    /// What a valid run has proved.
    fn proof(&self, record: &Record) -> &'static str;

    /// What to do after a run that is not valid.
    fn after_failure(&self, _: &Commands<'_>) -> Vec<Hint> {
        Vec::new()
    }

    /// What to try after a valid run.
    fn next_steps(&self, summary: &Summary<'_>, commands: &Commands<'_>) -> Vec<Hint> {
        let mut hints = scaling(summary, commands);
        hints.extend(self.variants(commands));
        hints.push(stored_runs());
        hints
    }

    /// Other runs of the same workload that are worth a try.
    fn variants(&self, _: &Commands<'_>) -> Vec<Hint> {
        Vec::new()
    }

    /// One interval as a line.
    fn interval_line(&self, point: &Point, _: &Plan) -> String {
        interval_line(point)
    }

    /// The tables of a page.
    fn tables(&self, record: &Record) -> Vec<Table> {
        vec![stages(record)]
    }

    /// A table over several records, some of which are of this workload.
    fn table_over(&self, _: &[Record]) -> Option<Table> {
        None
    }
}

/// How a dataset is reported.
pub(super) trait DatasetWords {
    /// What was prepared.
    fn text(&self) -> String;

    /// Tables, where each session may have one of its own.
    fn tables(&self) -> u32 {
        1
    }
}

/// The words of the workload of a plan.
pub(super) fn of(work: &WorkPlan) -> &dyn Words {
    dispatch_work!(work, run => run)
}

/// The words of a dataset.
pub(super) fn of_dataset(dataset: &DatasetPlan) -> &dyn DatasetWords {
    dispatch_dataset!(dataset, parameters => parameters)
}
