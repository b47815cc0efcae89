//! The charts of a search: throughput against sessions with the fitted law, latency against throughput, response
//! time against the rate.

use crate::experiment::Level;
use crate::experiment::evaluation::{CellView, LevelView, StudyView};
use crate::figure::Figure;
use crate::report::chart::{
    Axis, AxisScale, Chart, Content, Estimated, Mark, Plot, PointSeries, PointStyle, Unit, rounded,
};
use crate::report::subjects::experiment::chart_axes::{
    HEADROOM, estimated, from_zero, interval_words, latency_axis, range_of, unit,
};
use crate::stats::{CurvePoint, ScalingLaw};

/// Returns the charts in their order.
pub(in crate::report::subjects::experiment) fn charts(view: &StudyView) -> Vec<Chart> {
    [throughput(view), latency(view), rates(view)].into_iter().flatten().collect()
}

/// Throughput against sessions, with the fitted curves.
fn throughput(view: &StudyView) -> Option<Chart> {
    let figure = view.main;
    let mut series: Vec<PointSeries> = Vec::new();
    for cell in &view.cells {
        let points = points(view, cell, closed, figure);
        if points.is_empty() {
            continue;
        }
        let label = label(view, cell, figure.heading());
        series.push(PointSeries { label: label.clone(), style: PointStyle::Dots, points });
        if let Some(law) = law(cell) {
            series.extend(curves(law, &label));
        }
    }
    let xs = || series.iter().flat_map(|each| each.points.iter().map(|point| point.x));
    // A search for a rate measures one number of sessions.
    if xs().count() < 2 {
        return None;
    }
    let (range, scale) = range_of(xs());
    let marks = match view.cells.as_slice() {
        [cell] => marks(cell),
        _ => Vec::new(),
    };
    let words = interval_words(&series);
    let fitted = if series.iter().any(|each| each.style == PointStyle::Band) {
        " Line: fitted scalability law with its 95% band; dashed: extrapolated."
    } else {
        ""
    };
    Some(Chart {
        id: "study-throughput".to_owned(),
        title: "Throughput by sessions".to_owned(),
        summary: format!(
            "{} against the number of sessions.{words}{fitted}{}",
            figure.heading(),
            found(view)
        ),
        table: None,
        plot: Plot {
            x: Axis { range: Some(range), ..Axis::of("sessions", Unit::Count, scale) },
            y: from_zero(figure.heading(), unit(figure), &series),
            marks,
            sync: None,
            content: Content::Points { ticks: Vec::new(), names: Vec::new(), series },
        },
    })
}

/// What was found, as a part of the text alternative.
fn found(view: &StudyView) -> String {
    let texts = super::words::words(view).into_iter().filter(|(label, _)| *label == "saturation");
    let texts: Vec<String> = texts.flat_map(|(_, texts)| texts).collect();
    if texts.is_empty() { String::new() } else { format!(" Saturation: {}.", texts.join("; ")) }
}

fn law(cell: &CellView) -> Option<&ScalingLaw> {
    cell.saturation.as_ref()?.sessions.as_ref()?.law.as_ref()
}

/// The fitted curve within the measured levels, and its extrapolation.
fn curves(law: &ScalingLaw, label: &str) -> Vec<PointSeries> {
    let point = |point: &CurvePoint| Estimated {
        x: rounded(point.n),
        y: rounded(point.throughput_per_s.value),
        interval: point
            .throughput_per_s
            .high
            .map(|high| (rounded(point.throughput_per_s.low), rounded(high))),
        x_interval: None,
        label: None,
    };
    // Rounding of the grid.
    let last = law.largest_n * (1.0 + 1e-9);
    let within: Vec<Estimated> =
        law.curve.iter().filter(|point| point.n <= last).map(point).collect();
    let beyond = law.curve.iter().filter(|point| point.n > last).map(point);
    let beyond: Vec<Estimated> = within.last().cloned().into_iter().chain(beyond).collect();
    let mut series = vec![PointSeries {
        label: format!("{label}, law"),
        style: PointStyle::Band,
        points: within,
    }];
    if beyond.len() > 1 {
        series.push(PointSeries {
            label: format!("{label}, extrapolated"),
            style: PointStyle::Dashed,
            points: beyond,
        });
    }
    series
}

/// Knee, saturation point, N90 and peak, ascending.
fn marks(cell: &CellView) -> Vec<Mark> {
    let Some(of) = cell.saturation.as_ref().and_then(|found| found.sessions.as_ref()) else {
        return Vec::new();
    };
    let mut marks = vec![(f64::from(of.saturation), "saturation")];
    if let Some(law) = &of.law {
        let last = law.curve.last().map_or(law.largest_n, |point| point.n);
        let fitted = [(law.knee, "knee"), (law.n90, "N90"), (law.peak_at, "peak")];
        let within = fitted.into_iter().filter_map(|(found, name)| Some((found?.value, name)));
        marks.extend(within.filter(|(n, _)| *n >= 1.0 && *n <= last));
    }
    marks.sort_by(|one, other| one.0.total_cmp(&other.0));
    marks.into_iter().map(|(x, name)| Mark { x: rounded(x), label: name.to_owned() }).collect()
}

fn closed(level: Level) -> Option<f64> {
    match level {
        Level::Sessions(sessions) => Some(f64::from(sessions)),
        Level::Rate { .. } => None,
    }
}

fn open(level: Level) -> Option<f64> {
    match level {
        Level::Rate { per_s, .. } => Some(per_s),
        Level::Sessions(_) => None,
    }
}

fn points(
    view: &StudyView,
    cell: &CellView,
    x: fn(Level) -> Option<f64>,
    figure: Figure,
) -> Vec<Estimated> {
    let point = |level: &LevelView| {
        let found = level.group.figure(view.main_stage, figure)?;
        Some(estimated(x(level.level)?, &found.estimate))
    };
    cell.levels.iter().filter_map(point).collect()
}

/// The name of a cell, or of the figure if there is only one cell.
fn label(view: &StudyView, cell: &CellView, name: &str) -> String {
    if view.cells.len() > 1 { cell.name.clone() } else { name.to_owned() }
}

/// Latency against throughput of the closed loop, labeled with the sessions.
fn latency(view: &StudyView) -> Option<Chart> {
    let of_cell = |cell: &CellView| {
        let point = |level: &LevelView| {
            let sessions = closed(level.level)?;
            let x = &level.group.figure(view.main_stage, view.main)?.estimate;
            let y = &level.group.figure(view.main_stage, Figure::P95Us)?.estimate;
            let x_interval = x.interval.map(|found| (rounded(found.low), rounded(found.high)));
            let label = Some(sessions.to_string());
            Some(Estimated { x_interval, label, ..estimated(rounded(x.value), y) })
        };
        PointSeries {
            label: label(view, cell, "p95"),
            style: PointStyle::Line,
            points: cell.levels.iter().filter_map(point).collect(),
        }
    };
    let series: Vec<PointSeries> =
        view.cells.iter().map(of_cell).filter(|each| each.points.len() > 2).collect();
    let most = series.iter().flat_map(|each| &each.points);
    let most =
        most.map(|point| point.x_interval.map_or(point.x, |(_, high)| high)).reduce(f64::max)?;
    let words = interval_words(&series);
    let name = view.main.heading();
    let range = Some((0.0, most * HEADROOM));
    Some(Chart {
        id: "study-latency".to_owned(),
        title: "Latency against throughput".to_owned(),
        summary: format!(
            "p95 against {name}, a point for each number of sessions: lower latency at higher throughput is better.{words}"
        ),
        table: None,
        plot: Plot {
            x: Axis { range, ..Axis::of(name, Unit::PerSecond, AxisScale::Linear) },
            y: latency_axis(&series),
            marks: Vec::new(),
            sync: None,
            content: Content::Points { ticks: Vec::new(), names: Vec::new(), series },
        },
    })
}

/// Response time against the rate of the open loop.
fn rates(view: &StudyView) -> Option<Chart> {
    let figures = [Figure::P95Us, Figure::P99Us];
    let mut series = Vec::new();
    for cell in &view.cells {
        for figure in figures {
            let points = points(view, cell, open, figure);
            let label = if view.cells.len() > 1 {
                format!("{}, {}", cell.name, figure.heading())
            } else {
                figure.heading().to_owned()
            };
            if points.len() > 2 {
                series.push(PointSeries { label, style: PointStyle::Line, points });
            }
        }
    }
    let xs = || series.iter().flat_map(|each| each.points.iter().map(|point| point.x));
    xs().next()?;
    let (range, scale) = range_of(xs());
    let sustained = view.cells.first().filter(|_| view.cells.len() == 1);
    let sustained = sustained.and_then(|cell| cell.saturation.as_ref()?.rate.as_ref()?.rate_per_s);
    let marks = sustained.map(|per_s| Mark { x: per_s, label: "sustained".to_owned() });
    let words = interval_words(&series);
    let y = latency_axis(&series);
    Some(Chart {
        id: "study-rates".to_owned(),
        title: "Response time by rate".to_owned(),
        summary: format!("Response time of the open loop against its rate.{words}"),
        table: None,
        plot: Plot {
            x: Axis { range: Some(range), ..Axis::of("transactions/s", Unit::PerSecond, scale) },
            y: Axis { label: "response time".to_owned(), ..y },
            marks: marks.into_iter().collect(),
            sync: None,
            content: Content::Points { ticks: Vec::new(), names: Vec::new(), series },
        },
    })
}
