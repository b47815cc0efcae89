//! One unit of work of a session: encoded for the protocol that the run uses, and what its reply
//! says. Pure, and without an allocation in steady state.

use std::sync::Arc;

use riops_wire::backend::Row;
use riops_wire::frontend::{self, EncodeError};
use serde::{Deserialize, Serialize};

use super::statement::Statement;
use super::values::{Literals, Values};
use crate::plan::Protocol;

/// A statement's text, cut at its parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Pieces {
    /// Text, and the parameter behind it by its number from 0.
    pieces: Vec<(String, usize)>,
    tail: String,
}

impl Pieces {
    /// Statements of riops hold no `$` but for their parameters.
    fn of(sql: &str) -> Self {
        let mut parts = sql.split('$');
        let mut text = parts.next().unwrap_or_default().to_owned();
        let mut pieces = Vec::new();
        for part in parts {
            let digits = part.len() - part.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let (number, rest) = part.split_at(digits);
            let number = number.parse::<usize>().unwrap_or(1).saturating_sub(1);
            pieces.push((std::mem::replace(&mut text, rest.to_owned()), number));
        }
        Self { pieces, tail: text }
    }

    fn write(&self, out: &mut String, mut literal: impl FnMut(usize, &mut String)) {
        for (text, number) in &self.pieces {
            out.push_str(text);
            literal(*number, out);
        }
        out.push_str(&self.tail);
    }
}

/// A statement with these literals in the place of its parameters.
#[must_use]
pub fn with_literals(sql: &str, parameters: &[String]) -> String {
    let mut text = String::new();
    Pieces::of(sql).write(&mut text, |number, out| {
        out.push_str(parameters.get(number).map_or("", String::as_str));
    });
    text
}

/// The statements of a session, ready to be encoded for one protocol.
#[derive(Debug)]
pub struct Statements {
    protocol: Protocol,
    list: Vec<(Statement, Pieces)>,
}

impl Statements {
    /// For transactions that name them by their position.
    #[must_use]
    pub fn new(protocol: Protocol, statements: Vec<Statement>) -> Self {
        let list = statements
            .into_iter()
            .map(|statement| {
                let pieces = Pieces::of(&statement.sql);
                (statement, pieces)
            })
            .collect();
        Self { protocol, list }
    }

    /// How they are sent.
    #[must_use]
    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// The statements.
    pub fn iter(&self) -> impl Iterator<Item = &Statement> {
        self.list.iter().map(|(statement, _)| statement)
    }
}

/// What changes come to, in numbers that the database can be asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Effects {
    /// Rows that were inserted.
    pub inserted: u64,
    /// Rows of the load that were inserted again.
    pub reinserted: u64,
    /// Rows that were deleted.
    pub deleted: u64,
    /// By how much the sum of a column has grown: increments, and what was inserted.
    pub added: u64,
}

impl Effects {
    /// Whether nothing has changed.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// So many times the same.
    #[must_use]
    pub fn times(self, count: u64) -> Self {
        Self {
            inserted: self.inserted * count,
            reinserted: self.reinserted * count,
            deleted: self.deleted * count,
            added: self.added * count,
        }
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            inserted: self.inserted + other.inserted,
            reinserted: self.reinserted + other.reinserted,
            deleted: self.deleted + other.deleted,
            added: self.added + other.added,
        }
    }
}

/// What is sent at once and answered before the next is sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Step {
    /// Where its bytes end.
    end: usize,
    statements: u32,
    /// What it is about to change, where it changes anything.
    effects: Option<Effects>,
}

/// One unit of work, as the bytes that are sent: a retry sends the same bytes again.
#[derive(Debug)]
pub struct Transaction {
    known: Arc<Statements>,
    bytes: Vec<u8>,
    steps: Vec<Step>,
    /// Statements since the last step, and what they are about to change.
    open_statements: u32,
    open_effects: Option<Effects>,
    /// Of the simple protocol.
    sql: String,
    literals: Literals,
    statements: u32,
    operation: usize,
    rows_asked: u64,
    /// Whether each step is committed by itself.
    autocommit: bool,
    rest: Option<Rest>,
    error: Option<EncodeError>,
}

/// COPY data that follow the bytes, made a piece at a time when the socket takes more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rest {
    /// Number of the first row, and of the first that is not sent yet.
    first: u64,
    next: u64,
    /// Whether the last piece is still to come.
    open: bool,
}

impl Transaction {
    /// An empty one, of these statements.
    #[must_use]
    pub fn new(known: Arc<Statements>) -> Self {
        Self {
            known,
            bytes: Vec::new(),
            steps: Vec::new(),
            open_statements: 0,
            open_effects: None,
            sql: String::new(),
            literals: Literals::default(),
            statements: 0,
            operation: 0,
            rows_asked: 0,
            autocommit: false,
            rest: None,
            error: None,
        }
    }

    /// Forgets the last transaction and begins one of kind `operation`, an index into the stage's
    /// operations, which is about to touch `rows_asked` rows.
    pub fn begin(&mut self, operation: usize, rows_asked: u64) {
        self.bytes.clear();
        self.steps.clear();
        self.open_statements = 0;
        self.open_effects = None;
        self.sql.clear();
        self.statements = 0;
        self.operation = operation;
        self.rows_asked = rows_asked;
        self.autocommit = false;
        self.rest = None;
        self.error = None;
    }

    /// Appends one execution of the statement at this position; its parameters are all `bigint`.
    pub fn execute(&mut self, statement: usize, parameters: &[i64]) {
        self.execute_with(statement, parameters.len(), |values| {
            for &parameter in parameters {
                values.bigint(parameter);
            }
        });
    }

    /// Appends one execution of the statement at this position, with as many `parameters`, each of
    /// which `write` has to write, in their order.
    pub fn execute_with(
        &mut self,
        statement: usize,
        parameters: usize,
        write: impl FnOnce(&mut Values<'_>),
    ) {
        self.statements += 1;
        self.open_statements += 1;
        let Some((statement, pieces)) = self.known.list.get(statement) else {
            return;
        };
        if self.known.protocol == Protocol::Simple {
            // One message, as one transaction: what stands in it is run as a whole.
            if self.open_statements > 1 {
                self.sql.push_str("; ");
            }
            self.literals.clear();
            write(&mut Values::literals(&mut self.literals));
            let literals = &self.literals;
            return pieces.write(&mut self.sql, |number, out| out.push_str(literals.get(number)));
        }
        let out = &mut self.bytes;
        let (name, parsed) = match self.known.protocol {
            Protocol::Extended => {
                ("", frontend::parse(out, "", &statement.sql, &statement.parameter_types))
            }
            _ => (statement.name.as_str(), Ok(())),
        };
        let values = |out: &mut Vec<u8>| {
            let mut values = Values::binary(out);
            write(&mut values);
            values.error().map_or(Ok(()), Err)
        };
        let encoded = parsed
            .and_then(|()| frontend::bind(out, name, parameters, values))
            .and_then(|()| frontend::Message::Execute { portal: "", rows_max: 0 }.encode(out));
        if let Err(error) = encoded {
            self.error.get_or_insert(error);
        }
    }

    /// Makes it a COPY FROM STDIN by this statement, of as many rows as are asked, the first of
    /// which has the number `first`. Their data follow piece by piece, and [`Self::end`] is not
    /// called. It is sent as a simple query, whatever the protocol: COPY has no parameters.
    pub fn copy(&mut self, sql: &str, first: u64) {
        self.statements = 1;
        self.rest = Some(Rest { first, next: first, open: true });
        if let Err(error) = frontend::Message::Query(sql).encode(&mut self.bytes) {
            self.error.get_or_insert(error);
        }
        self.steps.push(Step { end: self.bytes.len(), statements: 1, effects: None });
    }

    /// The number of the next row whose COPY data are to be sent; `None` where nothing more is.
    #[must_use]
    pub fn next_row(&self) -> Option<u64> {
        self.rest.filter(|rest| rest.open).map(|rest| rest.next)
    }

    /// The number of the row behind the last one.
    #[must_use]
    pub fn end_row(&self) -> u64 {
        self.rest.map_or(0, |rest| rest.first + self.rows_asked)
    }

    /// Says that the data of the rows before this one are sent; with `last` nothing follows.
    pub fn sent_rows(&mut self, next: u64, last: bool) {
        if let Some(rest) = &mut self.rest {
            (rest.next, rest.open) = (next, !last);
        }
    }

    /// Takes the data from their beginning once more.
    pub fn rewind(&mut self) {
        if let Some(rest) = &mut self.rest {
            (rest.next, rest.open) = (rest.first, true);
        }
    }

    /// Ends what is sent at once: what follows is sent when the server has answered it.
    pub fn end_step(&mut self) {
        let last = match self.known.protocol {
            Protocol::Simple => frontend::Message::Query(&self.sql),
            Protocol::Prepared | Protocol::Extended => frontend::Message::Sync,
        };
        if let Err(error) = last.encode(&mut self.bytes) {
            self.error.get_or_insert(error);
        }
        let (statements, effects) = (self.open_statements, self.open_effects.take());
        self.steps.push(Step { end: self.bytes.len(), statements, effects });
        self.open_statements = 0;
        self.sql.clear();
    }

    /// Ends the transaction.
    pub fn end(&mut self) {
        self.end_step();
    }

    /// Says what the statement that was appended last is about to change.
    pub fn changes(&mut self, effects: Effects) {
        self.open_effects = Some(self.open_effects.unwrap_or_default().and(effects));
    }

    /// Says that each step is committed by itself.
    pub fn autocommit(&mut self) {
        self.autocommit = true;
    }

    /// What it is about to change.
    #[must_use]
    pub fn effects_asked(&self) -> Effects {
        self.steps.iter().filter_map(|step| step.effects).fold(Effects::default(), Effects::and)
    }

    /// What a step is about to change; `None` where it changes nothing.
    #[must_use]
    pub fn step_effects(&self, number: usize) -> Option<Effects> {
        self.steps.get(number).and_then(|step| step.effects)
    }

    /// Whether each step is committed by itself.
    #[must_use]
    pub fn is_autocommit(&self) -> bool {
        self.autocommit
    }

    /// How many steps it has.
    #[must_use]
    pub fn steps(&self) -> usize {
        self.steps.len()
    }

    /// What is sent in one step, and how many statements that is.
    #[must_use]
    pub fn step(&self, number: usize) -> (&[u8], u32) {
        let start = number.checked_sub(1).and_then(|before| self.steps.get(before));
        let Step { end, statements, .. } = self.steps.get(number).copied().unwrap_or_default();
        let bytes = self.bytes.get(start.map_or(0, |step| step.end)..end);
        (bytes.unwrap_or_default(), statements)
    }

    /// What is sent, of all steps.
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

    /// A row of its reply.
    #[must_use]
    pub fn reply<'a>(&self, row: Row<'a>) -> Reply<'a> {
        Reply { row, binary: self.known.protocol != Protocol::Simple }
    }
}

/// A row of a reply, in the format of the protocol that asked for it.
#[derive(Debug, Clone, Copy)]
pub struct Reply<'a> {
    row: Row<'a>,
    binary: bool,
}

impl<'a> Reply<'a> {
    /// The first column, a `bigint`, as a number; `None` where it is none.
    #[must_use]
    pub fn first_bigint(&self) -> Option<i64> {
        let value = self.row.values().next()?.ok()??;
        if self.binary {
            return Some(i64::from_be_bytes(value.try_into().ok()?));
        }
        std::str::from_utf8(value).ok()?.parse().ok()
    }

    /// Bytes of the first column; `None` where it is NULL or cannot be read.
    #[must_use]
    pub fn first_length(&self) -> Option<usize> {
        Some(self.row.values().next()?.ok()??.len())
    }

    /// The columns, all of them texts; `None` where one is NULL or cannot be read.
    pub fn texts(&self) -> impl Iterator<Item = Option<&'a [u8]>> + use<'a> {
        self.row.values().map(|value| value.ok().flatten())
    }
}

/// What the reply to one transaction says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Rows read or written, counted from the reply.
    pub rows: u64,
    /// Whether the reply is not what was asked for: rows are missing, or it cannot be read.
    pub wrong: bool,
    /// What has changed, for workloads that count it.
    pub effects: Effects,
    /// Statements that are complete, for workloads that tell them apart.
    pub complete: u32,
    /// Rows that the current statement has returned so far, for the same.
    pub returned: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use riops_wire::frame::{self, FRAME_BYTES_MAX};
    use riops_wire::frontend::Message;

    fn statements(protocol: Protocol) -> Arc<Statements> {
        let statement = |name: &str, sql: &str| Statement {
            name: name.to_owned(),
            sql: sql.to_owned(),
            parameter_types: vec![20, 20],
        };
        let list = vec![
            statement("read", "select $1 + $2"),
            statement("bad\0name", "select $2 from t where a > $1 and b > $2 limit 1"),
        ];
        Arc::new(Statements::new(protocol, list))
    }

    /// The kinds of messages of a transaction of two statements, and the SQL in them.
    fn sent(protocol: Protocol) -> (String, String) {
        let mut tx = Transaction::new(statements(protocol));
        tx.begin(0, 5);
        tx.execute(0, &[1, -2]);
        tx.execute(0, &[3, 4]);
        tx.end();
        let (mut kinds, mut sql) = (String::new(), String::new());
        let mut rest = tx.bytes();
        while let Some((frame, later)) = frame::split(rest, FRAME_BYTES_MAX).unwrap() {
            kinds.push(char::from(frame.tag));
            match Message::decode(frame).unwrap() {
                Message::Query(text) | Message::Parse { sql: text, .. } => sql.push_str(text),
                _ => {}
            }
            rest = later;
        }
        (kinds, sql)
    }

    #[test]
    fn each_protocol_sends_its_messages() {
        assert_eq!(sent(Protocol::Prepared), ("BEBES".to_owned(), String::new()));
        let (kinds, sql) = sent(Protocol::Extended);
        assert_eq!((kinds.as_str(), sql.as_str()), ("PBEPBES", "select $1 + $2select $1 + $2"));
        let (kinds, sql) = sent(Protocol::Simple);
        assert_eq!((kinds.as_str(), sql.as_str()), ("Q", "select 1 + -2; select 3 + 4"));
    }

    #[test]
    fn parameters_may_stand_anywhere_and_more_than_once() {
        let sql = "select $2 from t where a > $1 and b > $2 limit 1";
        assert_eq!(
            with_literals(sql, &["7".to_owned(), "8".to_owned()]),
            "select 8 from t where a > 7 and b > 8 limit 1"
        );
        assert_eq!(with_literals("select 1", &[]), "select 1");
    }

    #[test]
    fn a_transaction_is_cut_into_steps_that_are_its_bytes() {
        for (protocol, kinds) in
            [(Protocol::Prepared, ["BES", "BEBES"]), (Protocol::Simple, ["Q", "Q"])]
        {
            let mut tx = Transaction::new(statements(protocol));
            tx.begin(0, 3);
            tx.execute(0, &[1, 2]);
            tx.end_step();
            tx.execute(0, &[3, 4]);
            tx.execute(0, &[5, 6]);
            tx.end();
            assert_eq!((tx.steps(), tx.statements()), (2, 3));
            let mut all = Vec::new();
            for (number, expected) in kinds.iter().enumerate() {
                let (bytes, statements) = tx.step(number);
                let mut found = String::new();
                let mut rest = bytes;
                while let Some((frame, later)) = frame::split(rest, FRAME_BYTES_MAX).unwrap() {
                    found.push(char::from(frame.tag));
                    rest = later;
                }
                assert_eq!((found.as_str(), statements as usize), (*expected, number + 1));
                all.extend_from_slice(bytes);
            }
            assert_eq!((all.as_slice(), tx.step(2)), (tx.bytes(), (&[][..], 0)));
        }
    }

    #[test]
    fn a_transaction_that_cannot_be_encoded_says_so() {
        let mut tx = Transaction::new(statements(Protocol::Prepared));
        tx.begin(1, 10);
        tx.execute(1, &[1, 2]);
        tx.end();
        assert!(tx.error().is_some());
        tx.begin(0, 5);
        tx.execute(0, &[1, 2]);
        tx.end();
        assert_eq!((tx.error(), tx.statements(), tx.operation(), tx.rows_asked()), (None, 1, 0, 5));
        assert_eq!(tx.bytes().last(), Some(&4));
    }
}
