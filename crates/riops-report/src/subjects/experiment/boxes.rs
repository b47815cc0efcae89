//! The main figure of each run, as a box plot: a box for each cell or level, with a dot for each run.

use crate::chart::{
    Axis, AxisScale, Chart, Content, Estimated, PointSeries, PointStyle, Unit, rounded,
};
use crate::table::{Cell, Table, number_column, text_column};
use riops_model::stats::{median, quartiles};
use riops_model::study::evaluation::{StudyKind, StudyView};
use riops_model::units::format::joined;

/// Fewest runs of a group with a box: fewer are their own quartiles.
const RUNS_MIN: usize = 4;
/// With a larger ratio of the highest and the lowest run, boxes on one axis would be lines: they are drawn relative to their medians.
const SPAN_MAX: f64 = 3.0;

/// Returns the chart; `None` if fewer than two cells or levels have enough runs.
pub(super) fn chart(view: &StudyView) -> Option<Chart> {
    let figure = view.main;
    let (names, groups) = groups(view);
    if groups.len() < 2 {
        return None;
    }
    let ends = |runs: &[f64]| {
        let lowest = runs.iter().copied().fold(f64::INFINITY, f64::min);
        (lowest, runs.iter().copied().fold(0.0, f64::max))
    };
    let (lowest, highest) = ends(&groups.concat());
    let is_relative = highest > lowest * SPAN_MAX;
    let points = (0..).zip(&groups).map(|(at, runs)| {
        let factor = if is_relative { 100.0 / median(runs) } else { 1.0 };
        let values: Vec<f64> = runs.iter().map(|run| rounded(run * factor)).collect();
        Estimated {
            x: f64::from(at),
            y: median(&values),
            interval: Some(ends(&values)),
            quartiles: Some(quartiles(&values)),
            label: Some(figure.text(median(runs))),
            values,
            ..Estimated::default()
        }
    });
    let points: Vec<Estimated> = points.collect();
    let axis = match (view.kind, view.axes.as_slice()) {
        (StudyKind::Saturation, _) => "level",
        (_, [only]) => &only.name,
        _ => "cell",
    };
    let heading = figure.heading();
    let (relative, unit) = if is_relative {
        (", in percent of the median of the cell", Unit::Percent)
    } else {
        ("", Unit::for_figure(figure))
    };
    let x =
        Axis::new(axis, Unit::Count, AxisScale::Linear).within(-0.6..=points.len() as f64 - 0.4);
    // The title has the name of the figure.
    let y = Axis::new("", unit, AxisScale::Linear)
        .around(points.iter().flat_map(|point| point.values.iter().copied()));
    let summary = format!(
        "{heading} of each run{relative}: box from the first to the third quartile, line at the median, whiskers to the lowest and the highest run."
    );
    let rows = groups.iter().zip(&names);
    let table = Table::from_items("Runs", rows, |(runs, name)| {
        let ((lowest, highest), (first, third)) = (ends(runs), quartiles(runs));
        let heads = ["lowest", "first quartile", "median", "third quartile", "highest"];
        let values = heads.into_iter().zip([lowest, first, median(runs), third, highest]);
        let values = values.map(|(head, value)| (number_column(head), figure.text(value).into()));
        let count = (number_column("runs"), runs.len().to_string().into());
        let first = [(text_column(axis), Cell::from(name.clone())), count];
        first.into_iter().chain(values).collect::<Vec<_>>()
    });
    let ticks = points.iter().map(|point| point.x).collect();
    let series = vec![PointSeries { label: heading.to_owned(), style: PointStyle::Boxes, points }];
    let content = Content::Points { ticks, names, series };
    let title = format!("Runs: {heading}{relative}");
    Some(Chart::new("study-runs", title, summary, [x, y], content).with_table(table))
}

/// The names of the cells and levels that have enough runs, and the values of their runs.
fn groups(view: &StudyView) -> (Vec<String>, Vec<Vec<f64>>) {
    let groups = view.cells.iter().flat_map(|cell| {
        cell.groups().filter_map(move |(level, group)| {
            let own = if view.axes.len() == 1 { cell.values.first() } else { Some(&cell.name) };
            let own = own.filter(|_| view.cells.len() > 1).cloned();
            let names = own.into_iter().chain(level.map(|level| level.to_string()));
            let runs = &view.main_of(group)?.estimate.runs;
            let has_box = runs.len() >= RUNS_MIN && median(runs) > 0.0;
            has_box.then(|| (joined(names, ", "), runs.clone()))
        })
    });
    groups.unzip()
}
