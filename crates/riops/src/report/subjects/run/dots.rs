//! The scatterplot: one dot for each sampled transaction.

use super::series::{kind, marks, stage_starts};
use crate::record::{Record, SamplePoint};
use crate::report::chart::lines::value_text;
use crate::report::chart::{Axis, AxisScale, Chart, Content, Unit, rounded};
use crate::report::table::{Table, number};
use crate::units::format::{count, duration_us};

/// Maximum number of dots.
const DOTS_MAX: usize = 20_000;
/// The longest transactions of a sample, all of which are drawn.
const LONGEST_MAX: usize = 2_000;
/// Rows of the table.
const ROWS_MAX: usize = 24;

/// A sampled transaction with its time since the start of the first stage.
type Dot = (f64, SamplePoint);

/// Returns the scatterplot of a record with samples.
pub(super) fn chart(record: &Record, id: &str) -> Option<Chart> {
    let (starts, end_s) = stage_starts(record);
    let sampled = || {
        let stages = starts.iter();
        stages.filter_map(|(stage, start_s)| Some((start_s, stage.session_loop.samples.as_ref()?)))
    };
    let transactions: u64 = sampled().map(|(_, samples)| samples.transactions).sum();
    let points = sampled().flat_map(|(start_s, samples)| {
        samples.points.iter().map(move |point| (start_s + point.t_s, *point))
    });
    let kept = selected(points.collect());
    let latencies = || kept.iter().map(|(_, point)| point.latency_us);
    let (least, most) = (latencies().min_by(f64::total_cmp)?, latencies().max_by(f64::total_cmp)?);
    let dot =
        |(t_s, point): &Dot| ((t_s * 1e3).round() / 1e3, rounded(point.latency_us), point.session);
    let (kind, [from, to]) = (kind(record), [least, most].map(duration_us));
    let [drawn, all] = [kept.len() as u64, transactions].map(count);
    let summary = format!(
        "One dot per transaction: {kind} at its end time, a color for each session. {drawn} of {all} transactions are drawn, from {from} to {to}."
    );
    let y = Axis::of("", Unit::DurationUs, AxisScale::Log)
        .within((rounded(least / 1.3), rounded(most * 1.3)));
    let content = Content::Dots { points: kept.iter().map(dot).collect() };
    let (id, title) = (format!("{id}-scatter"), "Single transactions");
    let chart = Chart::new(id, title, summary, [Axis::time(end_s), y], content);
    Some(chart.with_marks(marks(&starts)).with_table(longest(&kept)))
}

/// Returns the dots to draw: the longest transactions, which a scatterplot is read for, then others at regular
/// distances.
fn selected(points: Vec<Dot>) -> Vec<Dot> {
    let (mut extremes, regular): (Vec<_>, Vec<_>) = points
        .into_iter()
        .filter(|(_, point)| point.latency_us > 0.0)
        .partition(|(_, point)| point.extreme);
    let spread = |points: Vec<Dot>, most: usize| {
        let step = points.len().div_ceil(most.max(1)).max(1);
        points.into_iter().step_by(step)
    };
    extremes.sort_by(|a, b| b.1.latency_us.total_cmp(&a.1.latency_us));
    let others = extremes.split_off(extremes.len().min(LONGEST_MAX));
    let mut kept = extremes;
    kept.extend(spread(others, DOTS_MAX / 2 - LONGEST_MAX));
    let room = DOTS_MAX - kept.len();
    kept.extend(spread(regular, room));
    kept
}

fn longest(kept: &[Dot]) -> Table {
    let mut longest: Vec<_> = kept.iter().collect();
    longest.sort_by(|a, b| b.1.latency_us.total_cmp(&a.1.latency_us));
    let longest = longest.into_iter().take(ROWS_MAX);
    Table::of("longest transactions", longest, |(t_s, point)| {
        [
            (number("end"), value_text(*t_s, Unit::Seconds).into()),
            (number("latency"), duration_us(point.latency_us).into()),
            (number("session"), (point.session + 1).to_string().into()),
        ]
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_transactions_are_thinned_but_the_longest_stay() {
        let point = |number: u32, latency_us: f64, extreme| {
            (f64::from(number), SamplePoint { t_s: 0.0, latency_us, session: 0, extreme })
        };
        let regular = (0..100_000).map(|number| point(number, 100.0, false));
        let extremes = (0..30_000).map(|number| point(number, 1_000.0 + f64::from(number), true));
        let kept = selected(regular.chain(extremes).collect());
        assert!((DOTS_MAX / 2..=DOTS_MAX).contains(&kept.len()), "{}", kept.len());
        let longest = kept.iter().filter(|(_, point)| point.latency_us >= 29_000.0).count();
        assert_eq!(longest, 2_000);
    }
}
