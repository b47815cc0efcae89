//! The charts of a search: throughput against sessions with the fitted law, latency against throughput, response
//! time against the rate.

use crate::chart::{Axis, Chart, Content, Estimated, Mark, PointSeries, PointStyle, Unit, rounded};
use crate::subjects::experiment::chart_axes::{
    estimated, from_zero, interval_words, latency_axis, latency_chart, latency_point, line,
    range_of,
};
use riops_model::figure::Figure;
use riops_model::stats::{CurvePoint, ScalingLaw};
use riops_model::study::Level;
use riops_model::study::evaluation::{CellView, LevelView, StudyView};
use riops_model::units::format::joined;

/// Returns the charts in their order.
pub(in crate::subjects::experiment) fn charts(view: &StudyView) -> Vec<Chart> {
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
    let xs = || series.iter().flat_map(|one_series| one_series.points.iter().map(|point| point.x));
    // A search for a rate measures one number of sessions.
    if xs().count() < 2 {
        return None;
    }
    let (range, scale) = range_of(xs());
    let marks = single(view).map_or_else(Vec::new, marks);
    let (name, words) = (figure.heading(), interval_words(&series));
    let fitted = if series.iter().any(|one_series| one_series.style == PointStyle::Band) {
        " Line: fitted scalability law with its 95% band; dashed: extrapolated."
    } else {
        ""
    };
    let summary =
        format!("{name} against the number of sessions.{words}{fitted}{}", saturation_text(view));
    let x = Axis::new("sessions", Unit::Count, scale).within(range);
    let axes = [x, from_zero(name, Unit::for_figure(figure), &series)];
    let (title, content) = ("Throughput by sessions", Content::points(series));
    Some(Chart::new("study-throughput", title, summary, axes, content).with_marks(marks))
}

/// The cell, if there is only one.
fn single(view: &StudyView) -> Option<&CellView> {
    view.cells.first().filter(|_| view.cells.len() == 1)
}

/// The result, as a part of the text alternative.
fn saturation_text(view: &StudyView) -> String {
    let texts = joined(super::words::words(view).get("saturation").into_iter().flatten(), "; ");
    if texts.is_empty() { texts } else { format!(" Saturation: {texts}.") }
}

fn law(cell: &CellView) -> Option<&ScalingLaw> {
    cell.saturation.as_ref()?.sessions.as_ref()?.law.as_ref()
}

/// The fitted curve within the measured levels, and its extrapolation.
fn curves(law: &ScalingLaw, label: &str) -> Vec<PointSeries> {
    let point = |point: &CurvePoint| {
        let throughput = &point.throughput_per_s;
        let interval = throughput.high.map(|high| (rounded(throughput.low), rounded(high)));
        let (x, y) = (rounded(point.n), rounded(throughput.value));
        Estimated { x, y, interval, ..Estimated::default() }
    };
    // Rounding of the grid.
    let last = law.largest_n * (1.0 + 1e-9);
    let (within, beyond): (Vec<_>, Vec<_>) = law.curve.iter().partition(|point| point.n <= last);
    let beyond: Vec<_> = within.last().copied().into_iter().chain(beyond).collect();
    let series = |name, style, points: Vec<&CurvePoint>| {
        let points = points.into_iter().map(point).collect();
        PointSeries { label: format!("{label}, {name}"), style, points }
    };
    let is_extrapolated = beyond.len() > 1;
    let beyond = is_extrapolated.then(|| series("extrapolated", PointStyle::Dashed, beyond));
    std::iter::once(series("law", PointStyle::Band, within)).chain(beyond).collect()
}

/// Knee, saturation point, N90 and peak, ascending.
fn marks(cell: &CellView) -> Vec<Mark> {
    let Some(conclusion) =
        cell.saturation.as_ref().and_then(|saturation| saturation.sessions.as_ref())
    else {
        return Vec::new();
    };
    let mut marks = vec![(f64::from(conclusion.saturation), "saturation")];
    if let Some(law) = &conclusion.law {
        let last = law.curve.last().map_or(law.largest_n, |point| point.n);
        let fitted = [(law.knee, "knee"), (law.n90, "N90"), (law.peak_at, "peak")];
        let within = fitted.into_iter().filter_map(|(value, name)| Some((value?.value, name)));
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
        let measured = level.group.figure(view.main_stage, figure)?;
        Some(estimated(x(level.level)?, &measured.estimate))
    };
    cell.levels.iter().filter_map(point).collect()
}

/// The name of a cell, or of the figure if there is only one cell.
fn label(view: &StudyView, cell: &CellView, name: &str) -> String {
    if view.cells.len() > 1 { cell.name.clone() } else { name.to_owned() }
}

/// Latency against throughput of the closed loop, labeled with the sessions.
fn latency(view: &StudyView) -> Option<Chart> {
    let series = view.cells.iter().filter_map(|cell| {
        let points = cell.levels.iter().filter_map(|level| {
            latency_point(view, &level.group, closed(level.level)?.to_string())
        });
        line(label(view, cell, "p95"), points.collect())
    });
    let series: Vec<_> = series.filter(|one_series| one_series.points.len() > 2).collect();
    (!series.is_empty()).then(|| latency_chart(view, series, "number of sessions"))
}

/// Response time against the rate of the open loop.
fn rates(view: &StudyView) -> Option<Chart> {
    let series = view.cells.iter().flat_map(|cell| {
        [Figure::P95Us, Figure::P99Us].into_iter().filter_map(|figure| {
            let name = figure.heading();
            let label = match view.cells.len() {
                1 => name.to_owned(),
                _ => format!("{}, {name}", cell.name),
            };
            line(label, points(view, cell, open, figure))
        })
    });
    let series: Vec<_> = series.filter(|one_series| one_series.points.len() > 2).collect();
    let xs = || series.iter().flat_map(|one_series| one_series.points.iter().map(|point| point.x));
    xs().next()?;
    let (range, scale) = range_of(xs());
    let sustained =
        single(view).and_then(|cell| cell.saturation.as_ref()?.rate.as_ref()?.rate_per_s);
    let marks = sustained.map(|x| Mark { x, label: "sustained".to_owned() });
    let words = interval_words(&series);
    let summary = format!("Response time of the open loop against its rate.{words}");
    let x = Axis::new("transactions/s", Unit::PerSecond, scale).within(range);
    let y = Axis { label: "response time".to_owned(), ..latency_axis(&series) };
    let (title, content) = ("Response time by rate", Content::points(series));
    let chart = Chart::new("study-rates", title, summary, [x, y], content);
    Some(chart.with_marks(marks.into_iter().collect()))
}
