//! The selects of `cbc`, repeated by several concurrent sessions. Without EXPLAIN, which would slow them down and
//! return its plan instead of their row.

use super::{Step, TABLE, for_size, session_sql};
use crate::plan::{Plan, Protocol};
use crate::workload::access::Access;
use crate::workload::transaction::{Reply, Transaction, TransactionOutcome};
use crate::workload::{
    ALL_STATEMENTS, Generator, SessionPlan, Stage, Statement, Work, Workload, fill,
};

const SELECT_MAX: &str = include_str!("../../../sql/cbc/cbc-t03-select-max-no-explain.sql");
const SELECT_RANGE: &str = include_str!("../../../sql/cbc/cbc-t04-selectr-no-explain.sql");
const INDEXED_SELECT_MAX: &str =
    include_str!("../../../sql/cbc/cbc-t06-iselect-max-no-explain.sql");

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

    /// Returns the name of its pgbench script without the prefix `cbc-` of the file, the step with the same select, and the
    /// text of the script.
    fn parts(self) -> (&'static str, Step, &'static str) {
        match self {
            Self::SelectMax => ("t03-select-max-no-explain", Step::SelectC1, SELECT_MAX),
            Self::SelectRange => ("t04-selectr-no-explain", Step::SelectR, SELECT_RANGE),
            Self::IndexedSelectMax => {
                ("t06-iselect-max-no-explain", Step::SelectC2, INDEXED_SELECT_MAX)
            }
        }
    }

    /// Returns the name of the pgbench script, without the prefix `cbc-` of the file.
    #[must_use]
    pub fn script(self) -> &'static str {
        self.parts().0
    }

    fn step(self) -> Step {
        self.parts().1
    }

    fn sql(self, size_gb: f64) -> String {
        for_size(fill(self.parts().2, &[]).trim().trim_end_matches(';'), size_gb)
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
            statements: vec![Statement {
                name: self.query.script().to_owned(),
                sql: self.query.sql(self.size_gb),
                parameter_types: Vec::new(),
            }],
            watched: ALL_STATEMENTS,
            work: Work::Client(Box::new(QueryGenerator)),
        };
        Stage {
            name: format!("{} -c {}", self.query.script(), plan.sessions),
            operations: vec!["select".into()],
            changes: vec![false],
            sessions: (0..plan.sessions).map(session).collect(),
            explain_by_name: plan.protocol == Protocol::Prepared,
            ..Stage::default()
        }
    }
}

/// Repeats the same statement.
#[derive(Debug)]
struct QueryGenerator;

impl Generator for QueryGenerator {
    fn next(&mut self, tx: &mut Transaction) -> bool {
        tx.begin(0, 1);
        tx.execute_with(0, 0, |_| {});
        tx.end_step();
        true
    }

    fn reply(&mut self, _: &Transaction, _: &Reply<'_>, outcome: &mut TransactionOutcome) {
        outcome.rows += 1;
    }

    fn complete(&mut self, _: &Transaction, _: &str, outcome: &mut TransactionOutcome) {
        // An aggregate returns one row.
        outcome.wrong |= outcome.rows != 1;
    }
}

#[cfg(test)]
mod tests {
    use super::super::EXPLAIN;
    use super::*;

    #[test]
    fn each_select_is_that_of_the_step_without_explain() {
        for query in Query::ALL {
            let of_step = query.step().text();
            let without = of_step.strip_prefix(EXPLAIN).unwrap().trim_start();
            assert_eq!(query.sql(0.5), for_size(without, 0.5));
            assert_eq!(query.script(), format!("{}-no-explain", query.step().script()));
        }
    }
}
