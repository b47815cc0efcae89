//! How each workload is reported; the only dispatch on workloads in this layer.

mod cbc;
mod common;
mod imported;
mod load;
mod measure;
pub(super) mod next;
mod observe;
mod oltp;
mod ping;
mod point;
mod rows;
mod script;

use super::document::{Document, Headline, Hint};
use super::interval::interval_line;
use super::table::Table;
pub(super) use measure::{Measure, TRANSACTIONS};
use next::{Commands, lever};
use riops_model::figure::Summary;
use riops_model::plan::{DatasetPlan, Plan, Spec, WorkPlan};
use riops_model::record::{Point, Record, StageRecord};
use riops_model::units::format::{joined, number_of, percent};

/// How a workload is reported. Most methods have a default that suits most workloads.
pub(super) trait Words: Spec {
    /// The work of the sessions.
    fn work(&self) -> String;

    /// The title of the report.
    fn report_title(&self, record: &Record) -> String {
        format!("riops run {}", record.workload)
    }

    /// Sessions, workers and duration; `None` for a workload without session loops.
    fn setup(&self, summary: &Summary<'_>) -> Option<String> {
        let warmup = summary.record.plan.warmup();
        let after = if warmup.is_zero() {
            String::new()
        } else if summary.stage.seconds <= 0.0 {
            ", ended during the warm-up".to_owned()
        } else {
            format!(" after {:.1} s of warm-up", warmup.as_secs_f64())
        };
        Some(format!("{}{after}", summary.setup()))
    }

    /// Returns the text of an expected access path: the same text for all tables of one kind.
    fn access_path(&self, expected: &str, _: &Record) -> String {
        expected.to_owned()
    }

    /// The name of the main result.
    fn measure_name(&self) -> &'static str {
        "RIOPS"
    }

    /// The main result.
    fn measure(&self) -> Measure {
        Measure::new(self.measure_name(), &self.traits())
    }

    /// Returns the main result as one figure: the result of the best stage, if there are several.
    fn best(&self, record: &Record) -> Headline {
        self.measure().best(record)
    }

    /// Writes the main result: throughput and latency, or a table of the stages.
    fn results(&self, document: &mut Document, record: &Record) {
        self.measure().results(document, record);
    }

    /// Writes what the result of all stages depends on.
    fn details(&self, _: &mut Document, _: &Record) {}

    /// Writes the cost of locks and retries.
    fn contention(&self, _: &mut Document, _: &Summary<'_>) {}

    /// Writes further figures, with the names of the tool that the workload replaces.
    fn totals(&self, _: &mut Document, _: &Summary<'_>) {}

    /// Returns the unit of work that one latency measures.
    fn latency_of(&self, _: &StageRecord) -> String {
        "transaction".to_owned()
    }

    /// Returns how to get a steady rate; `None` if no option changes it.
    fn for_a_steady_rate(&self) -> Option<&'static str> {
        Some("for a steady rate: a longer --warmup or --duration")
    }

    /// Returns what was verified in a valid run whose data contain the acknowledged changes.
    fn proof(&self, record: &Record) -> &'static str {
        if record.checks.is_empty() { self.replies() } else { self.checked(record) }
    }

    /// Returns what the replies show in a valid run.
    fn replies(&self) -> &'static str {
        "every statement was acknowledged"
    }

    /// Returns what the replies and the checks of the data show.
    fn checked(&self, _: &Record) -> &'static str {
        self.replies()
    }

    /// Commands to try after an invalid run.
    fn after_failure(&self, _: &Commands<'_>) -> Vec<Hint> {
        Vec::new()
    }

    /// Commands to try after a valid run.
    fn next_steps(&self, summary: &Summary<'_>, commands: &Commands<'_>) -> Vec<Hint> {
        let hints = lever(summary, commands).into_iter().chain(self.variants(commands));
        hints.chain(commands.page()).collect()
    }

    /// Further runs of the same workload to try.
    fn variants(&self, _: &Commands<'_>) -> Vec<Hint> {
        Vec::new()
    }

    /// Returns one interval as a line of a log.
    fn interval_line(&self, point: &Point, plan: &Plan) -> String {
        interval_line(point, plan)
    }

    /// Returns a table that compares several records, including records of other workloads.
    fn table_over(&self, _: &[Record]) -> Option<Table> {
        None
    }
}

/// How a dataset is reported.
pub(super) trait DatasetWords {
    /// The parameters of the dataset in one line.
    fn text(&self) -> String;

    /// Number of tables, if each session can use a separate one.
    fn tables(&self) -> u32 {
        1
    }
}

/// The reporting of the workload of a plan.
pub(super) fn for_work(work: &WorkPlan) -> &dyn Words {
    riops_model::dispatch_work!(work, run => run)
}

/// The dataset of a run in one line, with the part of it that the run used.
pub(super) fn dataset_text(record: &Record) -> Option<String> {
    let dataset = &record.target.dataset.as_ref()?.parameters;
    let text = of_dataset(dataset).text();
    let Some(share) = record.dataset_share() else {
        return Some(text);
    };
    let size = |name: &String, size: u64| {
        if name == "tables" {
            number_of(size, "table")
        } else {
            format!("the first {} of each table", number_of(size, "row"))
        }
    };
    let part = record.plan.part.iter();
    let sizes = part.filter_map(|(name, value)| Some(size(name, value.as_u64()?)));
    Some(format!("{text}; part of the dataset: {} ({})", percent(share), joined(sizes, ", ")))
}

/// The reporting of a dataset.
pub(super) fn of_dataset(dataset: &DatasetPlan) -> &dyn DatasetWords {
    riops_model::dispatch_dataset!(dataset, parameters => parameters)
}
