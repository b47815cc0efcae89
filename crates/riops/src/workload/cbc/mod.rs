//! `cbc`: one wide table out of a system view, and the bulk commands that push all of it through the
//! storage (Complete Block Check).
//!
//! Its statements stand once, in `sql/cbc/t00…t06`, for pgbench, psql and riops alike.

mod explain;
mod queries;
mod script;
mod space;
mod step;
mod vacuum;

use super::check::Check;
use super::{Describe, Workload, fill};
use crate::plan::CbcDataset;
pub use explain::{StatementBuffers, StatementPlan};
pub use queries::Query;
pub use script::psql_script;
pub use space::{Space, size_for_memory};
pub use step::Step;
pub use vacuum::VacuumRates;

/// The workload's name.
pub const NAME: &str = "cbc";
/// The table, with its schema.
pub const TABLE: &str = "riops.settings_loop";
/// The database of its own.
pub const DATABASE: &str = "riops_cbc";

const SIZES: &str = include_str!("../../../../../sql/cbc/sizes.sql");
const SESSION: &str = include_str!("../../../../../sql/cbc/session.sql");
const LEFTOVER: &str = include_str!("../../../../../sql/cbc/leftover.sql");
const ESTIMATE: &str = include_str!("../../../../../sql/cbc/estimate.sql");

/// What shows plan and buffers of a select that runs once.
const EXPLAIN: &str = "explain (analyze, buffers)";

/// The statement of a script, for a size, without the end that psql wants.
fn statement(script: &str, size_gb: f64) -> String {
    fill(script, &[]).trim().trim_end_matches(';').replace(":scale", &size_gb.to_string())
}

/// The statement of a step as it is sent: a select shows its plan.
#[must_use]
pub fn sql_of(step: Step, size_gb: f64) -> String {
    let sql = statement(step.text(), size_gb);
    match step {
        // Together, as one transaction: a table that is there is riops's own.
        Step::CreateTable => {
            format!("{sql};\ncomment on table settings_loop is '{}'", mark())
        }
        _ if step.is_select() => format!("explain (analyze, buffers, format json)\n{sql}"),
        _ => sql,
    }
}

/// What the answer of a step proves of the table: its tag, or the rows that its plan has counted.
#[must_use]
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
    };
    let Some(plan) = plan else {
        let no_plan = Check {
            name: step.key().to_owned(),
            expected: "a plan with its rows".to_owned(),
            found: "none".to_owned(),
            held: false,
        };
        return match step {
            Step::CreateTable => Some(exact(dataset.rows(), rows as f64, 0.0)),
            step => step.is_select().then_some(no_plan),
        };
    };
    // Of several processes the plan shows the average, which before PostgreSQL 18 is rounded.
    let tolerance = if plan.scans > 1.0 { plan.scans } else { 0.0 };
    Some(if step == Step::SelectR {
        exact(dataset.rows(), (plan.rows_found + plan.rows_left_out).round(), tolerance)
    } else {
        exact(dataset.copies, plan.rows_found.round(), tolerance)
    })
}

/// The comment by which riops knows its table.
fn mark() -> String {
    format!("riops dataset {NAME}")
}

/// The query for `pg_relation_size` of table and index, in bytes; null where there is none yet.
#[must_use]
pub fn sizes_sql() -> String {
    fill(SIZES, &[])
}

/// What makes a session ready for a run.
#[must_use]
pub fn session_sql() -> String {
    fill(SESSION, &[])
}

/// The query for an index of somebody else's that has the name of the table's.
#[must_use]
pub fn foreign_index_sql() -> String {
    "select to_regclass('riops.by_name')".to_owned()
}

/// The query for the bytes that an earlier run has left.
#[must_use]
pub fn leftover_sql() -> String {
    fill(LEFTOVER, &[])
}

/// The query for the rows of `pg_settings` and the bytes that one copy of them takes in the table, about.
#[must_use]
pub fn estimate_sql() -> String {
    fill(ESTIMATE, &[])
}

impl Describe for CbcDataset {
    fn describe(&self) -> Option<Box<dyn Workload>> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_those_of_the_scripts_with_the_size_in_them() {
        let all: Vec<String> = Step::ALL
            .into_iter()
            .map(|step| format!("{} ({})\n{}", step.key(), step.script(), sql_of(step, 0.1)))
            .collect();
        insta::assert_snapshot!(all.join("\n\n"));
    }

    #[test]
    fn each_answer_proves_its_rows() {
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
            buffers: StatementBuffers::default(),
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
        // Three processes: 166,800 rows each, rounded.
        assert!(held(Step::SelectR, 0, Some(plan(250_401.0, 250_001.0, 3.0))));
        assert!(!held(Step::SelectR, 0, Some(plan(250_401.0, 249_001.0, 3.0))));
        assert!(!held(Step::SelectC1, 0, None));
        assert_eq!(check(Step::Vacuum, &dataset, 0, None), None);
    }

    #[test]
    fn the_indexed_select_is_the_same_select() {
        let text = |step: Step| statement(step.text(), 1.0);
        assert_eq!(text(Step::SelectC1), text(Step::SelectC2));
    }

    #[test]
    fn each_key_names_its_step() {
        for step in Step::ALL {
            assert_eq!(Step::of_key(step.key()), Some(step));
        }
        assert_eq!(Step::of_key("SELECT_b"), None);
    }
}
