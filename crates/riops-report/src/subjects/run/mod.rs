//! A run: its text, its page, its images.

mod access_paths;
mod answer;
mod document;
mod dots;
mod heatmap;
mod hero;
pub(crate) mod page;
pub(super) mod percentiles;
mod series;
mod side_by_side;
mod view;

pub(crate) use answer::printed;
pub use document::{run_document, run_text, threshold_text};
pub use dots::scatter_png;
