//! The rows of the tables, derived from a record.
//!
//! A column of a stage is an entry of `STAGE_COLUMNS`. Any other one is one line here, one in `sql/store/schema.sql`, and one in
//! docs/reference/store.md.

use super::backend::Session;
use super::error::StoreError;
use super::value::{Fields, fields, optional_fields};
use crate::figure::{STATISTICS, Statistic, Value};
use crate::record::{
    AccessRecord, Check, DiskLimit, ErrorEntry, LatencyKind, LatencySummary, Note, OperationRecord,
    Point, Record, StageRecord,
};
use crate::summary::{STAGE_COLUMNS, StageRow};
use crate::units::percent;

/// The tables with rows for one run, besides `runs` and `records`.
const DERIVED: [&str; 8] =
    ["stages", "operations", "series", "errors", "accesses", "checks", "tags", "facts"];

/// Inserts a record and everything that is derived from it.
pub(super) fn insert(
    session: &mut dyn Session,
    record: &Record,
    json: String,
) -> Result<(), StoreError> {
    let id = record.id.to_string();
    session.insert("runs", &[run(&id, record)])?;
    session.insert("records", &[fields! { run_id: id.clone(), record: json }])?;
    insert_derived(session, &id, record)
}

fn insert_derived(session: &mut dyn Session, id: &str, record: &Record) -> Result<(), StoreError> {
    let (mut stages, mut operations, mut series, mut errors) =
        <(Vec<_>, Vec<_>, Vec<_>, Vec<_>)>::default();
    for row in StageRow::of_record(record) {
        let (position, of_loop) = (row.ordinal, &row.stage.session_loop);
        stages.push(stage(id, &row));
        operations.extend(of_loop.operations.iter().map(|entry| operation(id, position, entry)));
        series.extend((1..).zip(&of_loop.series).map(|(at, entry)| point(id, position, at, entry)));
        errors.extend(of_loop.errors.iter().map(|entry| error(id, position, entry)));
    }
    let rows = [
        stages,
        operations,
        series,
        errors,
        (1..).zip(&record.accesses).map(|(at, entry)| access(id, at, entry)).collect(),
        (1..).zip(&record.checks).map(|(at, entry)| check(id, at, entry)).collect(),
        record.tags.iter().map(|(key, value)| tag(id, key, value)).collect(),
        record.plan.facts.iter().map(|(key, value)| tag(id, key, value)).collect(),
    ];
    DERIVED.into_iter().zip(rows).try_for_each(|(table, rows)| session.insert(table, &rows))
}

/// Returns the row of a tag, or of a fact.
pub(super) fn tag(id: &str, key: &str, value: &str) -> Fields {
    fields! { run_id: id, key: key, value: value }
}

/// Returns the row of a device from its host, name and identity, the time of the measurement, and the limits.
pub(super) fn device_limit(
    [host, device, identity, measured_at]: [Value; 4],
    limit: Option<&DiskLimit>,
    figures: String,
) -> Fields {
    fields! {
        host: host,
        measured_at: measured_at,
        sequential_read_mb_s: limit.map(|limit| limit.sequential_read.mb_s),
        sequential_write_mb_s: limit.map(|limit| limit.sequential_write.mb_s),
        random_reads_per_s: limit.map(|limit| limit.random_read.requests_per_s),
        random_writes_per_s: limit.map(|limit| limit.random_write.requests_per_s),
        figures: figures,
        device: device,
        identity: identity,
        tool: limit.map(|limit| &limit.tool),
    }
}

/// Returns the workload and, for a single operation, its name: `oltp, point-select`. A run on a part of its dataset is
/// another one than a run on the whole.
fn title(record: &Record) -> String {
    let title = match record.stages.as_slice() {
        [stage] if stage.name.starts_with(&record.workload) && stage.name != record.workload => {
            stage.name.clone()
        }
        _ => record.plan.work.spec().title(),
    };
    match record.dataset_share() {
        Some(share) => format!("{title}, {} of the dataset", percent(share)),
        None => title,
    }
}

/// Returns the stage whose figures are listed: the one with most rows per second. A statement that ran once
/// has no rate.
fn listed_stage(record: &Record) -> Option<&StageRecord> {
    let loops = record.stages.iter().filter(|stage| stage.statement.is_none());
    loops.max_by(|a, b| a.throughput.rows_per_s.total_cmp(&b.throughput.rows_per_s))
}

fn run(id: &str, record: &Record) -> Fields {
    let stage = listed_stage(record);
    let session_loop = stage.map(|stage| &stage.session_loop);
    let latency = |statistic: &Statistic, kind| statistic.of_loop(session_loop?, kind);
    let service = |percent| latency(Statistic::percentile(percent)?, LatencyKind::Service);
    let response = |percent| latency(Statistic::percentile(percent)?, LatencyKind::Response);
    // Also if its p99 has too few values to be shown.
    let mean = Statistic::named("mean").and_then(|mean| latency(mean, LatencyKind::Response));
    let traits = record.plan.work.traits();
    let (target, client, verdict) = (&record.target, &record.client, &record.verdict);
    let warnings: Vec<_> = verdict.warnings.iter().map(crate::record::Warning::labeled).collect();
    let mut row = fields! {
        id: id,
        started_at: record.started_at,
        workload: &record.workload,
        title: title(record),
        label: &record.label,
        status: record.status.as_str(),
        failure: &record.failure,
        valid: verdict.valid,
        marks: known(&record.marks().join(", ")),
        note: Note::newest_line(&record.notes),
        reasons: lines(&verdict.reasons),
        warnings: lines(&warnings),
        riops_version: &client.riops_version,
        client_host: known(&client.machine.host),
        flavor: (!target.server_version.is_empty()).then(|| target.flavor.to_string().to_lowercase()),
        server_version: known(&target.server_version),
        server: server(record),
        address: known(&target.address),
        database_name: known(&target.database),
        protocol: record.plan.protocol.as_str(),
        schedule: record.plan.schedule.as_str(),
        rate_per_s: record.plan.schedule.per_s(),
        update_percent: traits.update_percent.map(f64::from),
        distribution: traits.distribution.map(|distribution| distribution.to_string()),
        sessions: Some(record.plan.sessions).filter(|sessions| *sessions > 0),
        stages: record.stages.len(),
        seconds: record.stages.iter().map(|stage| stage.seconds).sum::<f64>(),
        stage: stage.map(|stage| &stage.name),
        rows_per_s: stage.filter(|_| !traits.has_no_rows).map(|stage| stage.throughput.rows_per_s),
        transactions_per_s: stage.filter(|stage| !stage.is_timed()).map(|stage| stage.throughput.transactions_per_s),
        statements_per_s: stage.filter(|_| !traits.has_no_statements).map(|stage| stage.throughput.statements_per_s),
        service_p50_us: service(50.0),
        service_p99_us: service(99.0),
        response_p50_us: response(50.0),
        response_p99_us: response(99.0),
        service_lower_bound_from: session_loop.and_then(|session_loop| session_loop.service_us.as_ref()?.lower_bound_from),
        response_lower_bound_from: session_loop.and_then(|session_loop| session_loop.response_us.as_ref()?.lower_bound_from),
        // With a rate, only the response time includes the wait for a session.
        p99_us: if mean.is_some() { response(99.0) } else { service(99.0) },
        errors: record.stages.iter().map(|stage| stage.session_loop.error_count()).sum::<u64>(),
        retries: record.stages.iter().map(|stage| stage.session_loop.retries).sum::<u64>();
        record.plan => { workers }
    };
    row.extend(optional_fields! { session_loop => { batch, method } });
    row
}

/// Flavor and version; empty if they are unknown.
fn server(record: &Record) -> String {
    let target = &record.target;
    match known(&target.server_version) {
        Some(version) => format!("{} {version}", target.flavor),
        None => String::new(),
    }
}

/// Returns the text, unless it is empty: an imported run may not know its server.
fn known(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// Returns one text with a line for each entry; `None` without entries.
fn lines(entries: &[String]) -> Option<String> {
    (!entries.is_empty()).then(|| entries.join("\n"))
}

/// Returns the columns of the latencies of a kind.
fn latencies(
    summary: Option<&LatencySummary>,
    kind: LatencyKind,
) -> impl Iterator<Item = (&'static str, Value)> {
    let stored = STATISTICS
        .iter()
        .filter(|statistic| statistic.percent.is_some() || statistic.key == "mean");
    let bound = (
        Statistic::bound_column(kind),
        summary.and_then(|summary| summary.lower_bound_from).into(),
    );
    let values = stored.map(move |statistic| {
        (statistic.column(kind), summary.and_then(|summary| statistic.value(summary)).into())
    });
    values.chain([bound])
}

fn both_latencies(
    service: Option<&LatencySummary>,
    response: Option<&LatencySummary>,
) -> impl Iterator<Item = (&'static str, Value)> {
    latencies(service, LatencyKind::Service).chain(latencies(response, LatencyKind::Response))
}

fn stage(id: &str, row: &StageRow<'_>) -> Fields {
    let columns = STAGE_COLUMNS.iter().map(|column| (&*column.name, column.value(row)));
    [("run_id", id.into())].into_iter().chain(columns).collect()
}

fn operation(id: &str, stage: u64, operation: &OperationRecord) -> Fields {
    let mut row = fields! {
        run_id: id,
        stage: stage;
        operation => { name, transactions, rows, failed, unknown, blocks_per_transaction }
    };
    row.extend(both_latencies(operation.service_us.as_ref(), operation.response_us.as_ref()));
    row
}

fn point(id: &str, stage: u64, position: u64, point: &Point) -> Fields {
    let mut row = fields! {
        run_id: id,
        stage: stage,
        position: position;
        point => {
            t_s, seconds, transactions, rows, errors, failed, late, skipped, retries, reconnects, backlog,
            percentile_us,
        }
    };
    row.extend(Statistic::of_series().flat_map(|statistic| {
        LatencyKind::ALL
            .map(|kind| (statistic.series_column(kind), statistic.of_point(point, kind).into()))
    }));
    row
}

fn error(id: &str, stage: u64, error: &ErrorEntry) -> Fields {
    fields! {
        run_id: id,
        stage: stage;
        error => { sqlstate, count, retried, attempts_s, without_success_s, sample }
    }
}

fn access(id: &str, position: u64, access: &AccessRecord) -> Fields {
    fields! {
        run_id: id,
        position: position,
        as_expected: access.held;
        access => { stage, statement, moment, expected, found, sessions, error }
    }
}

fn check(id: &str, position: u64, check: &Check) -> Fields {
    fields! {
        run_id: id,
        position: position,
        passed: check.held;
        check => { name, expected, found, unresolved, unknown }
    }
}
