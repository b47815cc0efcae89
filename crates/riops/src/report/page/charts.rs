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
    let values = |pick: fn(&Point) -> Option<f64>| -> Vec<Option<f64>> {
        points.iter().map(|(_, point)| pick(point)).collect()
    };
    let chart = |name: &str, title, unit, series| Chart {
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
        chart(
            "latency",
            "Latency",
            "ms",
            vec![
                Series {
                    label: "p50",
                    values: values(|point| Some(point.response_p50_us.or(point.p50_us)? / 1e3)),
                },
                Series {
                    label: "p99",
                    values: values(|point| Some(point.response_p99_us.or(point.p99_us)? / 1e3)),
                },
                Series {
                    label: "max",
                    values: values(|point| Some(point.response_max_us.or(point.max_us)? / 1e3)),
                },
            ],
        ),
    ]
}
