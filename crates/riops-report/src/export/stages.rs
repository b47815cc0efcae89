//! A row per stage, with the figures that tell runs apart and compare them.

use super::table::{Column, ExportError, Row, column, csv_columns, csv_table};
use riops_model::figure::{Figure, STATISTICS, Statistic, Summary};
use riops_model::plan::Driver;
use riops_model::record::{LatencyKind, Record, Status, Validity};

pub(super) fn table(records: &[Record]) -> Result<String, ExportError> {
    let mut columns = settings();
    columns.extend(counts());
    columns.extend(LatencyKind::ALL.into_iter().flat_map(latencies));
    columns.extend(details());
    columns.extend(costs());
    csv_table(&columns, Row::all(records))
}

fn settings<'a>() -> Vec<Column<Row<'a>>> {
    csv_columns! { row: Row<'a> => {
        run_id: row.record.id.to_string(),
        started_at: row.record.started_at.to_string(),
        workload: &row.record.workload,
        label: &row.record.label,
        tags: tags(row.record),
        stage: row.ordinal,
        stage_name: &row.stage.name,
        stage_started_at: row.stage.started_at.map(|at| at.to_string()),
        status: row.record.status.as_str(),
        valid: valid(row.record),
        reasons: row.record.verdict.reasons.join("; "),
        warnings: warnings(row.record),
        imported_from: row.record.imported.as_ref().map(|imported| &imported.format),
        server: server(row.record),
        server_version: &row.record.target.server_version,
        database: &row.record.target.database,
        client_host: &row.record.client.machine.host,
        riops_version: &row.record.client.riops_version,
        kind: row.stage.kind.as_str(),
        sessions: known(row.stage.sessions),
        workers: known(row.record.plan.workers),
        driver: row.record.client.driver.map(Driver::as_str),
        protocol: measured(row, row.record.plan.protocol.as_str()),
        requested_transactions_per_s: row.record.plan.schedule.per_s(),
        batch_rows: row.stage.session_loop.batch,
        update_percent: row.record.plan.work.traits().update_percent,
        distribution: row.record.plan.work.traits().distribution.map(|keys| keys.to_string()),
        method: &row.stage.session_loop.method,
        seed: measured(row, row.record.plan.seed),
        warmup_s: measured(row, row.record.plan.warmup_s),
        seconds: row.stage.seconds,
    }}
}

fn counts<'a>() -> Vec<Column<Row<'a>>> {
    csv_columns! { row: Row<'a> => {
        transactions: row.stage.transactions,
        rows: of_rows(row, row.stage.rows),
        statements: of_statements(row, row.stage.statements),
        transactions_per_s: row.stage.throughput.transactions_per_s,
        rows_per_s: of_rows(row, row.stage.throughput.rows_per_s),
        statements_per_s: of_statements(row, row.stage.throughput.statements_per_s),
        failed_transactions: row.stage.session_loop.outcomes.map(|outcomes| outcomes.failed),
        unknown_transactions: row.stage.session_loop.outcomes.map(|outcomes| outcomes.unknown),
        errors: of_loop(row, row.stage.session_loop.error_count()),
        retries: of_loop(row, row.stage.session_loop.retries),
        reconnects: of_loop(row, row.stage.session_loop.reconnects),
        late_transactions: row.stage.session_loop.late.and_then(|late| late.transactions),
        skipped_starts: row.stage.session_loop.skipped_starts(),
        waiting_starts: row.stage.session_loop.schedule.as_ref().map(|schedule| schedule.waiting),
        unanswered_transactions: unanswered(row),
        longest_pause_s: row.stage.session_loop.longest_pause_s,
    }}
}

/// The columns of the service or the response time.
fn latencies<'a>(kind: LatencyKind) -> Vec<Column<Row<'a>>> {
    let count = match kind {
        LatencyKind::Service => "service_count",
        LatencyKind::Response => "response_count",
    };
    let summary = move |row: &Row<'a>| row.stage.session_loop.summary_us(kind);
    let mut columns = vec![column(count, move |row| summary(row).map(|latency| latency.count))];
    columns.extend(STATISTICS.iter().map(|statistic| {
        column(statistic.column(kind), move |row: &Row<'a>| {
            statistic.of_loop(&row.stage.session_loop, kind)
        })
    }));
    columns.push(column(Statistic::bound_column(kind), move |row| {
        summary(row).and_then(|summary| summary.lower_bound_from)
    }));
    columns
}

fn details<'a>() -> Vec<Column<Row<'a>>> {
    csv_columns! { row: Row<'a> => {
        liops: row.stage.io.as_ref().and_then(|io| io.liops),
        piops: row.stage.io.as_ref().and_then(|io| io.piops),
        buffer_hit_ratio: row.stage.io.as_ref().and_then(|io| io.hit_ratio),
        blocks_per_row: row.stage.io.as_ref().and_then(|io| io.blocks_per_row),
        wal_mb_per_s: row.stage.io.as_ref().and_then(|io| io.wal_mb_s),
        client_cpu_s: row.stage.client_cpu.as_ref().map(|cpu| cpu.seconds),
        server_cpu_s: row.stage.server_cpu_s,
        steady: row.stage.session_loop.steadiness.map(|steadiness| steadiness.steady),
        bottleneck: bottleneck(row),
    }}
}

/// What a transaction and a row cost.
fn costs<'a>() -> Vec<Column<Row<'a>>> {
    let both = |figure: Figure| -> [Column<Row<'a>>; 2] {
        let value = move |row: &Row<'a>| figure.value(row.record, row.stage);
        let of_row = move |row: &Row<'a>| {
            let rows = row.stage.cost.as_ref()?.rows;
            Some(value(row)? / (rows > 0.0 && row.has_rows()).then_some(rows)?)
        };
        let name = figure.as_str();
        [column(name, value), column(name.replace("transaction", "row"), of_row)]
    };
    Figure::costs().flat_map(both).collect()
}

/// Transactions in flight at the end of the measurement.
fn unanswered(row: &Row<'_>) -> Option<u64> {
    let drained = &row.stage.session_loop.drained;
    of_loop(row, drained.transactions + drained.lost)
}

/// `key=value`, separated by semicolons.
fn tags(record: &Record) -> String {
    let tags = record.tags.iter().map(|(key, value)| format!("{key}={value}"));
    tags.collect::<Vec<_>>().join(";")
}

/// Empty for an imported run, which is neither.
fn valid(record: &Record) -> Option<bool> {
    match record.validity() {
        Validity::Valid => Some(true),
        Validity::Invalid => Some(false),
        Validity::NotVerified => None,
    }
}

fn warnings(record: &Record) -> String {
    let warnings = record.verdict.warnings.iter().map(riops_model::record::Warning::labeled);
    warnings.collect::<Vec<_>>().join("; ")
}

/// The flavor of the server, if its version is known.
fn server(record: &Record) -> Option<String> {
    let target = &record.target;
    (!target.server_version.is_empty()).then(|| target.flavor.to_string())
}

/// An imported run may not know its sessions and threads.
fn known(count: u32) -> Option<u32> {
    (count > 0).then_some(count)
}

/// Returns a value of the plan, which an imported run does not have.
fn measured<T>(row: &Row<'_>, value: T) -> Option<T> {
    row.record.imported.is_none().then_some(value)
}

fn of_rows<T>(row: &Row<'_>, value: T) -> Option<T> {
    row.has_rows().then_some(value)
}

fn of_statements<T>(row: &Row<'_>, value: T) -> Option<T> {
    (!row.record.plan.work.traits().has_no_statements).then_some(value)
}

/// Returns a count that exists only for a session loop. In an imported run, 0 may also mean unknown.
fn of_loop(row: &Row<'_>, value: u64) -> Option<u64> {
    let is_known = match row.record.imported {
        Some(_) => value > 0,
        None => row.stage.session_loop.outcomes.is_some(),
    };
    is_known.then_some(value)
}

/// Returns a word for the bottleneck, stable across releases.
fn bottleneck(row: &Row<'_>) -> Option<&'static str> {
    let summary = Summary { record: row.record, stage: row.stage };
    let is_whole = row.record.status != Status::Failed;
    (summary.has_bottleneck() && is_whole).then(|| summary.bottleneck().as_str())
}
