//! A row per stage: the columns of its run, and then its own.

use super::table::{Column, ExportError, column, csv_columns, csv_table, stages};
use riops_model::plan::Driver;
use riops_model::record::{Record, Validity};
use riops_model::summary::{STAGE_COLUMNS, StageRow};

pub(super) fn table<'a>(records: &'a [Record]) -> Result<String, ExportError> {
    let mut columns = of_run();
    columns.extend(STAGE_COLUMNS.iter().map(|entry| -> Column<StageRow<'a>> {
        column(entry.joined_name(), |row| entry.value(row))
    }));
    csv_table(&columns, stages(records))
}

fn of_run<'a>() -> Vec<Column<StageRow<'a>>> {
    csv_columns! { row: StageRow<'a> => {
        run_id: row.record.id.to_string(),
        run_started_at: row.record.started_at,
        workload: &row.record.workload,
        label: &row.record.label,
        tags: tags(row.record),
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
        workers: known(row.record.plan.workers),
        driver: row.record.client.driver.map(Driver::as_str),
        protocol: measured(row, row.record.plan.protocol.as_str()),
        rate_per_s: row.record.plan.schedule.per_s(),
        requested_update_percent: row.record.plan.work.traits().update_percent,
        distribution: row.record.plan.work.traits().distribution.map(|keys| keys.to_string()),
        seed: measured(row, row.record.plan.seed),
        warmup_s: measured(row, row.record.plan.warmup_s),
    }}
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

/// An imported run may not know its threads.
fn known(count: u32) -> Option<u32> {
    (count > 0).then_some(count)
}

/// Returns a value of the plan, which an imported run does not have.
fn measured<T>(row: &StageRow<'_>, value: T) -> Option<T> {
    row.record.imported.is_none().then_some(value)
}
