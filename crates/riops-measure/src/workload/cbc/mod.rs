//! `cbc` (Complete Block Check): creates one wide table from a system view and runs bulk commands that read
//! or write all of its blocks.
//!
//! pgbench, psql and riops must use the same statements, which are in `sql/cbc/cbc-t00…t06`. These files have the
//! names of the original benchmark and do what those do.

mod explain;
pub use explain::{access_of, judge, parsed_plan, parsed_rates};
mod queries;
mod step;

use super::{Describe, Workload, fill};
pub use queries::QueryLoop;
use riops_model::plan::{CbcDataset, CbcStep, copies};
use riops_model::record::{Check, StatementPlan};
pub use step::progress_sql;
use step::statement_of;

/// Name of the workload.
pub const NAME: &str = "cbc";
/// Schema-qualified name of the table.
pub const TABLE: &str = "riops.settings_loop";
/// Name of the dedicated database.
pub const DATABASE: &str = "riops_cbc";

/// Query for `pg_relation_size` of table and index, in bytes; NULL for one that does not exist yet.
pub const SIZES: &str = include_str!("../../../sql/cbc/sizes.sql");
/// Query for the bytes left behind by an earlier run.
pub const LEFTOVER: &str = include_str!("../../../sql/cbc/leftover.sql");
/// Query for the number of rows of `pg_settings` and the approximate size of one copy of them in the table, in bytes.
pub const ESTIMATE: &str = include_str!("../../../sql/cbc/estimate.sql");
/// Query for an existing index with the name that the run would create.
pub const FOREIGN_INDEX: &str = "select to_regclass('riops.by_name')";
const SESSION: &str = include_str!("../../../sql/cbc/session.sql");

/// How the scripts show plan and buffers of a select, and how riops does, which parses them.
const EXPLAIN: &str = "explain (analyze, buffers)";
const EXPLAIN_JSON: &str = "explain (analyze, buffers, format json)";

/// Returns a statement for a size. A whole number is an integer, any other a numeric, as in psql.
fn for_size(statement: &str, size_gb: f64) -> String {
    statement.replace(":scale", &size_gb.to_string())
}

/// Returns the statement of a step as it is sent.
pub fn sql_of(step: CbcStep, size_gb: f64) -> String {
    let sql = for_size(&statement_of(step), size_gb);
    match step {
        // Both statements are one transaction, so every table created by riops has the comment.
        CbcStep::CreateTable => {
            format!("{sql};\ncomment on table settings_loop is 'riops dataset {NAME}'")
        }
        _ if step.is_select() => sql.replacen(EXPLAIN, EXPLAIN_JSON, 1),
        _ => sql,
    }
}

/// Checks the number of rows in the command tag or in the plan of a step. Returns `None` for steps without
/// a row count.
pub fn check(
    step: CbcStep,
    dataset: &CbcDataset,
    rows: u64,
    plan: Option<&StatementPlan>,
) -> Option<Check> {
    let exact = |expected: u64, actual: f64, tolerance: f64| Check {
        name: step.key().to_owned(),
        expected: format!("{expected} rows"),
        found: format!("{actual} rows"),
        held: (actual - expected as f64).abs() <= tolerance,
        ..Check::default()
    };
    let Some(plan) = plan else {
        let no_plan =
            crate::workload::check::failed(step.key(), "a plan with row counts", "no plan");
        return match step {
            CbcStep::CreateTable => Some(exact(dataset.rows(), rows as f64, 0.0)),
            step => step.is_select().then_some(no_plan),
        };
    };
    // With several processes the plan shows the average, which is rounded before PostgreSQL 18.
    let tolerance = if plan.scans > 1.0 { plan.scans } else { 0.0 };
    Some(if step == CbcStep::SelectR {
        exact(dataset.rows(), (plan.rows_found + plan.rows_left_out).round(), tolerance)
    } else {
        exact(dataset.copies, plan.rows_found.round(), tolerance)
    })
}

/// Returns the statement that sets up a session for a run.
pub fn session_sql() -> String {
    fill(SESSION, &[])
}

impl Describe for CbcDataset {
    fn describe(&self) -> Option<Box<dyn Workload>> {
        None
    }
}

#[cfg(test)]
mod script_tests;

// Computes the size of the table from the available disk space and memory. Pure.

const GB: f64 = 1e9;
/// Peak disk usage of a run without WAL, in percent of the table size: CLUSTER rewrites table and index,
/// and if it sorts the table instead of following the index, it also needs a copy in temporary files. With
/// the embedded PostgreSQL 18, which followed the index, the peak was 230 %.
const PEAK_PERCENT: u64 = 330;
/// Size of the table relative to memory from which most systems show sustained rates.
const TIMES_MEMORY: f64 = 3.0;

/// Disk space needed by a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// Size of one copy of the settings in the table, in bytes.
    pub copy_bytes: u64,
    /// Maximum size of the WAL, in bytes.
    pub log_bytes: u64,
}

impl Space {
    fn table_bytes(self, size_gb: f64) -> u64 {
        copies(size_gb).saturating_mul(self.copy_bytes).saturating_mul(PEAK_PERCENT) / 100
    }

    /// Returns the maximum number of bytes for a nominal size.
    pub fn bytes(self, size_gb: f64) -> u64 {
        self.table_bytes(size_gb).saturating_add(self.log_bytes)
    }

    /// Returns the largest nominal size that fits into `free_bytes`, rounded down to a tenth of a gigabyte.
    pub fn largest_size_gb(self, free_bytes: u64) -> f64 {
        let free = free_bytes.saturating_sub(self.log_bytes);
        (free as f64 / self.table_bytes(1.0).max(1) as f64 * 10.0).floor() / 10.0
    }

    /// Describes the disk space needed for a nominal size.
    pub fn text(self, size_gb: f64) -> String {
        format!(
            "{:.2} GB of disk space (table and index, a second copy of both during CLUSTER, and temporary files if it sorts) and {:.2} GB of WAL",
            self.table_bytes(size_gb) as f64 / GB,
            self.log_bytes as f64 / GB
        )
    }
}

/// Returns the nominal size of a table that is three times as large as the memory.
pub fn size_for_memory(memory_bytes: u64, copy_bytes: u64) -> f64 {
    let gigabyte = copies(1.0) as f64 * copy_bytes.max(1) as f64;
    (TIMES_MEMORY * memory_bytes as f64 / gigabyte).ceil()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_of_the_scripts_contain_the_size() {
        let all: Vec<String> = CbcStep::ALL
            .into_iter()
            .map(|step| format!("{} ({})\n{}", step.key(), step.script(), sql_of(step, 20.5)))
            .collect();
        insta::assert_snapshot!(all.join("\n\n"));
        assert!(sql_of(CbcStep::CreateTable, 20.0).contains("generate_series(0, 20 * 12500)"));
    }

    #[test]
    fn checks_the_row_count_of_each_step() {
        let dataset = CbcDataset {
            size_gb: 0.1,
            settings_rows: 400,
            copies: 1_251,
            table_bytes: None,
            index_bytes: None,
        };
        let plan = |rows_found, rows_left_out, scans| StatementPlan {
            outline: String::new(),
            execution_ms: None,
            buffers: riops_model::record::StatementBuffers::default(),
            rows_found,
            rows_left_out,
            scans,
        };
        let held = |step, rows, plan: Option<StatementPlan>| {
            check(step, &dataset, rows, plan.as_ref()).unwrap().held
        };
        assert!(
            held(CbcStep::CreateTable, 500_400, None) && !held(CbcStep::CreateTable, 500_399, None)
        );
        assert!(held(CbcStep::SelectU2, 0, Some(plan(1_251.0, 0.0, 1.0))));
        assert!(!held(CbcStep::SelectU2, 0, Some(plan(1_250.0, 0.0, 1.0))));
        // Three processes with 166,800 rows each, rounded.
        assert!(held(CbcStep::SelectR, 0, Some(plan(250_401.0, 250_001.0, 3.0))));
        assert!(!held(CbcStep::SelectR, 0, Some(plan(250_401.0, 249_001.0, 3.0))));
        assert!(!held(CbcStep::SelectC1, 0, None));
        assert_eq!(check(CbcStep::Vacuum, &dataset, 0, None), None);
    }

    #[test]
    fn the_select_is_the_same_before_and_after_cluster() {
        assert_eq!(statement_of(CbcStep::SelectC1), statement_of(CbcStep::SelectC2));
    }

    #[test]
    fn each_key_maps_to_its_step() {
        for step in CbcStep::ALL {
            assert_eq!(CbcStep::of_key(step.key()), Some(step));
        }
        assert_eq!(CbcStep::of_key("SELECT_b"), None);
    }

    const SPACE: Space = Space { copy_bytes: 100_000, log_bytes: 4_000_000_000 };

    #[test]
    fn returns_the_largest_size_that_fits() {
        let free = 50_000_000_000;
        let largest = SPACE.largest_size_gb(free);
        assert!((largest - 11.1).abs() < 1e-9, "{largest}");
        assert!(SPACE.bytes(largest) <= free && SPACE.bytes(largest + 0.1) > free);
        assert_eq!(SPACE.largest_size_gb(1_000_000), 0.0);
    }

    #[test]
    fn three_times_the_memory_is_computed_from_actual_bytes() {
        // A nominal GB is 12,501 × 100,000 bytes.
        assert_eq!(size_for_memory(10_000_000_000, 100_000), 24.0);
    }
}
