//! Charts over time: throughput, latency and errors of the session loops, and the counters of machine and server.
//! Several stages follow each other on one time axis, which starts at zero.

use indexmap::IndexSet;

use crate::chart::lines::{Lines, line};
use crate::chart::{Axis, AxisScale, Chart, Mark, Series, Unit};
use crate::words::{self, TRANSACTIONS};
use riops_model::figure::{Statistic, per_second};
use riops_model::record::{
    AgentRecord, LatencyKind, Point, ProbePoint, QueryPoint, Record, Sampled, StageRecord,
};
use riops_model::units::format::truncated;

/// Nodes with a line of their own.
const NODES_MAX: usize = 16;

/// Agents with a separate line. With more agents, the lines are the slowest, the median and the fastest agent at each time.
const AGENTS_MAX: usize = 8;

/// Distance between the last point of a stage and the gap behind it, in seconds.
const GAP_S: f64 = 0.001;

/// A line: its name, and its value at a point of type `P`; `None` leaves a gap.
type Pick<'a, P> = (&'a str, &'a dyn Fn(&P) -> Option<f64>);

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
        let (mut xs, mut points) = (Vec::new(), Vec::new());
        let mut push = |t_s: f64, point| {
            // To the millisecond.
            xs.push((t_s * 1e3).round() / 1e3);
            points.push(point);
        };
        let (starts, end_s) = starts(record, |stage| points_of(stage).last().map(time));
        for (position, &(stage, start_s)) in starts.iter().enumerate() {
            if position > 0 {
                push(start_s + GAP_S, None);
            }
            for point in points_of(stage) {
                push(start_s + time(point), Some(point));
            }
        }
        Self { id, xs, points, marks: marks(&starts), end_s }
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

    fn picked(&self, name: &str, title: &str, y: Axis, picks: &[Pick<'_, P>]) -> Option<Chart> {
        let series = picks.iter().map(|(label, pick)| self.line(label, pick)).collect();
        self.chart(name, title, y, series)
    }
}

/// The stages with points, each with its start on the common time axis, and the end of the last one.
fn starts<'a>(
    record: &'a Record,
    last_s: impl Fn(&'a StageRecord) -> Option<f64>,
) -> (Vec<(&'a StageRecord, f64)>, f64) {
    let mut end_s = 0.0;
    let mut starts = Vec::new();
    for stage in &record.stages {
        if let Some(last_s) = last_s(stage) {
            starts.push((stage, end_s));
            end_s += last_s;
        }
    }
    (starts, end_s)
}

/// Returns the stages with a series, each with its start on the common time axis, and the end of the last one.
pub(super) fn stage_starts(record: &Record) -> (Vec<(&StageRecord, f64)>, f64) {
    starts(record, |stage| stage.session_loop.series.last().map(|last| last.t_s))
}

/// The name of the latency that users wait for.
pub(super) fn kind(record: &Record) -> &'static str {
    let first = record.stages.first();
    let has_response = first.is_some_and(|stage| stage.session_loop.response_us.is_some());
    if has_response { "response time" } else { "latency" }
}

/// The starts of the stages, if there are several.
pub(super) fn marks(starts: &[(&StageRecord, f64)]) -> Vec<Mark> {
    let mark = |&(stage, x): &(&StageRecord, f64)| Mark { x, label: stage.name.clone() };
    if starts.len() < 2 { Vec::new() } else { starts.iter().map(mark).collect() }
}

fn linear(label: &str, unit: Unit) -> Axis {
    Axis::new(label, unit, AxisScale::Linear)
}

/// Returns the charts of the session loops.
pub(super) fn of_loops(record: &Record, id: &str) -> Vec<Chart> {
    let words = words::for_work(&record.plan.work);
    let timeline: Timeline<'_, Point> =
        Timeline::new(id, record, |stage| &stage.session_loop.series, |point| point.t_s);
    let (unit, counted): (_, Counted) = if words.measure().unit() == TRANSACTIONS {
        (TRANSACTIONS, |point| point.transactions)
    } else {
        ("rows/s", |point| point.rows)
    };
    let main = timeline.line(unit, |point| per_second(counted(point), point));
    let y = linear(unit, Unit::PerSecond);
    let mut lines = vec![main];
    // The points of a long run cover several intervals.
    if unit == TRANSACTIONS
        && timeline.points.iter().flatten().any(|point| point.transactions_per_s_range.is_some())
    {
        lines.push(
            timeline.line("lowest interval", |point| Some(point.transactions_per_s_range?.0)),
        );
        lines.push(
            timeline.line("highest interval", |point| Some(point.transactions_per_s_range?.1)),
        );
    }
    let throughput = timeline.chart("throughput", "Throughput", y, lines);
    let waiting = timeline.line("waiting", |point| Some(point.backlog? as f64));
    let (title, y) = ("Intended starts that waited", linear("starts", Unit::Count));
    let backlog = timeline.chart("backlog", title, y, vec![waiting]);
    let others = [latency(&timeline), errors(&timeline), backlog, nodes(&timeline, record)];
    let charts = throughput.into_iter().chain(queries(record, id));
    charts.chain(others.into_iter().flatten()).collect()
}

/// The values of each query of the user.
fn queries(record: &Record, id: &str) -> Vec<Chart> {
    let all = record.stages.iter().flat_map(|stage| &stage.query_series);
    let names: IndexSet<&String> = all.map(|series| &series.name).collect();
    let chart = |name: &String| {
        let timeline: Timeline<'_, QueryPoint> = Timeline::new(
            id,
            record,
            |stage| {
                let series = stage.query_series.iter().find(|series| series.name == *name);
                series.map_or(&[], |series| series.points.as_slice())
            },
            |point| point.t_s,
        );
        let line = timeline.line(name, |point| Some(point.value));
        timeline.chart(&format!("probe-{name}"), name, linear("", Unit::Count), vec![line])
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
    let statistics = Statistic::of_series().map(|statistic| {
        let label = format!("{label}{}", statistic.name);
        timeline.line(&label, |point| statistic.of_point(point, kind))
    });
    let service = has_response.then(|| timeline.line("service p99", |point| point.p99_us));
    let series = statistics.chain(service).collect();
    timeline.chart("latency", title, Axis::new("", Unit::DurationUs, AxisScale::Log), series)
}

/// Errors over time, if there were any.
fn errors(timeline: &Timeline<'_, Point>) -> Option<Chart> {
    let picks: [(&str, Counted); 6] = [
        ("errors/s", |point| point.errors),
        ("retries/s", |point| point.retries),
        ("failed/s", |point| point.failed),
        ("late/s", |point| point.late.unwrap_or(0)),
        ("skipped/s", |point| point.skipped),
        ("reconnects/s", |point| point.reconnects),
    ];
    let happened = |pick: Counted| timeline.points.iter().flatten().any(|point| pick(point) > 0);
    let picks = picks.into_iter().filter(|(_, pick)| happened(*pick));
    let series = picks
        .map(|(label, pick)| timeline.line(label, |point| per_second(pick(point), point)))
        .collect();
    timeline.chart("errors-over-time", "Errors", linear("per second", Unit::PerSecond), series)
}

/// The transactions of each node, if there are several.
fn nodes(timeline: &Timeline<'_, Point>, record: &Record) -> Option<Chart> {
    let mut nodes = record.stages.iter().map(|stage| &stage.session_loop.nodes);
    let nodes = nodes.find(|nodes| nodes.len() > 1)?.iter().take(NODES_MAX).enumerate();
    let series = nodes.map(|(position, node)| {
        timeline.line(&node.node, |point| per_second(*point.nodes.get(position)?, point))
    });
    let y = linear(TRANSACTIONS, Unit::PerSecond);
    timeline.chart("nodes-over-time", "Transactions of each node", y, series.collect())
}

/// The transactions of each agent of a fleet, if their series were kept.
pub(super) fn of_agents(record: &Record, id: &str) -> Vec<Chart> {
    let is_kept = |agent: &&AgentRecord| agent.stages.iter().any(|stage| !stage.series.is_empty());
    let agents: Vec<&AgentRecord> = record.agents.iter().filter(is_kept).collect();
    let (starts, end_s) = stage_starts(record);
    let (mut xs, mut rates) = (Vec::new(), Vec::new());
    for (position, (stage, start_s)) in starts.iter().enumerate() {
        if position > 0 {
            xs.push(start_s + GAP_S);
            rates.push(vec![None; agents.len()]);
        }
        for (at, point) in stage.session_loop.series.iter().enumerate() {
            let rate = |agent: &&AgentRecord| {
                let own = agent.stages.get(position)?.series.get(at)?;
                (own.seconds > 0.0).then(|| own.transactions as f64 / own.seconds)
            };
            xs.push(start_s + point.t_s);
            rates.push(agents.iter().map(rate).collect());
        }
    }
    let of_agent = |(at, agent): (usize, &&AgentRecord)| {
        let rate = |rates: &Vec<Option<f64>>| rates.get(at).copied().flatten();
        line(&format!("agent {}", agent.number), rates.iter().map(rate))
    };
    let ranked = |(label, share): (&str, f64)| {
        let rate = |rates: &Vec<Option<f64>>| {
            let mut known: Vec<f64> = rates.iter().flatten().copied().collect();
            known.sort_by(f64::total_cmp);
            known.get(truncated(known.len().saturating_sub(1) as f64 * share)).copied()
        };
        line(label, rates.iter().map(rate))
    };
    let series = if agents.len() <= AGENTS_MAX {
        agents.iter().enumerate().map(of_agent).collect()
    } else {
        [("slowest agent", 0.0), ("median", 0.5), ("fastest agent", 1.0)].map(ranked).to_vec()
    };
    let lines = Lines {
        id: format!("{id}-agents-over-time"),
        title: "Transactions of each agent",
        x: Axis::time(end_s),
        y: linear(TRANSACTIONS, Unit::PerSecond),
        marks: &marks(&starts),
        sync: Some(id.to_owned()),
        xs: &xs,
        series,
    };
    lines.chart().into_iter().collect()
}

/// Returns the charts of the counters of machine and server.
pub(super) fn of_probes(record: &Record, id: &str) -> Vec<Chart> {
    let timeline: Timeline<'_, ProbePoint> = Timeline::new(
        id,
        record,
        |stage| stage.probes.as_ref().map_or(&[], |probes| probes.points.as_slice()),
        |point| point.t_s,
    );
    let percent = |share: Option<f64>| Some(share? * 100.0);
    let cpus = record.client.machine.counted_cpus() as f64;
    let probes = record.stages.iter().find_map(|stage| stage.probes.as_ref());
    let first_us = probes.map_or(0.0, Sampled::first_work_us);
    let charts = [
        timeline.picked(
            "cpu",
            "CPU (100% is one CPU) and utilization of the device",
            linear("", Unit::Percent),
            &[
                ("machine", &|point| percent(point.machine_busy_share.map(|share| share * cpus))),
                ("server process", &|point| percent(point.server_cpus)),
                ("device busy", &|point| percent(point.busy_share)),
                ("CPU speed (100% = start)", &|point| {
                    percent(point.processor_work_us.map(|us| first_us / us))
                }),
            ],
        ),
        timeline.picked(
            "device",
            "Device throughput",
            linear("MB/s", Unit::MbS),
            &[("read", &|point| point.read_mb_s), ("write", &|point| point.write_mb_s)],
        ),
        timeline.picked(
            "requests",
            "Device requests",
            linear("per second", Unit::PerSecond),
            &[("reads/s", &|point| point.reads_per_s), ("writes/s", &|point| point.writes_per_s)],
        ),
        timeline.picked(
            "wal",
            "WAL and checkpoints",
            linear("MB/s", Unit::MbS),
            &[("WAL", &|point| point.wal_mb_s), ("checkpoints", &|point| point.checkpoint_mb_s)],
        ),
        timeline.picked(
            "dirty",
            "Dirty memory of the machine",
            linear("MB", Unit::Mb),
            &[("dirty", &|point| Some(point.dirty_bytes? as f64 / 1e6))],
        ),
        timeline.picked(
            "server_memory",
            "Memory of the server's processes without shared buffers",
            linear("MB", Unit::Mb),
            &[("server", &|point| Some(point.server_memory_bytes? as f64 / 1e6))],
        ),
    ];
    charts.into_iter().flatten().collect()
}
