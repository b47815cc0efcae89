//! What all images need: the embedded font, the file format, the errors, the colors, the types and the axes.

use std::ops::{Range, RangeInclusive};
use std::sync::OnceLock;

use plotters::coord::Shift;
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;

use crate::chart::{Axis, AxisScale};

/// The embedded font, so that no installed font is required.
const FONT: &[u8] = include_bytes!("../../../assets/DejaVuSans.ttf");
/// Its name for plotters.
pub(super) const FAMILY: &str = "riops";

/// Errors of drawing a graph.
#[derive(Debug, thiserror::Error)]
pub enum DrawingError {
    /// The record has no sampled transactions.
    #[error("no transactions were sampled")]
    Empty,
    /// The drawing library failed.
    #[error("drawing failed: {0}")]
    Failed(String),
}

impl DrawingError {
    pub(super) fn from_error(error: &dyn std::fmt::Display) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Makes the font known to plotters.
pub(super) fn register_font() -> Result<(), DrawingError> {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    let registered = *REGISTERED
        .get_or_init(|| plotters::style::register_font(FAMILY, FontStyle::Normal, FONT).is_ok());
    registered
        .then_some(())
        .ok_or_else(|| DrawingError::Failed("cannot load the embedded font".to_owned()))
}

/// Returns pixels of three bytes as a PNG file.
pub(super) fn png_file(pixels: &[u8], width: u32, height: u32) -> Result<Vec<u8>, DrawingError> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder
        .write_header()
        .and_then(|mut writer| writer.write_image_data(pixels))
        .map_err(|error| DrawingError::from_error(&error))?;
    Ok(file)
}

/// Smallest value on a logarithmic axis.
const LEAST: f64 = 1e-3;

/// Smallest distance of two given ticks, as a share of the axis.
const TICKS_SHARE: f64 = 0.045;

pub(super) const INK: RGBColor = RGBColor(23, 28, 38);

pub(super) const SOFT: RGBColor = RGBColor(86, 96, 114);

/// The series of the style of pages, in the light theme.
pub(super) const COLORS: [RGBColor; 8] = [
    RGBColor(35, 97, 196),
    RGBColor(194, 87, 12),
    RGBColor(13, 127, 115),
    RGBColor(124, 63, 196),
    RGBColor(184, 50, 111),
    RGBColor(111, 106, 0),
    RGBColor(86, 98, 122),
    RGBColor(138, 74, 42),
];

pub(super) type Backend<'a> = BitMapBackend<'a>;

pub(super) type Drawn<T> =
    Result<T, DrawingAreaErrorKind<<Backend<'static> as DrawingBackend>::ErrorType>>;

pub(super) type Area<'a> = DrawingArea<Backend<'a>, Shift>;

pub(super) type Context<'a, 'b> = ChartContext<'a, Backend<'b>, Cartesian2d<Scaled, Scaled>>;

/// An axis of a chart for plotters.
pub(super) struct Scaled {
    range: Range<f64>,
    scale: AxisScale,
    /// The ticks, if they are given.
    pub(super) ticks: Vec<f64>,
}

impl Scaled {
    /// Returns the axis with its own range, or else with the range of the data: from zero, or with some space on both
    /// sides if it is logarithmic.
    pub(super) fn new(axis: &Axis, data: RangeInclusive<f64>) -> Self {
        let (low, high) = data.into_inner();
        let (low, high) = match (axis.range, axis.scale) {
            (Some(range), _) => range,
            (None, AxisScale::Log) => (low.min(high).max(LEAST) / 1.3, high.max(LEAST) * 1.3),
            (None, _) => (0.0, high * 1.08),
        };
        let high = if high > low { high } else { low + 1.0 };
        Self { range: low..high, scale: axis.scale, ticks: Vec::new() }
    }

    /// Returns the ticks, except ticks that are too close to the previous one.
    pub(super) fn spaced(&self, ticks: &[f64]) -> Vec<f64> {
        let span = self.position(self.range.end) - self.position(self.range.start);
        let mut kept: Vec<f64> = Vec::new();
        for &tick in ticks {
            let is_far =
                |last: &f64| self.position(tick) - self.position(*last) >= span * TICKS_SHARE;
            if kept.last().is_none_or(is_far) {
                kept.push(tick);
            }
        }
        kept
    }

    fn position(&self, value: f64) -> f64 {
        if self.scale == AxisScale::Log { value.max(LEAST).log10() } else { value }
    }

    /// 1, 2 and 5 times each power of ten, or only the powers if the range exceeds three decades.
    fn log_ticks(&self) -> Vec<f64> {
        let (start, end) = (self.position(self.range.start), self.position(self.range.end));
        #[expect(clippy::cast_possible_truncation, reason = "powers of ten of a measured value")]
        let powers = start.floor() as i32..=end.ceil() as i32;
        let digits: &[f64] = if end - start > 3.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let ticks =
            powers.flat_map(|power| digits.iter().map(move |digit| digit * 10f64.powi(power)));
        let ticks: Vec<f64> = ticks.filter(|value| self.range.contains(value)).collect();
        if ticks.is_empty() { vec![self.range.start, self.range.end] } else { ticks }
    }
}

impl Ranged for Scaled {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        let (start, end) = (self.position(self.range.start), self.position(self.range.end));
        let share = (self.position(*value) - start) / (end - start).max(f64::MIN_POSITIVE);
        #[expect(clippy::cast_possible_truncation, reason = "pixels of an image")]
        let offset = (f64::from(to - from) * share).round() as i32;
        // Values of a record may be far outside.
        from.saturating_add(offset)
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if !self.ticks.is_empty() {
            return self.ticks.clone();
        }
        match self.scale {
            AxisScale::Linear => RangedCoordf64::from(self.range.clone()).key_points(hint),
            AxisScale::Log => self.log_ticks(),
            AxisScale::Nines => {
                #[expect(clippy::cast_possible_truncation, reason = "at most 20 nines")]
                let last = self.range.end.floor() as i32;
                (0..=last).map(f64::from).collect()
            }
        }
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::Unit;

    #[test]
    fn axes_that_a_ratio_is_read_from_start_at_zero() {
        let axis = |scale| Axis::new("", Unit::PerSecond, scale);
        assert_eq!(Scaled::new(&axis(AxisScale::Linear), 90.0..=100.0).range, 0.0..108.0);
        let log = Scaled::new(&axis(AxisScale::Log), 90.0..=900.0);
        assert_eq!(log.log_ticks(), [100.0, 200.0, 500.0, 1000.0]);
        assert_eq!(log.map(&log.range.start, (500, 20)), 500);
        assert_eq!(log.map(&log.range.end, (500, 20)), 20);
    }
}
