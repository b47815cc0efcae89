//! PGIO's report: the settings, a table of the sessions, `pg_stat_database` before and after the run, and the line with
//! RIOPS and `CACHE_HITS`. All block counts are measured.

use std::fmt::Write as _;

use crate::form::{Form, Rendered};
use crate::subjects::run::printed;
use crate::words;
use riops_model::plan::{DatasetPlan, RowsDataset, RowsRun};
use riops_model::record::{DatabaseCounters, Record, SessionRecord, StageRecord};
use riops_model::units::text::one_line;

/// Columns of the table of the sessions.
const SESSION_COLUMNS: [&str; 8] = [
    "mypid",
    "loop_iterations",
    "sql_selects",
    "sql_updates",
    "sql_select_max_tm",
    "sql_update_max_tm",
    "select_blk_touch_cnt",
    "update_blk_touch_cnt",
];
/// Blocks in one megabyte.
const BLOCKS_PER_MB: u64 = 128;

/// The text report, followed by PGIO's report.
pub(crate) const FORM: Form = Form::new(
    "pgio",
    |plan| plan.work.get::<RowsRun>().is_some(),
    |record, extras| Ok(Rendered::Text(printed(record, extras) + "\n" + &pgio_text(record))),
);

/// Returns PGIO's report of every stage.
fn pgio_text(record: &Record) -> String {
    record.stages.iter().map(|stage| stage_text(record, stage)).collect()
}

fn stage_text(record: &Record, stage: &StageRecord) -> String {
    let used = record.used_dataset();
    let tables = used.as_ref().map_or(1, |used| words::of_dataset(used).tables());
    let threads = threads_each(stage, tables);
    let mut text = settings(record, stage, tables, used.as_ref());
    let (sessions, count) = sessions(stage);
    text += &sessions;
    if count > 0 {
        let plural = if count == 1 { "" } else { "s" };
        let _ = writeln!(text, "({count} row{plural})");
    }
    text.push('\n');
    let counters = stage.database.as_ref().and_then(|database| database.before.zip(database.after));
    let Some((before, after)) = counters else {
        text.push_str("cannot report RIOPS: pg_stat_database could not be read\n");
        return text;
    };
    let database = &one_line(&record.target.database);
    text.push_str(&counters_lines(database, &before, &after));
    // The counters cover the whole stage; without a warm-up that is the measurement.
    let share = if record.plan.warmup_s > 0.0 { measured_share(stage) } else { 1.0 };
    let rate = |from: u64, to: u64| {
        to.saturating_sub(from) as f64 * share / stage.seconds.max(f64::MIN_POSITIVE)
    };
    let _ = writeln!(
        text,
        "DBNAME:  {database}. {tables} schemas, {threads} threads(each). Run time: {:.0} seconds. RIOPS >{:.0}< CACHE_HITS/s >{:.0}<",
        stage.seconds,
        rate(before.blks_read, after.blks_read),
        rate(before.blks_hit, after.blks_hit),
    );
    if record.plan.warmup_s > 0.0 {
        text.push_str(
            "BEFORE and AFTER include the warm-up; the sessions, RIOPS and CACHE_HITS do not.\n",
        );
    }
    text
}

/// Returns the number of sessions of each table.
fn threads_each(stage: &StageRecord, tables: u32) -> u32 {
    stage.sessions / tables.max(1)
}

/// The lines that PGIO prints before it starts the sessions.
fn settings(
    record: &Record,
    stage: &StageRecord,
    tables: u32,
    used: Option<&DatasetPlan>,
) -> String {
    let mut text = String::new();
    let started = stage.started_at.unwrap_or(record.started_at);
    let _ = writeln!(text, "Date: {}", started.strftime("%a %b %e %H:%M:%S UTC %Y"));
    let _ = writeln!(text, "Database connect string: \"{}\".", one_line(&record.target.database));
    let buffers = record.target.settings.get("shared_buffers").map_or("unknown", String::as_str);
    let _ = writeln!(text, "Shared buffers: {}.", one_line(buffers));
    let threads = threads_each(stage, tables);
    let blocks = used.and_then(DatasetPlan::get::<RowsDataset>).map_or(0, |rows| rows.rows);
    let _ = writeln!(
        text,
        "Testing {tables} schemas with {threads} thread(s) accessing {}M ({blocks} blocks) of each schema.\n",
        blocks / BLOCKS_PER_MB,
    );
    text
}

/// Returns the share of the stage's transactions that are in the measurement, not in warm-up or drain.
fn measured_share(stage: &StageRecord) -> f64 {
    let operations = stage.session_loop.operations.iter();
    let all: u64 = operations.map(|operation| operation.acknowledged_transactions).sum();
    stage.transactions as f64 / all.max(1) as f64
}

/// Returns the tables of the sessions, which PGIO writes to `pgio_session_detail.out`.
pub fn pgio_sessions(record: &Record) -> String {
    record.stages.iter().map(|stage| sessions(stage).0).collect()
}

/// Returns the table of the sessions, and their number; 0 if they are too many to list.
fn sessions(stage: &StageRecord) -> (String, usize) {
    let mut rows = Vec::new();
    for session in &stage.session_loop.session_details {
        let figures = |name: &str| operation(stage, session, name);
        let ((selects, select_us, select_blocks), (updates, update_us, update_blocks)) =
            (figures("read"), figures("update"));
        let blocks = |blocks: Option<f64>| {
            blocks.map_or_else(|| "-".to_owned(), |blocks| format!("{blocks:.0}"))
        };
        rows.push([
            session.server_process.to_string(),
            (selects + updates).to_string(),
            selects.to_string(),
            updates.to_string(),
            format!("{:.6}", select_us / 1e6),
            format!("{:.6}", update_us / 1e6),
            blocks(select_blocks),
            blocks(update_blocks),
        ]);
    }
    let text =
        if rows.is_empty() { "too many sessions to list\n".to_owned() } else { as_psql(&rows) };
    (text, rows.len())
}

/// Returns the rows as psql prints them.
fn as_psql(rows: &[[String; 8]]) -> String {
    let width = |column: usize, name: &str| {
        let values = rows.iter().filter_map(|row| Some(row.get(column)?.len()));
        values.max().unwrap_or(0).max(name.len())
    };
    let widths: Vec<usize> =
        SESSION_COLUMNS.iter().enumerate().map(|(column, name)| width(column, name)).collect();
    let joined = |cells: Vec<String>, between: &str| cells.join(between) + "\n";
    let named = SESSION_COLUMNS.iter().zip(&widths);
    let mut text = joined(named.map(|(name, &width)| format!(" {name:^width$} ")).collect(), "|");
    text += &joined(widths.iter().map(|width| "-".repeat(width + 2)).collect(), "+");
    for row in rows {
        let cells = row.iter().zip(&widths);
        text += &joined(cells.map(|(cell, &width)| format!(" {cell:>width$} ")).collect(), "|");
    }
    text
}

/// Returns the transactions of one kind, the longest in microseconds, and the blocks that they accessed.
fn operation(stage: &StageRecord, session: &SessionRecord, name: &str) -> (u64, f64, Option<f64>) {
    let of_session = session.operations.iter().find(|operation| operation.name == name);
    let (transactions, max_us) = of_session.map_or((0, 0.0), |operation| {
        (operation.transactions, operation.max_us.unwrap_or_default())
    });
    let of_stage = stage.session_loop.operations.iter().find(|operation| operation.name == name);
    let blocks_per_transaction =
        of_stage.map_or(Some(0.0), |operation| operation.blocks_per_transaction);
    (transactions, max_us, blocks_per_transaction.map(|blocks| blocks * transactions as f64))
}

fn counters_lines(database: &str, before: &DatabaseCounters, after: &DatabaseCounters) -> String {
    let width = database.len().max("datname".len());
    let row = |start: &str, name: &str, cells: [String; 5]| {
        let cells = cells.map(|cell| format!(" | {cell:>12}")).concat();
        format!("{start:<8} {name:<width$}{cells}\n")
    };
    let names = ["blks_hit", "blks_read", "tup_returned", "tup_fetched", "tup_updated"];
    let mut text =
        "pg_stat_database stats:\n".to_owned() + &row("", "datname", names.map(Into::into));
    for (moment, counters) in [("BEFORE:", before), ("AFTER:", after)] {
        let DatabaseCounters {
            blks_hit, blks_read, tup_returned, tup_fetched, tup_updated, ..
        } = counters;
        let counts = [blks_hit, blks_read, tup_returned, tup_fetched, tup_updated];
        text += &row(moment, database, counts.map(ToString::to_string));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example_record;
    use riops_model::record::{DatabaseUse, SessionOperation};

    fn record() -> Record {
        let mut record = example_record();
        let stage = &mut record.stages[0];
        let session = |position: u64| SessionRecord {
            number: position,
            server_process: 4_000 + i32::try_from(position).unwrap(),
            node: None,
            operations: vec![SessionOperation {
                name: "read".to_owned(),
                transactions: 6_000,
                rows: 6_000_000,
                max_us: Some(4100.0),
                execution_s: 9.9,
            }],
        };
        stage.session_loop.session_details = vec![session(1), session(2)];
        stage.session_loop.operations[0].blocks_per_transaction = Some(1003.5);
        let counters = |blks_hit, blks_read| DatabaseCounters {
            blks_hit,
            blks_read,
            tup_returned: 7,
            ..DatabaseCounters::default()
        };
        stage.database = Some(DatabaseUse {
            before: Some(counters(1_000, 50)),
            after: Some(counters(13_000_000, 1_200_050)),
            ..DatabaseUse::default()
        });
        record
    }

    #[test]
    fn the_report_has_sessions_counters_and_the_riops_line() {
        insta::assert_snapshot!(pgio_text(&record()));
    }

    #[test]
    fn omits_block_counts_that_were_not_measured() {
        let mut record = record();
        record.stages[0].session_loop.operations[0].blocks_per_transaction = None;
        record.stages[0].database = None;
        let text = pgio_text(&record);
        assert!(
            text.lines()
                .nth(7)
                .unwrap()
                .ends_with("|                    - |                    0 "),
            "{text}"
        );
        assert!(text.contains("could not be read") && !text.contains("RIOPS >"));
        let sessions = pgio_sessions(&record);
        assert!(text.contains(&format!("{sessions}(2 rows)\n")) && !sessions.contains("rows)"));
    }
}
