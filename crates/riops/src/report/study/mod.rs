//! The result of an experiment: as text for a terminal, JSON, Markdown, CSV, an HTML page and PNG files. Pure: an
//! experiment and its records in, text or bytes out.
//!
//! The run is the unit: a figure of a cell is estimated from the values of its runs, and cells are compared in the
//! blocks in which they were measured together.

mod effects;
mod figures;
mod groups;
mod improvement;
mod judge;
mod lead;
mod limits;
mod model;
mod notes;
mod numbers;
mod tables;
mod text;
mod view;

pub use figures::StudyFigure;
pub use model::{
    Against, AxisEffect, AxisView, CellView, Estimate, FigureView, GroupView, Improvement,
    ImprovementRow, LevelView, NodeView, Reason, RunCounts, SourcesView, StageView, StudyKind,
    StudyView, ThresholdView, ValueEffect,
};
pub use text::text;
pub use view::view;

#[cfg(test)]
mod example;
#[cfg(test)]
mod tests;
