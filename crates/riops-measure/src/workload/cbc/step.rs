//! The scripts of the steps of the benchmark.

use crate::workload::fill;
use riops_model::plan::CbcStep;

const CREATE_TABLE: &str = include_str!("../../../sql/cbc/cbc-t00-ctas.sql");
const VACUUM: &str = include_str!("../../../sql/cbc/cbc-t01-vacuum.sql");
const CREATE_INDEX: &str = include_str!("../../../sql/cbc/cbc-t02-index.sql");
const SELECT_MAX: &str = include_str!("../../../sql/cbc/cbc-t03-select-max.sql");
const SELECT_RANGE: &str = include_str!("../../../sql/cbc/cbc-t04-selectr.sql");
const CLUSTER: &str = include_str!("../../../sql/cbc/cbc-t05-cluster.sql");
const INDEXED_SELECT_MAX: &str = include_str!("../../../sql/cbc/cbc-t06-iselect-max.sql");
/// The first statement of the first script. Where riops creates the table, there is none.
pub(super) const DROP_TABLE: &str = "drop table if exists settings_loop;\n";
const PROGRESS_VACUUM: &str = include_str!("../../../sql/cbc/progress_vacuum.sql");
const PROGRESS_CLUSTER: &str = include_str!("../../../sql/cbc/progress_cluster.sql");
const PROGRESS_CREATE_INDEX: &str = include_str!("../../../sql/cbc/progress_create_index.sql");

/// Returns the text of the pgbench script of a step.
fn script_text(step: CbcStep) -> &'static str {
    match step {
        CbcStep::CreateTable => CREATE_TABLE,
        CbcStep::Vacuum => VACUUM,
        CbcStep::CreateIndex => CREATE_INDEX,
        CbcStep::SelectU1 | CbcStep::SelectC1 => SELECT_MAX,
        CbcStep::SelectR => SELECT_RANGE,
        CbcStep::Cluster => CLUSTER,
        CbcStep::SelectU2 | CbcStep::SelectC2 => INDEXED_SELECT_MAX,
    }
}

/// Returns the query for the progress of a step (phase, done, total), given the backend process and the number of
/// rows; `None` if the server does not report progress. The progress of CREATE TABLE AS is the growth
/// of the database.
pub fn progress_sql(step: CbcStep, process: i32, rows: u64) -> Option<String> {
    let (template, rows) = match step {
        CbcStep::Vacuum => (PROGRESS_VACUUM, String::new()),
        CbcStep::CreateIndex => (PROGRESS_CREATE_INDEX, String::new()),
        CbcStep::Cluster => (PROGRESS_CLUSTER, rows.to_string()),
        _ => return None,
    };
    Some(fill(template, &[("process", &process.to_string()), ("rows", &rows)]))
}

/// Returns the statement of the script of a step, with the placeholder `:scale` and without the final semicolon.
pub(super) fn statement_of(step: CbcStep) -> String {
    let text = fill(script_text(step), &[]);
    let statement = text.trim().trim_end_matches(';');
    statement.strip_prefix(DROP_TABLE).unwrap_or(statement).to_owned()
}
