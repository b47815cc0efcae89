//! The tables of an experiment: the same for the terminal, Markdown and the page.

use super::cells::{
    failed, figure_title, missed, or_empty, reach, runs_text, settings, verdict_text,
};
use crate::effect::{IntervalColumn, change_text};
use crate::sections::why;
use crate::subjects::comparison::change_name;
use crate::table::{Cell, Column, Table, number_column, text_column};
use riops_model::figure::Figure;
use riops_model::stats::Direction;
use riops_model::study::evaluation::{
    Against, AxisEffect, CellView, FigureView, Improvement, ImprovementRow, StudyKind, StudyView,
};
use riops_model::units::format::{factor, joined, number_of};

/// A note explains a change whose ratio differs by more than this share from the ratio of the two values beside it.
const EXPLAINED_FROM: f64 = 0.01;

/// The columns with the value relative to the value of the baseline, and with the change.
const FACTOR: &str = "factor";
const CHANGE: &str = "vs. baseline";

/// The column with the intervals of these comparisons.
fn intervals<'a>(comparisons: impl Iterator<Item = Option<&'a Against>>) -> IntervalColumn {
    IntervalColumn::for_intervals(comparisons.flatten().filter_map(|against| against.interval))
}

/// Returns all tables in their order.
pub(super) fn tables(view: &StudyView) -> Vec<Table> {
    if view.kind == StudyKind::Saturation {
        return super::saturation::tables::tables(view);
    }
    let mut tables = cells(view);
    tables.extend(super::frontier::table(view));
    tables.extend(costs(view));
    tables.extend(time(view));
    tables.extend(differences(view));
    tables.extend(view.improvement.as_ref().map(|improvement| summary(view, improvement)));
    tables.extend(view.effects.iter().map(|effect| axis_effect(view, effect)));
    tables.extend(super::limits::nodes(view));
    tables.extend(super::limits::limits(view));
    tables
}

/// Returns the table of the cells or levels with the main figure, a line for each: only its settings, the main figure and the
/// verdict are in narrow terminals, too.
pub(super) fn main(view: &StudyView) -> Option<Table> {
    let (table, keys) = match view.kind {
        StudyKind::Saturation => (super::saturation::tables::tables(view).into_iter().next()?, 1),
        StudyKind::Sweep | StudyKind::Ab => {
            let table = cells(view).into_iter().nth(view.main_stage)?;
            (table, view.cells.first().map_or(0, |cell| settings(view, cell).len()))
        }
    };
    // The change beside it says the same.
    let has_change = table.columns.iter().any(|column| column.title == CHANGE);
    let table = if has_change { table.without(FACTOR) } else { table };
    let main = figure_title(view, view.main_stage, view.main);
    let last = table.columns.len().saturating_sub(1);
    let columns = table.columns.into_iter().enumerate().map(|(at, column)| {
        let is_needed = at < keys || at == last || column.title == main;
        if is_needed { column } else { column.optional() }
    });
    let table = Table { columns: columns.collect(), title: String::new(), note: None, ..table };
    Some(table.for_cells())
}

/// What differs between two cells, apart from their figures.
fn differences(view: &StudyView) -> Option<Table> {
    let [one, other] = view.cells.as_slice() else {
        return None;
    };
    let table = Table::from_items("What differs", &view.differences, |change| {
        [
            (text_column("property"), change_name(change).into()),
            (text_column(&one.name), change.a.as_str().into()),
            (text_column(&other.name), change.b.as_str().into()),
        ]
    });
    table.filled()
}

/// The tables of the cells: one for each stage that is a session loop, and one for statements that ran once.
fn cells(view: &StudyView) -> Vec<Table> {
    let is_once = |stage: usize| {
        let mut stages = view.cells.iter().filter_map(|cell| cell.group.stages.get(stage));
        stages.any(|stage| {
            stage.figure(Figure::Seconds).is_some()
                && stage.figure(Figure::TransactionsPerS).is_none()
        })
    };
    let count = view.stages.len().max(1);
    (0..count).map(|stage| of_stage(view, stage, is_once(stage))).collect()
}

fn of_stage(view: &StudyView, stage: usize, is_once: bool) -> Table {
    let title = view.stages.get(stage).cloned().unwrap_or_else(|| "Results".to_owned());
    let is_main = stage == view.main_stage;
    let main = if is_main {
        view.main
    } else if is_once {
        Figure::Seconds
    } else {
        view.throughput()
    };
    let main_of_all: Vec<Option<&FigureView>> =
        view.cells.iter().map(|cell| cell.group.figure(stage, main)).collect();
    let values = main_of_all.iter().flatten().map(|figure| figure.estimate.value);
    let most = values.fold(f64::MIN_POSITIVE, f64::max);
    let verdict = |figure: Option<&FigureView>| verdict_text(figure?.against_baseline.as_ref()?);
    let has_verdict = main_of_all.iter().any(|figure| verdict(*figure).is_some());
    let intervals =
        intervals(main_of_all.iter().flatten().map(|figure| figure.against_baseline.as_ref()));
    // Once for all cells: a title depends on all of them.
    let titled = |figure: Figure| (figure, number_column(figure_title(view, stage, figure)));
    let figures: Vec<(Figure, Column)> =
        shown_figures(view, stage).into_iter().map(titled).collect();
    let has_equal_runs = have_equal_runs(view);
    let cells = view.cells.iter().zip(main_of_all).enumerate();
    Table::from_items(title, cells, |(at, (cell, of_main))| {
        let mut row = settings(view, cell);
        if !has_equal_runs {
            row.push((number_column("runs"), runs_text(&cell.group).into()));
        }
        for (figure, column) in &figures {
            let (figure, column) = (*figure, column.clone());
            let measured = cell.group.figure(stage, figure);
            if figure == main {
                let bar = |value| Cell::from(main.text(value)).with_bar(value / most);
                row.push((column, or_empty(measured.map(|measured| bar(measured.estimate.value)))));
                let reach = measured.and_then(|measured| reach(&measured.estimate));
                row.push((number_column("±").optional(), or_empty(reach)));
            } else {
                let is_optional = figure == Figure::StatementsPerS;
                let column = if is_optional { column.optional() } else { column };
                row.push((column, or_empty(measured.map(FigureView::text))));
            }
        }
        row.extend(against_baseline(view, at, main, of_main, &intervals));
        let marks = if is_main { marks(view, at, cell) } else { Vec::new() };
        let words = verdict(of_main).map(str::to_owned).into_iter().chain(marks);
        row.push((
            text_column(if has_verdict { "verdict" } else { "" }),
            joined(words, ", ").into(),
        ));
        row
    })
}

/// What a transaction of the main stage cost in each cell, relative to the baseline.
fn costs(view: &StudyView) -> Option<Table> {
    let stage = view.main_stage;
    let is_counted = |figure: &Figure| {
        let mut values = view.cells.iter().filter_map(|cell| cell.group.figure(stage, *figure));
        values.any(|measured| measured.estimate.value != 0.0)
    };
    let figures: Vec<Figure> = Figure::costs().filter(is_counted).collect();
    if figures.is_empty() {
        return None;
    }
    let cells = view.cells.iter().filter(|cell| !cell.group.stages.is_empty());
    let cells: Vec<&CellView> = cells.collect();
    let compared = cells.iter().flat_map(|cell| {
        let of_cell = figures.iter().map(|figure| cell.group.figure(stage, *figure));
        of_cell.map(|measured| measured.and_then(|measured| measured.against_baseline.as_ref()))
    });
    let intervals = intervals(compared);
    let change = |against: &Against| match against.interval {
        Some(interval) => intervals.text(interval),
        None => change_text(against.ratio),
    };
    let title = "Cost per transaction";
    // With more than two cells, each cell is a row.
    if cells.len() > 2 {
        let table = Table::from_items(title, &view.cells, |cell| {
            let mut row = settings(view, cell);
            row.extend(figures.iter().map(|&figure| {
                let text = cell.group.figure(stage, figure).map(|measured| {
                    let change = measured.against_baseline.as_ref().map(change);
                    let change = change.map_or_else(String::new, |change| format!(" ({change})"));
                    format!("{}{change}", measured.text())
                });
                (number_column(figure.name()).optional(), or_empty(text))
            }));
            row
        });
        return Some(table.with_note(format!("in parentheses: change, {}", intervals.title)));
    }
    let change_title = format!("change, {}", intervals.title);
    Some(Table::from_items(title, figures, |figure| {
        let by_cell = || cells.iter().map(|cell| (cell, cell.group.figure(stage, figure)));
        let against = by_cell().find_map(|(_, measured)| measured?.against_baseline.as_ref());
        let values = by_cell().map(|(cell, measured)| {
            (number_column(&cell.name), measured.map(FigureView::text).into())
        });
        let mut row = vec![(text_column("cost"), figure.name().into())];
        row.extend(values);
        row.push((number_column(&change_title), against.map(change).into()));
        row
    }))
}

/// The parts of the time of a transaction in the two cells of the improvement.
fn time(view: &StudyView) -> Option<Table> {
    let (time, improvement) = view.time.as_ref().zip(view.improvement.as_ref())?;
    let time = Some(time).filter(|time| !time.parts.is_empty())?;
    let [from, to] = differing_names(view, improvement.from, improvement.to);
    Some(why::table("Time of a transaction".to_owned(), [&from, &to], time))
}

/// The figures with a column, in their order.
fn shown_figures(view: &StudyView, stage: usize) -> Vec<Figure> {
    let value = |cell: &CellView, figure| Some(cell.group.figure(stage, figure)?.estimate.value);
    let any = |is: &dyn Fn(&CellView) -> Option<bool>| {
        view.cells.iter().any(|cell| is(cell) == Some(true))
    };
    let is_shown = |figure: &Figure| match *figure {
        // One statement a transaction: the same figure again.
        Figure::StatementsPerS => any(&|cell| {
            let per_s = value(cell, Figure::TransactionsPerS)?;
            Some(value(cell, Figure::StatementsPerS)? > per_s * 1.01)
        }),
        Figure::ErrorsPerS => any(&|cell| Some(value(cell, Figure::ErrorsPerS)? > 0.0)),
        Figure::ClientCpus => false,
        figure if figure.is_cost() => false,
        Figure::P95Us => true,
        Figure::P99Us => view.main == Figure::P99Us,
        // Few runs of an experiment have enough transactions for the highest ones.
        figure if figure.is_percentile() => false,
        Figure::ReadMbS | Figure::WriteMbS => {
            any(&|cell| Some(value(cell, Figure::Seconds).is_some()))
        }
        _ => true,
    };
    Figure::ALL.into_iter().filter(is_shown).collect()
}

/// Scaling factor, change and interval of the main figure relative to the baseline.
fn against_baseline(
    view: &StudyView,
    at: usize,
    main: Figure,
    measured: Option<&FigureView>,
    intervals: &IntervalColumn,
) -> Vec<(Column, Cell)> {
    let Some(baseline) = view.baseline.filter(|_| view.cells.len() > 1) else {
        return Vec::new();
    };
    let against = measured.and_then(|measured| measured.against_baseline.as_ref());
    // How many times as fast: the inverse of a duration.
    let speed = |against: &Against| match main.direction() {
        Direction::HigherIsBetter => against.ratio,
        Direction::LowerIsBetter => 1.0 / against.ratio.max(f64::MIN_POSITIVE),
    };
    let of_baseline = measured.filter(|_| at == baseline).map(|_| 1.0);
    let times = against.map(speed).or(of_baseline).map(|times| format!("{}x", factor(times)));
    let interval_of = against.and_then(|against| against.interval);
    vec![
        (number_column(FACTOR), or_empty(times)),
        (
            number_column(CHANGE).optional(),
            or_empty(against.map(|against| change_text(against.ratio))),
        ),
        (
            intervals.column().optional(),
            or_empty(interval_of.map(|interval| intervals.text(interval))),
        ),
    ]
}

/// Whether the cell is the baseline or the best, misses a threshold or lacks runs.
fn marks(view: &StudyView, at: usize, cell: &CellView) -> Vec<String> {
    let mut words = Vec::new();
    if view.baseline == Some(at) && view.cells.len() > 1 {
        words.push("baseline".to_owned());
    }
    if view.best == Some(at) && view.kind == StudyKind::Sweep {
        words.push("best".to_owned());
    }
    words.extend(missed(&cell.group));
    words.extend(failed(&cell.group));
    words
}

fn have_equal_runs(view: &StudyView) -> bool {
    let mut counts = view.groups().map(|group| group.runs);
    let first = counts.next().unwrap_or_default();
    first.failed + first.invalid == 0 && counts.all(|runs| runs == first)
}

fn summary(view: &StudyView, improvement: &Improvement) -> Table {
    let [from, to] = differing_names(view, improvement.from, improvement.to);
    let intervals = intervals(improvement.rows.iter().map(|row| row.against.as_ref()));
    let table = Table::from_items("Improvement", &improvement.rows, |row| {
        let against = row.against.as_ref();
        let interval_of = against.and_then(|against| against.interval);
        [
            (text_column("figure"), figure_title(view, view.main_stage, row.figure).into()),
            (number_column(&from), row.figure.text(row.from).into()),
            (number_column(&to), row.figure.text(row.to).into()),
            (number_column("change"), row.text.as_str().into()),
            (
                intervals.column().optional(),
                interval_of.map(|interval| intervals.text(interval)).into(),
            ),
            (text_column("verdict"), against.and_then(verdict_text).into()),
        ]
    });
    Table { note: summary_note(improvement, view.ab.is_some()), ..table }
}

/// Returns the note below the table: why the intervals have another level, and why a change differs from the ratio of
/// the two values.
fn summary_note(improvement: &Improvement, is_test: bool) -> Option<String> {
    let mut against = improvement.rows.iter().filter_map(|row| row.against.as_ref());
    let has_intervals = against.any(|against| against.interval.is_some());
    let level = (is_test && has_intervals)
        .then(|| "the intervals use the significance level of the last look".to_owned());
    let differs = |row: &ImprovementRow| {
        let ratio = row.against.as_ref().map(|against| against.ratio / (row.to / row.from));
        ratio.is_some_and(|ratio| (ratio - 1.0).abs() > EXPLAINED_FROM)
    };
    let differs = improvement.rows.iter().any(differs).then(|| {
        "the changes are computed from geometric means within rounds; with noisy runs, they differ from the ratio of the values".to_owned()
    });
    let notes: Vec<String> = level.into_iter().chain(differs).collect();
    (!notes.is_empty()).then(|| notes.join("; "))
}

/// The names of two cells: only the values that differ, without their axis if it is only one.
fn differing_names(view: &StudyView, from: usize, to: usize) -> [String; 2] {
    let values = |at: usize| view.cells.get(at).map_or(&[][..], |cell| cell.values.as_slice());
    let differing: Vec<usize> = values(from)
        .iter()
        .zip(values(to))
        .enumerate()
        .filter_map(|(at, (one, other))| (one != other).then_some(at))
        .collect();
    let name = |cell: usize| {
        let parts = differing.iter().filter_map(|&at| {
            let (axis, value) = (view.axes.get(at)?, values(cell).get(at)?);
            let is_only = differing.len() == 1;
            Some(if is_only { value.clone() } else { format!("{}={value}", axis.name) })
        });
        joined(parts, " ")
    };
    [name(from), name(to)]
}

fn axis_effect(view: &StudyView, effect: &AxisEffect) -> Table {
    let main = figure_title(view, view.main_stage, view.main);
    let compared = effect.values.iter().flat_map(|value| [&value.main, &value.latency]);
    let intervals = intervals(compared.map(Option::as_ref));
    let cells = |title: &str, against: Option<&Against>, is_first: bool| {
        let change = against.map(|against| change_text(against.ratio));
        let interval_of = against.and_then(|against| against.interval);
        [
            (number_column(title), if is_first { "reference".into() } else { change.into() }),
            (
                intervals.column().optional(),
                interval_of.map(|interval| intervals.text(interval)).into(),
            ),
            (text_column("verdict"), against.and_then(verdict_text).into()),
        ]
    };
    let has_latency = effect.values.iter().any(|value| value.latency.is_some());
    let (title, values) = (format!("Effect of {}", effect.axis), effect.values.iter().enumerate());
    let table = Table::from_items(title, values, |(at, value)| {
        let mut row = vec![(text_column(&effect.axis), value.value.as_str().into())];
        row.extend(cells(&main, value.main.as_ref(), at == 0));
        row.extend(cells("p95", value.latency.as_ref(), at == 0 && has_latency));
        row
    });
    let combinations = number_of(effect.combinations as u64, "combination");
    table.with_note(format!("geometric mean over {combinations} of the other settings"))
}
