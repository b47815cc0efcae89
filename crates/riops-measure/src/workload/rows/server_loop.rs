//! The loop in the server: generates the CALL of a session and parses its reports.
//!
//! The procedure is the one in `sql/ybio.sql`, which can also be used without riops. There must be only one
//! implementation.

use rand::RngExt;
use serde::Deserialize;

use super::generator::{OPERATION_UPDATE, increments};
use super::load::table_name;
use crate::workload::effects::TransactionEffects;
use crate::workload::keys::{Purpose, integer_part, stream};
use crate::workload::tables::Routines;
use crate::workload::{Call, LoopCounts, LoopReport, ServerLoop};
use riops_model::plan::{Plan, Protocol, RowsDataset, RowsRun, UpdateShare};
use riops_model::units::Nanos;
use riops_model::units::sql::literal;

const YBIO: &str = include_str!("../../../sql/ybio.sql");
/// Maximum number of update batches before the first report of the procedure.
const BATCHES_BEFORE_FIRST_REPORT: u64 = 10;

/// Returns the routines of the loop: the part of `ybio.sql` between the markers.
pub(super) fn routines() -> Routines {
    let part = YBIO.split("-- loop: ").nth(1).unwrap_or_default();
    Routines {
        names: &["ybio_loop", "ybio_report"],
        // Skips the rest of the marker line.
        sql: part.split_once('\n').map_or("", |(_, sql)| sql).to_owned(),
    }
}

/// The loop of one session.
#[derive(Debug)]
pub(super) struct RowsLoop {
    /// Number of the table, from 1.
    table: u32,
    rows: u64,
    run: RowsRun,
    prepared: bool,
    retries_max: u32,
    /// Argument of `setseed` in the server, from −1 to 1.
    seed: f64,
}

impl RowsLoop {
    pub(super) fn new(
        table: u32,
        dataset: &RowsDataset,
        run: &RowsRun,
        plan: &Plan,
        session: u32,
    ) -> Self {
        Self {
            table,
            rows: dataset.rows,
            run: run.clone(),
            prepared: plan.protocol == Protocol::Prepared,
            retries_max: plan.errors.max_retries,
            seed: stream(plan.seed, Purpose::Ranges, u64::from(session)).random_range(-1.0..1.0),
        }
    }
}

impl ServerLoop for RowsLoop {
    fn call_sql(&self, call: &Call<'_>) -> String {
        let limit =
            |bound: Option<u64>| bound.map_or_else(|| "null".to_owned(), |bound| bound.to_string());
        let until =
            call.until_s.map_or_else(|| "'infinity'".to_owned(), |until| format!("{until:.6}"));
        let explains: Vec<_> = call.explain_statements.iter().map(|sql| literal(sql)).collect();
        let explains = match explains.as_slice() {
            [] => "null".to_owned(),
            explains => format!("array[{}]", explains.join(", ")),
        };
        format!(
            "call riops.ybio_loop('{}', 'riops.{}', {}, {}, {}, {}, {}, {}, {}, {:.6}, {:.6}, {until}, {}, {}, {}, {}, {}, true, {explains}, null)",
            call.id,
            table_name(self.table),
            self.rows,
            self.run.batch,
            self.run.update_batch(),
            self.run.update_percent,
            self.run.update_share == UpdateShare::Rows,
            self.prepared,
            self.run.index_only,
            call.start_s,
            call.measure_s,
            limit(call.transactions),
            limit(call.rows),
            self.seed,
            call.report_s,
            self.retries_max,
        )
    }

    fn read(&self, report: &str) -> Option<LoopReport> {
        let report: Report = serde_json::from_str(report).ok()?;
        let All { batches, updates, read_rows, updated_rows } = report.all;
        let reads = batches.checked_sub(updates)?;
        // All keys exist: a range has as many rows as keys.
        let has_wrong_reads = reads * self.run.batch != read_rows;
        let has_wrong_updates = updates * self.run.update_batch() != updated_rows;
        // Without updates nothing is announced, and `announced` is the maximum of bigint.
        let rows_unknown = match self.run.update_percent {
            0 => 0,
            _ => report.lost_rows + report.announced.saturating_sub(updated_rows),
        };
        Some(LoopReport {
            intervals: report.intervals,
            ended_s: report.ended_s - report.measure_s,
            // In the order of the operations.
            measured: vec![report.reads.into_counts(), report.updates.into_counts()],
            committed: vec![(reads, read_rows), (updates, updated_rows)],
            rows_unknown,
            transactions_unknown: rows_unknown.div_ceil(self.run.update_batch()),
            conflicts: report.conflicts,
            deadlocks: report.deadlocks,
            drained: report.drained_us.map(nanos),
            wrong_replies: u64::from(has_wrong_reads) + u64::from(has_wrong_updates),
            plans: report.seen.unwrap_or_default().iter().map(ToString::to_string).collect(),
        })
    }

    fn before_first_report(&self) -> (u64, u64) {
        let batches = if self.run.updates() { BATCHES_BEFORE_FIRST_REPORT } else { 0 };
        (batches, batches * self.run.update_batch())
    }

    fn effects(&self, operation: usize, rows: u64) -> TransactionEffects {
        let counted = operation == OPERATION_UPDATE && !self.run.index_only;
        if counted { increments(self.table, rows) } else { TransactionEffects::default() }
    }
}

/// The report of `ybio_loop`.
#[derive(Deserialize)]
struct Report {
    intervals: usize,
    measure_s: f64,
    ended_s: f64,
    reads: Counts,
    updates: Counts,
    all: All,
    lost_rows: u64,
    announced: u64,
    conflicts: u64,
    deadlocks: u64,
    /// Service time of a transaction that ended after the measurement, in microseconds.
    drained_us: Option<f64>,
    seen: Option<Vec<serde_json::Value>>,
}

#[derive(Deserialize)]
struct Counts {
    rows: u64,
    longest_us: f64,
    buckets: Vec<(u32, u64)>,
}

#[derive(Deserialize)]
struct All {
    batches: u64,
    updates: u64,
    read_rows: u64,
    updated_rows: u64,
}

impl Counts {
    fn into_counts(self) -> LoopCounts {
        // The center of a bucket, as defined at ybio_report.
        let center = |bucket: u32| nanos((f64::from(bucket.saturating_sub(1)) / 50.0).exp());
        LoopCounts {
            transactions: self.buckets.iter().map(|(_, count)| count).sum(),
            rows: self.rows,
            latencies: self
                .buckets
                .iter()
                .map(|&(bucket, count)| (center(bucket), count))
                .collect(),
            longest: nanos(self.longest_us),
        }
    }
}

fn nanos(us: f64) -> Nanos {
    Nanos(integer_part(us * 1e3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows_loop(run: &RowsRun) -> RowsLoop {
        let plan = Plan { seed: 7, ..Plan::default() };
        RowsLoop::new(2, &RowsDataset::default(), run, &plan, 1)
    }

    #[test]
    fn the_marked_part_of_the_file_contains_only_the_loop() {
        let sql = routines().sql;
        for name in routines().names {
            assert!(sql.contains(&format!(" {name}(")), "{name}");
        }
        assert!(!sql.contains("procedure setup") && !sql.contains("procedure runit"));
        assert!(!sql.contains("benchruns"));
    }

    #[test]
    fn the_call_passes_all_parameters_of_the_loop() {
        let run = RowsRun { update_percent: 20, update_batch: Some(8), ..RowsRun::default() };
        let explains = ["explain execute \"a\"('x')".to_owned()];
        let call = Call {
            id: "run-1".to_owned(),
            start_s: 1000.25,
            measure_s: 1002.25,
            until_s: None,
            transactions: Some(50),
            rows: None,
            report_s: 1.0,
            explain_statements: &explains,
        };
        let sql = rows_loop(&run).call_sql(&call);
        let (head, tail) = sql.split_once("1000.250000").unwrap();
        assert_eq!(
            head,
            "call riops.ybio_loop('run-1', 'riops.rows_0002', 1000000, 1000, 8, 20, true, true, false, "
        );
        assert!(tail.starts_with(", 1002.250000, 'infinity', 50, null, "), "{tail}");
        assert!(
            tail.ends_with(", 1, 10, true, array['explain execute \"a\"(''x'')'], null)"),
            "{tail}"
        );
    }

    #[test]
    fn parses_a_report() {
        let run =
            RowsRun { batch: 10, update_percent: 50, update_batch: Some(5), ..RowsRun::default() };
        let report = r#"{"call": "1", "intervals": 2, "measure_s": 100.0, "ended_s": 102.5,
            "reads": {"rows": 30, "longest_us": 250.5, "buckets": [[231, 1], [277, 2]]},
            "updates": {"rows": 10, "longest_us": 900, "buckets": [[340, 2]]},
            "all": {"batches": 9, "updates": 4, "read_rows": 50, "updated_rows": 20},
            "lost_rows": 3, "announced": 1020, "max_scratch": 7, "conflicts": 1, "deadlocks": 2, "drained_us": 12.5, "seen": [[{"Plan": {}}]]}"#;
        let read = rows_loop(&run).read(report).unwrap();
        assert_eq!((read.intervals, read.ended_s), (2, 2.5));
        assert_eq!((read.conflicts, read.deadlocks, read.drained), (1, 2, Some(Nanos(12_500))));
        assert_eq!(read.committed, [(5, 50), (4, 20)]);
        assert_eq!((read.rows_unknown, read.wrong_replies), (1003, 0));
        assert_eq!(read.plans, [r#"[{"Plan":{}}]"#]);
        let reads = &read.measured[super::super::generator::OPERATION_READ];
        assert_eq!((reads.transactions, reads.rows, reads.longest), (3, 30, Nanos(250_500)));
        // e^4.6 µs and e^5.52 µs.
        assert_eq!(reads.latencies[0].0.0 / 1000, 99);
        assert_eq!(reads.latencies[1].0.0 / 1000, 249);
        let lost = report.replace(r#""read_rows": 50"#, r#""read_rows": 49"#);
        assert_eq!(rows_loop(&run).read(&lost).unwrap().wrong_replies, 1);
        assert_eq!(rows_loop(&run).read("{}"), None);
    }
}
