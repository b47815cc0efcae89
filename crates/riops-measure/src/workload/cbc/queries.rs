//! The selects of `cbc`, repeated by several concurrent sessions. Without EXPLAIN, which would slow them down and
//! return its plan instead of their row.

use super::explain::access_of;
use super::step::statement_of;
use super::{EXPLAIN, TABLE, for_size, session_sql};
use crate::workload::access::Access;
use crate::workload::ping::Repeat;
use crate::workload::{ALL_STATEMENTS, SessionPlan, Stage, Statement, Work, Workload};
use riops_model::plan::{CbcQuery, Plan};

/// Returns the statement of the script: the statement of the step, without EXPLAIN.
fn query_sql(query: CbcQuery, size_gb: f64) -> String {
    for_size(statement_of(query.step()).trim_start_matches(EXPLAIN).trim_start(), size_gb)
}

/// Sessions that repeat a select.
pub struct QueryLoop {
    /// The select.
    pub query: CbcQuery,
    /// Nominal size of the table, in gigabytes.
    pub size_gb: f64,
}

impl Workload for QueryLoop {
    fn table_names(&self) -> Vec<String> {
        vec![TABLE.to_owned()]
    }

    fn accesses(&self) -> Vec<Access> {
        let named = |access: Access| Access {
            statement: self.query.script().to_owned(),
            sql: query_sql(self.query, self.size_gb),
            ..access
        };
        access_of(self.query.step()).map(named).into_iter().collect()
    }

    fn stage(&self, plan: &Plan) -> Stage {
        let session = |_| SessionPlan {
            settings: vec![session_sql()],
            statements: vec![Statement::new(
                self.query.script(),
                query_sql(self.query, self.size_gb),
                [],
            )],
            watched: ALL_STATEMENTS,
            // An aggregate returns one row.
            work: Work::Client(Box::new(Repeat { has_statement: true, rows: 1 })),
        };
        Stage {
            name: format!("{} -c {}", self.query.script(), plan.sessions),
            operations: vec!["select".into()],
            changes: vec![false],
            ..Stage::with_sessions(plan, session)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::fill;

    const SELECT_MAX: &str = include_str!("../../../sql/cbc/cbc-t03-select-max-no-explain.sql");
    const SELECT_RANGE: &str = include_str!("../../../sql/cbc/cbc-t04-selectr-no-explain.sql");
    const INDEXED_SELECT_MAX: &str =
        include_str!("../../../sql/cbc/cbc-t06-iselect-max-no-explain.sql");

    #[test]
    fn each_select_is_the_select_of_the_step_without_explain() {
        for (query, script) in
            CbcQuery::ALL.into_iter().zip([SELECT_MAX, SELECT_RANGE, INDEXED_SELECT_MAX])
        {
            let text = fill(script, &[]);
            assert_eq!(query_sql(query, 0.5), for_size(text.trim().trim_end_matches(';'), 0.5));
            assert!(
                statement_of(query.step()).starts_with(EXPLAIN)
                    && !query_sql(query, 0.5).contains("explain")
            );
            assert_eq!(query.script(), format!("{}-no-explain", query.step().script()));
        }
    }
}
