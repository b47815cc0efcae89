//! The pictures of a comparison: its runs, the time of a transaction, and the latency by percentile. Only pages show them.

use super::run::percentiles;
use crate::chart::{
    Axis, AxisScale, Chart, Content, Estimated, PointSeries, PointStyle, Unit, rounded,
};
use crate::sections::why::signed;
use crate::table::{Table, number_column};
use riops_model::comparison::StageComparison;
use riops_model::stats::Block;
use riops_model::units::format::{duration_us, joined};
use riops_model::units::text::shortened;

/// Distance of the runs of a side from their block on the horizontal axis, and from each other.
const SIDE: f64 = 0.12;
const RUN: f64 = 0.08;
/// Rows of the table of the runs.
const ROWS_MAX: usize = 60;
/// Parts of the time with a bar, and characters of their names.
const PARTS_MAX: usize = 5;
const NAME_MAX: usize = 9;
/// Smallest change of a part that has a separate bar, as a share of the time.
const PART_MIN: f64 = 0.01;

/// The pictures of a stage of two sides with these names.
pub(super) fn charts(
    id: &str,
    names: [&str; 2],
    stage: &StageComparison,
) -> impl Iterator<Item = Chart> + use<> {
    let curves = names.into_iter().zip(&stage.histograms);
    let curves = curves
        .filter_map(|(name, stored)| Some((name.to_owned(), stored.as_ref()?.decode().ok()?)));
    let latencies = percentiles::chart_of(curves.collect(), id);
    [runs(id, names, stage), time(id, names, stage), latencies].into_iter().flatten()
}

/// The main figure of each run, by block.
fn runs(id: &str, [a, b]: [&str; 2], stage: &StageComparison) -> Option<Chart> {
    let main = stage.figures.first()?;
    let is_in_blocks = stage.blocks.len() > 1;
    // The fifth run of a side and later ones are at the place of the fourth.
    let place = |block: usize, run: usize, sign: f64| {
        let (place, from) =
            if is_in_blocks { (block, run.min(3) as f64 * RUN) } else { (run, 0.0) };
        place as f64 + 1.0 + sign * (SIDE + from)
    };
    let side = |name: &str, sign: f64, values: fn(&Block) -> &[f64]| {
        let points = stage.blocks.iter().enumerate().flat_map(|(block, runs)| {
            let dot = move |(run, value): (usize, &f64)| Estimated {
                x: place(block, run, sign),
                y: rounded(*value),
                ..Estimated::default()
            };
            values(runs).iter().enumerate().map(dot)
        });
        PointSeries { label: name.to_owned(), style: PointStyle::Dots, points: points.collect() }
    };
    let series = vec![side(a, -1.0, |block| &block.a), side(b, 1.0, |block| &block.b)];
    let values = || series.iter().flat_map(|side| &side.points).map(|point| point.y);
    if values().count() <= 2 {
        return None;
    }
    let positions = match stage.blocks.as_slice() {
        [only] => only.a.len().max(only.b.len()),
        blocks => blocks.len(),
    };
    let name = if is_in_blocks { "round" } else { "run" };
    let x = Axis::new(name, Unit::Count, AxisScale::Linear).within(0.4..=positions as f64 + 0.6);
    let y =
        Axis::new(&main.name, Unit::for_figure(main.figure), AxisScale::Linear).around(values());
    let ticks = (1..=positions).map(|position| position as f64).collect();
    let summary = format!("{} of the runs, by {name}: each dot is a run.", main.name);
    let values_at = |side: &PointSeries, position: usize| {
        let points = side.points.iter();
        let at = points.filter(|point| (point.x - position as f64).abs() < 0.5);
        joined(at.map(|point| main.figure.text(point.y)), ", ")
    };
    let table = Table::from_items(&main.name, 1..=positions.min(ROWS_MAX), |position| {
        let cells = series
            .iter()
            .map(|side| (number_column(&side.label), values_at(side, position).into()));
        std::iter::once((number_column(name), position.to_string().into()))
            .chain(cells)
            .collect::<Vec<_>>()
    });
    let content = Content::Points { ticks, names: Vec::new(), series };
    Some(Chart::new(format!("{id}-runs"), "Runs", summary, [x, y], content).with_table(table))
}

/// How the time of a transaction became longer or shorter.
fn time(id: &str, [a, b]: [&str; 2], stage: &StageComparison) -> Option<Chart> {
    let time = stage.time.as_ref().filter(|time| !time.parts.is_empty())?;
    let longest = time.a_us.max(time.b_us);
    let parts = time.parts.iter().map(|part| (part.part.name(), part.change_us));
    // `time.parts` begins with the largest change.
    let large: Vec<_> =
        parts.filter(|(_, change)| change.abs() >= longest * PART_MIN).take(PARTS_MAX).collect();
    // The changes are means within blocks, and need not add up.
    let rest = time.b_us - time.a_us - large.iter().map(|(_, change)| change).sum::<f64>();
    let rest = (rest.abs() >= longest * PART_MIN / 2.0).then_some(("rest", rest));
    let (mut names, mut points) = (Vec::new(), Vec::new());
    let mut add = |name: &str, us: f64, label: String| {
        let (x, label) = (names.len() as f64, Some(label));
        points.push(Estimated { x, y: rounded(us), label, ..Estimated::default() });
        names.push(shortened(name, NAME_MAX));
    };
    let mut us = time.a_us;
    add(a, us, duration_us(us));
    for (name, change) in large.into_iter().chain(rest) {
        us += change;
        add(name, us, signed(change));
    }
    add(b, time.b_us, duration_us(time.b_us));
    let highest = points.iter().map(|point| point.y).fold(0.0, f64::max);
    let ticks: Vec<f64> = points.iter().map(|point| point.x).collect();
    let x = Axis::new("part of the time", Unit::Count, AxisScale::Linear)
        .within(-0.6..=ticks.len() as f64 - 0.4);
    let y = Axis::new("", Unit::DurationUs, AxisScale::Linear).within(0.0..=highest * 1.12);
    let summary = format!(
        "From {} in {a} to {} in {b} ({}), by part.",
        duration_us(time.a_us),
        duration_us(time.b_us),
        signed(time.b_us - time.a_us)
    );
    let label = "time of a transaction".to_owned();
    let series = vec![PointSeries { label, style: PointStyle::Steps, points }];
    let content = Content::Points { ticks, names, series };
    Some(Chart::new(format!("{id}-time"), "Time of a transaction", summary, [x, y], content))
}
