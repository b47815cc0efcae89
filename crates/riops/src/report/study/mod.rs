//! The result of an experiment: as text for a terminal, JSON, Markdown, CSV, an HTML page and PNG files. Pure: an
//! experiment and its records in, text or bytes out.
//!
//! The run is the unit: a figure of a cell is estimated from the values of its runs, and cells are compared in the
//! blocks in which they were measured together.

mod ab;
mod cells;
mod chart_axes;
mod charts;
mod csv;
mod effects;
mod groups;
mod image;
mod improvement;
mod judge;
mod lead;
mod limits;
mod markdown;
mod model;
mod notes;
mod numbers;
mod page;
mod plot;
mod saturation;
mod tables;
mod text;
mod view;

use crate::figure::Figure;
use crate::units::text::json_text;
pub use charts::charts;
pub use csv::csv;
pub use image::{StudyImage, png};
pub use markdown::markdown;
pub use model::{
    AbView, Against, AxisEffect, AxisView, CellView, FigureView, GroupView, Improvement,
    ImprovementRow, LevelView, NodeView, Reason, RunCounts, SaturationView, SessionsView,
    SourcesView, StageView, StudyKind, StudyView, ThresholdView, ValueEffect,
};
pub use page::html;
pub use text::text;
pub use view::view;

/// The figures of an experiment, in the order of reports. Few of its runs have enough transactions for p99.9.
fn study_figures() -> impl Iterator<Item = Figure> {
    Figure::ALL.into_iter().filter(|figure| *figure != Figure::P999Us)
}

/// Returns the result as JSON.
///
/// # Errors
/// Returns the error of the encoder. Not expected in practice: all values can be encoded.
pub fn json(view: &StudyView) -> Result<String, serde_json::Error> {
    json_text(view)
}

#[cfg(test)]
mod example;
#[cfg(test)]
mod tests;
