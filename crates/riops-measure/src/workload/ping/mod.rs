//! `ping`: measures only the round trip to a server, through a pooler or a network path. It must not need a
//! dataset.
//!
//! The statements differ in the work of the server: execute a query (`select1`), recognize an empty query
//! (`empty`), or only reply to a Sync (`sync`, the minimum of the protocol).

use super::transaction::{Reply, Transaction, TransactionOutcome};
use super::{
    ALL_STATEMENTS, Build, BuildFor, Generator, SessionPlan, Stage, Statement, Work, Workload, fill,
};
use riops_model::plan::ping::{PingRun, PingStatement};
use riops_model::plan::{Plan, PlanError};

const SELECT1: &str = include_str!("../../../sql/ping/select1.sql");

/// The workload with its parameters.
#[derive(Debug, Clone)]
struct Ping(PingRun);

impl Build for PingRun {
    fn build(&self, _: BuildFor<'_>) -> Result<Box<dyn Workload>, PlanError> {
        Ok(Box::new(Ping(self.clone())))
    }
}

impl Ping {
    fn statements(&self) -> Vec<Statement> {
        let sql = match self.0.statement {
            PingStatement::Select1 => fill(SELECT1, &[]).trim().to_owned(),
            PingStatement::Empty => String::new(),
            PingStatement::Sync => return Vec::new(),
        };
        let name = self.0.statement.as_str().to_owned();
        vec![Statement { name, sql, parameter_types: Vec::new() }]
    }
}

impl Workload for Ping {
    fn stage(&self, plan: &Plan) -> Stage {
        let session = |_| SessionPlan {
            settings: Vec::new(),
            statements: self.statements(),
            watched: ALL_STATEMENTS,
            work: Work::Client(Box::new(Repeat {
                has_statement: self.0.statement != PingStatement::Sync,
                rows: u64::from(self.0.statement == PingStatement::Select1),
            })),
        };
        let statement = self.0.statement.as_str();
        Stage {
            name: format!("ping, {statement}"),
            operations: vec![statement.into()],
            changes: vec![false],
            ..Stage::with_sessions(plan, session)
        }
    }
}

/// Repeats the same statement, or only a Sync.
#[derive(Debug)]
pub(super) struct Repeat {
    pub(super) has_statement: bool,
    /// Number of rows of each reply.
    pub(super) rows: u64,
}

impl Generator for Repeat {
    fn next(&mut self, tx: &mut Transaction) -> bool {
        tx.begin(0, self.rows);
        if self.has_statement {
            tx.execute(0, &[]);
        }
        tx.end_step();
        true
    }

    fn reply(&mut self, _: &Transaction, _: &Reply<'_>, outcome: &mut TransactionOutcome) {
        outcome.rows += 1;
    }

    fn complete(&mut self, _: &Transaction, _: &str, outcome: &mut TransactionOutcome) {
        outcome.wrong |= outcome.rows != self.rows;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::server::Dialect;
    use crate::workload::transaction::Statements;
    use riops_model::plan::Protocol;

    /// Returns the bytes of the first transaction of a session.
    fn sent(statement: PingStatement, protocol: Protocol) -> Vec<u8> {
        let target = BuildFor { dataset: None, used: None, dialect: Dialect::default(), protocol };
        let workload = PingRun { statement }.build(target).unwrap();
        let plan = Plan { protocol, ..Plan::default() };
        let session = workload.stage(&plan).sessions.remove(0);
        let Work::Client(mut generator) = session.work else {
            panic!("the loop runs in the server")
        };
        let mut tx = Transaction::new(Arc::new(Statements::new(protocol, session.statements)));
        assert!(generator.next(&mut tx));
        assert_eq!(tx.error(), None);
        tx.bytes().to_vec()
    }

    #[test]
    fn each_statement_sends_the_minimal_messages_of_its_protocol() {
        let (prepared, simple) = (Protocol::Prepared, Protocol::Simple);
        assert_eq!(sent(PingStatement::Sync, prepared), b"S\0\0\0\x04");
        assert_eq!(sent(PingStatement::Empty, simple), b"Q\0\0\0\x05\0");
        assert_eq!(sent(PingStatement::Select1, simple), b"Q\0\0\0\x0dselect 1\0");
        let bound = sent(PingStatement::Select1, prepared);
        assert!(bound.starts_with(b"B") && bound.ends_with(b"S\0\0\0\x04"), "{bound:?}");
    }
}
