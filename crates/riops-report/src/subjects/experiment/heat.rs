//! The main figure over two axes, as a heat map.

use crate::chart::{Axis, AxisScale, Chart, Content, Unit, rounded};
use crate::subjects::experiment::cells::figure_title;
use crate::table::{Cell, Table, number_column, text_column};
use riops_model::study::evaluation::{AxisView, CellView, StudyView};

/// Column, row and value of a cell.
type Value = (usize, usize, f64);

/// Fewest values of an axis for which a heat map shows more than a table.
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
    let groups = view.combinations(&[across.0, up.0]).into_iter().zip(1..);
    groups
        .map(|((others, cells), position)| chart(view, [*across, *up], position, others, &cells))
        .collect()
}

/// The values of an axis: numbers ascending, others as typed.
fn ordered(axis: &AxisView) -> Vec<String> {
    let mut values: Vec<_> = axis.values.iter().enumerate().collect();
    if let Some(numbers) = &axis.numbers {
        let value_at = |at: usize| numbers.get(at).copied().unwrap_or_default();
        values.sort_by(|one, other| value_at(one.0).total_cmp(&value_at(other.0)));
    }
    values.into_iter().map(|(_, value)| value.clone()).collect()
}

/// The heat map of these cells, the chart with this number. `others` are their other settings.
fn chart(
    view: &StudyView,
    [(at_x, across), (at_y, up)]: [(usize, &AxisView); 2],
    number_of_chart: u32,
    others: String,
    measured: &[&CellView],
) -> Chart {
    let name = figure_title(view, view.main_stage, view.main);
    let (columns, rows) = (ordered(across), ordered(up));
    let cell = |cell: &&CellView| -> Option<Value> {
        let place = |names: &[String], at: usize| {
            let value = cell.values.get(at)?;
            names.iter().position(|name| name == value)
        };
        let value = view.main_of(&cell.group)?.estimate.value;
        Some((place(&columns, at_x)?, place(&rows, at_y)?, rounded(value)))
    };
    let cells: Vec<Value> = measured.iter().filter_map(cell).collect();
    let text = |value: f64| view.main.text(value);
    let place = |(column, row, value): &Value| {
        let name = |names: &[String], at: usize| names.get(at).cloned().unwrap_or_default();
        let (x, y) = (name(&columns, *column), name(&rows, *row));
        format!("{} at {}={x} {}={y}", text(*value), across.name, up.name)
    };
    let least = cells.iter().min_by(|one, other| one.2.total_cmp(&other.2));
    let most = cells.iter().max_by(|one, other| one.2.total_cmp(&other.2));
    let ends = |(least, most)| format!("{name} from {} to {}.", place(least), place(most));
    let summary = least.zip(most).map(ends).unwrap_or_default();
    let table = Table::from_items(&name, rows.iter().enumerate(), |(row, name)| {
        let values = columns.iter().enumerate().map(|(column, value)| {
            let cell = cells.iter().find(|cell| (cell.0, cell.1) == (column, row));
            (
                number_column(format!("{}={value}", across.name)),
                cell.map(|cell| text(cell.2)).into(),
            )
        });
        let name = (text_column(&up.name), Cell::from(name.as_str()));
        std::iter::once(name).chain(values).collect::<Vec<_>>()
    });
    let axis = |name: &str, count: usize| {
        Axis::new(name, Unit::Count, AxisScale::Linear).within(-0.5..=count as f64 - 0.5)
    };
    let of_others = if others.is_empty() { others } else { format!(", {others}") };
    let id = format!("study-heat-{number_of_chart}");
    let title = format!("{name} by {} and {}{of_others}", across.name, up.name);
    let both = [axis(&across.name, columns.len()), axis(&up.name, rows.len())];
    let content = Content::Grid { columns, rows, cells, unit: Unit::for_figure(view.main) };
    Chart::new(id, title, summary, both, content).with_table(table)
}
