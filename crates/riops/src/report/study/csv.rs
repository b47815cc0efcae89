//! The figures of an experiment as CSV: a row for each figure of each stage of each cell or level.

use super::super::export::{CsvCell, CsvColumn, ExportError, csv_table};
use super::model::{Against, CellView, FigureView, GroupView, StudyView};

/// One figure.
struct Row<'a> {
    view: &'a StudyView,
    cell: &'a CellView,
    level: String,
    group: &'a GroupView,
    stage: usize,
    figure: &'a FigureView,
}

impl Row<'_> {
    fn against(&self) -> Option<&Against> {
        self.figure.against_baseline.as_ref()
    }
}

/// Returns the figures as CSV as in RFC 4180, with a header. Units are those of the JSON form.
///
/// # Errors
/// [`ExportError`] if the table cannot be written.
pub fn csv(view: &StudyView) -> Result<String, ExportError> {
    let mut rows = Vec::new();
    for cell in &view.cells {
        let levels = cell.levels.iter().map(|level| (level.level.to_string(), &level.group));
        let own = cell.levels.is_empty().then(|| (String::new(), &cell.group));
        for (level, group) in own.into_iter().chain(levels) {
            for (stage, found) in group.stages.iter().enumerate() {
                rows.extend(found.figures.iter().map(|figure| Row {
                    view,
                    cell,
                    level: level.clone(),
                    group,
                    stage,
                    figure,
                }));
            }
        }
    }
    csv_table(&columns(), rows)
}

fn columns<'a>() -> [CsvColumn<Row<'a>>; 18] {
    [
        ("experiment_id", |row| row.view.id.as_str().into()),
        ("experiment", |row| row.view.name.as_str().into()),
        ("cell", |row| row.cell.name.as_str().into()),
        ("level", |row| row.level.as_str().into()),
        ("stage", |row| row.view.stages.get(row.stage).map(String::as_str).into()),
        ("usable_runs", |row| row.group.runs.usable.into()),
        ("invalid_runs", |row| row.group.runs.invalid.into()),
        ("failed_runs", |row| row.group.runs.failed.into()),
        ("figure", |row| row.figure.figure.as_str().into()),
        ("value", |row| row.figure.estimate.value.into()),
        ("low", |row| row.figure.estimate.interval.map(|found| found.low).into()),
        ("high", |row| row.figure.estimate.interval.map(|found| found.high).into()),
        ("ratio", |row| row.against().map(|against| against.ratio).into()),
        ("ratio_low", |row| {
            row.against().and_then(|against| against.interval).map(|found| found.low).into()
        }),
        ("ratio_high", |row| {
            row.against().and_then(|against| against.interval).map(|found| found.high).into()
        }),
        ("p_adjusted", |row| row.against().and_then(|against| against.p_adjusted).into()),
        ("verdict", |row| verdict(row)),
        ("bottleneck", |row| {
            row.group.stages.get(row.stage).and_then(|stage| stage.bottleneck.as_deref()).into()
        }),
    ]
}

fn verdict(row: &Row<'_>) -> CsvCell {
    row.against().and_then(|against| against.outcome).map(crate::stats::Outcome::as_str).into()
}
