//! The charts of an experiment as PNG files.

use super::charts::charts;
use super::model::StudyView;
use super::text::title;
use crate::report::drawing::DrawingError;
use crate::report::page::chart_png;

/// A chart as a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StudyImage {
    /// Name of the file without its ending.
    pub name: String,
    /// Contents.
    pub bytes: Vec<u8>,
}

/// Returns the charts as PNG files, the main one first; empty without values.
///
/// # Errors
/// Returns [`DrawingError::Failed`] if the drawing library fails.
pub fn png(view: &StudyView) -> Result<Vec<StudyImage>, DrawingError> {
    let subtitle = title(view);
    charts(view)
        .iter()
        .map(|chart| {
            let name = chart.id.replacen("study-", "", 1);
            Ok(StudyImage { name, bytes: chart_png(chart, &subtitle)? })
        })
        .collect()
}
