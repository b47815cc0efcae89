//! The figures of an experiment as CSV: a row for each figure of each stage of each cell or level.

use crate::export::{ExportError, csv_columns, csv_table};
use riops_model::study::Level;
use riops_model::study::evaluation::{Against, CellView, FigureView, GroupView, StudyView};

/// One figure.
struct Row<'a> {
    view: &'a StudyView,
    cell: &'a CellView,
    level: Option<Level>,
    group: &'a GroupView,
    stage: usize,
    figure: &'a FigureView,
    against: Option<&'a Against>,
}

/// Returns the figures as CSV as in RFC 4180, with a header. The units are the same as in the JSON form.
///
/// # Errors
/// [`ExportError`] if the table cannot be written.
pub fn csv<'a>(view: &'a StudyView) -> Result<String, ExportError> {
    let mut rows = Vec::new();
    for cell in &view.cells {
        for (level, group) in cell.groups() {
            for (stage, stage_view) in group.stages.iter().enumerate() {
                rows.extend(stage_view.figures.iter().map(|figure| Row {
                    view,
                    cell,
                    level,
                    group,
                    stage,
                    figure,
                    against: figure.against_baseline.as_ref(),
                }));
            }
        }
    }
    let columns = csv_columns! { row: Row<'a> => {
        experiment_id: &row.view.id,
        experiment: &row.view.name,
        cell: &row.cell.name,
        level: row.level.map(|level| level.to_string()),
        stage: row.view.stages.get(row.stage),
        usable_runs: row.group.runs.usable,
        invalid_runs: row.group.runs.invalid,
        failed_runs: row.group.runs.failed,
        figure: row.figure.figure.as_str(),
        value: row.figure.estimate.value,
        low: row.figure.estimate.interval.map(|interval| interval.low),
        high: row.figure.estimate.interval.map(|interval| interval.high),
        ratio: row.against.map(|against| against.ratio),
        ratio_low: row.against.and_then(|against| Some(against.interval?.low)),
        ratio_high: row.against.and_then(|against| Some(against.interval?.high)),
        ratio_coverage: row.against.and_then(|against| Some(against.interval?.coverage)),
        p_adjusted: row.against.and_then(|against| against.p_adjusted),
        verdict: row.against.and_then(|against| Some(against.outcome?.as_str())),
        bottleneck: row.group.stages.get(row.stage).and_then(|stage| stage.bottleneck.as_ref()),
    }};
    csv_table(&columns, rows)
}
