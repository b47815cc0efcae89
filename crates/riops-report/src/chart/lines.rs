//! Builds charts of lines: thinned to what a screen can show, with a sentence and a table as text alternatives.

use std::fmt::Write as _;

use crate::chart::{Axis, AxisScale, Chart, Content, Mark, Series, Unit, rounded};
use crate::table::{Cell, Table, number_column};
use riops_model::units::count;
use riops_model::units::format::{duration_us, rate};

/// Maximum number of positions that are drawn one by one.
const POSITIONS_MAX: usize = 2_000;
/// Maximum number of rows of the table of a chart.
const ROWS_MAX: usize = 60;

/// A chart of lines before it is drawn.
pub(crate) struct Lines<'a> {
    pub(crate) id: String,
    pub(crate) title: &'a str,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) marks: &'a [Mark],
    pub(crate) sync: Option<String>,
    pub(crate) xs: &'a [f64],
    pub(crate) series: Vec<Series>,
}

impl Lines<'_> {
    /// Returns the chart; `None` if nothing was measured, or if all values are zero.
    pub(crate) fn chart(mut self) -> Option<Chart> {
        self.series.retain(|series| series.values.iter().any(Option::is_some));
        let is_zero = |value: &Option<f64>| value.is_none_or(|value| value == 0.0);
        if self.series.iter().all(|series| series.values.iter().all(is_zero)) {
            return None;
        }
        let (drawn_xs, drawn) = thinned(self.xs, &self.series);
        let mut summary = summary(&self.series, &self.y);
        if drawn_xs.len() < self.xs.len() {
            let _ = write!(
                summary,
                " {} intervals are drawn in groups, each with its lowest and its highest value.",
                count(self.xs.len() as u64)
            );
        }
        let table = table(self.title, self.xs, &self.series, &self.x, &self.y);
        let content = Content::Lines { xs: drawn_xs, series: drawn };
        let mut chart = Chart::new(self.id, self.title, summary, [self.x, self.y], content);
        (chart.plot.marks, chart.plot.sync) = (self.marks.to_vec(), self.sync);
        Some(chart.with_table(table))
    }
}

/// A value with its unit, as text.
pub(crate) fn value_text(value: f64, unit: Unit) -> String {
    match unit {
        Unit::DurationUs => duration_us(value),
        Unit::Percent => format!("{}%", plain(value)),
        Unit::MbS => format!("{} MB/s", plain(value)),
        Unit::Mb => format!("{} MB", plain(value)),
        Unit::Seconds => trimmed(&format!("{value:.3} s")),
        Unit::Nines => percentile_text(value),
        Unit::PerSecond | Unit::Count => plain(value),
    }
}

/// The name of a percentile by its number of nines: `99.9%`.
pub(crate) fn percentile_text(nines: f64) -> String {
    let text = format!("{:.6}", 100.0 * (1.0 - 10f64.powf(-nines)));
    trimmed(&text) + "%"
}

/// A number without zeros at the end of its decimals: `10 ms`, `2.5`.
pub(crate) fn trimmed(text: &str) -> String {
    match text.split_once(' ') {
        Some((amount, unit)) => format!("{} {unit}", trimmed(amount)),
        None if text.contains('.') => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        None => text.to_owned(),
    }
}

/// A number with three significant digits; 0 without decimals.
fn plain(value: f64) -> String {
    if value == 0.0 { "0".to_owned() } else { rate(value) }
}

/// Minimum, median and maximum of each line in a sentence.
fn summary(series: &[Series], y: &Axis) -> String {
    let parts: Vec<_> = series
        .iter()
        .filter_map(|line| {
            let mut values: Vec<f64> = line.values.iter().flatten().copied().collect();
            values.sort_by(f64::total_cmp);
            let text = |value: Option<&f64>| value.map(|value| value_text(*value, y.unit));
            let (least, most) = (text(values.first())?, text(values.last())?);
            let median = text(values.get(values.len() / 2))?;
            Some(if least == most {
                format!("{}: {most} throughout", line.label)
            } else {
                format!("{}: min {least}, median {median}, max {most}", line.label)
            })
        })
        .collect();
    format!("{}.", parts.join("; "))
}

/// Returns the positions and lines to draw: with many positions, the lowest and the highest value of each group
/// of neighbors, in their order. Every drawn value was measured, and no peak is lost.
fn thinned(xs: &[f64], series: &[Series]) -> (Vec<f64>, Vec<Series>) {
    let size = xs.len().div_ceil(POSITIONS_MAX / 2);
    if xs.len() <= POSITIONS_MAX {
        return (xs.to_vec(), series.to_vec());
    }
    let positions = xs.chunks(size).flat_map(|group| {
        let middle = group.get(group.len() / 2);
        group.first().into_iter().chain(middle.filter(|_| group.len() > 1)).copied()
    });
    let thin = |series: &Series| {
        let groups = series.values.chunks(size);
        let values = groups.flat_map(|group| extremes(group).into_iter().take(group.len()));
        Series { label: series.label.clone(), values: values.collect() }
    };
    (positions.collect(), series.iter().map(thin).collect())
}

/// The lowest and the highest value, in their order.
fn extremes(group: &[Option<f64>]) -> [Option<f64>; 2] {
    let values = || group.iter().enumerate().filter_map(|(at, value)| Some((at, (*value)?)));
    let least = values().min_by(|a, b| a.1.total_cmp(&b.1));
    let most = values().max_by(|a, b| a.1.total_cmp(&b.1));
    match (least, most) {
        (Some(least), Some(most)) if most.0 < least.0 => [Some(most.1), Some(least.1)],
        (Some(least), Some(most)) => [Some(least.1), Some(most.1)],
        _ => [None, None],
    }
}

/// The values as a table. With many positions, a row has a group of neighbors and its cells their range.
fn table(title: &str, xs: &[f64], series: &[Series], x: &Axis, y: &Axis) -> Table {
    let size = xs.len().div_ceil(ROWS_MAX).max(1);
    let is_time = x.scale != AxisScale::Nines;
    let rows = xs.chunks(size).enumerate().map(|(row, group)| {
        let last = group.last().copied().unwrap_or_default();
        let mut cells = vec![Cell::from(value_text(last, x.unit))];
        cells.extend(series.iter().map(|line| {
            let start = row * size;
            let values = line.values.get(start..start + group.len()).unwrap_or_default();
            range_text(values, y.unit).into()
        }));
        cells
    });
    let first = if is_time { "time" } else { "percentile" };
    let columns = series.iter().map(|line| number_column(&line.label));
    let table = Table::new(title, std::iter::once(number_column(first)).chain(columns), rows);
    if size == 1 {
        return table;
    }
    table.with_note(format!(
        "each row: lowest to highest value of up to {size} intervals that end until this time"
    ))
}

fn range_text(values: &[Option<f64>], unit: Unit) -> Option<String> {
    let [first, second] = extremes(values);
    let (first, second) = first.zip(second)?;
    let (least, most) = (value_text(first.min(second), unit), value_text(first.max(second), unit));
    Some(if least == most { most } else { format!("{least} – {most}") })
}

/// A line with rounded values.
pub(crate) fn line(label: &str, values: impl Iterator<Item = Option<f64>>) -> Series {
    Series { label: label.to_owned(), values: values.map(|value| value.map(rounded)).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(xs: &[f64], values: Vec<Option<f64>>) -> Lines<'_> {
        Lines {
            id: "chart".to_owned(),
            title: "Throughput",
            x: Axis::time(xs.len() as f64),
            y: Axis::new("rows/s", Unit::PerSecond, AxisScale::Linear),
            marks: &[],
            sync: None,
            xs,
            series: vec![Series { label: "rows/s".to_owned(), values }],
        }
    }

    #[test]
    fn the_text_alternative_has_minimum_median_and_maximum() {
        let xs = [1.0, 2.0, 3.0, 4.0];
        let values = vec![Some(10.0), Some(3_000.0), None, Some(20.0)];
        let chart = lines(&xs, values).chart().unwrap();
        assert_eq!(chart.summary, "rows/s: min 10.0, median 20.0, max 3,000.");
        let table = chart.table.unwrap();
        assert_eq!((table.rows.len(), table.rows[2][1].text()), (4, "n/a"));
        assert!(lines(&xs, vec![None; 4]).chart().is_none());
    }

    #[test]
    fn a_long_series_keeps_its_peaks_and_its_table_stays_short() {
        let xs: Vec<f64> = (0..100_000).map(f64::from).collect();
        let mut values: Vec<Option<f64>> = xs.iter().map(|x| Some(100.0 + x % 7.0)).collect();
        (values[54_321], values[77_777]) = (Some(9_999.0), Some(1.0));
        let chart = lines(&xs, values).chart().unwrap();
        let Content::Lines { xs, series } = &chart.plot.content else { panic!() };
        assert!(xs.len() <= POSITIONS_MAX && xs.len() == series[0].values.len());
        assert!(xs.is_sorted_by(|a, b| a < b));
        for peak in [9_999.0, 1.0] {
            assert_eq!(series[0].values.iter().filter(|value| **value == Some(peak)).count(), 1);
        }
        assert!(chart.table.unwrap().rows.len() <= ROWS_MAX);
        assert!(
            chart.summary.contains("100,000 intervals are drawn in groups"),
            "{}",
            chart.summary
        );
    }

    #[test]
    fn percentiles_are_named_by_their_nines() {
        let names = [0.0, 1.0, 2.0, 3.0, 5.0].map(percentile_text);
        assert_eq!(names, ["0%", "90%", "99%", "99.9%", "99.999%"]);
    }
}
