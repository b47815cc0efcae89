//! The selects of `cbc`, repeated by several concurrent sessions. Without EXPLAIN, which would slow them down and
//! return its plan instead of their row.

use super::{EXPLAIN, Step, TABLE, for_size, session_sql};
use crate::plan::Plan;
use crate::workload::access::Access;
use crate::workload::ping::Repeat;
use crate::workload::{ALL_STATEMENTS, SessionPlan, Stage, Statement, Work, Workload};

/// A select that sessions repeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Query {
    /// One name, before CLUSTER.
    SelectMax,
    /// The whole table.
    SelectRange,
    /// One name, after CLUSTER.
    IndexedSelectMax,
}

impl Query {
    /// Selects that run before CLUSTER.
    pub const BEFORE_CLUSTER: [Self; 2] = [Self::SelectMax, Self::SelectRange];

    /// All selects.
    pub const ALL: [Self; 3] = [Self::SelectMax, Self::SelectRange, Self::IndexedSelectMax];

    /// Returns the name of the pgbench script, without the prefix `cbc-` of the file.
    pub fn script(self) -> &'static str {
        match self {
            Self::SelectMax => "t03-select-max-no-explain",
            Self::SelectRange => "t04-selectr-no-explain",
            Self::IndexedSelectMax => "t06-iselect-max-no-explain",
        }
    }

    /// Returns the step with the same select.
    fn step(self) -> Step {
        match self {
            Self::SelectMax => Step::SelectC1,
            Self::SelectRange => Step::SelectR,
            Self::IndexedSelectMax => Step::SelectC2,
        }
    }

    /// Returns the statement of the script, which is that of the step without EXPLAIN.
    fn sql(self, size_gb: f64) -> String {
        for_size(self.step().text().trim_start_matches(EXPLAIN).trim_start(), size_gb)
    }
}

/// Sessions that repeat a select.
pub struct QueryLoop {
    /// The select.
    pub query: Query,
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
            sql: self.query.sql(self.size_gb),
            ..access
        };
        self.query.step().access().map(named).into_iter().collect()
    }

    fn stage(&self, plan: &Plan) -> Stage {
        let session = |_| SessionPlan {
            settings: vec![session_sql()],
            statements: vec![Statement::new(self.query.script(), self.query.sql(self.size_gb), [])],
            watched: ALL_STATEMENTS,
            // An aggregate returns one row.
            work: Work::Client(Box::new(Repeat { has_statement: true, rows: 1 })),
        };
        Stage {
            name: format!("{} -c {}", self.query.script(), plan.sessions),
            operations: vec!["select".into()],
            changes: vec![false],
            ..Stage::of(plan, session)
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
    fn each_select_is_that_of_the_step_without_explain() {
        for (query, script) in
            Query::ALL.into_iter().zip([SELECT_MAX, SELECT_RANGE, INDEXED_SELECT_MAX])
        {
            let text = fill(script, &[]);
            assert_eq!(query.sql(0.5), for_size(text.trim().trim_end_matches(';'), 0.5));
            assert!(
                query.step().text().starts_with(EXPLAIN) && !query.sql(0.5).contains("explain")
            );
            assert_eq!(query.script(), format!("{}-no-explain", query.step().script()));
        }
    }
}
