//! What can be measured: the shape of a workload, and the list of them.
//!
//! A workload describes; it opens no connection and reads no clock. Adding one is a folder here, a
//! folder under `sql/` and a subcommand of the binary.

pub mod access;
pub mod dataset;
pub mod keys;
pub mod prepare;
pub mod rows;
pub mod verify;

use riops_wire::backend::Row;
use riops_wire::frontend::{self, EncodeError};

use crate::plan::RunPlan;
use crate::target::Flavour;
use access::Access;
use dataset::Dataset;
use verify::{Check, Ledger};

/// One benchmark: what it creates, what it runs, how it is checked.
pub trait Workload {
    /// Its name on the command line and in the record.
    fn name(&self) -> &'static str;

    /// The names of its tables in the schema `riops`.
    fn table_names(&self) -> Vec<String>;

    /// The tables, and the jobs that fill them in parallel.
    fn dataset(&self, flavour: Flavour) -> Dataset;

    /// Statements that bring the tables into the state that the access paths need, before a run.
    fn settle_sql(&self) -> Vec<String>;

    /// Each statement of a session with the access path that it must take.
    fn accesses(&self) -> Vec<Access>;

    /// Loops of sessions, each with one result.
    fn stages(&self, plan: &RunPlan) -> Vec<Stage>;

    /// Queries that return whole numbers, one row each, for [`Self::checks`].
    fn contents_sql(&self) -> Vec<String>;

    /// What the answers to [`Self::contents_sql`] prove, given what was acknowledged since
    /// `baseline`, the answers just after loading.
    fn checks(&self, contents: &[Vec<i128>], baseline: &[Vec<i128>], ledger: &Ledger)
    -> Vec<Check>;
}

/// A statement that each session prepares once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// Its name in the session.
    pub name: String,
    /// Its text, with `$1`, `$2`, …
    pub sql: String,
    /// OIDs of its parameters' types.
    pub parameter_types: Vec<u32>,
}

/// The OID of `bigint`, which is the same in every relative of PostgreSQL.
pub const BIGINT_OID: u32 = 20;

/// One session of a stage.
pub struct SessionPlan {
    /// Run once, after connecting.
    pub settings: Vec<String>,
    /// Prepared once, after the settings.
    pub statements: Vec<Statement>,
    /// The transactions.
    pub generator: Box<dyn Generator>,
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
}

/// A session's stream of transactions. Pure: no input or output, no clock, no allocation in steady
/// state.
pub trait Generator: Send {
    /// Encodes the statements of the next transaction.
    fn next(&mut self, tx: &mut Transaction);

    /// Sees each row of the reply, and says in `outcome` what it counts.
    fn reply(&mut self, row: &Row<'_>, outcome: &mut Outcome);
}

/// One unit of work, as the bytes that are sent: a retry sends the same bytes again.
#[derive(Debug, Default)]
pub struct Transaction {
    bytes: Vec<u8>,
    statements: u32,
    operation: usize,
    rows_asked: u64,
    error: Option<EncodeError>,
}

impl Transaction {
    /// Forgets the last transaction and begins one of kind `operation`, an index into the stage's
    /// operations, which is about to touch `rows_asked` rows.
    pub fn begin(&mut self, operation: usize, rows_asked: u64) {
        self.bytes.clear();
        self.statements = 0;
        self.operation = operation;
        self.rows_asked = rows_asked;
        self.error = None;
    }

    /// Appends one execution of a prepared statement whose parameters are all `bigint`.
    pub fn execute(&mut self, statement: &str, parameters: &[i64]) {
        let encoded =
            frontend::bind_bigints(&mut self.bytes, statement, parameters).and_then(|()| {
                frontend::Message::Execute { portal: "", rows_max: 0 }.encode(&mut self.bytes)
            });
        self.statements += 1;
        if let Err(error) = encoded {
            self.error.get_or_insert(error);
        }
    }

    /// Ends the transaction.
    pub fn end(&mut self) {
        if let Err(error) = frontend::Message::Sync.encode(&mut self.bytes) {
            self.error.get_or_insert(error);
        }
    }

    /// What is sent.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many statements it has.
    #[must_use]
    pub fn statements(&self) -> u32 {
        self.statements
    }

    /// Which kind it is.
    #[must_use]
    pub fn operation(&self) -> usize {
        self.operation
    }

    /// Rows that it is about to touch.
    #[must_use]
    pub fn rows_asked(&self) -> u64 {
        self.rows_asked
    }

    /// Why it cannot be sent, where it cannot.
    #[must_use]
    pub fn error(&self) -> Option<&EncodeError> {
        self.error.as_ref()
    }
}

/// What the reply to one transaction says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Rows read or written, counted from the reply.
    pub rows: u64,
    /// Whether the reply is not what was asked for: rows are missing, or it cannot be read.
    pub wrong: bool,
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

    #[test]
    fn a_transaction_that_cannot_be_encoded_says_so() {
        let mut tx = Transaction::default();
        tx.begin(1, 10);
        tx.execute("bad\0name", &[1]);
        tx.end();
        assert!(tx.error().is_some());
        tx.begin(0, 5);
        tx.execute("good", &[1, 2]);
        tx.end();
        assert_eq!((tx.error(), tx.statements(), tx.operation(), tx.rows_asked()), (None, 1, 0, 5));
        assert_eq!(tx.bytes().last(), Some(&4));
    }
}
