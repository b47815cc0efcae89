//! The charts of a sweep: throughput against an axis, latency against throughput, origin of the blocks. All with
//! the 95 % intervals of their values.

use crate::chart::{
    Axis, AxisScale, Chart, Content, Estimated, Plot, PointSeries, PointStyle, Unit,
};
use crate::subjects::experiment::boxes;
use crate::subjects::experiment::cells::figure_title;
use crate::subjects::experiment::chart_axes::{
    estimated, from_zero, interval_words, latency_chart, latency_point, line, range_of,
};
use crate::table::{Cell, Table, number_column, text_column};
use riops_model::figure::Estimate;
use riops_model::stats::Interval;
use riops_model::study::evaluation::{AxisView, CellView, SourcesView, StudyKind, StudyView};

/// Numeric axes with fewer values are shown as categories.
const NUMBERS_MIN: usize = 3;
/// Combinations of the other axes up to which the origin of the blocks is drawn.
const SOURCES_COMBINATIONS_MAX: usize = 2;

/// Returns the charts in their order.
pub(super) fn charts(view: &StudyView) -> Vec<Chart> {
    if view.kind == StudyKind::Saturation {
        return super::saturation::charts::charts(view)
            .into_iter()
            .chain(boxes::chart(view))
            .collect();
    }
    let Some(across) = Across::from_view(view) else {
        return Vec::new();
    };
    let mut charts: Vec<Chart> = main(view, &across).into_iter().collect();
    charts.extend(super::heat::charts(view));
    let others = [
        boxes::chart(view),
        super::frontier::chart(view),
        sources(view, &across),
        latency(view, &across),
    ];
    charts.extend(others.into_iter().flatten());
    charts
}

/// The horizontal axis, and the cells of each combination of the others.
pub(super) struct Across<'a> {
    axis: &'a AxisView,
    is_numeric: bool,
    /// Label of the combination, and its cells in the order of their positions.
    series: Vec<(String, Vec<Placed<'a>>)>,
}

/// A cell with its value of the axis, and the position of that: its number, or its place in the list.
struct Placed<'a> {
    x: f64,
    value: &'a String,
    cell: &'a CellView,
}

impl<'a> Across<'a> {
    /// The numeric axis with the most values, otherwise the axis with the most values.
    fn from_view(view: &'a StudyView) -> Option<Self> {
        let is_numeric = |axis: &AxisView| {
            axis.numbers.as_ref().is_some_and(|numbers| numbers.len() >= NUMBERS_MIN)
        };
        let (at, axis) = view
            .axes
            .iter()
            .enumerate()
            .filter(|(_, axis)| axis.values.len() > 1)
            // max_by_key returns the last of several maxima: the first axis of the experiment is preferred.
            .rev()
            .max_by_key(|(_, axis)| (is_numeric(axis), axis.values.len()))?;
        let numbers = axis.numbers.as_ref().filter(|_| is_numeric(axis));
        let placed = |cell: &'a CellView| {
            let value = cell.values.get(at)?;
            let place = axis.values.iter().position(|other| other == value)?;
            let coordinate = numbers.map(|numbers| numbers.get(place).copied().unwrap_or_default());
            Some(Placed { x: coordinate.unwrap_or(place as f64), value, cell })
        };
        let series = view.combinations(&[at]).into_iter().map(|(label, cells)| {
            let mut cells: Vec<_> = cells.into_iter().filter_map(placed).collect();
            cells.sort_by(|one, other| one.x.total_cmp(&other.x));
            (label, cells)
        });
        Some(Self { axis, is_numeric: numbers.is_some(), series: series.collect() })
    }

    fn cells(&self) -> impl Iterator<Item = &Placed<'a>> {
        self.series.iter().flat_map(|(_, cells)| cells)
    }

    fn axis(&self) -> Axis {
        let (range, scale) = if self.is_numeric {
            range_of(self.ticks().0.into_iter())
        } else {
            (-0.6..=self.axis.values.len() as f64 - 0.4, AxisScale::Linear)
        };
        Axis::new(&self.axis.name, Unit::Count, scale).within(range)
    }

    fn style(&self) -> PointStyle {
        if self.is_numeric { PointStyle::Line } else { PointStyle::Bars }
    }

    /// Positions and names of the values that were measured, ascending.
    fn ticks(&self) -> (Vec<f64>, Vec<String>) {
        let mut ticks: Vec<_> =
            self.cells().map(|placed| (placed.x, placed.value.clone())).collect();
        ticks.sort_by(|one, other| one.0.total_cmp(&other.0));
        ticks.dedup_by(|one, other| one.0 == other.0);
        ticks.into_iter().unzip()
    }

    /// The chart of values against the axis, with the values as a table.
    fn chart(
        &self,
        [id, title, summary]: [String; 3],
        y: Axis,
        series: Vec<PointSeries>,
        text: impl Fn(f64) -> String,
    ) -> Chart {
        let table = data(self, &series, text);
        let summary = summary + interval_words(&series);
        let (ticks, names) = self.ticks();
        let content = Content::Points { ticks, names, series };
        let chart = Chart::new(id, title, summary, [self.axis(), y], content).with_table(table);
        Chart { plot: Plot { sync: Some("study".to_owned()), ..chart.plot }, ..chart }
    }
}

fn points(cells: &[Placed<'_>], value: impl Fn(&CellView) -> Option<Estimate>) -> Vec<Estimated> {
    let point = |placed: &Placed<'_>| Some(estimated(placed.x, &value(placed.cell)?));
    cells.iter().filter_map(point).collect()
}

/// The main figure against the axis.
fn main(view: &StudyView, across: &Across<'_>) -> Option<Chart> {
    let figure = view.main;
    let name = figure_title(view, view.main_stage, figure);
    let estimate = |cell: &CellView| Some(view.main_of(&cell.group)?.estimate.clone());
    let series = across.series.iter().map(|(label, cells)| PointSeries {
        label: if label.is_empty() { name.clone() } else { label.clone() },
        style: across.style(),
        points: points(cells, estimate),
    });
    let series: Vec<_> = series.filter(|series| !series.points.is_empty()).collect();
    let values =
        || across.cells().filter_map(|placed| Some((estimate(placed.cell)?.value, placed.value)));
    let least = values().min_by(|one, other| one.0.total_cmp(&other.0))?;
    let most = values().max_by(|one, other| one.0.total_cmp(&other.0))?;
    let [from, to] = [least, most]
        .map(|(value, name)| format!("{} at {}={name}", figure.text(value), across.axis.name));
    let title = format!("{name} by {}", across.axis.name);
    let texts = ["study-main".to_owned(), title, format!("{name} from {from} to {to}.")];
    let y = from_zero(&name, Unit::for_figure(figure), &series);
    Some(across.chart(texts, y, series, |value| figure.text(value)))
}

/// The values of a chart with their intervals: a row for each value of the axis.
fn data(across: &Across<'_>, series: &[PointSeries], text: impl Fn(f64) -> String) -> Table {
    let (positions, names) = across.ticks();
    let cell = |point: &Estimated| match point.interval {
        Some((low, high)) => format!("{} ({} to {})", text(point.y), text(low), text(high)),
        None => text(point.y),
    };
    let rows = positions.iter().zip(names);
    Table::from_items("Values with their 95% intervals", rows, |(position, name)| {
        let values = series.iter().map(|one_series| {
            let at_position =
                one_series.points.iter().find(|point| point.x.total_cmp(position).is_eq());
            (number_column(&one_series.label), at_position.map(cell).into())
        });
        let name = (text_column(&across.axis.name), Cell::from(name));
        std::iter::once(name).chain(values).collect::<Vec<_>>()
    })
}

/// Latency against throughput: a point for each cell, labeled with the value of the axis.
fn latency(view: &StudyView, across: &Across<'_>) -> Option<Chart> {
    if !across.is_numeric || view.main != view.throughput() {
        return None;
    }
    let point = |placed: &Placed<'_>| latency_point(view, &placed.cell.group, placed.value.clone());
    let series = across.series.iter().filter_map(|(label, cells)| {
        let label = if label.is_empty() { "p95" } else { label.as_str() };
        line(label.to_owned(), cells.iter().filter_map(point).collect())
    });
    let series: Vec<PointSeries> = series.collect();
    let points: usize = series.iter().map(|one_series| one_series.points.len()).sum();
    let what = format!("value of {}", across.axis.name);
    (points >= NUMBERS_MIN).then(|| latency_chart(view, series, &what))
}

/// A share of the accesses to blocks.
type Pick = fn(&SourcesView) -> Option<&Estimate>;

/// Where the blocks of the rows came from, against the axis; `None` if that is the same everywhere.
fn sources(view: &StudyView, across: &Across<'_>) -> Option<Chart> {
    if !view.sources_vary() || across.series.len() > SOURCES_COMBINATIONS_MAX {
        return None;
    }
    let origins: [(&str, Pick); 3] = [
        ("shared buffers", |sources| Some(&sources.buffers)),
        ("page cache", |sources| sources.page_cache.as_ref()),
        ("device", |sources| sources.device.as_ref()),
    ];
    let mut series = Vec::new();
    for (label, cells) in &across.series {
        for (name, pick) in origins {
            let percent = |cell: &CellView| {
                let sources = cell.group.stages.get(view.main_stage)?.sources.as_ref()?;
                let share = pick(sources)?;
                let interval = share.interval.map(|interval| Interval {
                    low: interval.low * 100.0,
                    high: (interval.high * 100.0).min(100.0),
                });
                Some(Estimate { value: share.value * 100.0, interval, ..share.clone() })
            };
            let label = if label.is_empty() { name.to_owned() } else { format!("{name}, {label}") };
            let points = points(cells, percent);
            series.push(PointSeries { label, style: across.style(), points });
        }
    }
    series.retain(|one_series| !one_series.points.is_empty());
    let title = format!("Origin of the blocks by {}", across.axis.name);
    let summary = "Share of the block accesses that were found in shared buffers, in the page cache, or read from the device.".to_owned();
    let y = Axis::new("share of the blocks", Unit::Percent, AxisScale::Linear).within(0.0..=104.0);
    let texts = ["study-sources".to_owned(), title, summary];
    Some(across.chart(texts, y, series, |value| format!("{value:.1}%")))
}
