//! The result of a search for the saturation point.

use super::super::page::Chart;
use super::model::StudyView;

/// Returns the charts of a search.
pub(super) fn charts(_: &StudyView) -> Vec<Chart> {
    Vec::new()
}
