//! The model of a chart: what to draw, independent of who draws it. The script of the pages and the PNG renderer
//! read the same values.

pub(super) mod lines;

use std::ops::RangeInclusive;

use serde::Serialize;

use crate::table::Table;
use riops_model::figure::{self, Figure};

/// Space above and below the values of an axis around them, as a share of their span, and of the largest one at least.
const MARGIN: f64 = 0.15;
const SPAN_MIN: f64 = 0.01;

/// A chart with its texts.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Chart {
    /// Id of its element, unique in the page.
    pub id: String,
    /// Title.
    pub title: String,
    /// Contents in one sentence: the text alternative.
    pub summary: String,
    /// Axes, marks and contents.
    pub plot: Plot,
    /// The values, as a table of bounded length.
    pub table: Option<Table>,
    /// Meaning of the error bars, with their level.
    pub interval: String,
}

impl Chart {
    /// Returns a chart of `content` on a horizontal and a vertical axis, without marks and without a table.
    pub(super) fn new(
        id: impl Into<String>,
        title: impl Into<String>,
        summary: String,
        [x, y]: [Axis; 2],
        content: Content,
    ) -> Self {
        let plot = Plot { x, y, marks: Vec::new(), sync: None, content };
        let interval = "95% interval".to_owned();
        Self { id: id.into(), title: title.into(), summary, plot, table: None, interval }
    }

    pub(super) fn with_table(self, table: Table) -> Self {
        Self { table: Some(table), ..self }
    }

    pub(super) fn with_marks(self, marks: Vec<Mark>) -> Self {
        Self { plot: Plot { marks, ..self.plot }, ..self }
    }
}

/// What to draw.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plot {
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// Named positions, ascending, such as the starts of the stages.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<Mark>,
    /// Charts with the same key show the same position of the pointer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync: Option<String>,
    /// The values.
    #[serde(flatten)]
    pub content: Content,
}

/// The values of a chart.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Content {
    /// Lines over common positions.
    Lines {
        /// Positions, ascending.
        xs: Vec<f64>,
        /// The lines.
        series: Vec<Series>,
    },
    /// Counts in time slots and classes of values.
    Heatmap {
        /// Bounds of the time slots, ascending: one more than there are slots.
        slots: Vec<f64>,
        /// Bounds of the classes, ascending: one more than there are classes.
        bounds: Vec<f64>,
        /// Slot, class and count of each cell that is not empty.
        cells: Vec<(usize, usize, u64)>,
    },
    /// Single values.
    Dots {
        /// Position, value and number of the session.
        points: Vec<(f64, f64, u32)>,
    },
    /// A value for each combination of two settings. The axes have a range; a position is the index of its name.
    Grid {
        /// Names of the columns, from the left.
        columns: Vec<String>,
        /// Names of the rows, from the bottom.
        rows: Vec<String>,
        /// Column, row and value of each cell that was measured.
        cells: Vec<(usize, usize, f64)>,
        /// Unit of the values.
        unit: Unit,
    },
    /// Estimates with their intervals. The axes have a range.
    Points {
        /// Ticks of the horizontal axis; the ticks of its scale if empty.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        ticks: Vec<f64>,
        /// Names of these ticks; their values if empty.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        names: Vec<String>,
        /// The series.
        series: Vec<PointSeries>,
    },
}

impl Content {
    /// Estimates on axes with scales.
    pub(super) fn points(series: Vec<PointSeries>) -> Self {
        Self::Points { ticks: Vec::new(), names: Vec::new(), series }
    }
}

/// A series of estimates.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PointSeries {
    /// Name.
    pub label: String,
    /// How it is drawn.
    pub style: PointStyle,
    /// The estimates. Lines join them in this order.
    pub points: Vec<Estimated>,
}

/// How a series of estimates is drawn. All but bands show the interval as an error bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PointStyle {
    /// Dots joined by a line.
    Line,
    /// Single dots.
    Dots,
    /// Bars that start at zero, side by side.
    Bars,
    /// A bar from the value of each point before to its own; the first and the last bar start at zero.
    Steps,
    /// A curve without dots; the interval is a band.
    Band,
    /// The same with a dashed curve: an extrapolation.
    Dashed,
    /// A box of the quartiles with a line at the median, the whole range as the interval, and a dot for each value.
    Boxes,
}

/// An estimate.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Estimated {
    /// Horizontal position.
    pub x: f64,
    /// The estimate.
    pub y: f64,
    /// Lower and upper limit of its interval.
    pub interval: Option<(f64, f64)>,
    /// The same of the horizontal position, if that is an estimate, too.
    pub x_interval: Option<(f64, f64)>,
    /// Text beside the point.
    pub label: Option<String>,
    /// First and third quartile of the values, if the point is a box.
    pub quartiles: Option<(f64, f64)>,
    /// The values of a box.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<f64>,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Series {
    /// Name.
    pub label: String,
    /// A value for each position; `None` leaves a gap.
    pub values: Vec<Option<f64>>,
}

/// An axis.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Axis {
    /// Description, with the unit if the ticks do not have it.
    pub label: String,
    /// Unit of the values.
    pub unit: Unit,
    /// How values are placed.
    pub scale: AxisScale,
    /// First and last value; from the data if absent. Vertical axes start at zero unless they are logarithmic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<(f64, f64)>,
}

impl Axis {
    /// Returns the axis of the time since the start of the run, which ends at `end_s`.
    pub fn time(end_s: f64) -> Self {
        let label = "time since the start of the measurement".to_owned();
        Self { label, unit: Unit::Seconds, scale: AxisScale::Linear, range: Some((0.0, end_s)) }
    }

    /// Returns a vertical axis.
    pub fn new(label: &str, unit: Unit, scale: AxisScale) -> Self {
        Self { label: label.to_owned(), unit, scale, range: None }
    }

    /// Returns the axis with its first and its last value.
    pub(super) fn within(self, range: RangeInclusive<f64>) -> Self {
        Self { range: Some(range.into_inner()), ..self }
    }

    /// Returns the axis around these values: a step by a few percent would be invisible on an axis from zero.
    pub(super) fn around(self, values: impl Iterator<Item = f64>) -> Self {
        let (least, most) = values.fold((f64::INFINITY, 0.0_f64), |(least, most), value| {
            (least.min(value), most.max(value))
        });
        let margin = ((most - least) * MARGIN).max(most * SPAN_MIN);
        self.within(rounded((least - margin).max(0.0))..=rounded(most + margin))
    }
}

/// The unit of an axis, which determines how values are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// A number.
    Count,
    /// A number per second.
    PerSecond,
    /// Seconds.
    Seconds,
    /// Microseconds, written with a suitable unit.
    DurationUs,
    /// Percent.
    Percent,
    /// Megabytes (10^6 bytes) per second.
    MbS,
    /// Megabytes (10^6 bytes).
    Mb,
    /// The position of a percentile: the number of nines, so that 90% is 1 and 99.9% is 3.
    Nines,
}

impl Unit {
    /// Returns the unit of a figure.
    pub(super) fn for_figure(figure: Figure) -> Self {
        match figure.unit() {
            figure::Unit::Microseconds => Self::DurationUs,
            figure::Unit::Seconds => Self::Seconds,
            figure::Unit::MbPerSecond => Self::MbS,
            figure::Unit::PerSecond => Self::PerSecond,
            figure::Unit::Processors
            | figure::Unit::Bytes
            | figure::Unit::Events
            | figure::Unit::Money => Self::Count,
        }
    }
}

/// How values are placed on an axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AxisScale {
    /// In proportion.
    Linear,
    /// By their logarithm.
    Log,
    /// Percentiles, by their number of nines.
    Nines,
}

/// A named position, such as the start of a stage.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Mark {
    /// Position on the horizontal axis.
    pub x: f64,
    /// Its name.
    pub label: String,
}

/// Rounds a value to five significant digits: more than a chart can show, and short in JSON.
pub fn rounded(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let exponent = 4.0 - value.abs().log10().floor();
    let scale = 10f64.powf(exponent.abs());
    if exponent >= 0.0 { (value * scale).round() / scale } else { (value / scale).round() * scale }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_five_significant_digits() {
        for (value, expected) in [
            (0.0, 0.0),
            (123_456.789, 123_460.0),
            (0.000_123_456_7, 0.000_123_46),
            (99_999.96, 100_000.0),
            (-1.234_567, -1.234_6),
        ] {
            assert!((rounded(value) - expected).abs() <= expected.abs() * 1e-12, "{value}");
        }
    }
}
