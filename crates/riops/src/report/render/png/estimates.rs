//! Draws estimates with their intervals: error bars, bands, bars, labels.

use plotters::prelude::*;

use crate::report::chart::{Estimated, PointSeries, PointStyle};
use crate::report::render::drawing::FAMILY;
use crate::report::render::png::canvas::{COLORS, Context, Drawn, INK, SOFT};

/// Share of the distance between two positions that their bars take.
const BARS_SHARE: f64 = 0.7;
/// Half the width of the caps of an error bar, in pixels.
const CAP: i32 = 4;

/// Draws all series.
pub(super) fn draw(chart: &mut Context<'_, '_>, series: &[PointSeries]) -> Drawn<()> {
    let bars = series.iter().filter(|each| each.style == PointStyle::Bars).count();
    let mut bar = 0;
    for (each, color) in series.iter().zip(COLORS.iter().copied().cycle()) {
        match each.style {
            PointStyle::Band | PointStyle::Dashed => curve(chart, each, color)?,
            PointStyle::Line | PointStyle::Dots => dots(chart, each, color)?,
            PointStyle::Bars => {
                let width = BARS_SHARE / bars.max(1) as f64;
                let offset = (f64::from(bar) + 0.5) * width - BARS_SHARE / 2.0;
                bar += 1;
                draw_bars(chart, each, color, (offset, width))?;
            }
        }
    }
    Ok(())
}

fn curve(chart: &mut Context<'_, '_>, series: &PointSeries, color: RGBColor) -> Drawn<()> {
    let edge = |pick: fn((f64, f64)) -> f64| {
        series.points.iter().filter_map(move |point| Some((point.x, pick(point.interval?))))
    };
    let outline: Vec<_> = edge(|interval| interval.0)
        .chain(edge(|interval| interval.1).collect::<Vec<_>>().into_iter().rev())
        .collect();
    if outline.len() > 2 {
        chart.draw_series(std::iter::once(Polygon::new(outline, color.mix(0.15))))?;
    }
    let points: Vec<_> = series.points.iter().map(|point| (point.x, point.y)).collect();
    let style = color.stroke_width(2);
    if series.style == PointStyle::Dashed {
        let dashes = points.chunks(2).map(|pair| PathElement::new(pair.to_vec(), style));
        chart.draw_series(dashes)?;
    } else {
        chart.draw_series(std::iter::once(PathElement::new(points, style)))?;
    }
    Ok(())
}

fn dots(chart: &mut Context<'_, '_>, series: &PointSeries, color: RGBColor) -> Drawn<()> {
    if series.style == PointStyle::Line {
        let points: Vec<_> = series.points.iter().map(|point| (point.x, point.y)).collect();
        chart.draw_series(std::iter::once(PathElement::new(points, color.stroke_width(2))))?;
    }
    error_bars(chart, &series.points, color.stroke_width(1), 0.0)?;
    let dot = |point: &Estimated| Circle::new((point.x, point.y), 4, color.filled());
    chart.draw_series(series.points.iter().map(dot))?;
    labels(chart, &series.points)
}

fn draw_bars(
    chart: &mut Context<'_, '_>,
    series: &PointSeries,
    color: RGBColor,
    (offset, width): (f64, f64),
) -> Drawn<()> {
    let half = width * 0.45;
    let bar = |point: &Estimated| {
        let x = point.x + offset;
        Rectangle::new([(x - half, point.y), (x + half, 0.0)], color.mix(0.75).filled())
    };
    chart.draw_series(series.points.iter().map(bar))?;
    error_bars(chart, &series.points, INK.stroke_width(1), offset)
}

fn error_bars(
    chart: &mut Context<'_, '_>,
    points: &[Estimated],
    style: ShapeStyle,
    offset: f64,
) -> Drawn<()> {
    for point in points {
        if let Some((low, high)) = point.interval {
            let x = point.x + offset;
            error_bar(chart, [(x, low), (x, high)], [(-CAP, 0), (CAP, 0)], style)?;
        }
        if let Some((low, high)) = point.x_interval {
            error_bar(chart, [(low, point.y), (high, point.y)], [(0, -CAP), (0, CAP)], style)?;
        }
    }
    Ok(())
}

/// A line with a cap at both ends. `cap` is in pixels from the end.
fn error_bar(
    chart: &mut Context<'_, '_>,
    ends: [(f64, f64); 2],
    cap: [(i32, i32); 2],
    style: ShapeStyle,
) -> Drawn<()> {
    chart.draw_series(std::iter::once(PathElement::new(ends.to_vec(), style)))?;
    let cap = |end: (f64, f64)| EmptyElement::at(end) + PathElement::new(cap.to_vec(), style);
    chart.draw_series(ends.into_iter().map(cap))?;
    Ok(())
}

fn labels(chart: &mut Context<'_, '_>, points: &[Estimated]) -> Drawn<()> {
    let style = (FAMILY, 13).into_font().color(&SOFT);
    let label = |point: &Estimated| {
        let text = point.label.clone()?;
        Some(EmptyElement::at((point.x, point.y)) + Text::new(text, (8, -16), style.clone()))
    };
    chart.draw_series(points.iter().filter_map(label))?;
    Ok(())
}
