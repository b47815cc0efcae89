//! What a run did and on what, in words, and ysql-bench's block of results.

use super::format::{count, duration_us, percent};
use super::model::Summary;
use super::terminal::Block;
use super::{cbc, oltp};
use crate::plan::{
    Contents, DatasetPlan, Distribution, Layout, LoadDataset, LoadRun, Method, PointRun,
    RowsDataset, RowsRun, UpdateShare, WorkPlan,
};
use crate::record::{Record, SessionOperation, SessionRecord, StageRecord};

/// What the sessions did.
pub(super) fn work(work: &WorkPlan) -> String {
    match work {
        WorkPlan::Rows(run) => rows_work(run),
        WorkPlan::Load(run) => load_work(run),
        WorkPlan::Point(run) => point_work(run),
        WorkPlan::Oltp(run) => format!("{}{}", oltp::work(run), keys_text(run.distribution)),
        WorkPlan::Cbc(run) => cbc::work(run),
    }
}

fn rows_work(rows: &RowsRun) -> String {
    let mut parts = Vec::new();
    let study = rows.stages().len() > 1;
    let each =
        |batch: u64| if study { String::new() } else { format!(", {} each", rows_text(batch)) };
    if rows.reads() {
        let kind = if rows.index_only { "index-only reads" } else { "random row reads" };
        parts.push(format!("{kind}{}", each(rows.batch)));
    }
    if rows.updates() {
        let of = match rows.update_share {
            UpdateShare::Rows => "rows",
            UpdateShare::Transactions => "transactions",
        };
        let share = match rows.update_percent {
            100 => String::new(),
            percent => format!(" for {percent} % of the {of}"),
        };
        parts.push(format!("updates{}{share}", each(rows.update_batch())));
    }
    format!("{}{}", parts.join(" and "), keys_text(rows.distribution))
}

fn load_work(run: &LoadRun) -> String {
    let methods: Vec<_> = run.stages().iter().map(|stage| stage.method.as_str()).collect();
    let transactions = if run.non_transactional { ", without transactions" } else { "" };
    let is_file = |stage: &LoadRun| stage.method == Method::CopyFile;
    let files = run.stages().iter().filter(|stage| is_file(stage)).count();
    let batches = match (files, methods.len() - files) {
        (_, 0) => "a file a session, each a commit".to_owned(),
        (0, _) => format!("{} a batch, each batch a commit", rows_text(run.batch_size)),
        _ => format!(
            "{} a batch (copy-file: a file a session), each batch a commit",
            rows_text(run.batch_size)
        ),
    };
    format!("load by {}, {batches}{transactions}", methods.join(", then "))
}

fn point_work(run: &PointRun) -> String {
    let operations = match run.op.update_percent {
        0 => "selects of a row by its primary key".to_owned(),
        100 => "updates of a row by its primary key".to_owned(),
        update => {
            format!("{} % selects and {update} % updates of a row by its primary key", 100 - update)
        }
    };
    let length = run
        .field_length
        .map_or_else(String::new, |length| format!("; updates write texts of {length} characters"));
    format!("{operations}{length}{}", keys_text(run.distribution))
}

fn keys_text(distribution: Distribution) -> String {
    match distribution {
        Distribution::Uniform => String::new(),
        other => format!("; keys {other}"),
    }
}

fn rows_text(rows: u64) -> String {
    format!("{} row{}", count(rows), if rows == 1 { "" } else { "s" })
}

/// What was prepared.
pub(super) fn dataset(dataset: &DatasetPlan) -> String {
    match dataset {
        DatasetPlan::Rows(dataset) => rows_dataset(dataset),
        DatasetPlan::Load(dataset) => load_dataset(dataset),
        DatasetPlan::Oltp(dataset) => oltp::dataset(dataset),
        DatasetPlan::Cbc(dataset) => cbc::dataset(dataset),
    }
}

fn rows_dataset(dataset: &RowsDataset) -> String {
    let key = if dataset.primary_key { ", primary key" } else { "" };
    let filler = match dataset.filler {
        1 => String::new(),
        filler => format!(", filler {filler}"),
    };
    let layout = match dataset.layout {
        Layout::Packed => "",
        Layout::Block => ", one row to a block",
    };
    format!(
        "{} table{} × {} rows, {}{key}{layout}{filler}",
        dataset.tables,
        if dataset.tables == 1 { "" } else { "s" },
        count(dataset.rows),
        dataset.order,
    )
}

fn load_dataset(dataset: &LoadDataset) -> String {
    let texts = match dataset.contents {
        Contents::Seed => "made by riops",
        Contents::Unknown => "made by the server or in files",
    };
    format!(
        "riops.{}: {} rows with four texts of {} characters, {texts}",
        dataset.table_name,
        count(dataset.rows),
        dataset.field_length
    )
}

/// ysql-bench's block of results: of a load by rows, of point access by statements.
pub(super) fn totals(block: &mut Block, summary: &Summary<'_>) {
    let (stage, plan) = (summary.stage, &summary.record.plan);
    let (unit, number, non_transactional) = match &plan.work {
        WorkPlan::Rows(_) | WorkPlan::Cbc(_) => return,
        WorkPlan::Oltp(_) => return oltp::totals(block, summary),
        WorkPlan::Load(run) => ("row", stage.rows, run.non_transactional),
        WorkPlan::Point(run) => ("statement", stage.statements, run.non_transactional),
    };
    let database_s = stage.database_s.unwrap_or(0.0);
    // With a pipeline a session is in the database several times at once.
    let at_most = f64::from(stage.sessions) * f64::from(plan.pipeline);
    let mut lines = vec![
        ("wallclock time".to_owned(), seconds(stage.seconds)),
        (
            "total database time".to_owned(),
            format!(
                "{}, {} of wallclock time ({} if every session were always in the database)",
                seconds(database_s),
                percent(database_s / stage.seconds.max(f64::MIN_POSITIVE)),
                percent(at_most)
            ),
        ),
        (format!("{unit}s per session"), per_session(stage, number, unit == "row")),
        ("sessions".to_owned(), count(stage.sessions.into())),
    ];
    if let WorkPlan::Load(_) = &plan.work {
        lines.push(("batch".to_owned(), stage.batch.map_or_else(|| "-".to_owned(), count)));
    }
    lines.push((format!("total {unit}s"), count(number)));
    lines.push(("non-transactional".to_owned(), non_transactional.to_string()));
    if number > 0 {
        let each = |seconds: f64| duration_us(seconds * 1e6 / number as f64);
        lines.push((format!("wallclock time per {unit}"), each(stage.seconds)));
        lines.push((format!("database time per {unit}"), each(database_s)));
    }
    if let Some(bytes) = stage.row_bytes {
        lines.push(("bytes of a row".to_owned(), count(bytes)));
    }
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (position, (name, value)) in lines.iter().enumerate() {
        let label = if position == 0 { "result" } else { "" };
        block.line(label, &format!("{name:<width$}  {value}"));
    }
}

/// What one latency of a stage is of.
pub(super) fn batch_text(record: &Record, stage: &StageRecord) -> String {
    match (&record.plan.work, stage.batch) {
        (WorkPlan::Load(_), Some(batch)) => format!("batch ({})", rows_text(batch)),
        (WorkPlan::Load(_), None) => "file".to_owned(),
        (WorkPlan::Point(_) | WorkPlan::Cbc(_), _) => "statement".to_owned(),
        (WorkPlan::Rows(_) | WorkPlan::Oltp(_), _) => "transaction".to_owned(),
    }
}

fn seconds(seconds: f64) -> String {
    format!("{seconds:.6} s")
}

/// What each session has: from the fewest to the most; on average, where the sessions are too many to
/// be kept.
fn per_session(stage: &StageRecord, number: u64, rows: bool) -> String {
    let own = |session: &SessionRecord| -> u64 {
        let of = |each: &SessionOperation| if rows { each.rows } else { each.transactions };
        session.operations.iter().map(of).sum()
    };
    let each = || stage.session_details.iter().map(own);
    match each().min().zip(each().max()) {
        None => format!("about {}", count(number / u64::from(stage.sessions.max(1)))),
        Some((least, most)) if least == most => count(least),
        Some((least, most)) => format!("{} to {}", count(least), count(most)),
    }
}
