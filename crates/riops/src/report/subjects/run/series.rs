//! Charts over time: throughput, latency and errors of the session loops, and the counters of machine and server.
//! Several stages follow each other on one time axis, which starts at zero.

use crate::figure::{Statistic, per_second};
use crate::record::{LatencyKind, Point, ProbePoint, QueryPoint, Record, Sampled, StageRecord};
use crate::report::chart::lines::{Lines, line};
use crate::report::chart::{Axis, AxisScale, Chart, Mark, Series, Unit};
use crate::report::words::{self, TRANSACTIONS};

/// Nodes with a line of their own.
const NODES_MAX: usize = 16;

/// Selects one value of a point of type `P`; `None` leaves a gap.
type Pick<P> = fn(&P) -> Option<f64>;

/// Selects one number of a point.
type Counted = fn(&Point) -> u64;

/// Points of all stages in sequence. `None` separates two stages.
struct Timeline<'a, P> {
    id: &'a str,
    xs: Vec<f64>,
    points: Vec<Option<&'a P>>,
    marks: Vec<Mark>,
    end_s: f64,
}

impl<'a, P> Timeline<'a, P> {
    fn new(
        id: &'a str,
        record: &'a Record,
        points_of: impl Fn(&'a StageRecord) -> &'a [P],
        time: fn(&P) -> f64,
    ) -> Self {
        let mut timeline =
            Self { id, xs: Vec::new(), points: Vec::new(), marks: Vec::new(), end_s: 0.0 };
        for stage in &record.stages {
            let found = points_of(stage);
            let Some(last) = found.last() else {
                continue;
            };
            let start_s = timeline.end_s;
            if !timeline.xs.is_empty() {
                timeline.push(start_s + GAP_S, None);
            }
            timeline.marks.push(Mark { x: start_s, label: stage.name.clone() });
            for point in found {
                timeline.push(start_s + time(point), Some(point));
            }
            timeline.end_s = start_s + time(last);
        }
        if timeline.marks.len() < 2 {
            timeline.marks.clear();
        }
        timeline
    }

    fn push(&mut self, t_s: f64, point: Option<&'a P>) {
        // To the millisecond.
        self.xs.push((t_s * 1e3).round() / 1e3);
        self.points.push(point);
    }

    fn line(&self, label: &str, pick: impl Fn(&P) -> Option<f64>) -> Series {
        line(label, self.points.iter().map(|point| pick((*point)?)))
    }

    fn chart(&self, name: &str, title: &str, y: Axis, series: Vec<Series>) -> Option<Chart> {
        Lines {
            id: format!("{}-{name}", self.id),
            title,
            x: Axis::time(self.end_s),
            y,
            marks: &self.marks,
            sync: Some(self.id.to_owned()),
            xs: &self.xs,
            series,
        }
        .chart()
    }

    fn picked(&self, name: &str, title: &str, y: Axis, picks: &[(&str, Pick<P>)]) -> Option<Chart> {
        let series = picks.iter().map(|(label, pick)| self.line(label, pick)).collect();
        self.chart(name, title, y, series)
    }
}

/// Distance between the last point of a stage and the gap behind it, in seconds.
const GAP_S: f64 = 0.001;

/// Returns the start of each stage with a series on the common time axis, and the end of the last one.
pub(super) fn stage_starts(record: &Record) -> (Vec<(usize, f64)>, f64) {
    let mut end_s = 0.0;
    let mut starts = Vec::new();
    for (position, stage) in record.stages.iter().enumerate() {
        if let Some(last) = stage.session_loop.series.last() {
            starts.push((position, end_s));
            end_s += last.t_s;
        }
    }
    (starts, end_s)
}

/// The name of the latency that users wait for.
pub(super) fn kind(stage: &StageRecord) -> &'static str {
    if stage.session_loop.response_us.is_some() { "response time" } else { "latency" }
}

/// The starts of the stages, if there are several.
pub(super) fn marks(record: &Record, starts: &[(usize, f64)]) -> Vec<Mark> {
    if starts.len() < 2 {
        return Vec::new();
    }
    let mark = |&(position, t_s): &(usize, f64)| {
        Some(Mark { x: t_s, label: record.stages.get(position)?.name.clone() })
    };
    starts.iter().filter_map(mark).collect()
}

/// Returns the charts of the session loops.
pub(super) fn of_loops(record: &Record, id: &str) -> Vec<Chart> {
    let words = words::of(&record.plan.work);
    let timeline: Timeline<'_, Point> =
        Timeline::new(id, record, |stage| &stage.session_loop.series, |point| point.t_s);
    let per_s = |label| Axis::of(label, Unit::PerSecond, AxisScale::Linear);
    let main: (&str, Pick<Point>) = if words.measure().unit() == TRANSACTIONS {
        (TRANSACTIONS, |point| per_second(point.transactions, point))
    } else {
        ("rows/s", |point| per_second(point.rows, point))
    };
    let waiting: &[(&str, Pick<Point>)] =
        &[("waiting", |point| Some(point.backlog? as f64).filter(|_| point.backlog.is_some()))];
    let charts = [timeline.picked("throughput", "Throughput", per_s(main.0), &[main])];
    let charts = charts.into_iter().flatten().chain(queries(record, id));
    let others = [
        latency(&timeline),
        errors(&timeline),
        timeline.picked(
            "backlog",
            "Intended starts that waited",
            Axis::of("starts", Unit::Count, AxisScale::Linear),
            waiting,
        ),
        nodes(&timeline, record),
    ];
    charts.chain(others.into_iter().flatten()).collect()
}

/// The values of each query of the user.
fn queries(record: &Record, id: &str) -> Vec<Chart> {
    let mut names: Vec<&str> = Vec::new();
    for series in record.stages.iter().flat_map(|stage| &stage.query_series) {
        if !names.contains(&series.name.as_str()) {
            names.push(&series.name);
        }
    }
    let chart = |name: &str| {
        let points = |stage: &'_ StageRecord| -> Option<usize> {
            stage.query_series.iter().position(|series| series.name == name)
        };
        let timeline: Timeline<'_, QueryPoint> = Timeline::new(
            id,
            record,
            |stage| {
                let series = points(stage).and_then(|at| stage.query_series.get(at));
                series.map_or(&[], |series| series.points.as_slice())
            },
            |point| point.t_s,
        );
        let y = Axis::of("", Unit::Count, AxisScale::Linear);
        let line = timeline.line(name, |point| Some(point.value));
        timeline.chart(&format!("probe-{name}"), name, y, vec![line])
    };
    names.into_iter().filter_map(chart).collect()
}

fn latency(timeline: &Timeline<'_, Point>) -> Option<Chart> {
    let has_response =
        timeline.points.iter().flatten().any(|point| point.response_p50_us.is_some());
    let (kind, label, title) = if has_response {
        (LatencyKind::Response, "response ", "Response time")
    } else {
        (LatencyKind::Service, "", "Latency")
    };
    let mut series: Vec<_> = Statistic::of_series()
        .map(|each| {
            let label = format!("{label}{}", each.name);
            timeline.line(&label, |point| each.of_point(point, kind))
        })
        .collect();
    if has_response {
        series.push(timeline.line("service p99", |point| point.p99_us));
    }
    timeline.chart("latency", title, Axis::of("", Unit::DurationUs, AxisScale::Log), series)
}

/// Errors over time, if there were any.
fn errors(timeline: &Timeline<'_, Point>) -> Option<Chart> {
    let picks: [(&str, Counted); 6] = [
        ("errors/s", |point| point.errors),
        ("retries/s", |point| point.retries),
        ("failed/s", |point| point.failed),
        ("late/s", |point| point.late),
        ("skipped/s", |point| point.skipped),
        ("reconnects/s", |point| point.reconnects),
    ];
    let happened = |pick: Counted| timeline.points.iter().flatten().any(|point| pick(point) > 0);
    let series: Vec<_> = picks
        .into_iter()
        .filter(|(_, pick)| happened(*pick))
        .map(|(label, pick)| timeline.line(label, |point| per_second(pick(point), point)))
        .collect();
    let y = Axis::of("per second", Unit::PerSecond, AxisScale::Linear);
    timeline.chart("errors-over-time", "Errors", y, series)
}

/// The transactions of each node, if there are several.
fn nodes(timeline: &Timeline<'_, Point>, record: &Record) -> Option<Chart> {
    let nodes =
        &record.stages.iter().find(|stage| stage.session_loop.nodes.len() > 1)?.session_loop.nodes;
    let series = nodes.iter().take(NODES_MAX).enumerate().map(|(position, node)| {
        timeline.line(&node.node, |point| per_second(*point.nodes.get(position)?, point))
    });
    let y = Axis::of("transactions/s", Unit::PerSecond, AxisScale::Linear);
    timeline.chart("nodes-over-time", "Transactions of each node", y, series.collect())
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
    let percent = |share: Option<f64>| Some(share? * 100.0);
    let probes = record.stages.iter().find_map(|stage| stage.probes.as_ref());
    let first_us = probes.map_or(0.0, Sampled::first_work_us);
    let charts = [
        timeline.chart(
            "cpu",
            "CPU and device utilization",
            axis("", Unit::Percent),
            vec![
                timeline.line("machine CPU", |point| percent(point.machine_busy_share)),
                timeline
                    .line("server process (100% = one CPU)", |point| percent(point.server_cpus)),
                timeline.line("device busy", |point| percent(point.busy_share)),
                timeline.line("processor speed (100% = start)", |point| {
                    percent(point.processor_work_us.map(|us| first_us / us))
                }),
            ],
        ),
        timeline.picked(
            "device",
            "Device throughput",
            axis("MB/s", Unit::MbS),
            &[("read", |point| point.read_mb_s), ("write", |point| point.write_mb_s)],
        ),
        timeline.picked(
            "requests",
            "Device requests",
            axis("per second", Unit::PerSecond),
            &[("reads/s", |point| point.reads_per_s), ("writes/s", |point| point.writes_per_s)],
        ),
        timeline.picked(
            "wal",
            "WAL and checkpoints",
            axis("MB/s", Unit::MbS),
            &[("WAL", |point| point.wal_mb_s), ("checkpoints", |point| point.checkpoint_mb_s)],
        ),
        timeline.picked(
            "dirty",
            "Dirty memory of the machine",
            axis("MB", Unit::Mb),
            &[("dirty", |point| Some(point.dirty_bytes? as f64 / 1e6))],
        ),
    ];
    charts.into_iter().flatten().collect()
}
