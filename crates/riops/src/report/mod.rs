//! Reports for people and programs. Pure: records in, text out.

mod block;
mod columns;
pub mod comparison;
mod dataset;
mod doctor;
mod drawing;
mod experiments;
pub mod export;
mod fill;
mod format;
mod forms;
mod histogram;
mod history;
mod imported;
mod interval;
mod latency;
mod metrics_text;
mod model;
pub mod openmetrics;
pub mod page;
mod paths;
mod proof;
mod repeats;
mod runs;
mod scatter;
mod script;
mod sections;
pub mod study;
mod sysbench;
mod words;

pub use comparison::differences;
pub use dataset::{checks_text, dropped_text, prepared_text, warmed_text};
pub use doctor::{calibration_text, diagnosis_text, disk_text};
pub use drawing::DrawingError;
pub use experiments::{experiments_text, plan_text, start_line, time_left};
pub use fill::{fit, wrapped};
pub use format::{count, duration_us, percent, rate, short_id, to_the_minute};
pub use forms::{
    Extras, FORMS, Form, FormError, Stream, form, forms_for, pgio_sessions, run_text,
    threshold_text,
};
pub use histogram::Scale;
pub use history::{
    HISTORY_FIGURES, HistoryChange, HistoryPoint, HistorySeries, history, history_text,
};
pub use metrics_text::{accepted_format, metrics_text};
pub use model::{Bottleneck, Summary};
pub use page::{ComparisonView, html, markdown};
pub use repeats::{repeat_line, repeats_text};
pub use runs::{RunLine, badge, run_lines, runs_csv, runs_json, runs_table};
pub use scatter::scatter_png;
pub use script::{script_statement, script_title};

use crate::plan::{Plan, WorkPlan};
use crate::record::Point;

/// One interval of a run with this plan, as a line of a terminal with `width` columns. `progress` is the part
/// of the run that is done.
#[must_use]
pub fn live_line(point: &Point, plan: &Plan, progress: &str, width: usize) -> String {
    let words = words::of(&plan.work);
    let kinds = (words.counts_transactions(), words.has_rows());
    fit(&interval::live_parts((point, plan), kinds.0, kinds.1, progress), width)
}

/// A time of the series of a run with this plan, in seconds, with as many decimals as its intervals need.
#[must_use]
pub fn series_time(t_s: f64, plan: &Plan) -> String {
    interval::seconds(t_s, plan, 0)
}

/// Returns whether the main figure of a workload counts transactions and not rows.
#[must_use]
pub fn counts_transactions(workload: &str) -> bool {
    let plan = WorkPlan::default_of(workload);
    plan.is_some_and(|work| words::of(&work).counts_transactions())
}

/// One interval of a run with this plan, as a line of a log.
#[must_use]
pub fn interval_line(point: &Point, plan: &Plan) -> String {
    words::of(&plan.work).interval_line(point, plan)
}

#[cfg(test)]
mod example;
#[cfg(test)]
pub(crate) use example::{example_cbc, example_load, example_oltp, example_record};
