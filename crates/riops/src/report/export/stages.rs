//! A row per stage, with the figures that tell runs apart and compare them.

use super::super::model::{Bottleneck, Summary};
use super::super::words;
use super::cell::{Cell, Column, table as csv_table};
use super::error::ExportError;
use crate::plan::Driver;
use crate::record::{
    LatencyKind, LatencySummary, Point, Record, ReportedLatency, StageRecord, Status, Validity,
};

/// A stage and its number, from 1.
pub(super) struct Row<'a> {
    pub(super) record: &'a Record,
    pub(super) number: u64,
    pub(super) stage: &'a StageRecord,
}

impl<'a> Row<'a> {
    /// Whether any interval counts such events.
    pub(super) fn has_any(&self, count: fn(&Point) -> u64) -> bool {
        self.stage.session_loop.series.iter().any(|point| count(point) > 0)
    }

    pub(super) fn all(records: &'a [Record]) -> impl Iterator<Item = Self> {
        records.iter().flat_map(|record| {
            let stages = (1..).zip(&record.stages);
            stages.map(move |(number, stage)| Self { record, number, stage })
        })
    }
}

pub(super) fn table(records: &[Record]) -> Result<String, ExportError> {
    let columns: Vec<Column<Row<'_>>> = run()
        .into_iter()
        .chain(settings())
        .chain(counts())
        .chain(service())
        .chain(response())
        .chain(details())
        .collect();
    csv_table(&columns, Row::all(records))
}

/// The columns that identify a stage.
fn run<'a>() -> [Column<Row<'a>>; 7] {
    [
        ("run_id", |row| row.record.id.to_string().into()),
        ("started_at", |row| row.record.started_at.to_string().into()),
        ("workload", |row| row.record.workload.as_str().into()),
        ("label", |row| row.record.label.as_deref().into()),
        ("tags", |row| tags(row.record).into()),
        ("stage", |row| row.number.into()),
        ("stage_name", |row| row.stage.name.as_str().into()),
    ]
}

fn settings<'a>() -> [Column<Row<'a>>; 24] {
    [
        ("stage_started_at", |row| row.stage.started_at.map(|at| at.to_string()).into()),
        ("status", |row| row.record.status.as_str().into()),
        ("valid", |row| valid(row.record)),
        ("reasons", |row| row.record.verdict.reasons.join("; ").into()),
        ("warnings", |row| warnings(row.record).into()),
        ("imported_from", |row| imported_from(row.record)),
        ("server", |row| server(row.record)),
        ("server_version", |row| row.record.target.server_version.as_str().into()),
        ("database", |row| row.record.target.database.as_str().into()),
        ("client_host", |row| row.record.client.machine.host.as_str().into()),
        ("riops_version", |row| row.record.client.riops_version.as_str().into()),
        ("kind", |row| row.stage.kind.as_str().into()),
        ("sessions", |row| known(row.stage.sessions)),
        ("workers", |row| known(row.record.plan.workers)),
        ("driver", |row| row.record.client.driver.map(Driver::as_str).into()),
        ("protocol", |row| measured(row, row.record.plan.protocol.as_str())),
        ("requested_transactions_per_s", |row| row.record.plan.schedule.per_s().into()),
        ("batch_rows", |row| row.stage.session_loop.batch.into()),
        ("update_percent", |row| {
            row.record.plan.work.spec().update_percent().map(u32::from).into()
        }),
        ("distribution", |row| {
            row.record.plan.work.spec().distribution().map(|keys| keys.to_string()).into()
        }),
        ("method", |row| row.stage.session_loop.method.as_deref().into()),
        ("seed", |row| measured(row, row.record.plan.seed)),
        ("warmup_s", |row| measured(row, row.record.plan.warmup_s)),
        ("seconds", |row| row.stage.seconds.into()),
    ]
}

fn counts<'a>() -> [Column<Row<'a>>; 13] {
    [
        ("transactions", |row| row.stage.transactions.into()),
        ("rows", |row| of_rows(row, row.stage.rows)),
        ("statements", |row| of_statements(row, row.stage.statements)),
        ("transactions_per_s", |row| row.stage.throughput.transactions_per_s.into()),
        ("rows_per_s", |row| of_rows(row, row.stage.throughput.rows_per_s)),
        ("statements_per_s", |row| of_statements(row, row.stage.throughput.statements_per_s)),
        ("failed_transactions", |row| outcomes(row, |outcomes| outcomes.failed)),
        ("unknown_transactions", |row| outcomes(row, |outcomes| outcomes.unknown)),
        ("errors", |row| of_loop(row, errors(row.stage))),
        ("retries", |row| of_loop(row, row.stage.session_loop.retries)),
        ("reconnects", |row| of_loop(row, row.stage.session_loop.reconnects)),
        ("late_transactions", |row| {
            row.stage.session_loop.late.map(|late| late.transactions).into()
        }),
        ("skipped_starts", |row| {
            row.stage.session_loop.schedule.as_ref().map(|schedule| schedule.skipped).into()
        }),
    ]
}

/// Declares the columns of the service or the response time.
macro_rules! latency_columns {
    ($name:ident, $prefix:literal, $of:expr) => {
        fn $name<'a>() -> [Column<Row<'a>>; 10] {
            [
                (concat!($prefix, "_count"), |row| ($of)(row).count.into()),
                (concat!($prefix, "_min_us"), |row| ($of)(row).min.into()),
                (concat!($prefix, "_mean_us"), |row| ($of)(row).mean.into()),
                (concat!($prefix, "_stdev_us"), |row| ($of)(row).stdev.into()),
                (concat!($prefix, "_p50_us"), |row| ($of)(row).p50.into()),
                (concat!($prefix, "_p90_us"), |row| ($of)(row).p90.into()),
                (concat!($prefix, "_p95_us"), |row| ($of)(row).p95.into()),
                (concat!($prefix, "_p99_us"), |row| ($of)(row).p99.into()),
                (concat!($prefix, "_p999_us"), |row| ($of)(row).p999.into()),
                (concat!($prefix, "_max_us"), |row| ($of)(row).max.into()),
            ]
        }
    };
}
latency_columns!(service, "service", |row: &Row<'_>| Times::of(row.stage, LatencyKind::Service));
latency_columns!(response, "response", |row: &Row<'_>| Times::of(row.stage, LatencyKind::Response));

fn details<'a>() -> [Column<Row<'a>>; 9] {
    [
        ("liops", |row| row.stage.io.as_ref().and_then(|io| io.liops).into()),
        ("piops", |row| row.stage.io.as_ref().and_then(|io| io.piops).into()),
        ("buffer_hit_ratio", |row| row.stage.io.as_ref().and_then(|io| io.hit_ratio).into()),
        ("blocks_per_row", |row| row.stage.io.as_ref().and_then(|io| io.blocks_per_row).into()),
        ("wal_mb_per_s", |row| row.stage.io.as_ref().and_then(|io| io.wal_mb_s).into()),
        ("client_cpu_s", |row| row.stage.client_cpu.as_ref().map(|cpu| cpu.seconds).into()),
        ("server_cpu_s", |row| row.stage.server_cpu_s.into()),
        ("steady", |row| row.stage.session_loop.steadiness.map(|each| each.steady).into()),
        ("bottleneck", |row| bottleneck(row)),
    ]
}

/// Latencies of one kind, as far as they are known.
#[derive(Default)]
struct Times {
    count: Option<u64>,
    min: Option<f64>,
    mean: Option<f64>,
    stdev: Option<f64>,
    p50: Option<f64>,
    p90: Option<f64>,
    p95: Option<f64>,
    p99: Option<f64>,
    p999: Option<f64>,
    max: Option<f64>,
}

impl Times {
    fn of(stage: &StageRecord, kind: LatencyKind) -> Self {
        let each = &stage.session_loop;
        let summary = match kind {
            LatencyKind::Service => &each.service_us,
            LatencyKind::Response => &each.response_us,
        };
        let reported = each.reported_latency.as_ref().filter(|reported| reported.kind == kind);
        match (summary, reported) {
            (Some(summary), _) => summary.into(),
            (None, Some(reported)) => reported.into(),
            (None, None) => Self::default(),
        }
    }
}

impl From<&LatencySummary> for Times {
    fn from(summary: &LatencySummary) -> Self {
        Self {
            count: Some(summary.count),
            min: Some(summary.min),
            mean: Some(summary.mean),
            stdev: Some(summary.stdev),
            p50: Some(summary.p50),
            p90: Some(summary.p90),
            p95: Some(summary.p95),
            p99: Some(summary.p99),
            p999: Some(summary.p999),
            max: Some(summary.max),
        }
    }
}

impl From<&ReportedLatency> for Times {
    fn from(reported: &ReportedLatency) -> Self {
        Self {
            count: None,
            min: reported.min_us,
            mean: reported.mean_us,
            stdev: reported.stdev_us,
            p50: reported.percentile_us(50.0),
            p90: reported.percentile_us(90.0),
            p95: reported.percentile_us(95.0),
            p99: reported.percentile_us(99.0),
            p999: reported.percentile_us(99.9),
            max: reported.max_us,
        }
    }
}

/// `key=value`, separated by semicolons.
fn tags(record: &Record) -> String {
    let tags = record.tags.iter().map(|(key, value)| format!("{key}={value}"));
    tags.collect::<Vec<_>>().join(";")
}

/// Empty for an imported run, which is neither.
fn valid(record: &Record) -> Cell {
    match record.validity() {
        Validity::Valid => true.into(),
        Validity::Invalid => false.into(),
        Validity::NotVerified => Cell::Absent,
    }
}

fn warnings(record: &Record) -> String {
    record
        .verdict
        .warnings
        .iter()
        .map(crate::record::Warning::labeled)
        .collect::<Vec<_>>()
        .join("; ")
}

fn imported_from(record: &Record) -> Cell {
    record.imported.as_ref().map(|imported| imported.format.as_str()).into()
}

/// The flavor of the server, if its version is known.
fn server(record: &Record) -> Cell {
    let target = &record.target;
    (!target.server_version.is_empty()).then(|| target.flavor.to_string()).into()
}

/// An imported run may not know its sessions and threads.
fn known(number: u32) -> Cell {
    (number > 0).then_some(number).into()
}

/// A value of the plan, which an imported run does not have.
fn measured(row: &Row<'_>, value: impl Into<Cell>) -> Cell {
    if row.record.imported.is_some() { Cell::Absent } else { value.into() }
}

fn of_rows(row: &Row<'_>, value: impl Into<Cell>) -> Cell {
    if words::of(&row.record.plan.work).has_rows() { value.into() } else { Cell::Absent }
}

fn of_statements(row: &Row<'_>, value: impl Into<Cell>) -> Cell {
    if row.record.plan.work.spec().counts_statements() { value.into() } else { Cell::Absent }
}

/// A count that exists only for a session loop. Of an imported run, none may also mean unknown.
fn of_loop(row: &Row<'_>, value: u64) -> Cell {
    let is_known = match row.record.imported {
        Some(_) => value > 0,
        None => row.stage.session_loop.outcomes.is_some(),
    };
    is_known.then_some(value).into()
}

fn outcomes(row: &Row<'_>, pick: fn(&crate::record::Outcomes) -> u64) -> Cell {
    row.stage.session_loop.outcomes.as_ref().map(pick).into()
}

pub(super) fn errors(stage: &StageRecord) -> u64 {
    stage.session_loop.errors.iter().map(|error| error.count).sum()
}

/// A word for the bottleneck, stable across releases.
fn bottleneck(row: &Row<'_>) -> Cell {
    let summary = Summary { record: row.record, stage: row.stage };
    let is_whole = row.record.status != Status::Failed;
    (summary.has_bottleneck() && is_whole)
        .then(|| match summary.bottleneck() {
            Bottleneck::Client => "client",
            Bottleneck::Locks => "locks",
            Bottleneck::SharedCpu => "cpu",
            Bottleneck::ForeignCpu => "cpu_used_by_others",
            Bottleneck::Waits => "waits",
            Bottleneck::Device => "device",
            Bottleneck::BusyDevice => "device_unknown_maximum",
            Bottleneck::Rate => "requested_rate",
            Bottleneck::Waiting => "none_found",
            Bottleneck::ServerOrNetwork => "server_or_network",
        })
        .into()
}
