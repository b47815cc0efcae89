//! One unit of work of a session: encodes it for the protocol of the run and decodes its reply. Pure, and
//! without allocation in steady state.

mod interactive;

use std::sync::Arc;

use riops_wire::backend::Row;
use riops_wire::frontend::{self, EncodeError, SYNC};

use super::effects::TransactionEffects;
use super::statements::Encoded;
pub use super::statements::{Statements, with_literals};
use super::unknown::Mark;
use super::values::{Literals, Values};
use crate::plan::Protocol;

/// A round trip: the statements sent together before waiting for the reply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Step {
    /// End of its bytes in the transaction.
    end: usize,
    statements: u32,
    /// Position of its expected effects; `None` if it changes nothing.
    effects: Option<u32>,
}

/// One unit of work, encoded as bytes. A retry sends the same bytes again.
///
/// The layout is that of the declaration: what every transaction uses comes first, in few cache lines.
#[derive(Debug)]
#[repr(C)]
pub struct Transaction {
    known: Arc<Statements>,
    bytes: Vec<u8>,
    steps: Vec<Step>,
    operation: usize,
    expected_rows: u64,
    statements: u32,
    /// Number of statements since the last step.
    open_statements: u32,
    /// Whether the last of the effects belongs to these statements.
    open_effects: bool,
    /// Whether each step is committed separately.
    autocommit: bool,
    /// Whether the effects may be smaller than expected.
    may_miss_rows: bool,
    /// Whether its steps depend on replies: the transaction has the steps of one turn, which are sent together.
    interactive: bool,
    /// Whether the current turn of an interactive transaction may commit.
    may_commit: bool,
    /// Whether `extras` has anything.
    has_extras: bool,
    /// Number of the command of an interactive transaction that sent the current turn, over all scripts.
    command: usize,
    extras: Extras,
}

/// What transactions that only read with the extended protocol do not have.
#[derive(Debug, Default)]
struct Extras {
    /// Expected effects of the steps that change something, in order.
    effects: Vec<TransactionEffects>,
    /// Rows that each step writes, with the number of the step.
    marks: Vec<(usize, Mark)>,
    copy_progress: Option<CopyProgress>,
    error: Option<EncodeError>,
    /// SQL text for the simple protocol.
    sql: String,
    literals: Literals,
}

/// Progress of the COPY data after the encoded bytes. The data are generated piece by piece when the socket
/// is writable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CopyProgress {
    /// Numbers of the first row and of the first unsent row.
    first: u64,
    next: u64,
    /// Whether more data follow.
    open: bool,
}

impl Extras {
    fn clear(&mut self) {
        self.effects.clear();
        self.marks.clear();
        self.copy_progress = None;
        self.error = None;
        self.sql.clear();
    }
}

impl Transaction {
    /// Creates an empty transaction on these statements.
    #[must_use]
    pub fn new(known: Arc<Statements>) -> Self {
        Self {
            known,
            bytes: Vec::new(),
            steps: Vec::new(),
            operation: 0,
            expected_rows: 0,
            statements: 0,
            open_statements: 0,
            open_effects: false,
            autocommit: false,
            may_miss_rows: false,
            interactive: false,
            may_commit: false,
            has_extras: false,
            command: 0,
            extras: Extras::default(),
        }
    }

    /// Clears the previous transaction and begins one of kind `operation`, an index into the operations of
    /// the stage, which is expected to read or change `expected_rows` rows.
    pub fn begin(&mut self, operation: usize, expected_rows: u64) {
        self.bytes.clear();
        self.steps.clear();
        self.operation = operation;
        self.expected_rows = expected_rows;
        self.statements = 0;
        self.open_statements = 0;
        self.open_effects = false;
        self.autocommit = false;
        self.may_miss_rows = false;
        self.interactive = false;
        if std::mem::take(&mut self.has_extras) {
            self.extras.clear();
        }
    }

    fn extras(&mut self) -> &mut Extras {
        self.has_extras = true;
        &mut self.extras
    }

    #[cold]
    fn note_error(&mut self, error: EncodeError) {
        self.extras().error.get_or_insert(error);
    }

    /// Appends one execution of the statement at this position. All its parameters are `bigint`.
    pub fn execute(&mut self, statement: usize, parameters: &[i64]) {
        self.execute_with(statement, parameters.len(), |values| {
            for &parameter in parameters {
                values.bigint(parameter);
            }
        });
    }

    /// Appends one execution of the statement at this position. `write` must append exactly `parameters`
    /// values, in order.
    pub fn execute_with(
        &mut self,
        statement: usize,
        parameters: usize,
        write: impl FnOnce(&mut Values<'_>),
    ) {
        self.statements += 1;
        self.open_statements += 1;
        let Some(Encoded { execution, statement, pieces }) = self.known.get(statement) else {
            return;
        };
        if self.known.protocol() == Protocol::Simple {
            self.has_extras = true;
            let Extras { sql, literals, .. } = &mut self.extras;
            // The server executes all statements of one Query message as one transaction.
            if self.open_statements > 1 {
                sql.push_str("; ");
            }
            literals.clear();
            write(&mut Values::literals(literals));
            return pieces.write(sql, |number, out| out.push_str(literals.get(number)));
        }
        let out = &mut self.bytes;
        let parsed = match self.known.protocol() {
            Protocol::Extended => {
                frontend::parse(out, "", &statement.sql, &statement.parameter_types)
            }
            Protocol::Prepared | Protocol::Simple => Ok(()),
        };
        let encoded = parsed.and_then(|()| {
            let execution = execution.as_ref().map_err(Clone::clone)?;
            debug_assert_eq!(execution.parameters, parameters, "{}", statement.sql);
            execution.encode(out, |out| {
                let mut values = Values::binary(out);
                write(&mut values);
                values.error().map_or(Ok(()), Err)
            })
        });
        if let Err(error) = encoded {
            self.note_error(error);
        }
    }

    /// Turns the transaction into a COPY FROM STDIN with this statement, for the number of rows passed to
    /// [`Self::begin`], starting at row `first`. The data follow piece by piece; [`Self::end`] must not be
    /// called. It is sent as a simple query with every protocol because COPY has no parameters.
    pub fn copy(&mut self, sql: &str, first: u64) {
        self.statements = 1;
        self.extras().copy_progress = Some(CopyProgress { first, next: first, open: true });
        if let Err(error) = frontend::Message::Query(sql).encode(&mut self.bytes) {
            self.note_error(error);
        }
        self.steps.push(Step { end: self.bytes.len(), statements: 1, effects: None });
    }

    /// Returns the number of the next row of COPY data to send; `None` if all data are sent.
    #[must_use]
    #[inline]
    pub fn next_row(&self) -> Option<u64> {
        self.copy_progress().filter(|copy| copy.open).map(|copy| copy.next)
    }

    /// Returns the number after the last row.
    #[must_use]
    pub fn end_row(&self) -> u64 {
        self.copy_progress().map_or(0, |copy| copy.first + self.expected_rows)
    }

    fn copy_progress(&self) -> Option<CopyProgress> {
        if self.has_extras { self.extras.copy_progress } else { None }
    }

    /// Records that the data of all rows before `next` are sent. With `last` no data follow.
    pub fn sent_rows(&mut self, next: u64, last: bool) {
        if let Some(copy) = &mut self.extras.copy_progress {
            (copy.next, copy.open) = (next, !last);
        }
    }

    /// Restarts the COPY data from the first row.
    pub fn rewind(&mut self) {
        if self.has_extras
            && let Some(copy) = &mut self.extras.copy_progress
        {
            (copy.next, copy.open) = (copy.first, true);
        }
    }

    /// Ends a step: the statements after it are sent when the reply to this step has arrived.
    #[inline]
    pub fn end_step(&mut self) {
        if self.known.protocol() == Protocol::Simple {
            let query = frontend::Message::Query(&self.extras.sql);
            if let Err(error) = query.encode(&mut self.bytes) {
                self.note_error(error);
            }
        } else {
            self.bytes.extend_from_slice(&SYNC);
        }
        let effects = if std::mem::take(&mut self.open_effects) {
            u32::try_from(self.extras.effects.len()).ok().and_then(|count| count.checked_sub(1))
        } else {
            None
        };
        let statements = std::mem::take(&mut self.open_statements);
        self.steps.push(Step { end: self.bytes.len(), statements, effects });
        if self.has_extras {
            self.extras.sql.clear();
        }
    }

    /// Ends the transaction.
    pub fn end(&mut self) {
        self.end_step();
    }

    /// Adds the expected effects of the statement appended last.
    pub fn changes(&mut self, effects: TransactionEffects) {
        let is_open = std::mem::replace(&mut self.open_effects, true);
        let all = &mut self.extras().effects;
        match all.last_mut().filter(|_| is_open) {
            Some(open) => *open = open.and(effects),
            None => all.push(effects),
        }
    }

    /// Adds rows that the statement appended last writes.
    pub fn writes(&mut self, mark: Mark) {
        let step = self.steps.len();
        self.extras().marks.push((step, mark));
    }

    /// Returns the rows that it writes, each with the number of the step.
    #[must_use]
    pub fn marks(&self) -> &[(usize, Mark)] {
        &self.extras.marks
    }

    /// Marks the expected effects as a maximum: a statement may find no row, because another session has deleted
    /// it.
    pub fn may_miss_rows(&mut self) {
        self.may_miss_rows = true;
    }

    /// Returns whether it has exactly the expected effects if it is committed.
    #[must_use]
    pub fn has_exact_effects(&self) -> bool {
        !self.may_miss_rows
    }

    /// Marks each step as committed separately.
    pub fn autocommit(&mut self) {
        self.autocommit = true;
    }

    /// Returns the expected effects of the transaction.
    #[must_use]
    pub fn expected_effects(&self) -> TransactionEffects {
        self.effects().iter().fold(TransactionEffects::default(), |all, each| all.and(*each))
    }

    /// Returns the expected effects of each step that changes something.
    #[must_use]
    pub fn effects(&self) -> &[TransactionEffects] {
        if self.has_extras { &self.extras.effects } else { &[] }
    }

    /// Returns the expected effects of a step; `None` if it changes nothing.
    #[must_use]
    pub fn step_effects(&self, number: usize) -> Option<TransactionEffects> {
        let position = self.steps.get(number)?.effects?;
        self.extras.effects.get(position as usize).copied()
    }

    /// Returns whether each step is committed separately.
    #[must_use]
    pub fn is_autocommit(&self) -> bool {
        self.autocommit
    }

    /// Returns the number of steps.
    #[must_use]
    pub fn steps(&self) -> usize {
        self.steps.len()
    }

    /// Returns the bytes of a step and its number of statements.
    #[must_use]
    #[inline]
    pub fn step(&self, number: usize) -> (&[u8], u32) {
        let start = number.checked_sub(1).and_then(|before| self.steps.get(before));
        let Step { end, statements, .. } = self.steps.get(number).copied().unwrap_or_default();
        let bytes = self.bytes.get(start.map_or(0, |step| step.end)..end);
        (bytes.unwrap_or_default(), statements)
    }

    /// Returns the bytes of all steps.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the number of statements.
    #[must_use]
    pub fn statements(&self) -> u32 {
        self.statements
    }

    /// Returns the operation of the transaction.
    #[must_use]
    pub fn operation(&self) -> usize {
        self.operation
    }

    /// Returns the expected number of rows read or changed.
    #[must_use]
    pub fn expected_rows(&self) -> u64 {
        self.expected_rows
    }

    /// Returns the encoding error, if the transaction could not be encoded.
    #[must_use]
    pub fn error(&self) -> Option<&EncodeError> {
        if self.has_extras { self.extras.error.as_ref() } else { None }
    }

    /// Returns a row of the reply, with its format.
    #[must_use]
    pub fn reply<'a>(&self, row: Row<'a>) -> Reply<'a> {
        Reply { row, binary: self.known.protocol() != Protocol::Simple }
    }
}

/// A row of a reply, in the format of the protocol.
#[derive(Debug, Clone, Copy)]
pub struct Reply<'a> {
    row: Row<'a>,
    binary: bool,
}

impl<'a> Reply<'a> {
    /// Returns the first column as a `bigint`; `None` if it is not one.
    #[must_use]
    #[inline]
    pub fn first_bigint(&self) -> Option<i64> {
        let value = self.row.values().next()?.ok()??;
        if self.binary {
            return Some(i64::from_be_bytes(value.try_into().ok()?));
        }
        std::str::from_utf8(value).ok()?.parse().ok()
    }

    /// Returns the length of the first column, in bytes; `None` if it is NULL or cannot be read.
    #[must_use]
    pub fn first_length(&self) -> Option<usize> {
        Some(self.row.values().next()?.ok()??.len())
    }

    /// Returns the text columns; `None` for a column that is NULL or cannot be read.
    pub fn texts(&self) -> impl Iterator<Item = Option<&'a [u8]>> + use<'a> {
        self.row.values().map(|value| value.ok().flatten())
    }
}

/// Outcome of one transaction, from its reply.
///
/// The layout is that of the declaration: the effects, which only changes have, come first, so that the other fields
/// can share a cache line with what follows the outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(C)]
pub struct TransactionOutcome {
    /// Effects of the changes, for workloads that count them.
    pub effects: TransactionEffects,
    /// Number of rows read or written, counted from the reply.
    pub rows: u64,
    /// Number of rows returned so far by the current statement, for workloads that check each statement.
    pub returned: u64,
    /// Number of completed statements, for the same workloads.
    pub complete: u32,
    /// Whether the reply is wrong: rows are missing, or it cannot be read.
    pub wrong: bool,
}

impl TransactionOutcome {
    /// Becomes a copy of `other`.
    pub fn copy_from(&mut self, other: &Self) {
        let Self { rows, returned, complete, wrong, effects } = other;
        (self.rows, self.returned) = (*rows, *returned);
        (self.complete, self.wrong) = (*complete, *wrong);
        self.effects.copy_from(effects);
    }

    /// Becomes the outcome of a transaction without replies.
    #[inline]
    pub fn clear(&mut self) {
        (self.rows, self.returned, self.complete, self.wrong) = (0, 0, 0, false);
        self.effects.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Statement;
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

    /// Returns the message types of a transaction of two statements, and its SQL.
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
    fn each_protocol_sends_the_expected_messages() {
        assert_eq!(sent(Protocol::Prepared), ("BEBES".to_owned(), String::new()));
        let (kinds, sql) = sent(Protocol::Extended);
        assert_eq!((kinds.as_str(), sql.as_str()), ("PBEPBES", "select $1 + $2select $1 + $2"));
        let (kinds, sql) = sent(Protocol::Simple);
        assert_eq!((kinds.as_str(), sql.as_str()), ("Q", "select 1 + -2; select 3 + 4"));
    }

    #[test]
    fn replaces_parameters_in_any_order() {
        let sql = "select $2 from t where a > $1 and b > $2 limit 1";
        assert_eq!(
            with_literals(sql, &["7".to_owned(), "8".to_owned()]),
            "select 8 from t where a > 7 and b > 8 limit 1"
        );
        assert_eq!(with_literals("select 1", &[]), "select 1");
    }

    #[test]
    fn the_steps_of_a_transaction_are_its_bytes() {
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
    fn reports_an_encoding_error() {
        let mut tx = Transaction::new(statements(Protocol::Prepared));
        tx.begin(1, 10);
        tx.execute(1, &[1, 2]);
        tx.end();
        assert!(tx.error().is_some());
        tx.begin(0, 5);
        tx.execute(0, &[1, 2]);
        tx.end();
        assert_eq!(
            (tx.error(), tx.statements(), tx.operation(), tx.expected_rows()),
            (None, 1, 0, 5)
        );
        assert_eq!(tx.bytes().last(), Some(&4));
    }
}
