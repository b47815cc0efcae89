//! The main figure over two axes, as a heat map.

use crate::experiment::evaluation::{AxisView, StudyView};
use crate::report::chart::{Axis, AxisScale, Chart, Content, Unit, rounded};
use crate::report::subjects::experiment::cells::figure_title;
use crate::report::subjects::experiment::chart_axes::unit;
use crate::report::table::{Cell, Table, number, word};
use crate::units::format::joined;

/// Column, row and value of a cell.
type Value = (usize, usize, f64);

/// Values of an axis from which on a heat map shows more than a table.
const VALUES_MIN: usize = 3;
/// Combinations of the other axes up to which each has a heat map.
const COMBINATIONS_MAX: usize = 4;

/// Returns the heat maps: one for each combination of the axes besides the two with most values.
pub(super) fn charts(view: &StudyView) -> Vec<Chart> {
    let mut axes: Vec<(usize, &AxisView)> =
        view.axes.iter().enumerate().filter(|(_, axis)| axis.values.len() > 1).collect();
    // Stable: of axes with as many values, the first one of the experiment.
    axes.sort_by_key(|(_, axis)| std::cmp::Reverse(axis.values.len()));
    let [across, up, others @ ..] = axes.as_slice() else {
        return Vec::new();
    };
    let combinations: usize = others.iter().map(|(_, axis)| axis.values.len()).product();
    if across.1.values.len() < VALUES_MIN || combinations > COMBINATIONS_MAX {
        return Vec::new();
    }
    let mut groups: Vec<(String, Vec<Value>)> = Vec::new();
    let (columns, rows) = (order(across.1), order(up.1));
    for cell in &view.cells {
        let Some(found) = cell.group.figure(view.main_stage, view.main) else { continue };
        let place = |(at, axis): &(usize, &AxisView), order: &[usize]| {
            let value = cell.values.get(*at)?;
            let index = axis.values.iter().position(|each| each == value)?;
            order.iter().position(|each| *each == index)
        };
        let Some((column, row)) = place(across, &columns).zip(place(up, &rows)) else { continue };
        let others = others
            .iter()
            .filter_map(|(at, axis)| Some(format!("{}={}", axis.name, cell.values.get(*at)?)));
        let label = joined(others, " ");
        let value = (column, row, rounded(found.estimate.value));
        match groups.iter_mut().find(|(known, _)| *known == label) {
            Some((_, cells)) => cells.push(value),
            None => groups.push((label, vec![value])),
        }
    }
    let axes = [(across.1, columns), (up.1, rows)];
    let chart = |(number, (label, cells))| chart(view, &axes, number, label, cells);
    groups.into_iter().enumerate().map(chart).collect()
}

/// The places of the values of an axis: numbers ascending, others as typed.
fn order(axis: &AxisView) -> Vec<usize> {
    let mut order: Vec<usize> = (0..axis.values.len()).collect();
    if let Some(numbers) = &axis.numbers {
        let number = |at: &usize| numbers.get(*at).copied().unwrap_or_default();
        order.sort_by(|one, other| number(one).total_cmp(&number(other)));
    }
    order
}

fn chart(
    view: &StudyView,
    [(across, columns), (up, rows)]: &[(&AxisView, Vec<usize>); 2],
    number_of_chart: usize,
    label: String,
    cells: Vec<Value>,
) -> Chart {
    let name = figure_title(view, view.main_stage, view.main);
    let text = |value: f64| view.main.text(value);
    let names = |axis: &AxisView, order: &[usize]| -> Vec<String> {
        order.iter().filter_map(|&at| axis.values.get(at).cloned()).collect()
    };
    let (columns, rows) = (names(across, columns), names(up, rows));
    let place = |(column, row, value): &Value| {
        let name = |names: &[String], at: usize| names.get(at).cloned().unwrap_or_default();
        let (x, y) = (name(&columns, *column), name(&rows, *row));
        format!("{} at {}={x} {}={y}", text(*value), across.name, up.name)
    };
    let least = cells.iter().min_by(|one, other| one.2.total_cmp(&other.2));
    let most = cells.iter().max_by(|one, other| one.2.total_cmp(&other.2));
    let ends = |(least, most)| format!("{name} from {} to {}.", place(least), place(most));
    let summary = least.zip(most).map(ends).unwrap_or_default();
    let table = Table::of(&name, rows.iter().enumerate(), |(row, name)| {
        let values = columns.iter().enumerate().map(|(column, value)| {
            let found = cells.iter().find(|each| (each.0, each.1) == (column, row));
            (number(format!("{}={value}", across.name)), found.map(|each| text(each.2)).into())
        });
        let name = (word(&up.name), Cell::from(name.as_str()));
        std::iter::once(name).chain(values).collect::<Vec<_>>()
    });
    let axis = |name: &str, count: usize| {
        Axis::of(name, Unit::Count, AxisScale::Linear).within((-0.5, count as f64 - 0.5))
    };
    let of_others = if label.is_empty() { label } else { format!(", {label}") };
    let id = format!("study-heat-{}", number_of_chart + 1);
    let title = format!("{name} by {} and {}{of_others}", across.name, up.name);
    let both = [axis(&across.name, columns.len()), axis(&up.name, rows.len())];
    let content = Content::Grid { columns, rows, cells, unit: unit(view.main) };
    Chart::new(id, title, summary, both, content).with_table(table)
}
