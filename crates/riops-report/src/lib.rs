//! Reports for people and programs. Pure: records in, text out.
//!
//! A subject builds a document (facts, tables, charts) from sections and the vocabulary of a workload; a renderer gives
//! it a form and knows no subject. Arrows go down only: `document`, `words`, `sections`, `subjects`.

mod answer;
pub mod chart;
mod compat;
mod document;
mod effect;
pub mod export;
mod flame;
mod form;
mod form_catalog;
mod histogram;
mod imported;
mod interval;
mod latency;
mod live;
mod metrics_text;
pub mod openmetrics;
mod paths;
mod remote_write;
mod render;
mod script;
mod sections;
mod setup;
mod subjects;
mod sysbench;
pub mod table;
mod words;

pub use answer::{findings_text, verdict_text};
pub use compat::pgio_sessions;
pub use document::{Badge, Detail, Document, Fact, Findings, Headline, Lines, Tone};
pub use effect::change_text;
pub use form::{Extras, Form, FormError, Image, Print, Rendered, Stream};
pub use form_catalog::{FORMS, findings_in, form, forms_for};
pub use histogram::Scale;
pub use live::LiveView;
pub use metrics_text::{accepted_format, metrics_text};
pub use remote_write::remote_write;
pub use render::fill::{fit, wrapped};
pub use render::glossary::{explanation, glossary_text};
pub use render::html::{
    ASSETS, Asset, Delivery, LINKED_POLICY, Layout, Link, environment, findings_html,
};
pub use render::markdown::findings_markdown;
pub use render::png::{DrawingError, chart_png};
pub use render::text::{keep_colors, text as document_text};
pub use script::{script_statement, script_title};
pub use setup::badge;
pub use subjects::bisect::bisection;
pub use subjects::comparison::{comparison, comparison_of};
pub use subjects::dataset::{checks_text, dropped_text, prepared_text, warmed_text};
pub use subjects::doctor::{calibration_document, diagnosis_findings, disk_document};
pub use subjects::experiment;
pub use subjects::experiments::{experiment_state, experiments_table, experiments_text, plan_text};
pub use subjects::gate::{gate, gate_annotations, gate_junit, gate_markdown};
pub use subjects::history::history_findings;
pub use subjects::history::{history_chart, history_summary, history_text};
pub use subjects::repeats::{Repetition, repeat_line, repeats_document};
pub use subjects::run::page::{charts, html, html_in, images, markdown, title};
pub use subjects::run::{run_document, run_text, scatter_png, threshold_text};
pub use subjects::runs::{TitledColumn, run_columns, runs_csv, runs_table};
pub use table::{ABSENT, Cell, Column, Table};

use riops_model::plan::Plan;
use riops_model::record::{Point, Record};

/// The main result of a run.
pub fn headline(record: &Record) -> Headline {
    words::for_work(&record.plan.work).best(record)
}

/// One interval of a run with this plan, as a line of a log.
pub fn interval_line(point: &Point, plan: &Plan) -> String {
    words::for_work(&plan.work).interval_line(point, plan)
}

#[cfg(test)]
mod width_tests;
#[cfg(test)]
use riops_model::record::example::{example_load, example_oltp, example_record};
#[cfg(test)]
use riops_model::record::example_cbc::example_cbc;
