//! What can be measured: the shape of a workload, and each of them in a folder of its own.
//!
//! A workload describes; it opens no connection and reads no clock. ARCHITECTURE.md lists what adding one
//! takes.

pub mod access;
mod build;
pub mod cbc;
pub mod check;
pub mod keys;
pub mod load;
pub mod oltp;
pub mod ping;
pub mod point;
pub mod routines;
pub mod rows;
mod statement;
pub mod tables;
pub mod texts;
pub mod transaction;
pub mod values;

use std::ops::Range;

pub use statement::Statement;

use riops_wire::sqlstate::SqlState;

pub use build::{Build, BuildFor, Describe, on};

use crate::plan::{DatasetPlan, Plan};
use crate::server::Flavor;
use crate::units::Nanos;
use access::Access;
use check::{Check, Ledger};
use routines::Routines;
use tables::Dataset;
use transaction::{Outcome, Reply, Transaction};

/// One benchmark: what it creates, what it runs, how it is checked.
pub trait Workload {
    /// Its name on the command line and in the record.
    fn name(&self) -> &'static str;

    /// The names of its tables, each with its schema.
    fn table_names(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether somebody else has made its tables, so that they are never dropped.
    fn is_adopted(&self) -> bool {
        false
    }

    /// The option that does not exist on a server of this flavor.
    fn unsupported(&self, _flavor: Flavor) -> Option<&'static str> {
        None
    }

    /// The tables, and the jobs that fill them in parallel.
    fn dataset(&self, _flavor: Flavor) -> Dataset {
        Dataset::default()
    }

    /// Routines that it needs in the server.
    fn routines(&self) -> Option<Routines> {
        None
    }

    /// The dataset as its run will leave it, where others have to know that; `None` where nothing changes.
    fn changed_dataset(&self, _found: &DatasetPlan) -> Option<DatasetPlan> {
        None
    }

    /// Queries for whole numbers that it has to know before it runs.
    fn questions(&self) -> Vec<String> {
        Vec::new()
    }

    /// The answers to [`Self::questions`], in their order.
    fn learn(&mut self, _answers: &[i128]) {}

    /// Statements that bring the tables into the state that the access paths need, before a stage.
    fn settle_sql(&self) -> Vec<String> {
        Vec::new()
    }

    /// Statements that show how many blocks a read touches.
    fn read_samples(&self) -> Vec<String> {
        Vec::new()
    }

    /// The query for the bytes of a row.
    fn row_size_sql(&self) -> Option<String> {
        None
    }

    /// Each statement of a session with the access path that it must take.
    fn accesses(&self) -> Vec<Access> {
        Vec::new()
    }

    /// Loops of sessions, each with one result.
    fn stages(&self, plan: &Plan) -> Vec<Stage>;

    /// Queries that return whole numbers, one row each, for [`Self::checks`].
    fn contents_sql(&self) -> Vec<String> {
        Vec::new()
    }

    /// What the answers to [`Self::contents_sql`] prove, given what was acknowledged since
    /// `baseline`, the answers just after loading.
    fn checks(
        &self,
        _contents: &[Vec<i128>],
        _baseline: &[Vec<i128>],
        _ledger: &Ledger,
    ) -> Vec<Check> {
        Vec::new()
    }

    /// The same for a dataset whose loading did not end; `None` where that is of no use to anybody.
    fn checks_of_part(&self, _contents: &[Vec<i128>], _ledger: &Ledger) -> Option<Vec<Check>> {
        None
    }
}

/// On YugabyteDB: each row is written by itself, without a distributed transaction.
const NON_TRANSACTIONAL: &str = "set yb_disable_transactional_writes = on";

/// All statements of a session.
const EVERY: Range<usize> = 0..usize::MAX;

/// Since the planner guesses that a range of unknown keys is large, it would plan each execution of
/// a prepared statement anew: with one row a statement, planning would cost more than the row.
/// Relatives older than PostgreSQL 12 do not know that setting, and are not asked to.
const PLAN_ONCE: &str = "select set_config(name, 'force_generic_plan', false) from pg_settings where name = 'plan_cache_mode'";

/// One session of a stage.
pub struct SessionPlan {
    /// Run once, after connecting.
    pub settings: Vec<String>,
    /// What its transactions are made of; a transaction names them by their position.
    pub statements: Vec<Statement>,
    /// Positions of those whose plans this session looks at, where something is promised of them.
    pub watched: Range<usize>,
    /// The transactions.
    pub work: Work,
}

/// Who repeats the transactions of a session.
pub enum Work {
    /// The client sends each of them.
    Client(Box<dyn Generator>),
    /// One call, whose loop runs in the server. All sessions of a stage are of the same kind.
    Server(Box<dyn ServerLoop>),
}

/// What a call is told about its time. Times are seconds since 1970 on the server's clock.
#[derive(Debug, Clone, PartialEq)]
pub struct Call<'a> {
    /// The same for a call that the server itself runs again, and for no other.
    pub id: String,
    /// When the first transaction starts.
    pub start_s: f64,
    /// When the measurement starts.
    pub measure_s: f64,
    /// When it ends; `None` where a number decides.
    pub until_s: Option<f64>,
    /// Transactions to be measured.
    pub transactions: Option<u64>,
    /// Rows to be measured, at least.
    pub rows: Option<u64>,
    /// The time between two reports.
    pub report_s: f64,
    /// Statements that show a plan, for the middle of the measurement.
    pub looks: &'a [String],
}

/// A loop in the server that repeats the transactions of one session. Pure.
pub trait ServerLoop: Send {
    /// The statement that runs the loop, whose result is its last report.
    fn call_sql(&self, call: &Call<'_>) -> String;

    /// What a report says, of those in the detail of its notices or of the last one; `None` where
    /// it is none.
    fn read(&self, report: &str) -> Option<LoopReport>;

    /// Transactions that change rows, and their rows, of which there may be as many before the first
    /// report.
    fn before_first_report(&self) -> (u64, u64);
}

/// What a loop in the server has done so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LoopReport {
    /// Intervals of the measurement that are over.
    pub intervals: usize,
    /// When the last counted transaction ended, in seconds since the measurement started.
    pub ended_s: f64,
    /// By operation: what ended within the measurement.
    pub measured: Vec<LoopCounts>,
    /// By operation: transactions and rows that were committed in all phases.
    pub committed: Vec<(u64, u64)>,
    /// Rows whose changes may have been committed beside those, if nothing more is heard.
    pub rows_unknown: u64,
    /// Transactions that these are.
    pub transactions_unknown: u64,
    /// Transactions that were run again after a serialization failure.
    pub conflicts: u64,
    /// Transactions that were run again after a deadlock.
    pub deadlocks: u64,
    /// How long a transaction took that was committed after the measurement.
    pub drained: Option<Nanos>,
    /// Replies that did not have all their rows, at least.
    pub wrong_replies: u64,
    /// What the looks in the middle have shown, in their order.
    pub looks: Vec<String>,
}

/// What a loop in the server has counted of one operation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LoopCounts {
    /// Transactions.
    pub transactions: u64,
    /// Their rows.
    pub rows: u64,
    /// Service times, and how often each occurred.
    pub latencies: Vec<(Nanos, u64)>,
    /// The longest.
    pub longest: Nanos,
}

/// A part of a run with one result.
pub struct Stage {
    /// Its name in the record.
    pub name: String,
    /// The kinds of transactions, which are measured apart.
    pub operations: Vec<&'static str>,
    /// Which of them change rows: a broken connection leaves their outcome unknown.
    pub changes: Vec<bool>,
    /// The sessions.
    pub sessions: Vec<SessionPlan>,
    /// Whether EXPLAIN may name the prepared statements; else it is asked of their text.
    pub explain_by_name: bool,
    /// Whether every transaction has to succeed: one that is lost ends the stage.
    pub exact: bool,
    /// Errors after which a transaction is sent again, beside serialization failures, deadlocks and
    /// what YugabyteDB says in their place.
    pub retried: Vec<SqlState>,
}

/// A session's stream of transactions. Pure: no input or output, no clock, no allocation in steady
/// state.
pub trait Generator: Send {
    /// Encodes the statements of the next transaction; false where there is none, now and ever
    /// after.
    fn next(&mut self, tx: &mut Transaction) -> bool;

    /// Appends the next piece of a transaction that is a COPY ([`Transaction::next_row`]).
    fn piece(&mut self, _tx: &mut Transaction, _out: &mut Vec<u8>) {}

    /// Sees each row of the reply to `tx`, and says in `outcome` what it counts.
    fn reply(&mut self, tx: &Transaction, reply: &Reply<'_>, outcome: &mut Outcome);

    /// Sees the tag of each statement of `tx` that is complete: `UPDATE 1`.
    fn complete(&mut self, _tx: &Transaction, _tag: &str, _outcome: &mut Outcome) {}
}

/// Fills `{name}` in the text of an SQL file.
pub(crate) fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut sql: String =
        template.lines().filter(|line| !line.starts_with("--")).collect::<Vec<_>>().join("\n");
    for (name, value) in values {
        sql = sql.replace(&format!("{{{name}}}"), value);
    }
    sql
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_filled_and_loses_its_comments() {
        assert_eq!(
            fill("-- why\nselect {a}\n  from {b}", &[("a", "1"), ("b", "t")]),
            "select 1\n  from t"
        );
    }
}
