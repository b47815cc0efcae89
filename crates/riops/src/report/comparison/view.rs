//! A comparison as a part of an HTML page.

use super::super::page::ComparisonView;
use super::super::page::table::{Cell, Table};
use super::text::{interval_text, outcome_text, p_text, relative, side_text, verdict_lines};
use super::{Comparison, FigureComparison, Group, compare};
use crate::record::Record;
use crate::stats::Settings;

/// The comparison as an HTML page shows it: what changed, then the figures.
#[must_use]
pub fn view(comparison: &Comparison) -> ComparisonView {
    let mut tables = vec![changes(comparison)];
    for stage in &comparison.stages {
        let title = stage.stage.clone().unwrap_or_else(|| "Figures".to_owned());
        tables.push(Table::new(&title, HEAD, 1, stage.figures.iter().map(row).collect()));
    }
    ComparisonView {
        title: format!("A: {}, B: {}", side_text(&comparison.a), side_text(&comparison.b)),
        lead: Some(verdict_lines(comparison).join(". ")),
        tables,
        notes: comparison.notes.clone(),
    }
}

/// The comparison of the runs of a page: of two selections, otherwise of the runs with the older and the newer one
/// of two labels. `None` if there are other numbers of groups, or if they cannot be compared.
#[must_use]
pub fn view_of(selections: &[(String, Vec<Record>)]) -> Option<ComparisonView> {
    let by_label = if selections.len() == 2 { None } else { Some(labeled(selections)?) };
    let [(name_a, a), (name_b, b)] = by_label.as_deref().unwrap_or(selections) else {
        return None;
    };
    let (a, b) = (Group { name: name_a, records: a }, Group { name: name_b, records: b });
    Some(view(&compare(a, b, &Settings::default()).ok()?))
}

/// All runs by label, in the order of their oldest runs; `None` if a run has no label.
fn labeled(selections: &[(String, Vec<Record>)]) -> Option<Vec<(String, Vec<Record>)>> {
    let mut runs: Vec<&Record> = selections.iter().flat_map(|(_, runs)| runs).collect();
    runs.sort_by_key(|run| run.started_at);
    let mut groups: Vec<(String, Vec<Record>)> = Vec::new();
    for run in runs {
        let label = run.label.as_ref()?;
        match groups.iter_mut().find(|(name, _)| name == label) {
            Some((_, known)) => known.push(run.clone()),
            None => groups.push((label.clone(), vec![run.clone()])),
        }
    }
    Some(groups)
}

const HEAD: [&str; 7] = ["figure", "A", "B", "B relative to A", "95% interval", "p", "verdict"];

fn changes(comparison: &Comparison) -> Table {
    let rows = comparison.changes.iter().map(|change| {
        let name = format!("{}: {}", change.topic.name(), change.name);
        [name, change.a.clone(), change.b.clone()].map(Cell::word).into()
    });
    let table = Table::new("What changed", ["property", "A", "B"], 3, rows.collect());
    if comparison.changes.is_empty() { table.with_note("No recorded difference.") } else { table }
}

fn row(figure: &FigureComparison) -> Vec<Cell> {
    let value = |value: Option<f64>| {
        Cell::number(value.map_or_else(|| "n/a".to_owned(), |value| figure.figure.text(value)))
    };
    let effect = figure.effect.as_ref();
    vec![
        Cell::word(figure.name.clone()),
        value(figure.a),
        value(figure.b),
        Cell::number(relative(figure)),
        Cell::number(effect.map(interval_text).unwrap_or_default()),
        Cell::number(effect.map(|effect| p_text(effect.p_adjusted)).unwrap_or_default()),
        Cell::number(effect.map_or("", |effect| outcome_text(effect.outcome))),
    ]
}
