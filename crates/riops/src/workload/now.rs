//! `now`: reads the clock of the server. It must not need a dataset.

use super::transaction::{Reply, Transaction, TransactionOutcome};
use super::{
    ALL_STATEMENTS, Build, BuildFor, Generator, SessionPlan, Stage, Statement, Work, Workload,
};
use crate::plan::now::NowRun;
use crate::plan::{Plan, PlanError, Protocol};

/// The workload, and the transactions of a session.
struct Now;

impl Build for NowRun {
    fn build(&self, _: BuildFor<'_>) -> Result<Box<dyn Workload>, PlanError> {
        Ok(Box::new(Now))
    }
}

impl Workload for Now {
    fn stage(&self, plan: &Plan) -> Stage {
        let statement = Statement {
            name: "now".to_owned(),
            sql: "select clock_timestamp()".to_owned(),
            parameter_types: Vec::new(),
        };
        let session = |_| SessionPlan {
            settings: Vec::new(),
            statements: vec![statement.clone()],
            watched: ALL_STATEMENTS,
            work: Work::Client(Box::new(Now)),
        };
        Stage {
            name: "now".to_owned(),
            operations: vec!["now".into()],
            changes: vec![false],
            sessions: (0..plan.sessions).map(session).collect(),
            explain_by_name: plan.protocol == Protocol::Prepared,
            ..Stage::default()
        }
    }
}

impl Generator for Now {
    fn next(&mut self, tx: &mut Transaction) -> bool {
        tx.begin(0, 1);
        tx.execute(0, &[]);
        tx.end();
        true
    }

    fn reply(&mut self, _: &Transaction, _: &Reply<'_>, outcome: &mut TransactionOutcome) {
        outcome.rows += 1;
    }

    fn complete(&mut self, _: &Transaction, _: &str, outcome: &mut TransactionOutcome) {
        outcome.wrong |= outcome.rows != 1;
    }
}
