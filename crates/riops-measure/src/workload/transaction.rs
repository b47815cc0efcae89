//! One unit of work of a session: encodes it for the protocol of the run and decodes its reply. Pure, and
//! without allocation in steady state.

use std::ops::Range;
use std::sync::Arc;

use riops_wire::backend::Row;
use riops_wire::frontend::{self, EncodeError, SYNC};

use super::effects::TransactionEffects;
use super::statements::Encoded;
pub use super::statements::{Statements, with_literals};
use super::unknown::Mark;
use super::values::{Literals, Values};
use riops_model::plan::Protocol;

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
/// The fields stay in their declared order (`repr(C)`): the fields that every transaction uses come first, in few cache
/// lines.
#[derive(Debug, Default)]
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
    /// Number of the command that sent the current turn of an interactive transaction. It counts the commands of all scripts.
    command: usize,
    extras: Extras,
}

/// Parts that a transaction lacks if it only reads with the extended protocol.
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
    /// Numbers of the first row, of the first unsent row, and after the last row.
    first: u64,
    next: u64,
    end: u64,
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
    pub fn new(known: Arc<Statements>) -> Self {
        Self { known, ..Self::default() }
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
        let Some(Encoded { execution, statement, pieces }) = self.known.list.get(statement) else {
            return;
        };
        if self.known.protocol == Protocol::Simple {
            self.has_extras = true;
            let Extras { sql, literals, .. } = &mut self.extras;
            // The server executes all statements of one Query message as one transaction.
            if self.open_statements > 1 {
                sql.push_str("; ");
            }
            literals.clear();
            write(&mut Values::literals(literals));
            return pieces.write(sql, |position, out| out.push_str(literals.get(position)));
        }
        let out = &mut self.bytes;
        let parsed = match self.known.protocol {
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
    /// [`Self::begin`], starting at row `first`. The data follow piece by piece; [`Self::end_step`] must not
    /// be called. It is sent as a simple query with every protocol because COPY has no parameters.
    pub fn copy(&mut self, sql: &str, first: u64) {
        self.statements = 1;
        let end = first + self.expected_rows;
        self.extras().copy_progress = Some(CopyProgress { first, next: first, end });
        if let Err(error) = frontend::Message::Query(sql).encode(&mut self.bytes) {
            self.note_error(error);
        }
        self.steps.push(Step { end: self.bytes.len(), statements: 1, effects: None });
    }

    /// Returns the number of the next row of COPY data to send; `None` if all data are sent.
    #[inline]
    pub fn next_row(&self) -> Option<u64> {
        self.copy_progress().filter(|copy| copy.next < copy.end).map(|copy| copy.next)
    }

    /// Returns the rows whose data are copied.
    pub fn copied_rows(&self) -> Range<u64> {
        self.copy_progress().map_or(0..0, |copy| copy.first..copy.end)
    }

    fn copy_progress(&self) -> Option<CopyProgress> {
        if self.has_extras { self.extras.copy_progress } else { None }
    }

    /// Records that the data of all rows before `next` are sent.
    pub fn sent_rows(&mut self, next: u64) {
        if let Some(copy) = &mut self.extras.copy_progress {
            copy.next = next;
        }
    }

    /// Restarts the COPY data from the first row.
    pub fn rewind(&mut self) {
        if self.has_extras
            && let Some(copy) = &mut self.extras.copy_progress
        {
            copy.next = copy.first;
        }
    }

    /// Ends a step, at least the last one: the statements after it are sent when the reply to this step has arrived.
    #[inline]
    pub fn end_step(&mut self) {
        if self.known.protocol == Protocol::Simple {
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

    /// Adds the expected effects of the statement appended last.
    #[inline]
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
    pub fn marks(&self) -> &[(usize, Mark)] {
        &self.extras.marks
    }

    /// Marks the expected effects as a maximum: a statement may find no row, because another session has deleted
    /// it.
    pub fn may_miss_rows(&mut self) {
        self.may_miss_rows = true;
    }

    /// Returns whether it has exactly the expected effects if it is committed.
    pub fn has_exact_effects(&self) -> bool {
        !self.may_miss_rows
    }

    /// Marks each step as committed separately.
    pub fn autocommit(&mut self) {
        self.autocommit = true;
    }

    /// Returns the expected effects of the transaction.
    pub fn expected_effects(&self) -> TransactionEffects {
        self.effects().iter().fold(TransactionEffects::default(), |all, effects| all.and(*effects))
    }

    /// Returns the expected effects of each step that changes something.
    pub fn effects(&self) -> &[TransactionEffects] {
        if self.has_extras { &self.extras.effects } else { &[] }
    }

    /// Returns the expected effects of a step; `None` if it changes nothing.
    pub fn step_effects(&self, index: usize) -> Option<TransactionEffects> {
        let position = self.steps.get(index)?.effects?;
        self.extras.effects.get(position as usize).copied()
    }

    /// Returns whether each step is committed separately.
    pub fn is_autocommit(&self) -> bool {
        self.autocommit
    }

    /// Returns the number of steps.
    pub fn steps(&self) -> usize {
        self.steps.len()
    }

    /// Returns the bytes of a step and its number of statements.
    #[inline]
    pub fn step(&self, index: usize) -> (&[u8], u32) {
        let start = index.checked_sub(1).and_then(|before| self.steps.get(before));
        let Step { end, statements, .. } = self.steps.get(index).copied().unwrap_or_default();
        let bytes = self.bytes.get(start.map_or(0, |step| step.end)..end);
        (bytes.unwrap_or_default(), statements)
    }

    /// Returns the bytes of all steps.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the number of statements.
    pub fn statements(&self) -> u32 {
        self.statements
    }

    /// Returns the operation of the transaction.
    pub fn operation(&self) -> usize {
        self.operation
    }

    /// Returns the expected number of rows read or changed.
    pub fn expected_rows(&self) -> u64 {
        self.expected_rows
    }

    /// Returns the encoding error, if the transaction could not be encoded.
    pub fn error(&self) -> Option<&EncodeError> {
        if self.has_extras { self.extras.error.as_ref() } else { None }
    }

    /// Begins an interactive transaction of kind `operation`, an index into the operations of the stage.
    #[inline]
    pub fn begin_interactive(&mut self, operation: usize) {
        self.begin(operation, 0);
        self.interactive = true;
    }

    /// Begins the next turn, which `command` sends. `may_commit` states whether a lost connection leaves its outcome
    /// unknown.
    #[inline]
    pub fn begin_turn(&mut self, command: usize, may_commit: bool) {
        self.bytes.clear();
        self.steps.clear();
        self.command = command;
        self.may_commit = may_commit;
    }

    /// Sets the command to which the current turn belongs.
    pub fn set_command(&mut self, command: usize) {
        self.command = command;
    }

    /// Appends messages that `write` encodes, with this number of statements.
    #[inline]
    pub fn append(
        &mut self,
        statements: u32,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), EncodeError>,
    ) {
        self.statements += 1;
        self.open_statements = self.open_statements.saturating_add(statements);
        if let Err(error) = write(&mut self.bytes) {
            self.note_error(error);
        }
    }

    /// Ends a step of a turn, with a Sync where the protocol has one.
    #[inline]
    pub fn end_batch(&mut self) {
        if self.known.protocol != Protocol::Simple {
            self.bytes.extend_from_slice(&SYNC);
        }
        let statements = std::mem::take(&mut self.open_statements);
        self.steps.push(Step { end: self.bytes.len(), statements, effects: None });
    }

    /// Returns the number of statements of a step.
    #[inline]
    pub fn statements_of(&self, step: usize) -> u32 {
        self.steps.get(step).map_or(0, |step| step.statements)
    }

    /// Returns whether it is interactive.
    pub fn is_interactive(&self) -> bool {
        self.interactive
    }

    /// Returns whether the current turn of an interactive transaction may commit.
    pub fn may_commit(&self) -> bool {
        self.may_commit
    }

    /// Returns the command that sent the current turn.
    pub fn command(&self) -> usize {
        self.command
    }

    /// Returns the protocol that sends it.
    pub fn protocol(&self) -> Protocol {
        self.known.protocol
    }

    /// Returns a row of the reply, with its format.
    pub fn reply<'a>(&self, row: Row<'a>) -> Reply<'a> {
        Reply { row, binary: self.known.protocol != Protocol::Simple }
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
    #[inline]
    pub fn first_bigint(&self) -> Option<i64> {
        let value = self.row.values().next()?.ok()??;
        if self.binary {
            return Some(i64::from_be_bytes(value.try_into().ok()?));
        }
        std::str::from_utf8(value).ok()?.parse().ok()
    }

    /// Returns the length of the first column, in bytes; `None` if it is NULL or cannot be read.
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
/// The fields stay in their declared order (`repr(C)`): the effects, which only changes have, come first, so that the
/// other fields can share a cache line with the fields that follow the outcome.
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
#[path = "transaction_tests.rs"]
mod tests;
