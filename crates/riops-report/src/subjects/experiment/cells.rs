//! The cells that the tables of an experiment have in common, and their texts.

use crate::effect::outcome_text;
use crate::table::{Cell, Column, text_column};
use riops_model::figure::{Estimate, Figure};
use riops_model::stats::Outcome;
use riops_model::study::evaluation::{
    Against, CellView, FigureView, GroupView, StudyKind, StudyView,
};
use riops_model::units::format::percent;

/// Returns the columns with the settings of a cell.
pub(super) fn settings(view: &StudyView, cell: &CellView) -> Vec<(Column, Cell)> {
    if view.axes.is_empty() {
        return vec![(text_column("cell"), cell.name.as_str().into())];
    }
    let values = view.axes.iter().zip(&cell.values);
    values.map(|(axis, value)| (text_column(&axis.name), value.as_str().into())).collect()
}

/// Returns a cell with the value, or an empty cell.
pub(super) fn or_empty<T: Into<Cell>>(value: Option<T>) -> Cell {
    value.map_or_else(|| "".into(), Into::into)
}

/// Returns the title of a figure: the CPU use of a cluster is shown per node.
pub(super) fn figure_title(view: &StudyView, stage: usize, figure: Figure) -> String {
    let has_nodes = view.groups().any(|group| {
        let nodes = group.stages.get(stage).map(|stage| stage.nodes.as_slice()).unwrap_or_default();
        nodes.iter().any(|node| node.cpus.is_some())
    });
    match figure {
        Figure::ServerCpus if has_nodes => "CPU/node".to_owned(),
        Figure::ServerCpus => "server CPU".to_owned(),
        _ => figure.heading().to_owned(),
    }
}

/// Returns half the width of the interval, as a share of the value.
pub(super) fn reach(estimate: &Estimate) -> Option<String> {
    let interval = estimate.interval.filter(|_| estimate.value > 0.0)?;
    let reach = (interval.high - interval.low) / 2.0 / estimate.value;
    Some(format!("±{}", percent(reach)))
}

/// Returns the thresholds that were missed: `misses p99<10ms`.
pub(super) fn missed(group: &GroupView) -> Option<String> {
    let missed = group.thresholds.iter().filter(|threshold| threshold.met < threshold.of);
    let missed: Vec<String> = missed
        .map(|threshold| match threshold.met {
            0 => threshold.text.clone(),
            met => format!("{} ({}/{})", threshold.text, threshold.of - met, threshold.of),
        })
        .collect();
    (!missed.is_empty()).then(|| format!("misses {}", missed.join(" and ")))
}

/// Text for a group without any usable run.
pub(super) fn failed(group: &GroupView) -> Option<String> {
    let runs = group.runs;
    let text = if runs.failed > 0 { "FAILED" } else { "NOT VALID" };
    (runs.usable == 0 && runs.failed + runs.invalid > 0).then(|| text.to_owned())
}

/// `5`, or `3 of 5` if some are not usable.
pub(super) fn runs_text(group: &GroupView) -> String {
    let runs = group.runs;
    let all = runs.usable + runs.invalid + runs.failed;
    if all == runs.usable { all.to_string() } else { format!("{} of {all}", runs.usable) }
}

/// The verdict; `None` if more runs are required for one.
pub(super) fn verdict_text(against: &Against) -> Option<&'static str> {
    let is_known =
        |outcome: &Outcome| against.runs_needed.is_none() || *outcome != Outcome::Inconclusive;
    against.outcome.filter(is_known).map(outcome_text)
}

/// The name of a cell; the name of a variant needs no axis.
pub(super) fn short_name<'a>(view: &StudyView, cell: &'a CellView) -> &'a str {
    match (view.kind, cell.values.first()) {
        (StudyKind::Ab, Some(value)) => value,
        _ => &cell.name,
    }
}

/// A figure with its interval: `75,012 (73,900 to 76,100)`.
pub(super) fn with_interval(figure: &FigureView) -> String {
    let text = |value| figure.figure.text(value);
    let value = figure.text();
    match figure.estimate.interval {
        Some(interval) => format!("{value} ({} to {})", text(interval.low), text(interval.high)),
        None => value,
    }
}
