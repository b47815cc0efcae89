//! The scatterplot of latency over time: one dot per sampled transaction, one color per session. A pure
//! function from a record to the bytes of a PNG file.
//!
//! Overlapping dots are drawn darker, and a dot without neighbors is drawn larger, so both a million short
//! transactions and a single long one stay visible.

use std::collections::BTreeMap;
use std::ops::Range;

use jiff::SignedDuration;
use plotters::prelude::*;

use crate::figure::Summary;
use crate::record::{Record, SamplePoint, SampleSet, StageRecord};
use crate::report::chart::lines::value_text;
use crate::report::chart::{AxisScale, Unit};
use crate::report::histogram::Scale;
use crate::report::render::png::canvas::{DrawingError, FAMILY, Scaled, png_file, register_font};
use crate::report::words;
use crate::units::format::{count, duration_us};

/// Width of the image, in pixels.
const WIDTH: u32 = 1600;
/// Height of an image with one stage, and of each stage if there are several, in pixels.
const HEIGHT: u32 = 900;
const STAGE_HEIGHT: u32 = 450;
/// Space around the axes, in pixels.
const MARGIN: u32 = 16;
const LEFT: u32 = 90;
const BOTTOM: u32 = 56;
const TOP: u32 = 84;
/// Half of a label of the time axis.
const RIGHT: u32 = 64;
/// Maximum number of sessions in the legend.
const NAMED_MAX: usize = 20;
/// Size of a dot, and of a dot in a sparse plot, in pixels.
const DOT: i32 = 3;
const SPARSE_DOT: i32 = 5;
/// Maximum number of dots of a sparse plot.
const SPARSE_MAX: usize = 4_000;
/// Opacity of a cell with a single dot, 0 to 1.
const MIN_OPACITY: f64 = 0.55;
/// Lower bound of latencies on the logarithmic axis, in microseconds.
const MIN_LATENCY_US: f64 = 1e-2;
/// Session colors, used in turn: easy to distinguish, and dark enough for a white background.
const COLORS: [(u8, u8, u8); 20] = [
    (31, 119, 180),
    (214, 39, 40),
    (44, 140, 44),
    (255, 127, 14),
    (148, 103, 189),
    (140, 86, 75),
    (227, 90, 180),
    (0, 150, 170),
    (160, 150, 0),
    (57, 59, 121),
    (99, 121, 57),
    (173, 20, 87),
    (8, 69, 148),
    (190, 110, 30),
    (123, 65, 115),
    (0, 110, 80),
    (110, 20, 20),
    (84, 39, 200),
    (70, 130, 110),
    (200, 60, 0),
];

type Pixels = (Range<i32>, Range<i32>);

/// Returns the scatterplot of a record with sampled transactions, as a PNG file. Several stages are drawn one
/// below the other.
///
/// # Errors
/// Returns [`DrawingError`] if the record has no sampled transactions or drawing fails.
pub fn scatter_png(record: &Record, scale: Scale) -> Result<Vec<u8>, DrawingError> {
    let (pixels, height, _) = draw(record, scale)?;
    png_file(&pixels, WIDTH, height)
}

/// Returns the pixels, three bytes each, the height, and the pixel ranges of the axes of each stage.
fn draw(record: &Record, scale: Scale) -> Result<(Vec<u8>, u32, Vec<Pixels>), DrawingError> {
    register_font()?;
    let sampled = record.stages.iter();
    let sampled = sampled.filter_map(|stage| Some((stage, stage.session_loop.samples.as_ref()?)));
    let stages: Vec<_> = sampled.filter(|(_, samples)| !samples.points.is_empty()).collect();
    let height = match u32::try_from(stages.len()).unwrap_or(1) {
        0 => return Err(DrawingError::Empty),
        1 => HEIGHT,
        several => STAGE_HEIGHT * several,
    };
    let mut pixels = vec![255; (WIDTH * height * 3) as usize];
    let root = BitMapBackend::with_buffer(&mut pixels, (WIDTH, height)).into_drawing_area();
    let parts = root.split_evenly((stages.len(), 1));
    let drawn = stages.into_iter().zip(parts).map(|((stage, samples), part)| {
        let panel = Panel { record, stage, samples, part };
        panel.draw(scale).map_err(|error| DrawingError::of(&error))
    });
    let axes = drawn.collect::<Result<_, _>>()?;
    root.present().map_err(|error| DrawingError::of(&error))?;
    drop(root);
    Ok((pixels, height, axes))
}

type Drawn<T> =
    Result<T, DrawingAreaErrorKind<<BitMapBackend<'static> as DrawingBackend>::ErrorType>>;

/// The part of the image that shows one stage.
struct Panel<'a, 'b> {
    record: &'a Record,
    stage: &'a StageRecord,
    samples: &'a SampleSet,
    part: DrawingArea<BitMapBackend<'b>, plotters::coord::Shift>,
}

impl Panel<'_, '_> {
    /// Draws the stage and returns the pixel ranges of its axes.
    fn draw(&self, scale: Scale) -> Drawn<Pixels> {
        self.captions()?;
        let latencies = self.samples.points.iter().map(|point| point.latency_us);
        let longest = latencies.clone().fold(MIN_LATENCY_US, f64::max);
        let shortest = latencies.fold(longest, f64::min).max(MIN_LATENCY_US);
        let (range, scale) = match scale {
            Scale::Linear => (0.0..longest * 1.05, AxisScale::Linear),
            Scale::Log => (shortest / 1.5..longest * 1.5, AxisScale::Log),
        };
        self.with_axis(Scaled { range, scale, ticks: Vec::new() })
    }

    fn captions(&self) -> Drawn<()> {
        let several = self.record.stages.len() > 1;
        let stage = if several { format!(" · {}", self.stage.name) } else { String::new() };
        let target = Summary { record: self.record, stage: self.stage }.target();
        let work = words::of(&self.record.plan.work).work();
        let title = format!("riops run {}: {work}{stage} · {target}", self.record.workload);
        self.text(&title, 20, (MARGIN, 8))?;
        self.text(&self.selection(), 15, (MARGIN, 34))?;
        self.legend()
    }

    /// Describes which transactions are drawn.
    fn selection(&self) -> String {
        let SampleSet { transactions, every, slot_s, longest, .. } = self.samples;
        let each = words::of(&self.record.plan.work).latency_of(self.stage);
        let (all, slot) = (count(*transactions), duration_us(slot_s * 1e6));
        let which = match every {
            1 => format!("all {all} are shown"),
            every => format!(
                "1 in {every} of {all} is shown, plus the {longest} longest and the shortest of every {slot}"
            ),
        };
        format!("one dot per {each}, at its end time; {which}; darker means more")
    }

    fn legend(&self) -> Drawn<()> {
        let sessions = self.stage.sessions as usize;
        let mut x = MARGIN;
        self.text("session", 15, (x, 58))?;
        x += 70;
        for session in 0..sessions.min(NAMED_MAX) {
            let from = (i32::try_from(x).unwrap_or(0), 61);
            let to = (from.0 + 11, from.1 + 11);
            let color = shade(u32::try_from(session).unwrap_or(0), 1.0);
            self.part.draw(&Rectangle::new([from, to], color.filled()))?;
            self.text(&(session + 1).to_string(), 15, (x + 16, 58))?;
            x += 50;
        }
        if sessions > NAMED_MAX {
            let (sessions, colors) = (count(sessions as u64), COLORS.len());
            let text = format!("… {sessions} sessions, {colors} colors used in turn");
            self.text(&text, 15, (x, 58))?;
        }
        Ok(())
    }

    /// A time since the start, and the time of day if the start is known.
    fn time_label(&self, seconds: f64) -> String {
        let since = SignedDuration::try_from_secs_f64(seconds).ok();
        let started = self.stage.started_at.zip(since);
        let time = started.and_then(|(start, since)| start.checked_add(since).ok());
        let time = time.map_or_else(String::new, |time| format!(", {}", time.strftime("%H:%M:%S")));
        value_text(seconds, Unit::Seconds) + &time
    }

    fn text(&self, text: &str, size: u32, (x, y): (u32, u32)) -> Drawn<()> {
        let style = (FAMILY, size).into_font().color(&BLACK);
        let place = (i32::try_from(x).unwrap_or(0), i32::try_from(y).unwrap_or(0));
        self.part.draw(&Text::new(text.to_owned(), place, style))
    }

    fn with_axis(&self, latencies: Scaled) -> Drawn<Pixels> {
        let end_s = self.samples.seconds.max(f64::MIN_POSITIVE);
        let time_of_day =
            if self.stage.started_at.is_some() { ", and time of day (UTC)" } else { "" };
        let mut chart = ChartBuilder::on(&self.part)
            .margin(MARGIN)
            .margin_top(TOP)
            .margin_right(RIGHT)
            .x_label_area_size(BOTTOM)
            .y_label_area_size(LEFT)
            .build_cartesian_2d(0.0..end_s, latencies)?;
        let description = if self.stage.session_loop.response_us.is_some() {
            "response time (from the intended start)"
        } else {
            "latency"
        };
        chart
            .configure_mesh()
            .x_desc(format!("time since the measurement started{time_of_day}"))
            .y_desc(description)
            .x_label_formatter(&|seconds| self.time_label(*seconds))
            .y_label_formatter(&|us| if *us > 0.0 { duration_us(*us) } else { "0".to_owned() })
            .label_style((FAMILY, 15))
            .axis_desc_style((FAMILY, 16))
            .light_line_style(RGBColor(243, 243, 243))
            .bold_line_style(RGBColor(220, 220, 220))
            .draw()?;
        let axes = chart.plotting_area().get_pixel_range();
        let pixel = |point: &SamplePoint| chart.backend_coord(&(point.t_s, point.latency_us));
        let (base_x, base_y) = self.part.get_base_pixel();
        let points = &self.samples.points;
        let size = if points.len() <= SPARSE_MAX { SPARSE_DOT } else { DOT };
        for Dot { x, y, margin, color } in dots(points, size, pixel) {
            let from = (x - base_x - margin, y - base_y - margin);
            let to = (from.0 + size + 2 * margin, from.1 + size + 2 * margin);
            self.part.draw(&Rectangle::new([from, to], color.filled()))?;
        }
        Ok(axes)
    }
}

/// The dot of one cell of the image.
struct Dot {
    /// Upper left corner of the cell, in pixels.
    x: i32,
    y: i32,
    /// Pixels by which the dot exceeds its cell on each side.
    margin: i32,
    color: RGBColor,
}

/// Returns the dots in drawing order, from back to front.
fn dots(points: &[SamplePoint], size: i32, pixel: impl Fn(&SamplePoint) -> (i32, i32)) -> Vec<Dot> {
    // Transactions per cell and session. Each cell is centered on the pixels of its dots.
    let mut cells: BTreeMap<(i32, i32), BTreeMap<u32, u32>> = BTreeMap::new();
    for point in points {
        let (x, y) = pixel(point);
        let cell = ((x - size / 2).div_euclid(size), (y - size / 2).div_euclid(size));
        *cells.entry(cell).or_default().entry(point.session).or_default() += 1;
    }
    let most = cells.values().map(|sessions| sessions.values().sum::<u32>()).max().unwrap_or(1);
    let is_isolated = |(x, y): (i32, i32)| {
        let neighborhood = (-1..=1).flat_map(|dx| (-1..=1).map(move |dy| (x + dx, y + dy)));
        neighborhood.filter(|cell| cells.contains_key(cell)).count() == 1
    };
    let dots = cells.iter().filter_map(|(&(x, y), sessions)| {
        let total: u32 = sessions.values().sum();
        let (&session, _) = sessions.iter().max_by_key(|(_, count)| **count)?;
        // Logarithmic, because perceived brightness depends on ratios.
        let share = f64::from(total).ln() / f64::from(most.max(2)).ln();
        let shaded = (0, MIN_OPACITY + (1.0 - MIN_OPACITY) * share);
        let (margin, opacity) = if is_isolated((x, y)) { (1, 1.0) } else { shaded };
        Some(Dot { x: x * size, y: y * size, margin, color: shade(session, opacity) })
    });
    let mut dots: Vec<Dot> = dots.collect();
    // Isolated dots are drawn last, so that no other dot hides them.
    dots.sort_by_key(|dot| dot.margin);
    dots
}

/// Returns the color of a session, blended with the white background.
fn shade(session: u32, opacity: f64) -> RGBColor {
    let (red, green, blue) =
        COLORS.get(session as usize % COLORS.len()).copied().unwrap_or((0, 0, 0));
    let mixed = |part: u8| {
        let part = 255.0 + (f64::from(part) - 255.0) * opacity.clamp(0.0, 1.0);
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 255")]
        let part = part.round() as u8;
        part
    };
    RGBColor(mixed(red), mixed(green), mixed(blue))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Samples;
    use crate::report::example_record;
    use crate::units::Nanos;

    const MS: u64 = 1_000_000;

    /// Returns the record of two sessions that run transactions of about 1 ms for 10 s. The server stalls
    /// from second 4 to 4.5.
    fn record_with_stall() -> Record {
        let mut samples = Samples::new(1, Nanos(0));
        for session in 0..2 {
            let mut now = 0;
            while now < 10_000 * MS {
                let usual = MS + (now / 997) % (MS / 4);
                let stalls = now <= 4_000 * MS && now + usual > 4_000 * MS;
                let latency = if stalls { 4_500 * MS - now } else { usual };
                now += latency;
                samples.record(session, Nanos(now), Nanos(latency));
            }
        }
        let mut record = example_record();
        record.stages[0].session_loop.samples = Some(Samples::merge(vec![samples], 10.0));
        record
    }

    /// Counts the colored pixels (neither white nor gray) in a part of the plot, given as shares of the axes.
    fn colored_pixels(record: &Record, scale: Scale, x: Range<f64>, y: Range<f64>) -> usize {
        let file = scatter_png(record, scale).unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(file)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut pixels).unwrap();
        let (_, _, axes) = draw(record, scale).unwrap();
        let (left_right, top_bottom) = &axes[0];
        let at = |range: &Range<i32>, share: f64| {
            #[expect(clippy::cast_possible_truncation, reason = "pixels")]
            let offset = (f64::from(range.end - range.start) * share).round() as i32;
            u32::try_from(range.start + offset).unwrap()
        };
        let mut found = 0;
        for row in at(top_bottom, y.start)..at(top_bottom, y.end) {
            for column in at(left_right, x.start)..at(left_right, x.end) {
                let start = ((row * WIDTH + column) * 3) as usize;
                let [red, green, blue] = pixels[start..start + 3].try_into().unwrap();
                found += usize::from(red != green || green != blue);
            }
        }
        found
    }

    #[test]
    fn a_server_stall_shows_as_a_gap_followed_by_an_outlier() {
        let record = record_with_stall();
        for scale in [Scale::Log, Scale::Linear] {
            // No transaction of any latency ended between second 4.02 and 4.48.
            assert_eq!(colored_pixels(&record, scale, 0.402..0.445, 0.0..1.0), 0);
            // The transactions that ended after the stall took 0.5 s. Only they are in the upper part.
            assert!(colored_pixels(&record, scale, 0.444..0.456, 0.0..0.25) >= 4);
            assert_eq!(colored_pixels(&record, scale, 0.0..0.444, 0.0..0.5), 0);
            // All others are in the lower part.
            assert!(colored_pixels(&record, scale, 0.0..0.4, 0.5..1.0) > 500);
        }
    }

    #[test]
    fn an_outlier_among_a_million_is_drawn() {
        let mut samples = Samples::new(1, Nanos(0));
        for number in 0..1_000_000u64 {
            let latency = if number == 543_211 { 900 * MS } else { MS };
            samples.record((number % 3) as u32, Nanos(number * 10_000), Nanos(latency));
        }
        let mut record = example_record();
        record.stages[0].session_loop.samples = Some(Samples::merge(vec![samples], 10.0));
        assert!(record.stages[0].session_loop.samples.as_ref().unwrap().every > 1);
        assert!(colored_pixels(&record, Scale::Log, 0.541..0.546, 0.0..0.3) >= 4);
        assert_eq!(colored_pixels(&record, Scale::Log, 0.0..0.54, 0.0..0.5), 0);
    }

    #[test]
    fn overlapping_dots_are_darker() {
        let point = |t_s| SamplePoint { t_s, latency_us: 1.0, session: 0, extreme: false };
        let mut points = vec![point(0.0)];
        points.extend([point(10.0); 100]);
        let pixel = |point: &SamplePoint| (if point.t_s > 5.0 { DOT } else { 0 }, 0);
        let drawn = dots(&points, DOT, pixel);
        let brightness =
            |dot: &Dot| u32::from(dot.color.0) + u32::from(dot.color.1) + u32::from(dot.color.2);
        assert_eq!(drawn.len(), 2);
        assert!(brightness(&drawn[0]) > brightness(&drawn[1]));
    }

    #[test]
    fn an_isolated_dot_is_larger_and_in_front() {
        let point = |t_s| SamplePoint { t_s, latency_us: 1.0, session: 0, extreme: false };
        let points = [point(0.0), point(9.0), point(9.1)];
        #[expect(clippy::cast_possible_truncation, reason = "pixels")]
        let drawn = dots(&points, 1, |point| ((point.t_s * 10.0) as i32, 0));
        let margins: Vec<_> = drawn.iter().map(|dot| (dot.x, dot.margin)).collect();
        assert_eq!(margins, [(90, 0), (91, 0), (0, 1)]);
    }

    #[test]
    fn fails_without_sampled_transactions() {
        assert!(matches!(scatter_png(&example_record(), Scale::Log), Err(DrawingError::Empty)));
    }
}
