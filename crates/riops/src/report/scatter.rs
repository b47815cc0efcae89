//! Latency over time as a picture: a dot for each transaction that was kept, a colour a session. Pure:
//! a record in, the bytes of a PNG file out.
//!
//! Where dots overlap, their number is shown by how dark the place is, and a dot without neighbours is
//! drawn larger: neither a million short transactions nor one long one gets lost.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::OnceLock;

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use super::format::{count, duration_us};
use super::histogram::Scale;
use super::model::Summary;
use super::words;
use crate::record::{Record, SamplePoint, SampleSet, StageRecord};

const WIDTH: u32 = 1600;
/// Height of a picture with one stage, and of each stage where there are several.
const HEIGHT: u32 = 900;
const STAGE_HEIGHT: u32 = 450;
/// Pixels around the axes.
const MARGIN: u32 = 16;
const LEFT: u32 = 90;
const BOTTOM: u32 = 56;
const TOP: u32 = 84;
/// Sessions that the legend names.
const NAMED_MAX: usize = 20;
/// Pixels of a dot, and of one where there are few.
const DOT: i32 = 3;
const DOT_OF_FEW: i32 = 5;
/// So many dots are few.
const FEW: usize = 4_000;
/// How dark a single dot is, of 1.
const SINGLE: f64 = 0.55;
/// The shortest latency that a logarithm is taken of.
const SHORTEST_US: f64 = 1e-2;
/// The font that is shipped: nobody has to have one installed.
const FONT: &[u8] = include_bytes!("../../assets/DejaVuSans.ttf");
const FAMILY: &str = "riops";

/// Why there is no picture.
#[derive(Debug, thiserror::Error)]
pub enum PictureError {
    /// Nothing to draw.
    #[error("no transaction was kept that could be drawn")]
    Empty,
    /// A part of the drawing failed.
    #[error("the picture could not be drawn: {0}")]
    Drawing(String),
}

impl PictureError {
    fn drawing(error: &dyn std::fmt::Display) -> Self {
        Self::Drawing(error.to_string())
    }
}

/// The colours of the sessions, in turn: far from each other, and dark enough for a white ground.
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

/// The scatterplot of a record whose transactions were kept, as a PNG file; one below the other for
/// several stages.
///
/// # Errors
/// [`PictureError`]
pub fn scatter_png(record: &Record, scale: Scale) -> Result<Vec<u8>, PictureError> {
    let (pixels, height, _) = draw(record, scale)?;
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, WIDTH, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder
        .write_header()
        .and_then(|mut writer| writer.write_image_data(&pixels))
        .map_err(|error| PictureError::drawing(&error))?;
    Ok(file)
}

/// The picture's pixels, three bytes each, its height, and where the axes of each stage are.
fn draw(record: &Record, scale: Scale) -> Result<(Vec<u8>, u32, Vec<Pixels>), PictureError> {
    register_font()?;
    let stages: Vec<_> = record
        .stages
        .iter()
        .filter_map(|stage| Some((stage, stage.session_loop.samples.as_ref()?)))
        .filter(|(_, samples)| !samples.points.is_empty())
        .collect();
    let height = match u32::try_from(stages.len()).unwrap_or(1) {
        0 => return Err(PictureError::Empty),
        1 => HEIGHT,
        several => STAGE_HEIGHT * several,
    };
    let mut pixels = vec![255; (WIDTH * height * 3) as usize];
    let mut axes = Vec::new();
    {
        let root = BitMapBackend::with_buffer(&mut pixels, (WIDTH, height)).into_drawing_area();
        let parts = root.split_evenly((stages.len(), 1));
        for ((stage, samples), part) in stages.into_iter().zip(parts) {
            let panel = Panel { record, stage, samples, part };
            let area = panel.draw(scale).map_err(|error| PictureError::drawing(&error))?;
            axes.push(area);
        }
        root.present().map_err(|error| PictureError::drawing(&error))?;
    }
    Ok((pixels, height, axes))
}

fn register_font() -> Result<(), PictureError> {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    let registered = *REGISTERED
        .get_or_init(|| plotters::style::register_font(FAMILY, FontStyle::Normal, FONT).is_ok());
    registered.then_some(()).ok_or_else(|| PictureError::Drawing("no font".to_owned()))
}

type Backend<'a> = BitMapBackend<'a>;
type Drawn<T, E> = Result<T, DrawingAreaErrorKind<E>>;

/// The part of a picture that shows one stage.
struct Panel<'a, 'b> {
    record: &'a Record,
    stage: &'a StageRecord,
    samples: &'a SampleSet,
    part: DrawingArea<Backend<'b>, plotters::coord::Shift>,
}

impl Panel<'_, '_> {
    /// Draws it; returns where its axes are.
    fn draw(&self, scale: Scale) -> Drawn<Pixels, <Backend<'_> as DrawingBackend>::ErrorType> {
        self.captions()?;
        let latencies = self.samples.points.iter().map(|point| point.latency_us);
        let longest = latencies.clone().fold(SHORTEST_US, f64::max);
        let shortest = latencies.fold(longest, f64::min).max(SHORTEST_US);
        let range = match scale {
            Scale::Linear => 0.0..longest * 1.05,
            Scale::Log => shortest / 1.5..longest * 1.5,
        };
        self.with_axis(LatencyAxis { range, scale })
    }

    fn captions(&self) -> Drawn<(), <Backend<'_> as DrawingBackend>::ErrorType> {
        let several = self.record.stages.len() > 1;
        let stage = if several { format!(" · {}", self.stage.name) } else { String::new() };
        let target = Summary { record: self.record, stage: self.stage }.target();
        let title = format!("riops run {}{stage} · {target}", self.record.workload);
        self.text(&title, 20, (MARGIN, 8))?;
        self.text(&self.selection(), 15, (MARGIN, 34))?;
        self.legend()
    }

    /// Which transactions are drawn.
    fn selection(&self) -> String {
        let SampleSet { transactions, every, slot_s, longest, .. } = self.samples;
        let each = words::of(&self.record.plan.work).latency_of(self.stage);
        let which = match every {
            1 => format!("all {} are drawn", count(*transactions)),
            every => format!(
                "one in {every} of {} is drawn, and of each {} the {longest} longest and the shortest",
                count(*transactions),
                duration_us(slot_s * 1e6)
            ),
        };
        format!("a dot is a {each}, where it ended: {which}; the darker, the more")
    }

    fn legend(&self) -> Drawn<(), <Backend<'_> as DrawingBackend>::ErrorType> {
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
            self.text(
                &format!("… {} in all, {} colours in turn", count(sessions as u64), COLORS.len()),
                15,
                (x, 58),
            )?;
        }
        Ok(())
    }

    fn text(
        &self,
        text: &str,
        size: u32,
        (x, y): (u32, u32),
    ) -> Drawn<(), <Backend<'_> as DrawingBackend>::ErrorType> {
        let style = (FAMILY, size).into_font().color(&BLACK);
        let place = (i32::try_from(x).unwrap_or(0), i32::try_from(y).unwrap_or(0));
        self.part.draw(&Text::new(text.to_owned(), place, style))
    }

    fn with_axis(
        &self,
        latencies: LatencyAxis,
    ) -> Drawn<Pixels, <Backend<'_> as DrawingBackend>::ErrorType> {
        let end_s = self.samples.seconds.max(f64::MIN_POSITIVE);
        let mut chart = ChartBuilder::on(&self.part)
            .margin(MARGIN)
            .margin_top(TOP)
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
            .x_desc("time since the measurement started")
            .y_desc(description)
            .x_label_formatter(&|seconds| format!("{} s", trimmed(*seconds)))
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
        let size = if points.len() <= FEW { DOT_OF_FEW } else { DOT };
        for Dot { x, y, around, color } in dots(points, size, pixel) {
            let from = (x - base_x - around, y - base_y - around);
            let to = (from.0 + size + 2 * around, from.1 + size + 2 * around);
            self.part.draw(&Rectangle::new([from, to], color.filled()))?;
        }
        Ok(axes)
    }
}

/// The axis of the latencies, in microseconds.
struct LatencyAxis {
    range: Range<f64>,
    scale: Scale,
}

impl LatencyAxis {
    fn place(&self, us: f64) -> f64 {
        match self.scale {
            Scale::Linear => us,
            Scale::Log => us.max(SHORTEST_US).log10(),
        }
    }

    /// 1, 2 and 5 times each power of ten; the powers alone where these are many.
    fn decades(&self) -> Vec<f64> {
        let (start, end) = (self.place(self.range.start), self.place(self.range.end));
        #[expect(clippy::cast_possible_truncation, reason = "latencies from 10 ns to an hour")]
        let powers = start.floor() as i32..=end.ceil() as i32;
        let digits: &[f64] = if end - start > 3.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
        powers
            .flat_map(|power| digits.iter().map(move |digit| digit * 10f64.powi(power)))
            .filter(|us| self.range.contains(us))
            .collect()
    }
}

impl Ranged for LatencyAxis {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, us: &f64, (from, to): (i32, i32)) -> i32 {
        let (start, end) = (self.place(self.range.start), self.place(self.range.end));
        let share = (self.place(*us) - start) / (end - start).max(f64::MIN_POSITIVE);
        #[expect(clippy::cast_possible_truncation, reason = "pixels of a picture")]
        let offset = (f64::from(to - from) * share).round() as i32;
        from + offset
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        match self.scale {
            Scale::Linear => RangedCoordf64::from(self.range.clone()).key_points(hint),
            Scale::Log => self.decades(),
        }
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

/// Seconds without zeros that say nothing.
fn trimmed(seconds: f64) -> String {
    let text = format!("{seconds:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// What is drawn of one cell of the picture.
struct Dot {
    /// The upper left corner.
    x: i32,
    y: i32,
    /// Pixels that it is larger than its cell, on each side.
    around: i32,
    color: RGBColor,
}

/// The dots to be drawn, from the back to the front.
fn dots(points: &[SamplePoint], size: i32, pixel: impl Fn(&SamplePoint) -> (i32, i32)) -> Vec<Dot> {
    // Of each cell, how many dots of which session. A cell lies around the pixels of its dots.
    let mut cells: BTreeMap<(i32, i32), BTreeMap<u32, u32>> = BTreeMap::new();
    for point in points {
        let (x, y) = pixel(point);
        let cell = ((x - size / 2).div_euclid(size), (y - size / 2).div_euclid(size));
        *cells.entry(cell).or_default().entry(point.session).or_default() += 1;
    }
    let most = cells.values().map(|sessions| sessions.values().sum::<u32>()).max().unwrap_or(1);
    let is_alone = |(x, y): (i32, i32)| {
        let around = (-1..=1).flat_map(|dx| (-1..=1).map(move |dy| (x + dx, y + dy)));
        around.filter(|cell| cells.contains_key(cell)).count() == 1
    };
    let mut dots = Vec::with_capacity(cells.len());
    let mut alone = Vec::new();
    for (&(x, y), sessions) in &cells {
        let total: u32 = sessions.values().sum();
        let Some((&session, _)) = sessions.iter().max_by_key(|(_, count)| **count) else {
            continue;
        };
        let corner = (x * size, y * size);
        if is_alone((x, y)) {
            let color = shade(session, 1.0);
            alone.push(Dot { x: corner.0, y: corner.1, around: 1, color });
            continue;
        }
        // The eye sees ratios.
        let share = f64::from(total).ln() / f64::from(most.max(2)).ln();
        let color = shade(session, SINGLE + (1.0 - SINGLE) * share);
        dots.push(Dot { x: corner.0, y: corner.1, around: 0, color });
    }
    // Who stands alone is to be seen.
    dots.extend(alone);
    dots
}

/// A session's colour, mixed with the white behind it.
fn shade(session: u32, strength: f64) -> RGBColor {
    let (red, green, blue) =
        COLORS.get(session as usize % COLORS.len()).copied().unwrap_or((0, 0, 0));
    let mixed = |part: u8| {
        let part = 255.0 + (f64::from(part) - 255.0) * strength.clamp(0.0, 1.0);
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

    /// Two sessions for ten seconds, a transaction of about 1 ms after the other; the server stands
    /// still from second 4 to 4.5.
    fn stopped() -> Record {
        let mut samples = Samples::new(1, Nanos(0));
        for session in 0..2 {
            let mut now = 0;
            while now < 10_000 * MS {
                let usual = MS + (now / 997) % (MS / 4);
                let stops = now <= 4_000 * MS && now + usual > 4_000 * MS;
                let latency = if stops { 4_500 * MS - now } else { usual };
                now += latency;
                samples.record(session, Nanos(now), Nanos(latency));
            }
        }
        let mut record = example_record();
        record.stages[0].session_loop.samples = Some(Samples::merge(vec![samples], 10.0).into());
        record
    }

    /// How many pixels of these shares of the axes have a colour, not white or a grey of the grid.
    fn colored(record: &Record, scale: Scale, x: Range<f64>, y: Range<f64>) -> usize {
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
    fn a_server_that_stood_still_is_a_gap_with_an_outlier_behind_it() {
        let record = stopped();
        for scale in [Scale::Log, Scale::Linear] {
            // Nothing ended from second 4.02 to 4.48, whatever it took.
            assert_eq!(colored(&record, scale, 0.402..0.445, 0.0..1.0), 0);
            // What ended then took half a second: alone in the upper part of the picture.
            assert!(colored(&record, scale, 0.444..0.456, 0.0..0.25) >= 4);
            assert_eq!(colored(&record, scale, 0.0..0.444, 0.0..0.5), 0);
            // Everything else is where it belongs.
            assert!(colored(&record, scale, 0.0..0.4, 0.5..1.0) > 500);
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
        record.stages[0].session_loop.samples = Some(Samples::merge(vec![samples], 10.0).into());
        assert!(record.stages[0].session_loop.samples.as_ref().unwrap().every > 1);
        assert!(colored(&record, Scale::Log, 0.541..0.546, 0.0..0.3) >= 4);
        assert_eq!(colored(&record, Scale::Log, 0.0..0.54, 0.0..0.5), 0);
    }

    #[test]
    fn where_more_dots_overlap_the_picture_is_darker() {
        let point = |t_s| SamplePoint { t_s, latency_us: 1.0, session: 0, extreme: false };
        let mut points = vec![point(0.0)];
        points.extend([point(10.0); 100]);
        let beside = |point: &SamplePoint| (if point.t_s > 5.0 { DOT } else { 0 }, 0);
        let drawn = dots(&points, DOT, beside);
        let brightness =
            |dot: &Dot| u32::from(dot.color.0) + u32::from(dot.color.1) + u32::from(dot.color.2);
        assert_eq!(drawn.len(), 2);
        assert!(brightness(&drawn[0]) > brightness(&drawn[1]));
    }

    #[test]
    fn a_dot_without_neighbours_is_larger_and_in_front() {
        let point = |t_s| SamplePoint { t_s, latency_us: 1.0, session: 0, extreme: false };
        let points = [point(0.0), point(9.0), point(9.1)];
        #[expect(clippy::cast_possible_truncation, reason = "pixels")]
        let drawn = dots(&points, 1, |point| ((point.t_s * 10.0) as i32, 0));
        let around: Vec<_> = drawn.iter().map(|dot| (dot.x, dot.around)).collect();
        assert_eq!(around, [(90, 0), (91, 0), (0, 1)]);
    }

    #[test]
    fn without_transactions_there_is_no_picture() {
        assert!(matches!(scatter_png(&example_record(), Scale::Log), Err(PictureError::Empty)));
    }
}
