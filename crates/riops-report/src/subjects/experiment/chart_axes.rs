//! Common parts of the charts of an experiment: estimates, and axes that contain their intervals.

use std::ops::RangeInclusive;

use crate::chart::{
    Axis, AxisScale, Chart, Content, Estimated, PointSeries, PointStyle, Unit, rounded,
};
use riops_model::figure::{Estimate, Figure};
use riops_model::stats::Interval;
use riops_model::study::evaluation::{GroupView, StudyView};

/// From this ratio of the largest and the smallest value on, an axis is logarithmic.
const LOG_RATIO: f64 = 20.0;

/// Space above the largest value, as a factor.
const HEADROOM: f64 = 1.08;

/// Range and scale of numeric positions, with some space on both sides.
pub(super) fn range_of(
    positions: impl Iterator<Item = f64> + Clone,
) -> (RangeInclusive<f64>, AxisScale) {
    let (low, high) = positions
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), at| (low.min(at), high.max(at)));
    if low > 0.0 && high / low > LOG_RATIO {
        let space = (high / low).powf(0.03);
        return (low / space..=high * space, AxisScale::Log);
    }
    let space = (high - low).max(f64::MIN_POSITIVE) * 0.03;
    // From zero on if zero is near.
    let low = if low >= 0.0 && low < high * 0.5 { 0.0 } else { low - space };
    (low..=high + space, AxisScale::Linear)
}

pub(super) fn estimated(x: f64, estimate: &Estimate) -> Estimated {
    let (y, interval) = (rounded(estimate.value), estimate.interval.map(rounded_interval));
    Estimated { x, y, interval, ..Estimated::default() }
}

fn rounded_interval(interval: Interval) -> (f64, f64) {
    (rounded(interval.low), rounded(interval.high))
}

/// The 95th percentile of a group of runs by its throughput.
pub(super) fn latency_point(
    view: &StudyView,
    group: &GroupView,
    label: String,
) -> Option<Estimated> {
    let x = &group.figure(view.main_stage, view.main)?.estimate;
    let y = &group.figure(view.main_stage, Figure::P95Us)?.estimate;
    let x_interval = x.interval.map(rounded_interval);
    Some(Estimated { x_interval, label: Some(label), ..estimated(rounded(x.value), y) })
}

/// A line; `None` without points.
pub(super) fn line(label: String, points: Vec<Estimated>) -> Option<PointSeries> {
    (!points.is_empty()).then_some(PointSeries { label, style: PointStyle::Line, points })
}

/// The chart of latency against throughput, with a point for each value of `what`.
pub(super) fn latency_chart(view: &StudyView, series: Vec<PointSeries>, what: &str) -> Chart {
    let points = series.iter().flat_map(|one_series| &one_series.points);
    let most = points.map(|point| point.x_interval.map_or(point.x, |(_, high)| high));
    let range = 0.0..=most.fold(0.0, f64::max) * HEADROOM;
    let (name, words) = (view.main.heading(), interval_words(&series));
    let summary = format!(
        "p95 against {name}, a point for each {what}: lower latency at higher throughput is better.{words}"
    );
    let x = Axis::new(name, Unit::PerSecond, AxisScale::Linear).within(range);
    let (axes, title) = ([x, latency_axis(&series)], "Latency against throughput");
    Chart::new("study-latency", title, summary, axes, Content::points(series))
}

/// A vertical axis from zero up to the highest interval.
pub(super) fn from_zero(label: &str, unit: Unit, series: &[PointSeries]) -> Axis {
    let highs = series
        .iter()
        .flat_map(|one_series| &one_series.points)
        .map(|point| point.interval.map_or(point.y, |(_, high)| high.max(point.y)));
    let high = highs.fold(0.0, f64::max) * HEADROOM;
    let range = 0.0..=if high > 0.0 { high } else { 1.0 };
    Axis::new(label, unit, AxisScale::Linear).within(range)
}

/// Whether any value has an interval, as a sentence.
pub(super) fn interval_words(series: &[PointSeries]) -> &'static str {
    let has_any = series
        .iter()
        .flat_map(|one_series| &one_series.points)
        .any(|point| point.interval.is_some());
    if has_any { " Error bars: 95% intervals." } else { "" }
}

/// The axis of latencies: logarithmic if they differ much.
pub(super) fn latency_axis(series: &[PointSeries]) -> Axis {
    let values: Vec<f64> = series
        .iter()
        .flat_map(|one_series| &one_series.points)
        .flat_map(|point| {
            let (low, high) = point.interval.unwrap_or((point.y, point.y));
            [low, point.y, high]
        })
        .filter(|value| *value > 0.0)
        .collect();
    let (range, scale) = range_of(values.iter().copied());
    match scale {
        AxisScale::Log => Axis::new("p95", Unit::DurationUs, scale).within(range),
        _ => from_zero("p95", Unit::DurationUs, series),
    }
}
