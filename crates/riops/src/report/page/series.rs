//! Charts over time: throughput, latency and errors of the session loops, and the counters of machine and server.
//! Several stages follow each other on one time axis, which starts at zero.

use super::chart::{Axis, AxisScale, Chart, Content, Mark, Plot, Series, Unit, rounded};
use crate::record::{Point, ProbePoint, Record};
use crate::report::words;

/// Selects one value of a point of type `P`; `None` leaves a gap.
type Pick<P> = fn(&P) -> Option<f64>;

/// Points of all stages in sequence.
struct Timeline<'a, P> {
    id: &'a str,
    points: Vec<(f64, &'a P)>,
    marks: Vec<Mark>,
    end_s: f64,
}

impl<'a, P> Timeline<'a, P> {
    fn new(
        id: &'a str,
        record: &'a Record,
        points_of: impl Fn(&'a crate::record::StageRecord) -> &'a [P],
        time: fn(&P) -> f64,
    ) -> Self {
        let (mut points, mut marks, mut start_s) = (Vec::new(), Vec::new(), 0.0);
        for stage in &record.stages {
            let found = points_of(stage);
            if found.is_empty() {
                continue;
            }
            marks.push(Mark { t_s: start_s, label: stage.name.clone() });
            points.extend(found.iter().map(|point| (start_s + time(point), point)));
            start_s = points.last().map_or(start_s, |(t_s, _)| *t_s);
        }
        if marks.len() < 2 {
            marks.clear();
        }
        Self { id, points, marks, end_s: start_s }
    }

    /// Returns a chart of the values that were measured; `None` if none were.
    fn chart(&self, name: &str, title: &str, y: Axis, picks: &[(&str, Pick<P>)]) -> Option<Chart> {
        let xs: Vec<f64> = self.points.iter().map(|(t_s, _)| rounded(*t_s)).collect();
        let series: Vec<Series> = picks
            .iter()
            .map(|(label, pick)| Series {
                label: (*label).to_owned(),
                values: self.points.iter().map(|(_, point)| pick(point).map(rounded)).collect(),
            })
            .filter(|series| series.values.iter().any(Option::is_some))
            .collect();
        (!series.is_empty()).then(|| Chart {
            id: format!("{}-{name}", self.id),
            title: title.to_owned(),
            summary: String::new(),
            plot: Plot {
                x: Axis::time(self.end_s),
                y,
                marks: self.marks.clone(),
                sync: Some(self.id.to_owned()),
                content: Content::Lines { xs, series },
            },
            table: None,
        })
    }
}

/// Returns the charts of the session loops.
pub(super) fn of_loops(record: &Record, id: &str) -> Vec<Chart> {
    let words = words::of(&record.plan.work);
    let timeline: Timeline<'_, Point> =
        Timeline::new(id, record, |stage| &stage.session_loop.series, |point| point.t_s);
    let per_s = |label| Axis::of(label, Unit::PerSecond, AxisScale::Linear);
    let latency = || Axis::of("", Unit::DurationUs, AxisScale::Log);
    let main: (&str, Pick<Point>) = if words.counts_transactions() {
        ("transactions/s", |point| Some(point.transactions as f64 / point.seconds))
    } else {
        ("rows/s", |point| Some(point.rows as f64 / point.seconds))
    };
    let has_response = timeline.points.iter().any(|(_, point)| point.response_p50_us.is_some());
    let latencies: &[(&str, Pick<Point>)] = if has_response {
        &[
            ("response p50", |point| point.response_p50_us),
            ("response p99", |point| point.response_p99_us),
            ("response max", |point| point.response_max_us),
            ("service p99", |point| point.p99_us),
        ]
    } else {
        &[
            ("p50", |point| point.p50_us),
            ("p99", |point| point.p99_us),
            ("max", |point| point.max_us),
        ]
    };
    let title = if has_response { "Response time" } else { "Latency" };
    [
        timeline.chart("throughput", "Throughput", per_s(main.0), &[main]),
        timeline.chart("latency", title, latency(), latencies),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns the charts of the counters of machine and server.
pub(super) fn of_probes(record: &Record, id: &str) -> Vec<Chart> {
    let timeline: Timeline<'_, ProbePoint> = Timeline::new(
        id,
        record,
        |stage| stage.probes.as_ref().map_or(&[], |probes| probes.points.as_slice()),
        |point| point.t_s,
    );
    let axis = |label, unit| Axis::of(label, unit, AxisScale::Linear);
    [
        timeline.chart(
            "device",
            "Device",
            axis("MB/s", Unit::MbS),
            &[("read", |point| point.read_mb_s), ("write", |point| point.write_mb_s)],
        ),
        timeline.chart(
            "cpu",
            "CPU and device utilization",
            axis("", Unit::Percent),
            &[
                ("machine CPU", |point| Some(point.machine_busy_share? * 100.0)),
                ("server processes (100% = one CPU)", |point| Some(point.server_cpus? * 100.0)),
                ("device", |point| Some(point.busy_share? * 100.0)),
            ],
        ),
        timeline.chart(
            "wal",
            "WAL and checkpoints",
            axis("MB/s", Unit::MbS),
            &[("WAL", |point| point.wal_mb_s), ("checkpoints", |point| point.checkpoint_mb_s)],
        ),
        timeline.chart(
            "dirty",
            "Dirty memory",
            axis("MB", Unit::Mb),
            &[("dirty", |point| Some(point.dirty_bytes? as f64 / 1e6))],
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}
