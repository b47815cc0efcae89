//! What the charts of an experiment have in common: estimates, and axes that contain their intervals.

use crate::figure::{self, Estimate, Figure};
use crate::report::chart::{Axis, AxisScale, Estimated, PointSeries, Unit, rounded};

/// From this ratio of the largest and the smallest value on, an axis is logarithmic.
const LOG_RATIO: f64 = 20.0;

/// Space above the largest value, as a factor.
pub(super) const HEADROOM: f64 = 1.08;

/// Range and scale of numeric positions, with some space on both sides.
pub(super) fn range_of(positions: impl Iterator<Item = f64> + Clone) -> ((f64, f64), AxisScale) {
    let (low, high) = positions
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), at| (low.min(at), high.max(at)));
    if low > 0.0 && high / low > LOG_RATIO {
        let space = (high / low).powf(0.03);
        return ((low / space, high * space), AxisScale::Log);
    }
    let space = (high - low).max(f64::MIN_POSITIVE) * 0.03;
    // From zero on if zero is near.
    let low = if low >= 0.0 && low < high * 0.5 { 0.0 } else { low - space };
    ((low, high + space), AxisScale::Linear)
}

pub(super) fn estimated(x: f64, estimate: &Estimate) -> Estimated {
    Estimated {
        x,
        y: rounded(estimate.value),
        interval: estimate.interval.map(|found| (rounded(found.low), rounded(found.high))),
        x_interval: None,
        label: None,
    }
}

/// The unit of a figure on an axis.
pub(super) fn unit(figure: Figure) -> Unit {
    match figure.unit() {
        figure::Unit::Microseconds => Unit::DurationUs,
        figure::Unit::Seconds => Unit::Seconds,
        figure::Unit::MbPerSecond => Unit::MbS,
        figure::Unit::Processors
        | figure::Unit::Bytes
        | figure::Unit::Events
        | figure::Unit::Money => Unit::Count,
        figure::Unit::PerSecond => Unit::PerSecond,
    }
}

/// A vertical axis from zero up to the highest interval.
pub(super) fn from_zero(label: &str, unit: Unit, series: &[PointSeries]) -> Axis {
    let highs = series
        .iter()
        .flat_map(|each| &each.points)
        .map(|point| point.interval.map_or(point.y, |(_, high)| high.max(point.y)));
    let high = highs.fold(0.0, f64::max) * HEADROOM;
    let range = Some((0.0, if high > 0.0 { high } else { 1.0 }));
    Axis { range, ..Axis::of(label, unit, AxisScale::Linear) }
}

/// Whether any value has an interval, as a sentence.
pub(super) fn interval_words(series: &[PointSeries]) -> &'static str {
    let has_any = series.iter().flat_map(|each| &each.points).any(|point| point.interval.is_some());
    if has_any { " Error bars: 95% intervals." } else { "" }
}

/// The axis of latencies: logarithmic if they differ much.
pub(super) fn latency_axis(series: &[PointSeries]) -> Axis {
    let values: Vec<f64> = series
        .iter()
        .flat_map(|each| &each.points)
        .flat_map(|point| {
            let (low, high) = point.interval.unwrap_or((point.y, point.y));
            [low, point.y, high]
        })
        .filter(|value| *value > 0.0)
        .collect();
    let (range, scale) = range_of(values.iter().copied());
    match scale {
        AxisScale::Log => Axis { range: Some(range), ..Axis::of("p95", Unit::DurationUs, scale) },
        _ => from_zero("p95", Unit::DurationUs, series),
    }
}
