//! The rows of the tables, derived from a record.
//!
//! A column is one line here, one in each `0004_tables` or in a later migration, and one in
//! docs/reference/store.md.

use super::backend::{Session, read_json};
use super::error::StoreError;
use super::value::{Fields, Value, time_text};
use crate::record::{AccessRecord, Check, LatencyKind, LatencySummary, Record, StageRecord};
use crate::units::percent;

const IDS: &str = include_str!("../../../../sql/store/ids_all.sql");
const UPDATE_RUN: &str = include_str!("../../../../sql/store/run_update.sql");
const DELETE: &str = include_str!("../../../../sql/store/derived_delete.sql");
const DEVICE_LIMITS: &str = include_str!("../../../../sql/store/device_limits_all.sql");
const DELETE_DEVICE_LIMITS: &str = include_str!("../../../../sql/store/device_limits_delete.sql");

/// The tables with rows for one run, besides `runs` and `records`.
const DERIVED: [&str; 7] =
    ["stages", "operations", "series", "errors", "accesses", "checks", "tags"];

/// Makes a row from names and values.
macro_rules! fields {
    ($($name:ident: $value:expr),+ $(,)?) => { vec![$((stringify!($name), Value::from($value))),+] };
}

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
    let stages = || (1_u64..).zip(&record.stages);
    let mut all: [(&str, Vec<Fields>); 7] = DERIVED.map(|table| (table, Vec::new()));
    let [
        (_, of_stages),
        (_, operations),
        (_, series),
        (_, errors),
        (_, accesses),
        (_, checks),
        (_, tags),
    ] = &mut all;
    for (position, each) in stages() {
        of_stages.push(stage(id, position, each));
        operations.extend(operations_of(id, position, each));
        series.extend(series_of(id, position, each));
        errors.extend(errors_of(id, position, each));
    }
    accesses.extend((1..).zip(&record.accesses).map(|(at, each)| access(id, at, each)));
    checks.extend((1..).zip(&record.checks).map(|(at, each)| check(id, at, each)));
    tags.extend(record.tags.iter().map(|(key, value)| tag(id, key, value)));
    all.iter().try_for_each(|(table, rows)| session.insert(table, rows))
}

/// Returns the row of a tag.
pub(super) fn tag(id: &str, key: &str, value: &str) -> Fields {
    fields! { run_id: id, key: key, value: value }
}

/// Derives all tables from the records again. A record that cannot be decoded stays, and its row in `runs` says
/// why.
pub(super) fn derive_all(session: &mut dyn Session) -> Result<(), StoreError> {
    for row in session.query(IDS, &[])? {
        let Some(id) = row.into_iter().next().flatten() else { continue };
        let json = read_json(session, &id)?;
        match serde_json::from_str::<Record>(&json) {
            Ok(record) => {
                update_run(session, &id, run(&id, &record))?;
                for table in DERIVED {
                    session.query(&DELETE.replace("{table}", table), &[id.as_str().into()])?;
                }
                insert_derived(session, &id, &record)?;
            }
            Err(error) => {
                update_run(session, &id, fields! { record_error: error.to_string() })?;
            }
        }
    }
    derive_device_limits(session)
}

fn update_run(session: &mut dyn Session, id: &str, row: Fields) -> Result<(), StoreError> {
    let row: Fields = row.into_iter().filter(|(name, _)| *name != "id").collect();
    let assignments: Vec<_> =
        row.iter().enumerate().map(|(at, (name, _))| format!("{name} = ${}", at + 2)).collect();
    let sql = UPDATE_RUN.replace("{assignments}", &assignments.join(", "));
    let mut parameters = vec![Value::from(id)];
    parameters.extend(row.into_iter().map(|(_, value)| value));
    session.query(&sql, &parameters).map(drop)
}

fn derive_device_limits(session: &mut dyn Session) -> Result<(), StoreError> {
    let rows = session.query(DEVICE_LIMITS, &[])?;
    session.script(DELETE_DEVICE_LIMITS)?;
    for row in rows {
        let mut row = row.into_iter();
        let mut next = || row.next().flatten();
        let (host, device, identity) = (next(), next(), next());
        let (measured_at, figures) = (next(), next().unwrap_or_default());
        let decoded = serde_json::from_str(&figures).ok();
        let limit = device_limit(host.as_deref().unwrap_or_default(), decoded.as_ref(), figures);
        let kept = [("device", device), ("identity", identity), ("measured_at", measured_at)];
        let limit = limit
            .into_iter()
            .map(|(name, value)| match kept.iter().find(|(column, _)| *column == name) {
                Some((_, kept)) => (name, Value::from(kept.clone())),
                None => (name, value),
            })
            .collect();
        session.insert("device_limits", &[limit])?;
    }
    Ok(())
}

/// Returns the row of a device.
pub(super) fn device_limit(
    host: &str,
    limit: Option<&crate::record::DiskLimit>,
    figures: String,
) -> Fields {
    fields! {
        host: host,
        device: limit.map(|limit| limit.device.clone()),
        identity: limit.and_then(|limit| limit.identity.clone()),
        measured_at: limit.map(|limit| time_text(limit.measured_at)),
        tool: limit.map(|limit| limit.tool.clone()),
        sequential_read_mb_s: limit.map(|limit| limit.sequential_read.mb_s),
        sequential_write_mb_s: limit.map(|limit| limit.sequential_write.mb_s),
        random_reads_per_s: limit.map(|limit| limit.random_read.requests_per_s),
        random_writes_per_s: limit.map(|limit| limit.random_write.requests_per_s),
        figures: figures,
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
    let service = session_loop.and_then(|each| each.service_us.as_ref());
    let response = session_loop.and_then(|each| each.response_us.as_ref());
    let reported = session_loop.and_then(|each| each.reported_latency.as_ref());
    let reported_us = |kind, percent| {
        reported.filter(|each| each.kind == kind).and_then(|each| each.percentile_us(percent))
    };
    let service_us = |percent| reported_us(LatencyKind::Service, percent);
    let response_us = |percent| reported_us(LatencyKind::Response, percent);
    let spec = record.plan.work.spec();
    let failure = record.failure.clone();
    let (target, client, verdict) = (&record.target, &record.client, &record.verdict);
    let warnings: Vec<_> = verdict.warnings.iter().map(crate::record::Warning::labeled).collect();
    fields! {
        id: id,
        started_at: time_text(record.started_at),
        workload: record.workload.clone(),
        title: title(record),
        label: record.label.clone(),
        status: record.status.as_str(),
        failure: failure,
        valid: verdict.valid,
        marks: known(&record.marks().join(", ")),
        reasons: lines(&verdict.reasons),
        warnings: lines(&warnings),
        riops_version: client.riops_version.clone(),
        client_host: known(&client.machine.host),
        flavor: (!target.server_version.is_empty()).then(|| target.flavor.to_string().to_lowercase()),
        server_version: known(&target.server_version),
        server: server(record),
        address: known(&target.address),
        database_name: known(&target.database),
        sessions: record.plan.sessions,
        workers: record.plan.workers,
        protocol: record.plan.protocol.as_str(),
        schedule: record.plan.schedule.as_str(),
        rate_per_s: record.plan.schedule.per_s(),
        update_percent: spec.update_percent().map(f64::from),
        distribution: spec.distribution().map(|distribution| distribution.to_string()),
        stages: record.stages.len(),
        seconds: record.stages.iter().map(|stage| stage.seconds).sum::<f64>(),
        stage: stage.map(|stage| stage.name.clone()),
        batch: session_loop.and_then(|each| each.batch),
        method: session_loop.and_then(|each| each.method.clone()),
        rows_per_s: stage.filter(|_| spec.counts_rows()).map(|stage| stage.throughput.rows_per_s),
        transactions_per_s: stage.map(|stage| stage.throughput.transactions_per_s),
        statements_per_s: stage.filter(|_| spec.counts_statements()).map(|stage| stage.throughput.statements_per_s),
        service_p50_us: service.map(|latency| latency.p50).or(service_us(50.0)),
        service_p99_us: service.map(|latency| latency.p99).or(service_us(99.0)),
        response_p50_us: response.map(|latency| latency.p50).or(response_us(50.0)),
        response_p99_us: response.map(|latency| latency.p99).or(response_us(99.0)),
        // With a rate, only the response time includes the wait for a session.
        p99_us: response
            .or(service)
            .map(|latency| latency.p99)
            .or(response_us(99.0))
            .or(service_us(99.0)),
        errors: record.stages.iter().map(error_count).sum::<u64>(),
        retries: record.stages.iter().map(|stage| stage.session_loop.retries).sum::<u64>(),
        record_error: None::<String>,
    }
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

fn error_count(stage: &StageRecord) -> u64 {
    stage.session_loop.errors.iter().map(|error| error.count).sum()
}

/// Appends the columns of a latency.
fn latency(row: &mut Fields, names: [&'static str; 7], latency: Option<&LatencySummary>) {
    let values = latency
        .map(|each| [each.mean, each.p50, each.p90, each.p95, each.p99, each.p999, each.max]);
    for (at, name) in names.into_iter().enumerate() {
        row.push((name, Value::from(values.and_then(|values| values.get(at).copied()))));
    }
}

const SERVICE: [&str; 7] = [
    "service_mean_us",
    "service_p50_us",
    "service_p90_us",
    "service_p95_us",
    "service_p99_us",
    "service_p999_us",
    "service_max_us",
];

const RESPONSE: [&str; 7] = [
    "response_mean_us",
    "response_p50_us",
    "response_p90_us",
    "response_p95_us",
    "response_p99_us",
    "response_p999_us",
    "response_max_us",
];

fn stage(id: &str, position: u64, stage: &StageRecord) -> Fields {
    let each = &stage.session_loop;
    let io = stage.io.as_ref();
    let sources = io.and_then(|io| io.sources);
    let device = io.and_then(|io| io.device.as_ref());
    let client = stage.client_cpu.as_ref();
    let mut row = fields! {
        run_id: id,
        position: position,
        name: stage.name.clone(),
        kind: stage.kind.clone(),
        started_at: stage.started_at.map(time_text),
        seconds: stage.seconds,
        sessions: stage.sessions,
        batch: each.batch,
        update_batch: each.update_batch,
        method: each.method.clone(),
        transactions: stage.transactions,
        rows: stage.rows,
        statements: stage.statements,
        transactions_per_s: stage.throughput.transactions_per_s,
        rows_per_s: stage.throughput.rows_per_s,
        statements_per_s: stage.throughput.statements_per_s,
        failed: each.outcomes.map(|outcomes| outcomes.failed),
        unknown: each.outcomes.map(|outcomes| outcomes.unknown),
        errors: error_count(stage),
        retries: each.retries,
        reconnects: each.reconnects,
        late: each.late.map(|late| late.transactions),
        skipped: each.late.map(|late| late.skipped),
        update_percent: each.mix.as_ref().filter(|mix| mix.operation == "update").map(|mix| mix.executed_percent),
        buffers_share: sources.map(|sources| sources.buffers_share),
        page_cache_share: sources.and_then(|sources| sources.page_cache_share),
        device_share: sources.and_then(|sources| sources.device_share),
        liops: io.and_then(|io| io.liops),
        piops: io.and_then(|io| io.piops),
        hit_ratio: io.and_then(|io| io.hit_ratio),
        blocks_per_row: io.and_then(|io| io.blocks_per_row),
        wal_mb_s: io.and_then(|io| io.wal_mb_s),
        device: device.map(|device| device.name.clone()),
        device_reads_per_s: device.map(|device| device.reads_per_s),
        device_writes_per_s: device.map(|device| device.writes_per_s),
        device_read_mb_s: device.map(|device| device.read_mb_s),
        device_write_mb_s: device.map(|device| device.write_mb_s),
        device_busy_share: device.map(|device| device.busy_share),
        client_cpu_s: client.map(|client| client.seconds),
        client_share: client.map(|client| client.share_of_client),
        client_limited: client.map(|client| client.limited),
        server_cpu_s: stage.server_cpu_s,
    };
    latency(&mut row, SERVICE, each.service_us.as_ref());
    latency(&mut row, RESPONSE, each.response_us.as_ref());
    row
}

fn operations_of(id: &str, position: u64, stage: &StageRecord) -> Vec<Fields> {
    let operations = stage.session_loop.operations.iter();
    operations
        .map(|operation| {
            let mut row = fields! {
                run_id: id,
                stage: position,
                name: operation.name.clone(),
                transactions: operation.transactions,
                rows: operation.rows,
                failed: operation.failed,
                unknown: operation.unknown,
                blocks_per_transaction: operation.blocks_per_transaction,
            };
            latency(&mut row, SERVICE, operation.service_us.as_ref());
            latency(&mut row, RESPONSE, operation.response_us.as_ref());
            row
        })
        .collect()
}

fn series_of(id: &str, position: u64, stage: &StageRecord) -> impl Iterator<Item = Fields> {
    (1_u64..).zip(&stage.session_loop.series).map(move |(at, point)| {
        fields! {
            run_id: id,
            stage: position,
            position: at,
            t_s: point.t_s,
            seconds: point.seconds,
            transactions: point.transactions,
            rows: point.rows,
            errors: point.errors,
            failed: point.failed,
            late: point.late,
            skipped: point.skipped,
            retries: point.retries,
            reconnects: point.reconnects,
            backlog: point.backlog,
            p50_us: point.p50_us,
            p99_us: point.p99_us,
            max_us: point.max_us,
            percentile_us: point.percentile_us,
            response_p50_us: point.response_p50_us,
            response_p99_us: point.response_p99_us,
            response_max_us: point.response_max_us,
        }
    })
}

fn errors_of(id: &str, position: u64, stage: &StageRecord) -> impl Iterator<Item = Fields> {
    stage.session_loop.errors.iter().map(move |error| {
        fields! {
            run_id: id,
            stage: position,
            sqlstate: error.sqlstate.clone(),
            count: error.count,
            retried: error.retried,
            attempts_s: error.attempts_s,
            without_success_s: error.without_success_s,
            sample: error.sample.clone(),
        }
    })
}

fn access(id: &str, position: u64, access: &AccessRecord) -> Fields {
    fields! {
        run_id: id,
        position: position,
        stage: access.stage.clone(),
        statement: access.statement.clone(),
        moment: access.moment.clone(),
        expected: access.expected.clone(),
        found: access.found.clone(),
        as_expected: access.held,
        sessions: access.sessions,
        error: access.error.clone(),
    }
}

fn check(id: &str, position: u64, check: &Check) -> Fields {
    fields! {
        run_id: id,
        position: position,
        name: check.name.clone(),
        expected: check.expected.clone(),
        found: check.found.clone(),
        passed: check.held,
        unresolved: check.unresolved,
        unknown: check.unknown,
    }
}
