//! HTML pages: the report of runs, and the frame, the style and the charts that all pages share.
//!
//! A page loads nothing from elsewhere. Everything that comes from a record is escaped, and data for charts is JSON
//! in an element that browsers do not run.

mod access_paths;
mod assets;
mod chart;
mod comparison;
mod counters;
mod dots;
mod heatmap;
mod latency;
mod lines;
pub(super) mod markdown;
mod percentiles;
mod png;
mod run;
mod series;
mod summary;
pub(super) mod table;
mod view;

use minijinja::value::{Serde, Value};
use serde::Serialize;

use crate::record::Record;

pub use assets::{ASSETS, Asset, Delivery, LINKED_POLICY, Layout, Link, environment};
pub use chart::{
    Axis, AxisScale, Chart, Content, Estimated, Mark, Plot, PointSeries, PointStyle, Series, Unit,
    rounded,
};
pub use comparison::{ComparisonView, side_by_side};
pub(super) use lines::value_text;
pub use markdown::markdown;
pub use png::chart_png;
pub(super) use summary::main_settings;
pub use table::{Cell, Table};
pub(super) use view::Figure;

/// The values of the template `report.html`.
#[derive(Debug, Serialize)]
struct Page<'a> {
    layout: &'a Layout,
    comparison: Option<&'a ComparisonView>,
    runs: Vec<view::RunView>,
}

/// Returns the HTML report of one or more records: one file that needs no other. Several records are compared by
/// `comparison`; without it, their figures are shown side by side.
///
/// # Errors
/// Returns the error of the template engine. Not expected in practice: the template is part of riops.
pub fn html(
    records: &[Record],
    comparison: Option<&ComparisonView>,
) -> Result<String, minijinja::Error> {
    html_in(&Layout::new(title(records), Delivery::Inline), records, comparison)
}

/// Returns the report within a frame that the caller chooses.
///
/// # Errors
/// Returns the error of the template engine. Not expected in practice: the template is part of riops.
pub fn html_in(
    layout: &Layout,
    records: &[Record],
    comparison: Option<&ComparisonView>,
) -> Result<String, minijinja::Error> {
    let (comparison, whole) = comparison::parts(records, comparison);
    let runs = whole.iter().enumerate();
    let runs = runs.map(|(position, record)| run::view(record, position, records.len())).collect();
    let page = Page { layout, comparison: comparison.as_ref(), runs };
    environment()?.get_template("report.html")?.render(Value::from(Serde(page)))
}

/// Returns the charts of a record, in the order of its page.
#[must_use]
pub fn charts(record: &Record) -> Vec<Chart> {
    run::charts(record, "run-1")
}

/// Returns the title of the report of these records.
#[must_use]
pub fn title(records: &[Record]) -> String {
    match records {
        [record] => format!("riops: {}", summary::title(record, None)),
        _ => format!("riops: {} runs", records.len()),
    }
}

#[cfg(test)]
mod tests;
