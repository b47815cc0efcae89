//! `cbc` (Complete Block Check): creates one wide table from a system view and runs bulk commands that read
//! or write all of its blocks.
//!
//! pgbench, psql and riops must use the same statements, which are in `sql/cbc/cbc-t00…t06`. These files have the
//! names of the original benchmark and do what those do.

mod explain;
mod queries;
mod space;
mod step;

use super::{Describe, Workload, fill};
use crate::plan::CbcDataset;
use crate::record::{Check, StatementPlan};
pub use queries::{Query, QueryLoop};
pub use space::{Space, size_for_memory};
pub use step::Step;

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
pub fn sql_of(step: Step, size_gb: f64) -> String {
    let sql = for_size(&step.text(), size_gb);
    match step {
        // Both statements are one transaction, so every table created by riops has the comment.
        Step::CreateTable => {
            format!("{sql};\ncomment on table settings_loop is 'riops dataset {NAME}'")
        }
        _ if step.is_select() => sql.replacen(EXPLAIN, EXPLAIN_JSON, 1),
        _ => sql,
    }
}

/// Checks the number of rows in the command tag or in the plan of a step. Returns `None` for steps without
/// a row count.
pub fn check(
    step: Step,
    dataset: &CbcDataset,
    rows: u64,
    plan: Option<&StatementPlan>,
) -> Option<Check> {
    let exact = |expected: u64, found: f64, tolerance: f64| Check {
        name: step.key().to_owned(),
        expected: format!("{expected} rows"),
        found: format!("{found} rows"),
        held: (found - expected as f64).abs() <= tolerance,
        ..Check::default()
    };
    let Some(plan) = plan else {
        let no_plan = Check::failed(step.key(), "a plan with row counts", "no plan");
        return match step {
            Step::CreateTable => Some(exact(dataset.rows(), rows as f64, 0.0)),
            step => step.is_select().then_some(no_plan),
        };
    };
    // With several processes the plan shows the average, which is rounded before PostgreSQL 18.
    let tolerance = if plan.scans > 1.0 { plan.scans } else { 0.0 };
    Some(if step == Step::SelectR {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_of_the_scripts_contain_the_size() {
        let all: Vec<String> = Step::ALL
            .into_iter()
            .map(|step| format!("{} ({})\n{}", step.key(), step.script(), sql_of(step, 20.5)))
            .collect();
        insta::assert_snapshot!(all.join("\n\n"));
        assert!(sql_of(Step::CreateTable, 20.0).contains("generate_series(0, 20 * 12500)"));
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
            buffers: crate::record::StatementBuffers::default(),
            rows_found,
            rows_left_out,
            scans,
        };
        let held = |step, rows, plan: Option<StatementPlan>| {
            check(step, &dataset, rows, plan.as_ref()).unwrap().held
        };
        assert!(held(Step::CreateTable, 500_400, None) && !held(Step::CreateTable, 500_399, None));
        assert!(held(Step::SelectU2, 0, Some(plan(1_251.0, 0.0, 1.0))));
        assert!(!held(Step::SelectU2, 0, Some(plan(1_250.0, 0.0, 1.0))));
        // Three processes with 166,800 rows each, rounded.
        assert!(held(Step::SelectR, 0, Some(plan(250_401.0, 250_001.0, 3.0))));
        assert!(!held(Step::SelectR, 0, Some(plan(250_401.0, 249_001.0, 3.0))));
        assert!(!held(Step::SelectC1, 0, None));
        assert_eq!(check(Step::Vacuum, &dataset, 0, None), None);
    }

    #[test]
    fn the_select_is_the_same_before_and_after_cluster() {
        assert_eq!(Step::SelectC1.text(), Step::SelectC2.text());
    }

    #[test]
    fn each_key_maps_to_its_step() {
        for step in Step::ALL {
            assert_eq!(Step::of_key(step.key()), Some(step));
        }
        assert_eq!(Step::of_key("SELECT_b"), None);
    }
}
