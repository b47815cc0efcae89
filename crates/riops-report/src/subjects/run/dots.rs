//! The scatterplot: one dot for each sampled transaction.

use std::fmt::Write as _;

use super::series::{kind, marks, stage_starts};
use crate::chart::lines::value_text;
use crate::chart::{Axis, AxisScale, Chart, Content, Unit, rounded};
use crate::histogram::Scale;
use crate::render::png::{DrawingError, chart_png};
use crate::table::{Table, number_column};
use crate::words;
use riops_model::figure::Summary;
use riops_model::record::{Record, SamplePoint, SampleSet};
use riops_model::units::format::{count, duration_us};

/// Maximum number of dots.
const DOTS_MAX: usize = 20_000;
/// The longest transactions of a sample, all of which are drawn.
const LONGEST_MAX: usize = 2_000;
/// Rows of the table.
const ROWS_MAX: usize = 24;

/// A sampled transaction with its time since the start of the first stage.
type Dot = (f64, SamplePoint);

/// Returns the scatterplot of a record with samples, as a PNG file.
///
/// # Errors
/// Returns [`DrawingError`] if the record has no sampled transactions or drawing fails.
pub fn scatter_png(record: &Record, scale: Scale) -> Result<Vec<u8>, DrawingError> {
    chart_png(&graph(record, scale).ok_or(DrawingError::Empty)?, &subtitle(record))
}

/// The scatterplot of all samples, with how they were selected.
fn graph(record: &Record, scale: Scale) -> Option<Chart> {
    let mut chart = scatterplot(record, "graph", scale, false)?;
    let stages = record.stages.iter();
    let sampled = stages.filter_map(|stage| stage.session_loop.samples.as_ref());
    let most = sampled.max_by_key(|samples| samples.every)?;
    if let SampleSet { every: every @ 2.., longest, slot_s, .. } = most {
        let slot = duration_us(slot_s * 1e6);
        let _ = write!(
            chart.summary,
            " At least 1 in {every}, and the {longest} longest and the shortest of every {slot}."
        );
    }
    Some(chart)
}

/// The work, the server, and when the measurement started.
fn subtitle(record: &Record) -> String {
    let target = Summary::first_stage(record).map(|summary| summary.target()).unwrap_or_default();
    let (starts, _) = stage_starts(record);
    let started = starts.first().and_then(|(stage, _)| stage.started_at);
    let from = started.map(|at| format!(" · from {}", at.strftime("%T UTC"))).unwrap_or_default();
    let work = words::for_work(&record.plan.work).work();
    format!("riops run {}: {work} · {target}{from}", record.workload)
}

/// Returns the scatterplot of a record with samples.
pub(super) fn chart(record: &Record, id: &str) -> Option<Chart> {
    scatterplot(record, id, Scale::Log, true)
}

/// The scatterplot. For a page, it is thinned, and its values are rounded.
fn scatterplot(record: &Record, id: &str, scale: Scale, is_for_page: bool) -> Option<Chart> {
    let (starts, end_s) = stage_starts(record);
    let sampled = || {
        let stages = starts.iter();
        stages.filter_map(|(stage, start_s)| {
            Some((stage, start_s, stage.session_loop.samples.as_ref()?))
        })
    };
    let (first, ..) = sampled().next()?;
    let unit = words::for_work(&record.plan.work).latency_of(first);
    let transactions: u64 = sampled().map(|(.., samples)| samples.transactions).sum();
    let points = sampled().flat_map(|(_, start_s, samples)| {
        samples.points.iter().map(move |point| (start_s + point.t_s, *point))
    });
    let points: Vec<Dot> = points.filter(|(_, point)| point.latency_us > 0.0).collect();
    let kept = if is_for_page { selected(points) } else { points };
    let latencies = || kept.iter().map(|(_, point)| point.latency_us);
    let (least, most) = (latencies().min_by(f64::total_cmp)?, latencies().max_by(f64::total_cmp)?);
    let dot = |&(t_s, SamplePoint { latency_us, session, .. }): &Dot| {
        let to_ms = (t_s * 1e3).round() / 1e3;
        let (t_s, us) = if is_for_page { (to_ms, rounded(latency_us)) } else { (t_s, latency_us) };
        (t_s, us, session)
    };
    let (kind, [from, to]) = (kind(record), [least, most].map(duration_us));
    let [drawn, all] = [kept.len() as u64, transactions].map(count);
    let summary = format!(
        "One dot per {unit}: {kind} at its end time, a color for each session. {drawn} of {all} are drawn, from {from} to {to}."
    );
    let y = match scale {
        Scale::Linear => Axis::new("", Unit::DurationUs, AxisScale::Linear),
        Scale::Log => Axis::new("", Unit::DurationUs, AxisScale::Log)
            .within(rounded(least / 1.3)..=rounded(most * 1.3)),
    };
    let content = Content::Dots { points: kept.iter().map(dot).collect() };
    let (id, title) = (format!("{id}-scatter"), "Single transactions");
    let chart = Chart::new(id, title, summary, [Axis::time(end_s), y], content);
    Some(chart.with_marks(marks(&starts)).with_table(longest(&kept)))
}

/// Returns the dots of a page: the longest transactions, which a scatterplot is read for, then others at regular
/// distances.
fn selected(points: Vec<Dot>) -> Vec<Dot> {
    let (mut extremes, regular): (Vec<_>, Vec<_>) =
        points.into_iter().partition(|(_, point)| point.extreme);
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
    Table::from_items("longest transactions", longest, |(t_s, point)| {
        [
            (number_column("end"), value_text(*t_s, Unit::Seconds).into()),
            (number_column("latency"), duration_us(point.latency_us).into()),
            (number_column("session"), (point.session + 1).to_string().into()),
        ]
    })
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;
    use crate::example_record;
    use crate::render::png::drawn;
    use riops_model::record::{SamplePoint, SampleSet};

    const MS: u64 = 1_000_000;

    /// Returns the record of two sessions that run transactions of about 1 ms for 10 s. The server stalls
    /// from second 4 to 4.5.
    fn record_with_stall() -> Record {
        let mut points = Vec::new();
        for session in 0..2 {
            let mut now = 0;
            while now < 10_000 * MS {
                let usual = MS + (now / 997) % (MS / 4);
                let stalls = now <= 4_000 * MS && now + usual > 4_000 * MS;
                let latency = if stalls { 4_500 * MS - now } else { usual };
                now += latency;
                points.push(point(session, now, latency));
            }
        }
        with(1, points)
    }

    fn point(session: u32, end: u64, latency: u64) -> SamplePoint {
        let (t_s, latency_us) = (end as f64 / 1e9, latency as f64 / 1e3);
        SamplePoint { t_s, latency_us, session, extreme: false }
    }

    fn with(every: u64, points: Vec<SamplePoint>) -> Record {
        let transactions = points.len() as u64 * every;
        let samples =
            SampleSet { transactions, every, slot_s: 0.1, longest: 16, seconds: 10.0, points };
        let mut record = example_record();
        let session_loop = &mut record.stages[0].session_loop;
        session_loop.samples = Some(samples);
        session_loop.series.last_mut().unwrap().t_s = 10.0;
        record
    }

    /// Counts the colored pixels (neither background nor grid) in a part of the plot, given as shares of the axes.
    fn colored_pixels(record: &Record, scale: Scale, x: Range<f64>, y: Range<f64>) -> usize {
        let file = scatter_png(record, scale).unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(file)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let width = reader.next_frame(&mut pixels).unwrap().width;
        let (.., (left_right, top_bottom)) = drawn(&graph(record, scale).unwrap(), "").unwrap();
        let at = |range: &Range<i32>, share: f64| {
            #[expect(clippy::cast_possible_truncation, reason = "pixels")]
            let offset = (f64::from(range.end - range.start) * share).round() as i32;
            u32::try_from(range.start + offset).unwrap()
        };
        let mut colored = 0;
        for row in at(&top_bottom, y.start)..at(&top_bottom, y.end) {
            for column in at(&left_right, x.start)..at(&left_right, x.end) {
                let start = ((row * width + column) * 3) as usize;
                let colors = &pixels[start..start + 3];
                let (least, most) = (colors.iter().min().unwrap(), colors.iter().max().unwrap());
                colored += usize::from(most - least > 12);
            }
        }
        colored
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
        let usual = (0..1_000_000u64).step_by(64);
        let mut points: Vec<_> =
            usual.map(|position| point((position % 3) as u32, position * 10_000, MS)).collect();
        let outlier = point(0, 543_211 * 10_000, 900 * MS);
        points.push(SamplePoint { extreme: true, ..outlier });
        let record = with(64, points);
        assert!(colored_pixels(&record, Scale::Log, 0.541..0.546, 0.0..0.3) >= 4);
        assert_eq!(colored_pixels(&record, Scale::Log, 0.0..0.54, 0.0..0.5), 0);
    }

    #[test]
    fn a_graph_states_its_selection_its_unit_and_its_start() {
        let mut record = record_with_stall();
        record.stages[0].started_at = Some("2026-11-21T20:00:02Z".parse().unwrap());
        let first = record.stages[0].clone();
        record.stages.push(first);
        record.stages[1].session_loop.samples.as_mut().unwrap().every = 16;
        let chart = graph(&record, Scale::Log).unwrap();
        assert!(chart.summary.starts_with("One dot per transaction: latency"), "{}", chart.summary);
        assert!(
            chart.summary.contains(" At least 1 in 16, and the 16 longest"),
            "{}",
            chart.summary
        );
        // The stages follow each other on one axis.
        assert_eq!(chart.plot.x.range, Some((0.0, 20.0)));
        assert_eq!(chart.plot.marks.len(), 2);
        let Content::Dots { points } = &chart.plot.content else { panic!() };
        assert!(points.iter().any(|point| point.0 > 19.0), "{}", points.len());
        assert!(subtitle(&record).ends_with(" · from 20:00:02 UTC"), "{}", subtitle(&record));
    }

    #[test]
    fn a_time_far_behind_the_end_is_not_drawn() {
        let mut record = record_with_stall();
        let samples = record.stages[0].session_loop.samples.as_mut().unwrap();
        samples.points.last_mut().unwrap().t_s = 1e12;
        assert!(scatter_png(&record, Scale::Linear).is_ok());
    }

    #[test]
    fn fails_without_sampled_transactions() {
        assert!(matches!(scatter_png(&example_record(), Scale::Log), Err(DrawingError::Empty)));
    }

    #[test]
    fn many_transactions_are_thinned_but_the_longest_stay() {
        let point = |position: u32, latency_us: f64, extreme| {
            (f64::from(position), SamplePoint { t_s: 0.0, latency_us, session: 0, extreme })
        };
        let regular = (0..100_000).map(|position| point(position, 100.0, false));
        let extremes =
            (0..30_000).map(|position| point(position, 1_000.0 + f64::from(position), true));
        let kept = selected(regular.chain(extremes).collect());
        assert!((DOTS_MAX / 2..=DOTS_MAX).contains(&kept.len()), "{}", kept.len());
        let longest = kept.iter().filter(|(_, point)| point.latency_us >= 29_000.0).count();
        assert_eq!(longest, 2_000);
    }
}
