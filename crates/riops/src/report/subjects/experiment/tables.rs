//! The tables of an experiment: the same for the terminal, Markdown and the page.

use super::cells::{
    figure_title, interval, missed, reach, runs_text, setting_cells, setting_columns, verdict_text,
};
use crate::experiment::comparison::Change;
use crate::experiment::evaluation::{
    Against, AxisEffect, CellView, FigureView, Improvement, ImprovementRow, StudyKind, StudyView,
};
use crate::figure::Figure;
use crate::report::effect::{change_interval, change_text};
use crate::report::sections::why;
use crate::report::table::{Cell, Column, Table, number, word};
use crate::stats::Direction;
use crate::units::format::{factor, number_of, percent};

/// A change is explained if its ratio differs by more than this share from that of the two values beside it.
const EXPLAINED_FROM: f64 = 0.01;

/// Returns all tables in their order.
pub(super) fn tables(view: &StudyView) -> Vec<Table> {
    if view.kind == StudyKind::Saturation {
        return super::saturation::tables(view);
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

/// What differs between two cells, apart from their figures.
fn differences(view: &StudyView) -> Option<Table> {
    let [one, other] = view.cells.as_slice() else {
        return None;
    };
    let row = |change: &Change| {
        let name = format!("{}: {}", change.topic.name(), change.name);
        vec![name.into(), change.a.as_str().into(), change.b.as_str().into()]
    };
    let columns = [word("property"), word(&one.name), word(&other.name)];
    Table::new("What differs", columns, view.differences.iter().map(row)).filled()
}

/// A column with its cell for a group of runs.
type Entry<'a> = (Column, Of<'a>);

/// The cell of the table for a cell of the experiment and its index.
type Of<'a> = Box<dyn Fn(usize, &CellView) -> Option<Cell> + 'a>;

/// The tables of the cells: one for each stage that is a session loop, and one for statements that ran once.
fn cells(view: &StudyView) -> Vec<Table> {
    let is_once = |stage: usize| {
        let mut found = view.cells.iter().filter_map(|cell| cell.group.stages.get(stage));
        found.any(|stage| {
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
    let mut columns: Vec<Entry<'_>> = Vec::new();
    if !have_equal_runs(view) {
        columns.push((number("runs"), Box::new(|_, cell| Some(runs_text(&cell.group).into()))));
    }
    let of = move |figure: Figure| -> Of<'static> {
        Box::new(move |_, cell: &CellView| {
            let found = cell.group.figure(stage, figure)?;
            Some(found.text().into())
        })
    };
    let most = view
        .cells
        .iter()
        .filter_map(|cell| Some(cell.group.figure(stage, main)?.estimate.value))
        .fold(0.0, f64::max);
    for figure in shown_figures(view, stage) {
        let title = figure_title(view, stage, figure);
        if figure == main {
            columns.push((
                number(title),
                Box::new(move |_, cell| {
                    let value = cell.group.figure(stage, main)?.estimate.value;
                    let text = Cell::from(main.text(value));
                    Some(text.with_bar(value / most.max(f64::MIN_POSITIVE)))
                }),
            ));
            columns.push((
                number("±").optional(),
                Box::new(move |_, cell| {
                    reach(&cell.group.figure(stage, main)?.estimate).map(Cell::from)
                }),
            ));
        } else {
            let column = number(title);
            let is_optional = figure == Figure::StatementsPerS;
            columns.push((if is_optional { column.optional() } else { column }, of(figure)));
        }
    }
    columns.extend(against_columns(view, stage, main));
    let verdict = move |cell: &CellView| {
        let found = cell.group.figure(stage, main)?.against_baseline.as_ref()?;
        verdict_text(found)
    };
    let has_verdict = view.cells.iter().any(|cell| verdict(cell).is_some());
    columns.push((
        word(if has_verdict { "verdict" } else { "" }),
        Box::new(move |at, cell| {
            let mut words: Vec<String> = verdict(cell).map(str::to_owned).into_iter().collect();
            if is_main {
                words.extend(marks(view, at, cell));
            }
            (!words.is_empty()).then(|| words.join(", ").into())
        }),
    ));
    filled(view, title, &columns)
}

/// What a transaction of the main stage cost in each cell, relative to the baseline.
fn costs(view: &StudyView) -> Option<Table> {
    let stage = view.main_stage;
    let is_counted = |figure: &Figure| {
        let mut values = view.cells.iter().filter_map(|cell| cell.group.figure(stage, *figure));
        values.any(|found| found.estimate.value != 0.0)
    };
    let cells = view.cells.iter().filter(|cell| !cell.group.stages.is_empty());
    let cells: Vec<&CellView> = cells.collect();
    let change = |against: &Against| match against.interval {
        Some(interval) => change_interval(interval),
        None => change_text(against.ratio),
    };
    let title = "Cost per transaction";
    // Of many cells, each is a row.
    if cells.len() > 2 {
        let entries: Vec<Entry<'_>> = Figure::costs()
            .filter(is_counted)
            .map(|figure| -> Entry<'_> {
                let text = move |_, cell: &CellView| {
                    let found = cell.group.figure(stage, figure)?;
                    let change = found.against_baseline.as_ref().map(change);
                    let change = change.map_or_else(String::new, |change| format!(" ({change})"));
                    Some(format!("{}{change}", found.text()).into())
                };
                (number(figure.name()).optional(), Box::new(text))
            })
            .collect();
        return (!entries.is_empty()).then(|| filled(view, title.to_owned(), &entries));
    }
    let names = cells.iter().map(|cell| number(&cell.name));
    let columns = std::iter::once(word("cost")).chain(names).chain([number("change")]);
    let row = |figure: Figure| {
        let found: Vec<_> = cells.iter().map(|cell| cell.group.figure(stage, figure)).collect();
        let against = found.iter().flatten().find_map(|each| each.against_baseline.as_ref());
        let values = found.iter().map(|found| found.map(FigureView::text).into());
        let name: Cell = figure.name().into();
        std::iter::once(name).chain(values).chain([against.map(change).into()]).collect()
    };
    Table::new(title, columns, Figure::costs().filter(is_counted).map(row)).filled()
}

/// The parts of the time of a transaction in the two cells of the improvement.
fn time(view: &StudyView) -> Option<Table> {
    let (time, improvement) = view.time.as_ref().zip(view.improvement.as_ref())?;
    let [from, to] = differing_names(view, improvement.from, improvement.to);
    Some(why::table("Time of a transaction".to_owned(), [&from, &to], time))
}

/// The table of all cells.
fn filled(view: &StudyView, title: String, entries: &[Entry<'_>]) -> Table {
    let columns = entries.iter().map(|(column, _)| column.clone());
    let row = |(at, cell): (usize, &CellView)| {
        let values = entries.iter().map(|(_, of)| of(at, cell).unwrap_or_else(|| "".into()));
        setting_cells(view, cell).into_iter().chain(values).collect()
    };
    let rows = view.cells.iter().enumerate().map(row);
    Table::new(title, setting_columns(view).into_iter().chain(columns), rows)
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

/// Scaling factor, change, interval and verdict relative to the baseline.
fn against_columns(view: &StudyView, stage: usize, main: Figure) -> Vec<Entry<'static>> {
    let Some(baseline) = view.baseline.filter(|_| view.cells.len() > 1) else {
        return Vec::new();
    };
    let found = move |cell: &CellView| -> Option<Against> {
        cell.group.figure(stage, main)?.against_baseline.clone()
    };
    let has_figure = move |cell: &CellView| cell.group.figure(stage, main).is_some();
    vec![
        (
            number("factor"),
            Box::new(move |at, cell| match found(cell) {
                None if at == baseline && has_figure(cell) => Some("1.00x".into()),
                against => Some(format!("{}x", factor(speed(main, against?.ratio))).into()),
            }),
        ),
        (
            number("vs. baseline").optional(),
            Box::new(move |_, cell| Some(change_text(found(cell)?.ratio).into())),
        ),
        (interval(), Box::new(move |_, cell| Some(change_interval(found(cell)?.interval?).into()))),
    ]
}

/// How many times as fast: the inverse of a duration.
fn speed(figure: Figure, ratio: f64) -> f64 {
    match figure.direction() {
        Direction::HigherIsBetter => ratio,
        Direction::LowerIsBetter => 1.0 / ratio.max(f64::MIN_POSITIVE),
    }
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
    let runs = cell.group.runs;
    if runs.usable == 0 && runs.failed + runs.invalid > 0 {
        words.push(if runs.failed > 0 { "FAILED" } else { "NOT VALID" }.to_owned());
    }
    words
}

fn have_equal_runs(view: &StudyView) -> bool {
    let mut counts = view.groups().map(|group| group.runs);
    let first = counts.next().unwrap_or_default();
    first.failed + first.invalid == 0 && counts.all(|each| each == first)
}

fn summary(view: &StudyView, improvement: &Improvement) -> Table {
    let [from, to] = differing_names(view, improvement.from, improvement.to);
    // The intervals of a look of an A/B test have its level.
    let level = view.ab.as_ref().and_then(|test| test.level).filter(|level| *level > 0.0);
    let columns =
        [word("figure"), number(from), number(to), number("change"), interval(), word("verdict")];
    let rows = improvement.rows.iter().map(|row| {
        let against = row.against.as_ref();
        let interval = against.and_then(|against| against.interval);
        vec![
            figure_title(view, view.main_stage, row.figure).into(),
            row.figure.text(row.from).into(),
            row.figure.text(row.to).into(),
            row.text.as_str().into(),
            interval.map(change_interval).into(),
            against.and_then(verdict_text).into(),
        ]
    });
    Table { note: summary_note(improvement, level), ..Table::new("Improvement", columns, rows) }
}

/// What the rows do not show: the level of their intervals, and that a change is not that of the two values.
fn summary_note(improvement: &Improvement, level: Option<f64>) -> Option<String> {
    let level = level.map(|level| percent(1.0 - level)).filter(|level| level != "95%");
    let level = level
        .map(|level| format!("the intervals are those of the last look: {level} instead of 95%"));
    let differs = |row: &ImprovementRow| {
        let of_values = row.to / row.from;
        row.against
            .as_ref()
            .is_some_and(|against| (against.ratio / of_values - 1.0).abs() > EXPLAINED_FROM)
    };
    let differs = improvement.rows.iter().any(differs).then(|| {
        "the changes are those of the geometric means within blocks; with noisy runs, they differ from those of the values".to_owned()
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
            Some(if differing.len() == 1 {
                value.clone()
            } else {
                format!("{}={value}", axis.name)
            })
        });
        parts.collect::<Vec<_>>().join(" ")
    };
    [name(from), name(to)]
}

fn axis_effect(view: &StudyView, effect: &AxisEffect) -> Table {
    let main = figure_title(view, view.main_stage, view.main);
    let mut columns = vec![word(&effect.axis)];
    for title in [main.as_str(), "p95"] {
        columns.extend([number(title), interval(), word("verdict")]);
    }
    let cells = |against: Option<&Against>, is_first: bool| {
        let change = against.map(|against| change_text(against.ratio));
        [
            if is_first { "reference".into() } else { change.into() },
            against.and_then(|against| against.interval).map(change_interval).into(),
            against.and_then(verdict_text).into(),
        ]
    };
    let has_latency = effect.values.iter().any(|value| value.latency.is_some());
    let rows = effect.values.iter().enumerate().map(|(at, value)| {
        let mut row: Vec<Cell> = vec![value.value.as_str().into()];
        row.extend(cells(value.main.as_ref(), at == 0));
        row.extend(cells(value.latency.as_ref(), at == 0 && has_latency));
        row
    });
    Table::new(format!("Effect of {}", effect.axis), columns, rows).with_note(format!(
        "geometric mean over {} of the other settings",
        number_of(effect.combinations as u64, "combination")
    ))
}
