//! The workloads: their common trait, and one module for each.
//!
//! A workload describes what to run, and what its results mean. It must not open a connection or read a clock. ARCHITECTURE.md
//! lists the steps to add a workload.

pub mod access;
mod build;
pub mod cbc;
pub mod check;
pub mod effects;
pub mod keys;
pub mod load;
pub mod oltp;
pub mod ping;
pub mod point;
pub mod rows;
pub mod script;
mod statements;
pub mod tables;
pub mod texts;
pub mod transaction;
pub mod turn;
pub mod unknown;
pub mod values;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use riops_wire::backend::{Columns, ServerError};
use riops_wire::sqlstate::SqlState;

pub use build::{Build, BuildFor, Describe, on};
pub use statements::Statement;

use crate::server::Dialect;
use access::{Access, Executed};
use check::{Integers, Ledger};
use effects::TransactionEffects;
use riops_model::plan::{DatasetPlan, Plan, Protocol};
use riops_model::record::Check;
use riops_model::units::Nanos;
use tables::{Dataset, Routines};
use transaction::{Reply, Transaction, TransactionOutcome};
use turn::{ShellOutput, Turn};

/// One benchmark: the tables it creates, the statements it runs, and the checks of the data.
pub trait Workload {
    /// Returns the schema-qualified names of its tables.
    fn table_names(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns the names of the tables that the sessions use.
    fn used_table_names(&self) -> Vec<String> {
        self.table_names()
    }

    /// Returns an option in use that is not supported in this dialect.
    fn unsupported(&self, _dialect: Dialect) -> Option<&'static str> {
        None
    }

    /// Returns the tables, and the jobs that fill them in parallel.
    fn dataset(&self, _dialect: Dialect) -> Dataset {
        Dataset::default()
    }

    /// Returns the routines that it requires in the server.
    fn routines(&self) -> Option<Routines> {
        None
    }

    /// Returns the dataset as the run will leave it, if later runs depend on the change; `None` if nothing
    /// changes.
    fn dataset_after_run(&self, _existing: &DatasetPlan) -> Option<DatasetPlan> {
        None
    }

    /// Returns the column by which its transactions choose rows.
    fn key_column(&self) -> Option<KeyColumn> {
        None
    }

    /// Returns what it asks the server before the run.
    fn questions(&self) -> Questions {
        Questions::default()
    }

    /// Stores the answers to its questions.
    fn set_answers(&mut self, _answers: &Answers) {}

    /// Returns what is done to the tables before the run.
    fn maintenance(&self) -> Maintenance {
        Maintenance::default()
    }

    /// Returns the statements of a session, each with its expected access path.
    fn accesses(&self) -> Vec<Access> {
        Vec::new()
    }

    /// Returns the stage of a run: a loop of sessions with one result.
    fn stage(&self, plan: &Plan) -> Stage;

    /// Returns queries for [`Self::checks`]. Each returns integers; several rows are read as one list.
    fn contents_sql(&self) -> Vec<String> {
        Vec::new()
    }

    /// Compares the results of [`Self::contents_sql`] with the changes acknowledged since `baseline`, the
    /// results right after loading.
    fn checks(&self, _contents: &Integers, _baseline: &Integers, _ledger: &Ledger) -> Vec<Check> {
        Vec::new()
    }

    /// Returns queries for the transactions of the ledger with an unknown outcome. Their results follow the results of
    /// [`Self::contents_sql`].
    fn ledger_sql(&self, _ledger: &Ledger) -> Vec<String> {
        Vec::new()
    }

    /// Returns the query for the rows of a [`Mark`](unknown::Mark), grouped by the transaction that wrote
    /// them: the first and the last key, and `xmin`. `None` if the writer of a row cannot be identified.
    fn writers_sql(&self, _mark: &unknown::Mark) -> Option<String> {
        None
    }

    /// Returns the checks for a dataset whose load did not finish; `None` if the workload has none.
    fn checks_of_incomplete_load(&self, _: &Integers, _ledger: &Ledger) -> Option<Vec<Check>> {
        None
    }
}

/// Questions of a workload to the server before the run.
#[derive(Debug, Default)]
pub struct Questions {
    /// Queries for one integer each.
    pub integers: Vec<String>,
    /// Settings with which the statements are prepared.
    pub settings: Vec<String>,
    /// Statements that may be possible to prepare. They are not executed.
    pub statements: Vec<Statement>,
}

/// The answers to [`Questions`], in the same order.
#[derive(Debug, Default)]
pub struct Answers {
    /// The integers.
    pub integers: Vec<i128>,
    /// Whether each statement can be prepared.
    pub can_be_prepared: Vec<bool>,
}

/// Maintenance of the tables before a run.
#[derive(Debug, Default)]
pub struct Maintenance {
    /// Statements to execute. Their errors are reported and ignored.
    pub sql: Vec<String>,
    /// Whether the run may change tables in ways that are not counted: by scripts from files. Their baseline is forgotten.
    pub forgets_baseline: bool,
}

/// The column by which transactions choose rows. Its values in each table are consecutive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyColumn {
    /// Name of the column.
    pub name: &'static str,
    /// Smallest value.
    pub first: i64,
    /// Number of values.
    pub keys: u64,
}

/// Setting for YugabyteDB: writes each row separately, without a distributed transaction.
const NON_TRANSACTIONAL: &str = "set yb_disable_transactional_writes = on";

/// Prevents parallel plans. The planner estimates that a range of unknown keys is 0.5 % of the table, and reads
/// such a range of a large table with parallel workers.
const NO_PARALLEL_WORKERS: &str = "set max_parallel_workers_per_gather = 0";

/// All statements of a session.
const ALL_STATEMENTS: Range<usize> = 0..usize::MAX;

/// Forces a generic plan. The planner estimates that a range of unknown keys is large and would therefore
/// plan each execution of a prepared statement again: with one row per statement, planning would cost more
/// than the row access. The query changes nothing on servers older than PostgreSQL 12, which lack the
/// setting.
const PLAN_ONCE: &str = "select set_config(name, 'force_generic_plan', false) from pg_settings where name = 'plan_cache_mode'";

/// Returns the settings of a session: these, with prepared statements a generic plan, and non-transactional writes.
fn session_settings(first: &[&str], protocol: Protocol, non_transactional: bool) -> Vec<String> {
    let plan_once = (protocol == Protocol::Prepared).then_some(PLAN_ONCE);
    let writes = non_transactional.then_some(NON_TRANSACTIONAL);
    first.iter().copied().chain(plan_once).chain(writes).map(str::to_owned).collect()
}

/// One session of a stage.
pub struct SessionPlan {
    /// Statements that are executed once after connecting.
    pub settings: Vec<String>,
    /// Statements of its transactions, which refer to them by position.
    pub statements: Vec<Statement>,
    /// Positions of the statements whose plans this session checks, if an access path is expected.
    pub watched: Range<usize>,
    /// The transactions.
    pub work: Work,
}

/// Where the transaction loop of a session runs.
pub enum Work {
    /// The client sends each transaction.
    Client(Box<dyn Generator>),
    /// One call runs the loop in the server. All sessions of a stage are of the same kind.
    Server(Box<dyn ServerLoop>),
}

/// Limits of a call to the loop in the server. Times are seconds since 1970 on the server's clock.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Call<'a> {
    /// Unique identifier of the call. It stays the same if the server itself runs the call again.
    pub id: String,
    /// Start of the first transaction.
    pub start_s: f64,
    /// Start of the measurement.
    pub measure_s: f64,
    /// End of the measurement; `None` if a count ends it.
    pub until_s: Option<f64>,
    /// Number of transactions to measure.
    pub transactions: Option<u64>,
    /// Minimum number of rows to measure.
    pub rows: Option<u64>,
    /// Interval between two reports, in seconds.
    pub report_s: f64,
    /// EXPLAIN statements to execute during the measurement.
    pub explain_statements: &'a [String],
}

/// A loop in the server that repeats the transactions of one session. Pure: no I/O, no clock.
pub trait ServerLoop: Send {
    /// Returns the statement that runs the loop. Its result is the last report.
    fn call_sql(&self, call: &Call<'_>) -> String;

    /// Parses a report: the DETAIL of a notice, or the result of the call. Returns `None` for any other text.
    fn read(&self, report: &str) -> Option<LoopReport>;

    /// Returns the maximum number of updating transactions, and of their rows, before the first report.
    fn before_first_report(&self) -> (u64, u64);

    /// Returns the effects of this number of rows of an operation.
    fn effects(&self, _operation: usize, _rows: u64) -> TransactionEffects {
        TransactionEffects::default()
    }
}

/// Progress of a loop in the server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LoopReport {
    /// Number of completed intervals of the measurement.
    pub intervals: usize,
    /// End of the last counted transaction, in seconds since the start of the measurement.
    pub ended_s: f64,
    /// Counts of the measurement, by operation.
    pub measured: Vec<LoopCounts>,
    /// Transactions and rows committed in all phases, by operation.
    pub committed: Vec<(u64, u64)>,
    /// Maximum number of further changed rows with an unknown outcome, if this is the last report.
    pub rows_unknown: u64,
    /// Number of transactions that change these rows.
    pub transactions_unknown: u64,
    /// Number of retries after serialization failures.
    pub conflicts: u64,
    /// Number of retries after deadlocks.
    pub deadlocks: u64,
    /// Service time of a transaction that was committed after the measurement.
    pub drained: Option<Nanos>,
    /// Minimum number of replies with missing rows.
    pub wrong_replies: u64,
    /// Plans returned by [`Call::explain_statements`], in the same order.
    pub plans: Vec<String>,
}

/// Counts of one operation of a loop in the server.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LoopCounts {
    /// Number of transactions.
    pub transactions: u64,
    /// Number of their rows.
    pub rows: u64,
    /// Service times with their frequencies.
    pub latencies: Vec<(Nanos, u64)>,
    /// Longest service time.
    pub longest: Nanos,
}

/// A part of a run with one result.
#[derive(Default)]
pub struct Stage {
    /// Name in the record.
    pub name: String,
    /// Statements to execute before it, which bring the tables into the state that the access paths require.
    pub before: Vec<String>,
    /// EXPLAIN statements that show how many blocks a read accesses.
    pub read_samples: Vec<String>,
    /// The query for the size of a row, in bytes.
    pub row_size_sql: Option<String>,
    /// Kinds of transactions, which are measured separately.
    pub operations: Vec<Cow<'static, str>>,
    /// Whether each operation changes rows: if the connection is lost, its outcome is unknown.
    pub changes: Vec<bool>,
    /// Sessions of the stage.
    pub sessions: Vec<SessionPlan>,
    /// Whether EXPLAIN can refer to the prepared statements; otherwise it explains the statement texts.
    pub explain_by_name: bool,
    /// Whether every transaction must succeed: a lost transaction ends the stage.
    pub exact: bool,
    /// Errors after which a transaction is retried, in addition to serialization failures, deadlocks and
    /// the corresponding errors of YugabyteDB.
    pub retried: Vec<SqlState>,
    /// Commands of scripts, which are measured separately.
    pub commands: Vec<ScriptCommand>,
    /// Statements that its sessions execute without preparing them.
    pub unprepared: Vec<String>,
    /// Seeds of pgbench's random numbers for each worker: for the starts, and for the sampled log. Empty for the random
    /// numbers of riops.
    pub streams: Vec<[u64; 2]>,
}

impl Stage {
    /// Creates a stage without operations from its sessions, whose statements EXPLAIN knows by name if they are prepared.
    fn with_sessions(plan: &Plan, session: impl Fn(u32) -> SessionPlan) -> Self {
        Self {
            sessions: (0..plan.sessions).map(session).collect(),
            explain_by_name: plan.protocol == Protocol::Prepared,
            ..Self::default()
        }
    }

    /// Sets what its sessions call with the output of their scripts, and with notices of the server.
    pub fn show_with(&mut self, on_message: &OnMessage, on_notice: &OnMessage) {
        for session in &mut self.sessions {
            if let Work::Client(generator) = &mut session.work {
                generator.show_with(on_message, on_notice);
            }
        }
    }

    /// Returns the texts of its statements, each once. The text of a loop in the server ends with the opening
    /// parenthesis.
    pub fn statement_texts(&self) -> BTreeSet<String> {
        let statements = self.sessions.iter().flat_map(|session| &session.statements);
        let prepared = statements.map(|statement| statement.sql.clone());
        let calls = self.sessions.iter().filter_map(|session| match &session.work {
            Work::Client(_) => None,
            Work::Server(server_loop) => {
                let sql = server_loop.call_sql(&Call::default());
                Some(sql.split_inclusive('(').next().unwrap_or_default().to_owned())
            }
        });
        prepared.chain(self.unprepared.iter().cloned()).chain(calls).collect()
    }
}

/// A command of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptCommand {
    /// The operation of its script, from 0.
    pub operation: usize,
    /// Position in its script, from 1.
    pub ordinal: usize,
    /// Its first line.
    pub title: String,
    /// Whether it takes time that is measured: a statement, or a wait.
    pub is_measured: bool,
}

/// Callback for a line of output of `debug()` in a script, called from several threads. The session waits for it.
pub type OnMessage = Arc<dyn Fn(&str) + Send + Sync>;

/// The stream of transactions of one session. Pure: no I/O, no clock, no allocation in steady state.
pub trait Generator: Send {
    /// Encodes the statements of the next transaction. Returns false if there are no more transactions.
    fn next(&mut self, tx: &mut Transaction) -> bool;

    /// Returns whether a transaction may follow. A generator that returns true may still have none.
    fn has_next(&self) -> bool {
        true
    }

    /// Counts a transaction whose start was skipped, if the number of transactions is limited. Returns its operation, if it
    /// was chosen before the start.
    fn skip(&mut self) -> Option<usize> {
        None
    }

    /// Appends the next piece of the data of a COPY ([`Transaction::next_row`]).
    fn piece(&mut self, _tx: &mut Transaction, _out: &mut Vec<u8>) {}

    /// Processes a row of the reply to `tx` and updates `outcome`.
    fn reply(&mut self, tx: &Transaction, reply: &Reply<'_>, outcome: &mut TransactionOutcome);

    /// Processes the command tag of a completed statement of `tx`, such as `UPDATE 1`.
    fn complete(&mut self, _tx: &Transaction, _tag: &str, _outcome: &mut TransactionOutcome) {}

    /// Processes the columns of the rows that follow, if the transaction is interactive.
    fn columns(&mut self, _tx: &Transaction, _columns: &Columns<'_>) {}

    /// Returns what an interactive transaction does next: at its beginning, after all replies to the last turn, and
    /// after a wait, with the output of the shell. `in_block` states whether a transaction block is open.
    fn proceed(&mut self, _: &mut Transaction, _in_block: bool, _: Option<&ShellOutput>) -> Turn {
        Turn::End
    }

    /// Returns to the beginning of an interactive transaction, for a new attempt.
    fn restart(&mut self, _tx: &mut Transaction) {}

    /// Starts on a new connection.
    fn connected(&mut self) {}

    /// Whether it notes the executions whose plans are checked.
    fn notes_executions(&self) -> bool {
        false
    }

    /// Returns the executions that it has noted since the last call.
    fn take_executed(&mut self) -> Vec<Executed> {
        Vec::new()
    }

    /// Sets the callbacks for the output of `debug()` in its scripts, and for notices and warnings of the server.
    fn show_with(&mut self, _on_message: &OnMessage, _on_notice: &OnMessage) {}

    /// Processes a notice or a warning of the server.
    fn notice(&mut self, _notice: &ServerError) {}

    /// Processes an error of the server in an attempt, which is repeated or not.
    fn failed(&mut self, _tx: &Transaction, _error: &ServerError, _is_repeated: bool) {}

    /// Returns where the statements are that were sent last, for the error that ends the run: `script.sql:2`.
    fn place(&self, _tx: &Transaction) -> Option<String> {
        None
    }
}

/// Replaces `{name}` in the text of an SQL file by its value and removes comment lines.
pub fn fill(template: &str, values: &[(&str, &str)]) -> String {
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
    fn replaces_placeholders_and_removes_comment_lines() {
        assert_eq!(
            fill("-- why\nselect {a}\n  from {b}", &[("a", "1"), ("b", "t")]),
            "select 1\n  from t"
        );
    }
}
