//! A row per interval of each stage.

use jiff::{SignedDuration, Timestamp};

use super::super::words;
use super::cell::{Cell, Column, table as csv_table};
use super::error::ExportError;
use super::stages::Row;
use crate::record::Point;

/// An interval of a stage.
struct Interval<'a> {
    row: &'a Row<'a>,
    counted: Counted,
    point: &'a Point,
}

/// Which events any interval of the stage counts. Known once for all intervals: a series may have 100,000.
#[derive(Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is a column")]
struct Counted {
    errors: bool,
    failed: bool,
    late: bool,
    skipped: bool,
    retries: bool,
    reconnects: bool,
}

impl Counted {
    fn of(row: &Row<'_>) -> Self {
        // Of an imported run, no such event in the whole stage may also mean unknown.
        let is_measured = row.record.imported.is_none();
        let is_known = |count| is_measured || row.has_any(count);
        // Without a latency limit, no transaction is late.
        let is_limited = row.record.plan.latency_limit.is_some();
        Self {
            errors: is_known(|point| point.errors),
            failed: is_known(|point| point.failed),
            late: is_limited || row.has_any(|point| point.late),
            skipped: is_limited || row.has_any(|point| point.skipped),
            retries: is_known(|point| point.retries),
            reconnects: is_known(|point| point.reconnects),
        }
    }
}

pub(super) fn table(records: &[crate::record::Record]) -> Result<String, ExportError> {
    let rows: Vec<Row<'_>> = Row::all(records).collect();
    let intervals = rows.iter().flat_map(|row| {
        let counted = Counted::of(row);
        let points = row.stage.session_loop.series.iter();
        points.map(move |point| Interval { row, counted, point })
    });
    csv_table(&columns(), intervals)
}

fn columns<'a>() -> [Column<Interval<'a>>; 31] {
    [
        ("run_id", |each| each.row.record.id.to_string().into()),
        ("workload", |each| each.row.record.workload.as_str().into()),
        ("label", |each| each.row.record.label.as_deref().into()),
        ("stage", |each| each.row.number.into()),
        ("stage_name", |each| each.row.stage.name.as_str().into()),
        ("ended_at", |each| ended_at(each).map(|at| at.to_string()).into()),
        ("t_s", |each| each.point.t_s.into()),
        ("seconds", |each| each.point.seconds.into()),
        ("transactions", |each| each.point.transactions.into()),
        ("rows", |each| of_rows(each, each.point.rows)),
        ("transactions_per_s", |each| per_s(each.point.transactions, each.point.seconds).into()),
        ("rows_per_s", |each| {
            per_s(each.point.rows, each.point.seconds)
                .map_or(Cell::Absent, |rate| of_rows(each, rate))
        }),
        ("errors", |each| each.counted.errors.then_some(each.point.errors).into()),
        ("failed_transactions", |each| each.counted.failed.then_some(each.point.failed).into()),
        ("late_transactions", |each| each.counted.late.then_some(each.point.late).into()),
        ("skipped_starts", |each| each.counted.skipped.then_some(each.point.skipped).into()),
        ("retries", |each| each.counted.retries.then_some(each.point.retries).into()),
        ("backlog_starts", |each| each.point.backlog.into()),
        ("reconnects", |each| each.counted.reconnects.then_some(each.point.reconnects).into()),
        ("read_statements", |each| queries(each, each.point.queries.read)),
        ("write_statements", |each| queries(each, each.point.queries.write)),
        ("other_statements", |each| queries(each, each.point.queries.other)),
        ("percentile", |each| {
            each.point.percentile_us.map(|_| each.row.record.plan.percentile).into()
        }),
        ("percentile_us", |each| each.point.percentile_us.into()),
        ("service_p50_us", |each| each.point.p50_us.into()),
        ("service_p99_us", |each| each.point.p99_us.into()),
        ("service_max_us", |each| each.point.max_us.into()),
        ("response_p50_us", |each| each.point.response_p50_us.into()),
        ("response_p99_us", |each| each.point.response_p99_us.into()),
        ("response_max_us", |each| each.point.response_max_us.into()),
        ("node_transactions", |each| nodes(each.point)),
    ]
}

/// The end of the interval, if the start of the stage is known.
fn ended_at(each: &Interval<'_>) -> Option<Timestamp> {
    let start = each.row.stage.started_at?;
    let elapsed = SignedDuration::try_from_secs_f64(each.point.t_s).ok()?;
    start.checked_add(elapsed).ok()
}

fn per_s(count: u64, seconds: f64) -> Option<f64> {
    (seconds > 0.0).then(|| count as f64 / seconds)
}

fn of_rows(each: &Interval<'_>, value: impl Into<Cell>) -> Cell {
    if words::of(&each.row.record.plan.work).has_rows() { value.into() } else { Cell::Absent }
}

/// Records without any statement did not count them.
fn queries(each: &Interval<'_>, count: u64) -> Cell {
    let counted = !each.row.stage.session_loop.queries.is_none();
    counted.then_some(count).into()
}

/// The transactions of each node, separated by semicolons.
fn nodes(point: &Point) -> Cell {
    point.nodes.iter().map(ToString::to_string).collect::<Vec<_>>().join(";").into()
}
