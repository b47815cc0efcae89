//! The charts of a sweep: throughput against an axis, latency against throughput, origin of the blocks. All with
//! the 95 % intervals of their values.

use crate::experiment::evaluation::{AxisView, CellView, SourcesView, StudyKind, StudyView};
use crate::figure::{Estimate, Figure};
use crate::report::chart::{
    Axis, AxisScale, Chart, Content, Estimated, Plot, PointSeries, PointStyle, Unit, rounded,
};
use crate::report::subjects::experiment::cells::figure_title;
use crate::report::subjects::experiment::chart_axes::{
    HEADROOM, estimated, from_zero, interval_words, latency_axis, range_of, unit,
};
use crate::report::subjects::experiment::limits::sources_vary;
use crate::report::table::{Cell, Table, number, word};

/// Numeric axes with fewer values are shown as categories.
const NUMBERS_MIN: usize = 3;
/// Combinations of the other axes up to which the origin of the blocks is drawn.
const SOURCES_COMBINATIONS_MAX: usize = 2;

/// Returns the charts in their order.
pub(super) fn charts(view: &StudyView) -> Vec<Chart> {
    if view.kind == StudyKind::Saturation {
        return super::saturation::charts(view);
    }
    let Some(across) = Across::of(view) else {
        return Vec::new();
    };
    let latency = latency(view, &across);
    let mut charts: Vec<Chart> = main(view, &across).into_iter().collect();
    charts.extend(super::heat::charts(view));
    charts.extend(super::frontier::chart(view));
    charts.extend([sources(view, &across), latency].into_iter().flatten());
    charts
}

/// The horizontal axis, and the cells of each combination of the others.
pub(super) struct Across<'a> {
    name: &'a str,
    values: &'a [String],
    /// A position for each value: its number, or its place in the list.
    positions: Vec<f64>,
    is_numeric: bool,
    /// Label of the combination, and its cells with the index of their value.
    series: Vec<(String, Vec<(usize, &'a CellView)>)>,
}

impl<'a> Across<'a> {
    /// The numeric axis with the most values, otherwise the axis with the most values.
    fn of(view: &'a StudyView) -> Option<Self> {
        let is_numeric = |axis: &AxisView| {
            axis.numbers.as_ref().is_some_and(|numbers| numbers.len() >= NUMBERS_MIN)
        };
        let (at, axis) = view
            .axes
            .iter()
            .enumerate()
            .filter(|(_, axis)| axis.values.len() > 1)
            // Of several, max_by_key returns the last: the first of the experiment is preferred.
            .rev()
            .max_by_key(|(_, axis)| (is_numeric(axis), axis.values.len()))?;
        let numbers = axis.numbers.clone().filter(|_| is_numeric(axis));
        let is_numeric = numbers.is_some();
        let positions =
            numbers.unwrap_or_else(|| (0..axis.values.len()).map(|place| place as f64).collect());
        let mut series: Vec<(String, Vec<(usize, &CellView)>)> = Vec::new();
        let measured = view.cells.iter().filter(|cell| view.main_of(&cell.group).is_some());
        for cell in measured {
            let others = view.axes.iter().zip(&cell.values).enumerate();
            let others = others.filter(|(other, (axis, _))| *other != at && axis.values.len() > 1);
            let label: Vec<String> =
                others.map(|(_, (axis, value))| format!("{}={value}", axis.name)).collect();
            let label = label.join(" ");
            let value = cell.values.get(at)?;
            let place = axis.values.iter().position(|each| each == value)?;
            match series.iter_mut().find(|(known, _)| *known == label) {
                Some((_, cells)) => cells.push((place, cell)),
                None => series.push((label, vec![(place, cell)])),
            }
        }
        let position = |place: usize| positions.get(place).copied().unwrap_or_default();
        for (_, cells) in &mut series {
            cells.sort_by(|one, other| position(one.0).total_cmp(&position(other.0)));
        }
        Some(Self { name: &axis.name, values: &axis.values, positions, is_numeric, series })
    }

    fn position(&self, place: usize) -> f64 {
        self.positions.get(place).copied().unwrap_or_default()
    }

    fn value(&self, place: usize) -> &str {
        self.values.get(place).map_or("", String::as_str)
    }

    fn axis(&self) -> Axis {
        if self.is_numeric {
            let (range, scale) = range_of(self.ticks().0.into_iter());
            return Axis { range: Some(range), ..Axis::of(self.name, Unit::Count, scale) };
        }
        let range = Some((-0.6, self.positions.len() as f64 - 0.4));
        Axis { range, ..Axis::of(self.name, Unit::Count, AxisScale::Linear) }
    }

    /// Positions and names of the values that were measured, ascending.
    fn ticks(&self) -> (Vec<f64>, Vec<String>) {
        let is_measured = |place: usize| {
            self.series.iter().any(|(_, cells)| cells.iter().any(|(at, _)| *at == place))
        };
        let places = self.positions.iter().copied().zip(self.values.iter().cloned()).enumerate();
        let mut ticks: Vec<(f64, String)> =
            places.filter(|(place, _)| is_measured(*place)).map(|(_, tick)| tick).collect();
        ticks.sort_by(|one, other| one.0.total_cmp(&other.0));
        ticks.into_iter().unzip()
    }

    fn points(
        &self,
        cells: &[(usize, &CellView)],
        value: impl Fn(&CellView) -> Option<Estimate>,
    ) -> Vec<Estimated> {
        let point = |(place, cell): &(usize, &CellView)| {
            Some(estimated(self.position(*place), &value(cell)?))
        };
        cells.iter().filter_map(point).collect()
    }
}

/// The main figure against the axis.
fn main(view: &StudyView, across: &Across<'_>) -> Option<Chart> {
    let figure = view.main;
    let name = figure_title(view, view.main_stage, figure);
    let style = if across.is_numeric { PointStyle::Line } else { PointStyle::Bars };
    let estimate =
        |cell: &CellView| Some(cell.group.figure(view.main_stage, figure)?.estimate.clone());
    let series: Vec<PointSeries> = across
        .series
        .iter()
        .map(|(label, cells)| PointSeries {
            label: if label.is_empty() { name.clone() } else { label.clone() },
            style,
            points: across.points(cells, estimate),
        })
        .filter(|series| !series.points.is_empty())
        .collect();
    if series.is_empty() {
        return None;
    }
    let text = |value: f64| figure.text(value);
    let mut values: Vec<(f64, &str)> = across
        .series
        .iter()
        .flat_map(|(_, cells)| cells)
        .filter_map(|(place, cell)| Some((estimate(cell)?.value, across.value(*place))))
        .collect();
    values.sort_by(|one, other| one.0.total_cmp(&other.0));
    let ends = values.first().zip(values.last()).map(|(least, most)| {
        format!(
            "{name} from {} at {}={} to {} at {}={}.",
            text(least.0),
            across.name,
            least.1,
            text(most.0),
            across.name,
            most.1
        )
    });
    let (ticks, names) = across.ticks();
    let words = interval_words(&series);
    Some(Chart {
        id: "study-main".to_owned(),
        title: format!("{name} by {}", across.name),
        summary: format!("{}{words}", ends.unwrap_or_default()),
        table: Some(data(across, &series, text)),
        plot: Plot {
            x: across.axis(),
            y: from_zero(&name, unit(figure), &series),
            marks: Vec::new(),
            sync: Some("study".to_owned()),
            content: Content::Points { ticks, names, series },
        },
    })
}

/// The values of a chart with their intervals: a row for each value of the axis.
fn data(across: &Across<'_>, series: &[PointSeries], text: impl Fn(f64) -> String) -> Table {
    let (positions, names) = across.ticks();
    let cell = |each: &PointSeries, position: f64| -> Cell {
        let found = each.points.iter().find(|point| point.x.total_cmp(&position).is_eq());
        found
            .map(|point| match point.interval {
                Some((low, high)) => format!("{} ({} to {})", text(point.y), text(low), text(high)),
                None => text(point.y),
            })
            .into()
    };
    let rows = positions.iter().zip(names).map(|(position, name)| {
        let cells = series.iter().map(|each| cell(each, *position));
        std::iter::once(name.into()).chain(cells).collect()
    });
    let columns = series.iter().map(|each| number(&each.label));
    let columns = std::iter::once(word(across.name)).chain(columns);
    Table::new("Values with their 95% intervals", columns, rows)
}

/// Latency against throughput: a point for each cell, labeled with the value of the axis.
fn latency(view: &StudyView, across: &Across<'_>) -> Option<Chart> {
    if !across.is_numeric || view.main != view.throughput() {
        return None;
    }
    let point = |(place, cell): &(usize, &CellView)| {
        let x = &cell.group.figure(view.main_stage, view.main)?.estimate;
        let y = &cell.group.figure(view.main_stage, Figure::P95Us)?.estimate;
        let x_interval = x.interval.map(|found| (rounded(found.low), rounded(found.high)));
        let label = Some(across.value(*place).to_owned());
        Some(Estimated { x_interval, label, ..estimated(rounded(x.value), y) })
    };
    let series: Vec<PointSeries> = across
        .series
        .iter()
        .map(|(label, cells)| PointSeries {
            label: if label.is_empty() { "p95".to_owned() } else { label.clone() },
            style: PointStyle::Line,
            points: cells.iter().filter_map(point).collect(),
        })
        .filter(|series| !series.points.is_empty())
        .collect();
    let points = || series.iter().flat_map(|each| &each.points);
    if points().count() < NUMBERS_MIN {
        return None;
    }
    let most = points().map(|point| point.x_interval.map_or(point.x, |(_, high)| high));
    let x_range = Some((0.0, most.fold(0.0, f64::max) * HEADROOM));
    let words = interval_words(&series);
    let name = view.main.heading();
    let y = latency_axis(&series);
    Some(Chart {
        id: "study-latency".to_owned(),
        title: "Latency against throughput".to_owned(),
        summary: format!(
            "p95 against {name}, a point for each value of {}: lower latency at higher throughput is better.{words}",
            across.name
        ),
        table: None,
        plot: Plot {
            x: Axis { range: x_range, ..Axis::of(name, Unit::PerSecond, AxisScale::Linear) },
            y,
            marks: Vec::new(),
            sync: None,
            content: Content::Points { ticks: Vec::new(), names: Vec::new(), series },
        },
    })
}

/// A share of the accesses to blocks.
type Pick = fn(&SourcesView) -> Option<&Estimate>;

/// Where the blocks of the rows came from, against the axis; `None` if that is the same everywhere.
fn sources(view: &StudyView, across: &Across<'_>) -> Option<Chart> {
    if !sources_vary(view) || across.series.len() > SOURCES_COMBINATIONS_MAX {
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
                let interval = share.interval.map(|found| crate::stats::Interval {
                    low: found.low * 100.0,
                    high: (found.high * 100.0).min(100.0),
                });
                Some(Estimate {
                    value: share.value * 100.0,
                    interval,
                    runs: Vec::new(),
                    at_least: false,
                })
            };
            let label = if label.is_empty() { name.to_owned() } else { format!("{name}, {label}") };
            let style = if across.is_numeric { PointStyle::Line } else { PointStyle::Bars };
            series.push(PointSeries { label, style, points: across.points(cells, percent) });
        }
    }
    series.retain(|each| !each.points.is_empty());
    let (ticks, names) = across.ticks();
    let words = interval_words(&series);
    Some(Chart {
        id: "study-sources".to_owned(),
        title: format!("Origin of the blocks by {}", across.name),
        summary: format!(
            "Share of the block accesses that were found in shared buffers, in the page cache, or read from the device.{words}"
        ),
        table: Some(data(across, &series, |value| format!("{value:.1}%"))),
        plot: Plot {
            x: across.axis(),
            y: Axis {
                range: Some((0.0, 104.0)),
                ..Axis::of("share of the blocks", Unit::Percent, AxisScale::Linear)
            },
            marks: Vec::new(),
            sync: Some("study".to_owned()),
            content: Content::Points { ticks, names, series },
        },
    })
}
