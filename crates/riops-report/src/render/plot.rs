//! A chart of estimates for a terminal: dots with interval whiskers on a grid, or bars for categories.

use crate::chart::lines::{trimmed, value_text};
use crate::chart::{
    Axis, AxisScale, Chart, Content, Estimated, Mark, PointSeries, PointStyle, Unit,
};
use crate::render::fill::{columns as width_of, fill};
use crate::render::table::table_lines;
use riops_model::units::format::{duration_us, rate, truncated};

/// Rows of the grid.
const ROWS: usize = 13;
/// Maximum number of columns of the grid.
const COLUMNS_MAX: usize = 96;
/// Columns of the texts on the vertical axis.
const LABEL_COLUMNS: usize = 8;
/// Maximum number of bars.
const BARS_MAX: usize = 16;
/// Shades of a heat map.
const SHADES: [&str; 4] = ["░", "▒", "▓", "█"];
/// Dots of the series.
const DOTS: [char; 8] = ['●', '■', '▲', '◆', '○', '□', '△', '◇'];

/// Returns the lines of a chart with at most `width` columns; empty for charts of other kinds.
pub(crate) fn lines(chart: &Chart, width: usize) -> Vec<String> {
    let (ticks, names, series) = match &chart.plot.content {
        Content::Points { ticks, names, series } => (ticks, names, series),
        Content::Grid { cells, .. } => return shades(chart, cells, width),
        _ => return Vec::new(),
    };
    if series.iter().all(|one_series| one_series.style == PointStyle::Bars) {
        return bars(chart, ticks, names, series, width);
    }
    if let [boxes] = series.as_slice()
        && boxes.style == PointStyle::Boxes
    {
        return box_lines(chart, names, &boxes.points, width);
    }
    let columns = width.saturating_sub(LABEL_COLUMNS + 2).min(COLUMNS_MAX);
    if columns < 20 {
        return Vec::new();
    }
    let mut grid = Grid::new(&chart.plot.x, &chart.plot.y, columns);
    for mark in &chart.plot.marks {
        grid.mark(mark);
    }
    let has_dots =
        |one_series: &&PointSeries| matches!(one_series.style, PointStyle::Line | PointStyle::Dots);
    // Curves first: dots are drawn over them.
    let (dots, curves): (Vec<_>, Vec<_>) = series.iter().partition(has_dots);
    for curve in &curves {
        grid.curve(curve);
    }
    let joined = dots.iter().filter(|one_series| one_series.style == PointStyle::Line);
    joined.for_each(|one_series| grid.joined(&one_series.points));
    for one_series in &dots {
        grid.whiskers(&one_series.points);
    }
    for (one_series, dot) in dots.iter().zip(DOTS.into_iter().cycle()) {
        grid.dots(&one_series.points, dot);
    }
    let mut lines = grid.lines(&chart.plot.y);
    lines.push(tick_line(&grid, &chart.plot.x, ticks, names));
    let mut texts = vec![legend(chart, &dots, &curves)];
    let mark = |mark: &Mark| format!("{} {}", mark.label, value(mark.x, chart.plot.x.unit));
    let marks: Vec<String> = chart.plot.marks.iter().map(mark).collect();
    if !marks.is_empty() {
        texts.push(format!("┊ {}", marks.join(" · ")));
    }
    for line in texts.iter().flat_map(|text| fill(text, columns)) {
        lines.push(format!("{:pad$}{line}", "", pad = LABEL_COLUMNS + 2));
    }
    lines
}

/// The table of a heat map with a shade before each value, the highest row first as on the axis.
fn shades(chart: &Chart, cells: &[(usize, usize, f64)], width: usize) -> Vec<String> {
    let Some(table) = &chart.table else {
        return Vec::new();
    };
    let values = || cells.iter().map(|cell| cell.2);
    let least = values().fold(f64::INFINITY, f64::min);
    let span = values().fold(f64::NEG_INFINITY, f64::max) - least;
    let mut table = table.clone();
    for &(column, row, value) in cells {
        let share = if span > 0.0 { (value - least) / span } else { 0.5 };
        let sign = SHADES.get(truncated(share * 3.99)).copied().unwrap_or_default();
        if let Some(cell) = table.rows.get_mut(row).and_then(|row| row.get_mut(column + 1)) {
            *cell = format!("{sign} {}", cell.text()).into();
        }
    }
    table.rows.reverse();
    table_lines(&table, width)
}

/// What the signs mean.
fn legend(chart: &Chart, dots: &[&PointSeries], curves: &[&PointSeries]) -> String {
    let mut parts = vec![format!("x: {}", chart.plot.x.label)];
    if dots.len() + curves.len() > 1 {
        let names = dots.iter().zip(DOTS.into_iter().cycle());
        parts.extend(names.map(|(one_series, dot)| format!("{dot} {}", one_series.label)));
        let curve = |one_series: &&&PointSeries| one_series.style == PointStyle::Band;
        parts.extend(
            curves.iter().filter(curve).map(|one_series| format!("line: {}", one_series.label)),
        );
    }
    if dots.iter().flat_map(|one_series| &one_series.points).any(|point| point.interval.is_some()) {
        parts.push(format!("┬┴ {}", chart.interval));
    }
    parts.join(" · ")
}

/// Characters in rows and columns, and the axes that they stand for.
struct Grid<'a> {
    cells: Vec<Vec<char>>,
    columns: usize,
    x: &'a Axis,
    y: &'a Axis,
}

impl<'a> Grid<'a> {
    fn new(x: &'a Axis, y: &'a Axis, columns: usize) -> Self {
        Self { cells: vec![vec![' '; columns]; ROWS], columns, x, y }
    }

    fn column(&self, x: f64) -> usize {
        place(self.x, x, self.columns)
    }

    /// The row from the top.
    fn row(&self, y: f64) -> usize {
        ROWS - 1 - place(self.y, y, ROWS)
    }

    /// Sets a character; of the signs for lines only where nothing is.
    fn set(&mut self, column: usize, row: usize, sign: char) {
        let is_weak = matches!(sign, '·' | '┊');
        if let Some(cell) = self.cells.get_mut(row).and_then(|row| row.get_mut(column))
            && (!is_weak || *cell == ' ')
        {
            *cell = sign;
        }
    }

    fn mark(&mut self, mark: &Mark) {
        let column = self.column(mark.x);
        (0..ROWS).for_each(|row| self.set(column, row, '┊'));
    }

    fn curve(&mut self, series: &PointSeries) {
        let step = if series.style == PointStyle::Dashed { 2 } else { 1 };
        for point in series.points.iter().step_by(step) {
            self.set(self.column(point.x), self.row(point.y), '·');
        }
    }

    /// Straight lines between the points.
    fn joined(&mut self, points: &[Estimated]) {
        for (from, to) in points.iter().zip(points.iter().skip(1)) {
            let start = (self.column(from.x) as f64, self.row(from.y) as f64);
            let end = (self.column(to.x) as f64, self.row(to.y) as f64);
            let steps = (end.0 - start.0).abs().max((end.1 - start.1).abs()).max(1.0);
            let mut step = 2.0;
            while step < steps - 1.0 {
                let share = step / steps;
                let at = |from: f64, to: f64| truncated((from + (to - from) * share).round());
                self.set(at(start.0, end.0), at(start.1, end.1), '·');
                // Every second column: the line must not look like data.
                step += 2.0;
            }
        }
    }

    fn whiskers(&mut self, points: &[Estimated]) {
        for point in points {
            let Some((low, high)) = point.interval else {
                continue;
            };
            let (column, top, bottom) = (self.column(point.x), self.row(high), self.row(low));
            (top..=bottom).for_each(|row| self.set(column, row, '│'));
            if top != bottom {
                self.set(column, top, '┬');
                self.set(column, bottom, '┴');
            }
        }
    }

    /// The dots with their labels.
    fn dots(&mut self, points: &[Estimated], dot: char) {
        for point in points {
            let (column, row) = (self.column(point.x), self.row(point.y));
            self.set(column, row, dot);
            let Some(label) = &point.label else {
                continue;
            };
            let count = label.chars().count();
            let start = if column + 2 + count <= self.columns {
                column + 2
            } else {
                column.saturating_sub(count + 1)
            };
            let is_free = self.cells.get(row).is_some_and(|cells| {
                let mut around = cells.iter().skip(start.saturating_sub(1)).take(count + 2);
                around.all(|cell| matches!(cell, ' ' | '·' | '┊') || *cell == dot)
            });
            if is_free {
                label.chars().enumerate().for_each(|(at, sign)| self.set(start + at, row, sign));
            }
        }
    }

    /// The rows with the values of the vertical axis.
    fn lines(&self, y: &Axis) -> Vec<String> {
        let marked: Vec<(usize, String)> =
            ticks_of(y).into_iter().map(|tick| (self.row(tick), value(tick, y.unit))).collect();
        let line = |(row, cells): (usize, &Vec<char>)| {
            let label = marked.iter().find(|(at, _)| *at == row).map(|(_, text)| text.as_str());
            let sign = if label.is_some() { '┤' } else { '│' };
            let text: String = cells.iter().collect();
            format!("{:>LABEL_COLUMNS$} {sign}{}", label.unwrap_or_default(), text.trim_end())
        };
        self.cells.iter().enumerate().map(line).collect()
    }
}

/// The position of a value among `count` places.
fn place(axis: &Axis, value: f64, count: usize) -> usize {
    let (low, high) = axis.range.unwrap_or((0.0, 1.0));
    let scaled = |value: f64| {
        if axis.scale == AxisScale::Log { value.max(f64::MIN_POSITIVE).ln() } else { value }
    };
    let share = (scaled(value) - scaled(low)) / (scaled(high) - scaled(low)).max(f64::MIN_POSITIVE);
    let last = count.saturating_sub(1) as f64;
    truncated((share.clamp(0.0, 1.0) * last).round())
}

/// Round values of an axis, about four.
fn ticks_of(axis: &Axis) -> Vec<f64> {
    let (low, high) = axis.range.unwrap_or((0.0, 1.0));
    if axis.scale == AxisScale::Log {
        let decades = (high / low).log10();
        #[expect(clippy::cast_possible_truncation, reason = "powers of ten")]
        let (first, last) = (low.log10().ceil() as i32, high.log10().floor() as i32);
        let step = truncated((decades / 5.0).ceil()).max(1);
        return (first..=last).step_by(step).map(|power| 10f64.powi(power)).collect();
    }
    let raw = (high - low) / 4.0;
    let power = 10f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0]
        .into_iter()
        .map(|factor| factor * power)
        .find(|step| *step >= raw * 0.8)
        .unwrap_or(raw);
    let mut ticks = Vec::new();
    let mut tick = (low / step).ceil() * step;
    while tick <= high && ticks.len() < 8 {
        ticks.push(tick);
        tick += step;
    }
    ticks
}

/// A value in at most [`LABEL_COLUMNS`] columns.
fn value(value: f64, unit: Unit) -> String {
    match unit {
        Unit::DurationUs if value == 0.0 => "0".to_owned(),
        Unit::DurationUs => trimmed(&duration_us(value)),
        Unit::Seconds => trimmed(&duration_us(value * 1e6)),
        Unit::Percent => format!("{value:.0}%"),
        _ if value == 0.0 => "0".to_owned(),
        _ if value >= 1e6 => format!("{}M", trimmed(&rate(value / 1e6))),
        _ if value >= 1e4 => format!("{}k", trimmed(&rate(value / 1e3))),
        _ => trimmed(&rate(value)),
    }
}

/// The axis below the grid, with the names of the ticks where there is room.
fn tick_line(grid: &Grid<'_>, x: &Axis, ticks: &[f64], names: &[String]) -> String {
    let (ticks, names) =
        if ticks.is_empty() { (ticks_of(x), &[][..]) } else { (ticks.to_vec(), names) };
    let mut line = String::new();
    let mut used = 0;
    for (at, tick) in ticks.into_iter().enumerate() {
        let name = names.get(at).cloned().unwrap_or_else(|| value(tick, x.unit));
        let half = width_of(&name) / 2;
        let last = (LABEL_COLUMNS + 2 + grid.columns).saturating_sub(width_of(&name));
        let start = (grid.column(tick) + LABEL_COLUMNS + 2).saturating_sub(half).min(last);
        if start < used + usize::from(used > 0) {
            continue;
        }
        line.push_str(&" ".repeat(start - used));
        line.push_str(&name);
        used = start + width_of(&name);
    }
    line
}

/// A line for each box, with the median after it.
fn box_lines(chart: &Chart, names: &[String], boxes: &[Estimated], width: usize) -> Vec<String> {
    let y = &chart.plot.y;
    let labels = names.iter().take(BARS_MAX);
    let label_columns = labels.map(|name| width_of(name)).max().unwrap_or(0).min(width / 3);
    let columns = width.saturating_sub(label_columns + 16).min(60);
    let at = |value: f64| place(y, value, columns);
    let mut lines: Vec<String> = Vec::new();
    for (name, point) in names.iter().zip(boxes).take(BARS_MAX) {
        let mut cells = vec![' '; columns];
        let mut draw = |from: f64, to: f64, sign: char| {
            let (from, to) = (at(from), at(to));
            cells.iter_mut().take(to + 1).skip(from).for_each(|cell| *cell = sign);
        };
        let (lowest, highest) = point.interval.unwrap_or((point.y, point.y));
        draw(lowest, highest, '─');
        if let Some((first, third)) = point.quartiles {
            draw(first, third, '▒');
        }
        point.values.iter().for_each(|value| draw(*value, *value, '•'));
        draw(point.y, point.y, '┃');
        let label = padded(name, label_columns);
        let cells: String = cells.into_iter().collect();
        let median = point.label.clone().unwrap_or_else(|| value_text(point.y, y.unit));
        lines.push(format!("{label}  {cells} {median}"));
    }
    if boxes.len() > BARS_MAX {
        lines.push(format!("and {} more", boxes.len() - BARS_MAX));
    }
    let ends = y.range.unwrap_or_default();
    let (low, high) = (value(ends.0, y.unit), value(ends.1, y.unit));
    let gap = columns.saturating_sub(width_of(&low) + width_of(&high));
    lines.push(format!("{:label_columns$}  {low}{:gap$}{high}", "", ""));
    let legend = "• run · ┃ median · ▒ between the quartiles";
    lines.extend(fill(legend, columns).iter().map(|line| format!("{:label_columns$}  {line}", "")));
    lines
}

/// The name of a line, shortened or filled up to this number of columns.
fn padded(name: &str, columns: usize) -> String {
    let name: String = name.chars().take(columns).collect();
    let padding = columns.saturating_sub(width_of(&name));
    name + &" ".repeat(padding)
}

/// A bar for each value of a category: solid up to the lower limit of the interval, shaded up to the upper one.
fn bars(
    chart: &Chart,
    ticks: &[f64],
    names: &[String],
    series: &[PointSeries],
    width: usize,
) -> Vec<String> {
    let y = &chart.plot.y;
    let mut rows: Vec<(String, &Estimated)> = Vec::new();
    for (tick, name) in ticks.iter().zip(names) {
        for one_series in series {
            let at_tick = one_series.points.iter().find(|point| point.x.total_cmp(tick).is_eq());
            let label = if series.len() > 1 {
                format!("{name}, {}", one_series.label)
            } else {
                name.clone()
            };
            rows.extend(at_tick.map(|point| (label, point)));
        }
    }
    let label_columns =
        rows.iter().map(|(label, _)| width_of(label)).max().unwrap_or(0).min(width / 3);
    let bar_columns = width.saturating_sub(label_columns + 16).min(60);
    let (_, most) = y.range.unwrap_or((0.0, 1.0));
    let cells =
        |value: f64| place(&Axis { range: Some((0.0, most)), ..y.clone() }, value, bar_columns + 1);
    let mut lines: Vec<String> = Vec::new();
    for (label, point) in rows.iter().take(BARS_MAX) {
        let (low, high) = point.interval.unwrap_or((point.y, point.y));
        let (solid, end) = (cells(low), cells(high));
        let bar = format!("{}{}", "█".repeat(solid), "▒".repeat(end.saturating_sub(solid)));
        let bar = if bar.is_empty() { "▏".to_owned() } else { bar };
        let label = padded(label, label_columns);
        lines.push(format!("{label}  {bar} {}", value_text(point.y, y.unit)));
    }
    if rows.len() > BARS_MAX {
        lines.push(format!("and {} more", rows.len() - BARS_MAX));
    }
    if rows.iter().any(|(_, point)| point.interval.is_some()) {
        lines.push(format!("{:label_columns$}  ▒ {}", "", chart.interval));
    }
    lines
}
