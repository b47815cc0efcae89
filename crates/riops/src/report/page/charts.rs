//! Charts of the HTML report: the time series of a record, all stages in sequence.

use serde::Serialize;

use crate::record::{Point, ProbePoint, Record};

/// A chart, as serialized for the script of the page.
#[derive(Debug, Serialize)]
pub(super) struct Chart {
    id: String,
    title: &'static str,
    unit: &'static str,
    x: Vec<f64>,
    series: Vec<Series>,
    marks: Vec<Mark>,
}

#[derive(Debug, Serialize)]
struct Series {
    label: &'static str,
    values: Vec<Option<f64>>,
}

/// The start of a stage.
#[derive(Debug, Clone, Serialize)]
struct Mark {
    t_s: f64,
    label: String,
}

/// Selects one value of a point; `None` leaves a gap.
type Pick = fn(&ProbePoint) -> Option<f64>;

/// Returns the charts of a record, all stages in sequence.
pub(super) fn charts(number: usize, record: &Record) -> Vec<Chart> {
    let (mut points, mut marks, mut start_s) = (Vec::new(), Vec::new(), 0.0);
    for stage in &record.stages {
        let Some(probes) = &stage.probes else {
            continue;
        };
        marks.push(Mark { t_s: start_s, label: stage.name.clone() });
        points.extend(probes.points.iter().map(|point| (start_s + point.t_s, point)));
        start_s = points.last().map_or(start_s, |(t_s, _)| *t_s);
    }
    let chart = |title, unit, picks: &[(&'static str, Pick)]| {
        let series: Vec<Series> = picks
            .iter()
            .map(|(label, pick)| Series {
                label,
                values: points.iter().map(|(_, point)| pick(point)).collect(),
            })
            .filter(|series| series.values.iter().any(Option::is_some))
            .collect();
        (!series.is_empty()).then_some((title, unit, series))
    };
    let found = [
        chart(
            "Device",
            "MB/s",
            &[("read", |point| point.read_mb_s), ("write", |point| point.write_mb_s)],
        ),
        chart(
            "CPU and device utilization",
            "%",
            &[
                ("machine CPU", |point| Some(point.machine_busy_share? * 100.0)),
                ("server processes (100% = one CPU)", |point| Some(point.server_cpus? * 100.0)),
                ("device", |point| Some(point.busy_share? * 100.0)),
            ],
        ),
        chart(
            "WAL and checkpoints",
            "MB/s",
            &[("WAL", |point| point.wal_mb_s), ("checkpoints", |point| point.checkpoint_mb_s)],
        ),
        chart("Dirty memory", "MB", &[("dirty", |point| Some(point.dirty_bytes? as f64 / 1e6))]),
    ];
    let x: Vec<f64> = points.iter().map(|(t_s, _)| *t_s).collect();
    let mut charts: Vec<Chart> = found
        .into_iter()
        .flatten()
        .enumerate()
        .map(|(position, (title, unit, series))| Chart {
            id: format!("chart-{number}-{position}"),
            title,
            unit,
            x: x.clone(),
            series,
            marks: marks.clone(),
        })
        .collect();
    charts.extend(throughput(number, record));
    charts
}

/// Returns the charts of the session loops: transactions per second and latency.
fn throughput(number: usize, record: &Record) -> Vec<Chart> {
    let (mut points, mut marks, mut start_s) = (Vec::new(), Vec::new(), 0.0);
    for stage in record.stages.iter().filter(|stage| !stage.session_loop.series.is_empty()) {
        marks.push(Mark { t_s: start_s, label: stage.name.clone() });
        points.extend(stage.session_loop.series.iter().map(|point| (start_s + point.t_s, point)));
        start_s = points.last().map_or(start_s, |(t_s, _)| *t_s);
    }
    if points.is_empty() {
        return Vec::new();
    }
    let x: Vec<f64> = points.iter().map(|(t_s, _)| *t_s).collect();
    let values = |pick: PickPoint| -> Vec<Option<f64>> {
        points.iter().map(|(_, point)| pick(point)).collect()
    };
    let chart = |name: &str, title: &'static str, unit: &'static str, series: Vec<Series>| Chart {
        id: format!("chart-{number}-{name}"),
        title,
        unit,
        x: x.clone(),
        series,
        marks: marks.clone(),
    };
    vec![
        chart(
            "rate",
            "Transactions",
            "per second",
            vec![Series {
                label: "transactions/s",
                values: values(|point| Some(point.transactions as f64 / point.seconds)),
            }],
        ),
        latency(&values, chart),
    ]
}

/// Selects one value of a point of a session loop.
type PickPoint = fn(&Point) -> Option<f64>;

/// Returns the chart of the latencies; with a rate those of the response time, and the 99th percentile of the
/// service time beside them.
fn latency(
    values: &dyn Fn(PickPoint) -> Vec<Option<f64>>,
    chart: impl Fn(&str, &'static str, &'static str, Vec<Series>) -> Chart,
) -> Chart {
    let of = |label, pick: PickPoint| {
        let us = values(pick).into_iter();
        Series { label, values: us.map(|us| Some(us? / 1e3)).collect() }
    };
    let response = of("response p50", |point| point.response_p50_us);
    if response.values.iter().all(Option::is_none) {
        let series = vec![
            of("p50", |point| point.p50_us),
            of("p99", |point| point.p99_us),
            of("max", |point| point.max_us),
        ];
        return chart("latency", "Latency", "ms", series);
    }
    let series = vec![
        response,
        of("response p99", |point| point.response_p99_us),
        of("response max", |point| point.response_max_us),
        of("service p99", |point| point.p99_us),
    ];
    chart("latency", "Response time", "ms", series)
}
