//! A row per interval of each stage.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::table::{Column, ExportError, after, column, csv_columns, csv_table, stages};
use riops_model::figure::{
    COUNTS, Count, ERRORS, FAILED, LATE, RECONNECTS, RETRIES, SKIPPED, Statistic, per_second,
};
use riops_model::record::{LatencyKind, Point, Record};
use riops_model::summary::StageRow;

/// A value read at most this long after the end of an interval counts as the value at its end, in seconds.
const NEAR_S: f64 = 0.05;

/// An interval of a stage.
struct Interval<'a> {
    row: StageRow<'a>,
    /// Keys of the counts that are known for the stage. Computed once: a series may have 100,000 intervals.
    known: &'a [&'static str],
    point: &'a Point,
}

pub(super) fn table(records: &[Record]) -> Result<String, ExportError> {
    let known = |row: &StageRow<'_>| -> Vec<&'static str> {
        let known = COUNTS.iter().filter(|count| count.is_known(row.record, row.stage));
        known.map(|count| count.key).collect()
    };
    let rows: Vec<_> = stages(records).map(|row| (row, known(&row))).collect();
    let intervals = rows.iter().flat_map(|(row, known)| {
        let points = row.stage.session_loop.series.iter();
        points.map(move |point| Interval { row: *row, known, point })
    });
    let mut columns = columns();
    columns.extend(probes(records));
    csv_table(&columns, intervals)
}

fn columns<'a>() -> Vec<Column<Interval<'a>>> {
    let mut columns = csv_columns! { interval: Interval<'a> => {
        run_id: interval.row.record.id.to_string(),
        workload: &interval.row.record.workload,
        label: &interval.row.record.label,
        stage: interval.row.ordinal,
        stage_name: &interval.row.stage.name,
        ended_at: interval.ended_at().map(|at| at.to_string()),
        t_s: interval.point.t_s,
        seconds: interval.point.seconds,
        transactions: interval.point.transactions,
        rows: interval.row.has_rows().then_some(interval.point.rows),
        transactions_per_s: per_second(interval.point.transactions, interval.point),
        rows_per_s: per_second(interval.point.rows, interval.point).filter(|_| interval.row.has_rows()),
    }};
    columns.extend([&ERRORS, &FAILED, &LATE, &SKIPPED, &RETRIES].map(count));
    columns.extend(
        csv_columns! { interval: Interval<'a> => { backlog_starts: interval.point.backlog }},
    );
    columns.push(count(&RECONNECTS));
    columns.extend(csv_columns! { interval: Interval<'a> => {
        read_statements: interval.statements(interval.point.queries.read),
        write_statements: interval.statements(interval.point.queries.write),
        other_statements: interval.statements(interval.point.queries.other),
        percentile: interval.point.percentile_us.map(|_| interval.row.record.plan.percentile),
        percentile_us: interval.point.percentile_us,
    }});
    for kind in LatencyKind::ALL {
        columns.extend(Statistic::of_series().map(|statistic| {
            column(statistic.column(kind), move |interval: &Interval<'a>| {
                statistic.of_point(interval.point, kind)
            })
        }));
    }
    columns.extend(csv_columns! { interval: Interval<'a> => {
        node_transactions: nodes(interval.point),
        mean_us: interval.point.mean_us,
    }});
    columns
}

/// The values of the queries of the user at the ends of the intervals.
fn probes<'a>(records: &[Record]) -> Vec<Column<Interval<'a>>> {
    let all =
        records.iter().flat_map(|record| &record.stages).flat_map(|stage| &stage.query_series);
    let names: BTreeSet<String> = all.map(|series| series.name.clone()).collect();
    let probe = |name: String| {
        column(format!("probe_{name}"), move |interval: &Interval<'a>| {
            let mut series = interval.row.stage.query_series.iter();
            series.find(|series| series.name == name)?.at(interval.point.t_s + NEAR_S)
        })
    };
    names.into_iter().map(probe).collect()
}

/// The column of a count.
fn count<'a>(count: &'static Count) -> Column<Interval<'a>> {
    column(count.key, move |interval: &Interval<'a>| {
        (count.in_interval)(interval.point).filter(|_| interval.known.contains(&count.key))
    })
}

impl Interval<'_> {
    /// The end of the interval, if the start of the stage is known.
    fn ended_at(&self) -> Option<Timestamp> {
        after(self.row.stage.started_at?, self.point.t_s)
    }

    /// Records without any statement did not count them.
    fn statements(&self, count: u64) -> Option<u64> {
        (!self.row.stage.session_loop.queries.is_none()).then_some(count)
    }
}

/// The transactions of each node, separated by semicolons.
fn nodes(point: &Point) -> String {
    point.nodes.iter().map(ToString::to_string).collect::<Vec<_>>().join(";")
}
