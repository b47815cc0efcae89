//! Draws the charts of a page as PNG files: the same values, on white, for documents and tickets.

mod canvas;
mod density;

use std::borrow::Cow;
use std::ops::{Range, RangeInclusive};

pub use canvas::DrawingError;
use canvas::{Area, COLORS, Context, Drawn, FAMILY, INK, SOFT, Scaled, png_file, register_font};
use density::density;
use plotters::coord::ranged1d::Ranged;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::chart::lines::{percentile_text, trimmed, value_text};
use crate::chart::{Chart, Content, Estimated, Mark, PointSeries, PointStyle, Unit};
use riops_model::units::format::{count, truncated};
use riops_model::units::text::shortened;

/// Size of the image, in pixels; and of one with single dots.
const SIZE: (u32, u32) = (1200, 520);
const DOTS_SIZE: (u32, u32) = (1600, 900);
/// Space around the axes, in pixels.
const MARGIN: i32 = 18;
const TOP: i32 = 96;
const LEFT: u32 = 86;
const BOTTOM: u32 = 52;
/// Pixels of a character of the title, and of the summary, on average.
const LARGE_CHARACTER: f64 = 9.0;
const SMALL_CHARACTER: f64 = 6.3;
/// Characters of the name of a position.
const NAME_CHARACTERS: usize = 28;
/// Pixels of a character of the legend and of the names of stages, on average.
const CHARACTER: i32 = 8;

/// Share of the distance between two positions that their bars take.
const BARS_SHARE: f64 = 0.7;
/// Half the width of the caps of an error bar, in pixels.
const CAP: i32 = 4;

/// The heatmap of the style of pages, in the light theme.
const HEAT: [(u8, u8, u8); 5] =
    [(230, 238, 249), (169, 200, 238), (91, 147, 214), (42, 93, 168), (16, 47, 102)];

/// Returns a chart as a PNG file. `subtitle` names the run.
///
/// # Errors
/// Returns [`DrawingError::Failed`] if the drawing library fails.
pub fn chart_png(chart: &Chart, subtitle: &str) -> Result<Vec<u8>, DrawingError> {
    let (pixels, (width, height), _) = drawn(chart, subtitle)?;
    png_file(&pixels, width, height)
}

/// The places of the axes, in pixels.
type Axes = (Range<i32>, Range<i32>);

/// Pixels, three bytes each, their numbers of columns and rows, and the places of the axes.
type Drawing = (Vec<u8>, (u32, u32), Axes);

pub(crate) fn drawn(chart: &Chart, subtitle: &str) -> Result<Drawing, DrawingError> {
    register_font()?;
    let is_of_dots = matches!(chart.plot.content, Content::Dots { .. });
    let size = if is_of_dots { DOTS_SIZE } else { SIZE };
    let mut pixels = vec![255; (size.0 * size.1 * 3) as usize];
    let root = BitMapBackend::with_buffer(&mut pixels, size).into_drawing_area();
    let axes = draw(&root, chart, subtitle).map_err(|error| DrawingError::from_error(&error))?;
    root.present().map_err(|error| DrawingError::from_error(&error))?;
    drop(root);
    Ok((pixels, size, axes))
}

fn draw(root: &Area<'_>, chart: &Chart, subtitle: &str) -> Drawn<Axes> {
    let plot = &chart.plot;
    let unit = if plot.y.label.is_empty() { String::new() } else { format!(" ({})", plot.y.label) };
    let width = root.dim_in_pixel().0.cast_signed() - 2 * MARGIN;
    let fitting = |character: f64| truncated(f64::from(width) / character) - 1;
    let title = format!("{}{unit} · {subtitle}", chart.title);
    text(root, &shortened(&title, fitting(LARGE_CHARACTER)), 20, INK, MARGIN, 12)?;
    let note = match plot.content {
        Content::Dots { .. } => " Darker means more; single dots are larger.",
        _ => "",
    };
    let summary = shortened(&format!("{}{note}", chart.summary), fitting(SMALL_CHARACTER));
    text(root, &summary, 14, SOFT, MARGIN, 40)?;
    legend(root, &plot.content)?;
    let mut x = Scaled::new(&plot.x, x_range(&plot.content));
    let mut y = Scaled::new(&plot.y, y_range(&plot.content));
    let [mut names, mut row_names]: [Vec<(f64, &str)>; 2] = Default::default();
    match &plot.content {
        Content::Points { ticks, names: given, .. } => {
            x.ticks = x.spaced(ticks);
            names = ticks.iter().copied().zip(given.iter().map(String::as_str)).collect();
        }
        Content::Grid { columns, rows, .. } => {
            let places = |names: &[String]| (0..names.len()).map(|at| at as f64).collect();
            (x.ticks, y.ticks) = (places(columns), places(rows));
            names = x.ticks.iter().copied().zip(columns.iter().map(String::as_str)).collect();
            row_names = y.ticks.iter().copied().zip(rows.iter().map(String::as_str)).collect();
        }
        _ => {}
    }
    let mut context = ChartBuilder::on(root)
        .margin(MARGIN)
        .margin_top(TOP)
        .x_label_area_size(BOTTOM)
        .y_label_area_size(LEFT)
        .build_cartesian_2d(x, y)?;
    let text_of = |value: f64, known: &[(f64, &str)], unit: Unit| {
        let name = known.iter().find(|(at, _)| (at - value).abs() < 1e-9);
        name.map_or_else(|| tick(value, unit), |(_, name)| shortened(name, NAME_CHARACTERS))
    };
    let x_format = |value: &f64| text_of(*value, &names, plot.x.unit);
    let y_format = |value: &f64| text_of(*value, &row_names, plot.y.unit);
    context
        .configure_mesh()
        .x_desc(plot.x.label.as_str())
        .x_label_formatter(&x_format)
        .y_label_formatter(&y_format)
        .label_style((FAMILY, 14).into_font().color(&SOFT))
        .axis_desc_style((FAMILY, 14).into_font().color(&SOFT))
        .axis_style(RGBColor(196, 203, 214))
        .light_line_style(TRANSPARENT)
        .bold_line_style(RGBColor(232, 235, 240))
        .draw()?;
    values(root, &mut context, &plot.content)?;
    marks(root, &context, &plot.marks)?;
    Ok(context.plotting_area().get_pixel_range())
}

fn values(root: &Area<'_>, chart: &mut Context<'_, '_>, content: &Content) -> Drawn<()> {
    match content {
        Content::Lines { xs, series } => {
            for (line, color) in series.iter().zip(COLORS.iter().cycle()) {
                let points: Vec<_> = xs.iter().copied().zip(line.values.iter().copied()).collect();
                // A gap ends a line.
                for part in
                    points.split(|(_, value)| value.is_none()).filter(|part| !part.is_empty())
                {
                    let part = part.iter().filter_map(|(x, value)| Some((*x, (*value)?)));
                    let path = PathElement::new(part.collect::<Vec<_>>(), color.stroke_width(2));
                    chart.draw_series(std::iter::once(path))?;
                }
            }
        }
        Content::Heatmap { slots, bounds, cells } => {
            let most = cells.iter().map(|(.., count)| *count).max().unwrap_or(1).max(2) as f64;
            let cell = |&(slot, class, count): &(usize, usize, u64)| {
                let (left, right) = (slots.get(slot)?, slots.get(slot + 1)?);
                let (bottom, top) = (bounds.get(class)?, bounds.get(class + 1)?);
                let color = heat((count as f64 + 1.0).ln() / (most + 1.0).ln());
                Some(Rectangle::new([(*left, *top), (*right, *bottom)], color.filled()))
            };
            chart.draw_series(cells.iter().filter_map(cell))?;
        }
        Content::Grid { cells, unit, .. } => grid(chart, cells, *unit)?,
        Content::Dots { points } => density(root, chart, points)?,
        Content::Points { series, .. } => estimates(chart, series)?,
    }
    Ok(())
}

/// A shade and a number for each combination of two settings.
fn grid(chart: &mut Context<'_, '_>, cells: &[(usize, usize, f64)], unit: Unit) -> Drawn<()> {
    let values = || cells.iter().map(|cell| cell.2);
    let least = values().fold(f64::INFINITY, f64::min);
    let span = values().fold(f64::NEG_INFINITY, f64::max) - least;
    for &(column, row, value) in cells {
        let (x, y) = (column as f64, row as f64);
        let share = if span > 0.0 { (value - least) / span } else { 0.5 };
        let corners = [(x - 0.5, y + 0.5), (x + 0.5, y - 0.5)];
        chart.draw_series([Rectangle::new(corners, heat(share).filled())])?;
        let color = if share > 0.5 { WHITE } else { INK };
        let middle = Pos::new(HPos::Center, VPos::Center);
        let style = (FAMILY, 14).into_font().color(&color).pos(middle);
        chart.draw_series([Text::new(tick(value, unit), (x, y), style)])?;
    }
    Ok(())
}

/// Estimates with their intervals: error bars, bands, bars, labels.
fn estimates(chart: &mut Context<'_, '_>, series: &[PointSeries]) -> Drawn<()> {
    let bars = series.iter().filter(|one_series| one_series.style == PointStyle::Bars).count();
    let mut bar = 0;
    for (one_series, color) in series.iter().zip(COLORS.iter().copied().cycle()) {
        match one_series.style {
            PointStyle::Band | PointStyle::Dashed => curve(chart, one_series, color)?,
            PointStyle::Line | PointStyle::Dots => dots(chart, one_series, color)?,
            PointStyle::Steps => steps(chart, one_series, color)?,
            PointStyle::Boxes => boxes(chart, one_series, color)?,
            PointStyle::Bars => {
                draw_bars(chart, one_series, color, bar, bars)?;
                bar += 1;
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

/// The bars of one of `count` series, side by side. `position` counts them from 0.
fn draw_bars(
    chart: &mut Context<'_, '_>,
    series: &PointSeries,
    color: RGBColor,
    position: u32,
    count: usize,
) -> Drawn<()> {
    let width = BARS_SHARE / count.max(1) as f64;
    let offset = (f64::from(position) + 0.5) * width - BARS_SHARE / 2.0;
    let half = width * 0.45;
    let bar = |point: &Estimated| {
        let x = point.x + offset;
        Rectangle::new([(x - half, point.y), (x + half, 0.0)], color.mix(0.75).filled())
    };
    chart.draw_series(series.points.iter().map(bar))?;
    error_bars(chart, &series.points, INK.stroke_width(1), offset)
}

fn steps(chart: &mut Context<'_, '_>, series: &PointSeries, color: RGBColor) -> Drawn<()> {
    let half = BARS_SHARE / 2.0;
    let mut before = 0.0;
    for (at, point) in series.points.iter().enumerate() {
        let is_end = at == 0 || at + 1 == series.points.len();
        let from = if is_end { 0.0 } else { before };
        let [_, longer, shorter, ..] = COLORS;
        let color = match () {
            () if is_end => color,
            () if point.y > from => longer,
            () => shorter,
        };
        let corners = [(point.x - half, point.y), (point.x + half, from)];
        chart.draw_series([Rectangle::new(corners, color.mix(0.75).filled())])?;
        before = point.y;
    }
    labels(chart, &series.points)
}

fn boxes(chart: &mut Context<'_, '_>, series: &PointSeries, color: RGBColor) -> Drawn<()> {
    let half = BARS_SHARE * 0.4;
    error_bars(chart, &series.points, color.stroke_width(1), 0.0)?;
    for point in &series.points {
        let (left, right) = (point.x - half, point.x + half);
        let corners = point.quartiles.map(|(first, third)| [(left, third), (right, first)]);
        for style in [WHITE.filled(), color.mix(0.25).filled(), color.stroke_width(1)] {
            chart.draw_series(corners.map(|corners| Rectangle::new(corners, style)))?;
        }
        let median = vec![(left, point.y), (right, point.y)];
        chart.draw_series([PathElement::new(median, color.stroke_width(3))])?;
        let dot = |value: &f64| Circle::new((point.x, *value), 3, color.filled());
        chart.draw_series(point.values.iter().map(dot))?;
    }
    Ok(())
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

/// The starts of the stages, with their names above the axes.
fn marks(root: &Area<'_>, context: &Context<'_, '_>, marks: &[Mark]) -> Drawn<()> {
    let (columns, rows) = context.plotting_area().get_pixel_range();
    let x_of =
        |mark: &Mark| context.as_coord_spec().x_spec().map(&mark.x, (columns.start, columns.end));
    for (position, mark) in marks.iter().enumerate() {
        let x = x_of(mark);
        let end = marks.get(position + 1).map_or(columns.end, x_of);
        for y in (rows.start..rows.end).step_by(8) {
            root.draw(&PathElement::new([(x, y), (x, (y + 4).min(rows.end))], SOFT))?;
        }
        let fitting = usize::try_from((end - x) / CHARACTER).unwrap_or(0);
        if fitting > 3 {
            text(root, &shortened(&mark.label, fitting - 1), 13, SOFT, x + 2, TOP - 18)?;
        }
    }
    Ok(())
}

fn legend(root: &Area<'_>, content: &Content) -> Drawn<()> {
    let mut more = String::new();
    let labels: Vec<Cow<'_, str>> = match content {
        Content::Lines { series, .. } => series.iter().map(|line| (&line.label).into()).collect(),
        Content::Points { series, .. } => {
            series.iter().map(|one_series| (&one_series.label).into()).collect()
        }
        Content::Dots { points } => {
            let sessions = points.iter().map(|point| point.2 as usize + 1).max().unwrap_or(0);
            if sessions > COLORS.len() {
                let sessions = count(sessions as u64);
                more = format!("… {sessions} sessions, these colors in turn");
            }
            let named = 1..=sessions.min(COLORS.len());
            named.map(|session| format!("session {session}").into()).collect()
        }
        Content::Heatmap { .. } | Content::Grid { .. } => return Ok(()),
    };
    let mut x = MARGIN;
    for (label, color) in labels.into_iter().zip(COLORS.iter().cycle()) {
        let width = 34 + CHARACTER * i32::try_from(label.chars().count()).unwrap_or(0);
        if x + width > root.dim_in_pixel().0.cast_signed() - MARGIN {
            break;
        }
        root.draw(&Rectangle::new([(x, 63), (x + 11, 74)], color.filled()))?;
        text(root, &label, 14, INK, x + 17, 61)?;
        x += width;
    }
    text(root, &more, 14, INK, x, 61)
}

fn text(root: &Area<'_>, text: &str, size: u32, color: RGBColor, x: i32, y: i32) -> Drawn<()> {
    let style = (FAMILY, size).into_font().color(&color);
    root.draw(&Text::new(text.to_owned(), (x, y), style))
}

fn tick(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Nines => percentile_text(value),
        Unit::MbS | Unit::Mb => value_text(value, Unit::Count),
        Unit::DurationUs if value == 0.0 => "0".to_owned(),
        unit => trimmed(&value_text(value, unit)),
    }
}

fn heat(share: f64) -> RGBColor {
    let position = share.clamp(0.0, 1.0) * 4.0;
    let from = truncated(position.min(3.0));
    let (low, high) = HEAT.get(from).copied().zip(HEAT.get(from + 1).copied()).unwrap_or_default();
    let mixed = |low: u8, high: u8| {
        let part = f64::from(low) + (f64::from(high) - f64::from(low)) * (position - from as f64);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 255")]
        let part = part.round() as u8;
        part
    };
    RGBColor(mixed(low.0, high.0), mixed(low.1, high.1), mixed(low.2, high.2))
}

fn x_range(content: &Content) -> RangeInclusive<f64> {
    let ends = |values: &[f64]| Some(*values.first()?..=*values.last()?);
    match content {
        Content::Lines { xs, .. } => ends(xs),
        Content::Heatmap { slots, .. } => ends(slots),
        // Their axes have a range.
        Content::Dots { .. } | Content::Points { .. } | Content::Grid { .. } => None,
    }
    .unwrap_or(0.0..=1.0)
}

fn y_range(content: &Content) -> RangeInclusive<f64> {
    let span = |values: &mut dyn Iterator<Item = f64>| {
        values.fold(f64::INFINITY..=0.0, |range, value| {
            range.start().min(value)..=range.end().max(value)
        })
    };
    match content {
        Content::Lines { series, .. } => {
            span(&mut series.iter().flat_map(|line| line.values.iter().flatten().copied()))
        }
        Content::Heatmap { bounds, .. } => span(&mut bounds.iter().copied()),
        Content::Dots { points } => span(&mut points.iter().map(|point| point.1)),
        Content::Grid { rows, .. } => -0.5..=rows.len() as f64 - 0.5,
        Content::Points { series, .. } => span(
            &mut series.iter().flat_map(|one_series| one_series.points.iter().map(|point| point.y)),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example_oltp;
    use riops_model::record::{SamplePoint, SampleSet};

    /// Returns width, height and the number of pixels that are neither white nor gray.
    fn decoded(file: &[u8]) -> (u32, u32, usize) {
        let mut reader = png::Decoder::new(std::io::Cursor::new(file)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        let is_colored = |pixel: &&[u8]| {
            let (least, most) = (pixel.iter().min().unwrap(), pixel.iter().max().unwrap());
            most - least > 80
        };
        (info.width, info.height, pixels.chunks(3).filter(is_colored).count())
    }

    #[test]
    fn every_chart_of_a_run_is_drawn() {
        let mut record = example_oltp();
        let point = record.stages[0].session_loop.series[0].clone();
        record.stages[0].session_loop.series = (1..=10)
            .map(|second| riops_model::record::Point { t_s: f64::from(second), ..point.clone() })
            .collect();
        let mut histogram = riops_model::record::Histogram::new().unwrap();
        (1..3_000).for_each(|us| histogram.record(riops_model::units::Nanos(us * 1_000)));
        record.stages[0].session_loop.histogram = Some(histogram.stored().unwrap());
        let slot = riops_model::record::HeatmapSlot { first_class: 20, counts: vec![1, 50, 7] };
        record.stages[0].session_loop.latency_heatmap = Some(riops_model::record::HeatmapRecord {
            slot_s: 1.0,
            classes_per_decade: 10,
            slots: vec![slot; 10],
        });
        let point = |latency_us, extreme| SamplePoint { t_s: 0.5, latency_us, session: 1, extreme };
        record.stages[0].session_loop.samples = Some(SampleSet {
            transactions: 40,
            every: 10,
            slot_s: 0.1,
            longest: 1,
            seconds: 10.0,
            points: (1..500).map(|us| point(f64::from(us), us > 490)).collect(),
        });
        let charts = crate::charts(&record);
        let titles: Vec<_> = charts.iter().map(|chart| chart.title.as_str()).collect();
        assert_eq!(
            titles,
            [
                "Throughput",
                "Latency",
                "Errors",
                "Latency heatmap",
                "Latency by percentile",
                "Single transactions"
            ]
        );
        for chart in &charts {
            let (width, height, colored) = decoded(&chart_png(chart, "oltp").unwrap());
            let is_of_dots = chart.title == "Single transactions";
            assert_eq!((width, height), if is_of_dots { DOTS_SIZE } else { SIZE });
            assert!(colored > 500, "{}: {colored}", chart.title);
        }
    }
}
