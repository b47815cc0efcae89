//! The client of one session: it executes the scripts command by command.

use std::sync::Arc;

use riops_script::evaluate::{Context, EvaluateError};
use riops_script::expression::Expression;
use riops_script::random::Random;
use riops_script::{
    Action, Content, Operand, Rows, Slot, Statement as Sql, Unit, Value, Variables, Word, is_name,
};
use riops_wire::backend::{Columns, ServerError};
use riops_wire::frontend::{self, Object};
use riops_wire::sqlstate::SqlState;

use super::program::{CompiledScript, Encoded, Program};
use super::values::{leading_integer, print_debug, sqlstate_of};
use crate::plan::Protocol;
use crate::plan::script::Builtin;
use crate::units::Nanos;
use crate::workload::Generator;
use crate::workload::effects::{Effects, TableEffects};
use crate::workload::load::rows_in_tag;
use crate::workload::transaction::{Outcome, Reply, Transaction};
use crate::workload::turn::{ShellCommand, ShellOutput, Turn};

/// Added to the random difference of a transaction, so that the ledger contains no negative numbers.
pub(super) const DELTA_OFFSET: i64 = 5_000;

/// What a session knows about a prepared statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Prepared {
    No,
    Yes,
    /// The message was sent in a turn that failed.
    Unknown,
}

/// The random numbers and variables at the beginning of a transaction, to which a retry returns.
#[derive(Debug, Clone, Default)]
struct Saved {
    random: Option<Random>,
    variables: Variables,
}

/// Rows for `\gset` and `\aset`.
#[derive(Debug, Default)]
struct Received {
    /// The variable of each column, if a script uses it.
    columns: Vec<Option<Slot>>,
    /// Values of the last row.
    values: Vec<(Slot, Option<Vec<u8>>)>,
    /// Number of rows of the current statement, and of the last one that has completed.
    rows: u64,
    last_rows: u64,
    /// The column whose name is not that of a variable.
    invalid: Option<String>,
}

/// A client.
#[derive(Debug)]
pub(super) struct Client {
    /// Shared by all sessions, and therefore only read.
    program: Arc<Program>,
    state: State,
}

/// What a client changes.
#[derive(Debug)]
struct State {
    /// Chooses the script of each transaction.
    choice: Random,
    random: Random,
    variables: Variables,
    saved: Saved,
    script: usize,
    /// Number of the next command.
    at: usize,
    /// Whether a pipeline is open.
    in_pipeline: bool,
    prepared: Vec<Prepared>,
    /// Statements that the current turn prepares.
    preparing: Vec<usize>,
    received: Received,
    /// Slot of the random difference of a built-in script.
    delta: Option<Slot>,
    /// Number of transactions that it may still start; `None` for any number.
    transactions_left: Option<u64>,
}

impl Client {
    pub(super) fn new(
        program: Arc<Program>,
        variables: Variables,
        (random, choice): (Random, Random),
        transactions: Option<u64>,
    ) -> Self {
        let state = State {
            delta: program.names.find("delta"),
            prepared: vec![Prepared::No; program.statements],
            saved: Saved { random: None, variables: variables.clone() },
            choice,
            random,
            variables,
            script: 0,
            at: 0,
            in_pipeline: false,
            preparing: Vec::new(),
            received: Received::default(),
            transactions_left: transactions,
        };
        Self { program, state }
    }
}

impl State {
    /// Chooses a script, with probabilities proportional to their weights.
    fn choose(&mut self, program: &Program) -> usize {
        match program.bounds.as_slice() {
            [] | [_] => 0,
            [.., sum] => {
                let number = self.choice.up_to(sum.saturating_sub(1));
                program.bounds.partition_point(|bound| *bound <= number)
            }
        }
    }

    /// Ends the turn that was answered: checks what the rows set.
    fn end_turn(&mut self, script: &CompiledScript) -> Result<(), (&'static str, String)> {
        for number in self.preparing.drain(..) {
            if let Some(prepared) = self.prepared.get_mut(number) {
                *prepared = Prepared::Yes;
            }
        }
        let before = self.at.checked_sub(1).and_then(|at| script.script.commands.get(at));
        let Some(Action::Sql(Sql { rows, .. })) = before.map(|command| &command.action) else {
            return Ok(());
        };
        if *rows == Rows::Discard {
            return Ok(());
        }
        if let Some(column) = self.received.invalid.take() {
            return Err(("42602", format!("the column \"{column}\" is not a name of a variable")));
        }
        if matches!(rows, Rows::Last(_)) && self.received.last_rows != 1 {
            let found = self.received.last_rows;
            return Err(("21000", format!("\\gset requires one row, not {found}")));
        }
        self.set_received();
        Ok(())
    }

    fn set_received(&mut self) {
        for (slot, value) in self.received.values.drain(..) {
            match value {
                Some(text) => self.variables.set_text(slot, &text),
                None => self.variables.set(slot, Value::Null),
            }
        }
    }

    fn evaluate(&mut self, expression: &Expression) -> Result<Value, EvaluateError> {
        let (script, command) = (self.script, self.at);
        let mut debug = |value: Value| {
            print_debug((script, command), value);
        };
        let (variables, random) = (&mut self.variables, &mut self.random);
        Context { variables, random, debug: &mut debug }.evaluate(expression)
    }

    /// Appends a statement to the current turn.
    fn append(
        &mut self,
        tx: &mut Transaction,
        protocol: Protocol,
        (sql, encoded): (&Sql, &Encoded),
    ) {
        let variables = &self.variables;
        if protocol == Protocol::Simple {
            return tx.append(encoded.replies, |out| {
                frontend::query(out, |out| sql.append_simple(variables, out))
            });
        }
        let known = self.prepared.get(encoded.number).copied();
        let parses = protocol == Protocol::Extended
            || known.is_some_and(|known| known != Prepared::Yes)
                && !self.preparing.contains(&encoded.number);
        if parses && protocol == Protocol::Prepared {
            self.preparing.push(encoded.number);
        }
        tx.append(encoded.replies, |out| {
            if parses {
                let name = match protocol {
                    Protocol::Prepared => encoded.name.as_str(),
                    _ => "",
                };
                if known == Some(Prepared::Unknown) {
                    frontend::Message::Close(Object::Statement, name).encode(out)?;
                }
                frontend::parse(out, name, &encoded.sql, &[])?;
            }
            let execution = encoded.execution.as_ref().map_err(Clone::clone)?;
            execution.encode(out, |out| {
                encoded.parameters.iter().try_for_each(|slot| {
                    frontend::text_value(out, |out| match variables.get(*slot) {
                        Content::Undefined | Content::Value(Value::Null) => false,
                        _ => variables.append_to(*slot, out),
                    })
                })
            })
        });
    }

    /// Executes the commands up to the next that waits.
    fn advance(&mut self, program: &Program, tx: &mut Transaction, in_block: bool) -> Turn {
        let Some(script) = program.scripts.get(self.script) else {
            return Turn::End;
        };
        while let Some(command) = script.script.commands.get(self.at) {
            let at = self.at;
            self.at += 1;
            let waits = match &command.action {
                Action::Sql(sql) => {
                    let Some(Some(encoded)) = script.encoded.get(at) else {
                        continue;
                    };
                    let place = (program, script, at);
                    self.send(tx, place, (sql, encoded), in_block)
                }
                Action::Set(slot, expression) => match self.evaluate(expression) {
                    Ok(value) => {
                        self.variables.set(*slot, value);
                        None
                    }
                    Err(error) => Some(self.refuse(program, &error)),
                },
                Action::Sleep(operand, unit) => Some(self.sleep(tx, script, *operand, *unit)),
                Action::Shell(words) | Action::SetShell(_, words) => {
                    if self.in_pipeline {
                        tx.set_command(script.first_command + at);
                    } else {
                        tx.begin_turn(script.first_command + at, false);
                    }
                    let wants_output = matches!(command.action, Action::SetShell(..));
                    let text = self.command(words);
                    Some(Turn::Shell(Box::new(ShellCommand { text, wants_output })))
                }
                Action::StartPipeline => {
                    self.start_pipeline(program, tx, script.first_command + at)
                }
                Action::SyncPipeline | Action::EndPipeline if !self.in_pipeline => {
                    Some(self.fail(program, "the session is not in pipeline mode"))
                }
                Action::SyncPipeline => {
                    tx.end_batch();
                    None
                }
                Action::EndPipeline => {
                    self.in_pipeline = false;
                    tx.set_command(script.first_command + at);
                    tx.end_batch();
                    Some(Turn::Send)
                }
                branch => self.branch(script, branch).map(|error| self.refuse(program, &error)),
            };
            if let Some(turn) = waits {
                return turn;
            }
        }
        if self.in_pipeline {
            return self.fail(program, "the script ended with an open pipeline");
        }
        if in_block {
            return self.fail(program, "the script ended within a transaction block");
        }
        Turn::End
    }

    /// Sends a statement, or adds it to the open pipeline.
    fn send(
        &mut self,
        tx: &mut Transaction,
        (program, script, at): (&Program, &CompiledScript, usize),
        (sql, encoded): (&Sql, &Encoded),
        in_block: bool,
    ) -> Option<Turn> {
        if self.in_pipeline {
            if sql.rows != Rows::Discard {
                return Some(self.fail(program, "\\gset and \\aset are not allowed in a pipeline"));
            }
            self.append(tx, program.protocol, (sql, encoded));
            return None;
        }
        let may_commit = if in_block { encoded.ends_block } else { encoded.changes };
        tx.begin_turn(script.first_command + at, may_commit && script.changes);
        self.append(tx, program.protocol, (sql, encoded));
        tx.end_batch();
        self.received.rows = 0;
        self.received.values.clear();
        if let (true, Some(builtin)) = (encoded.ends_block, script.builtin) {
            tx.changes(self.effects(builtin));
        }
        Some(Turn::Send)
    }

    /// Everything up to the end of a pipeline is one turn, in which an implicit transaction may commit.
    fn start_pipeline(
        &mut self,
        program: &Program,
        tx: &mut Transaction,
        command: usize,
    ) -> Option<Turn> {
        if std::mem::replace(&mut self.in_pipeline, true) {
            return Some(self.fail(program, "the session is already in pipeline mode"));
        }
        tx.begin_turn(command, true);
        None
    }

    /// Executes a command of a conditional.
    fn branch(&mut self, script: &CompiledScript, action: &Action) -> Option<EvaluateError> {
        let (mut condition, mut otherwise) = match action {
            Action::If { condition, otherwise } => (condition, *otherwise),
            // The branch before it has ended.
            Action::ElseIf { end, .. } | Action::Else { end } => {
                self.at = *end;
                return None;
            }
            _ => return None,
        };
        loop {
            match self.evaluate(condition) {
                Ok(value) if value.is_true() => return None,
                Ok(_) => {}
                Err(error) => return Some(error),
            }
            self.at = otherwise;
            match script.script.commands.get(otherwise).map(|command| &command.action) {
                Some(Action::ElseIf { condition: next, otherwise: after, .. }) => {
                    self.at = otherwise + 1;
                    (condition, otherwise) = (next, *after);
                }
                _ => return None,
            }
        }
    }

    fn sleep(
        &mut self,
        tx: &mut Transaction,
        script: &CompiledScript,
        operand: Operand,
        unit: Unit,
    ) -> Turn {
        let command = script.first_command + self.at - 1;
        if self.in_pipeline {
            tx.set_command(command);
        } else {
            tx.begin_turn(command, false);
        }
        let amount = match operand {
            Operand::Int(amount) => amount,
            Operand::Variable(slot) => match self.variables.get(slot) {
                Content::Value(Value::Int(amount)) => *amount,
                Content::Text(text) => leading_integer(text),
                _ => {
                    let mut text = Vec::new();
                    self.variables.append_to(slot, &mut text);
                    leading_integer(&text)
                }
            },
        };
        let microseconds = amount.saturating_mul(unit.microseconds());
        Turn::Sleep(Nanos(u64::try_from(microseconds).unwrap_or(0).saturating_mul(1_000)))
    }

    fn command(&self, words: &[Word]) -> String {
        let mut text = Vec::new();
        for (number, word) in words.iter().enumerate() {
            if number > 0 {
                text.push(b' ');
            }
            match word {
                Word::Text(word) => text.extend_from_slice(word.as_bytes()),
                Word::Variable(slot) => drop(self.variables.append_to(*slot, &mut text)),
            }
        }
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Uses the output of a command of the shell.
    fn end_command(&mut self, program: &Program, output: &ShellOutput) -> Option<Turn> {
        let script = program.scripts.get(self.script)?;
        let command = script.script.commands.get(self.at.checked_sub(1)?)?;
        match (output, &command.action) {
            (Err(error), _) => {
                let error = format!("the command failed: {error}");
                Some(Turn::Fail(self.failure(program, "38000", &error)))
            }
            (Ok(text), Action::SetShell(slot, _)) => {
                if let Ok(value) = text.trim().parse() {
                    self.variables.set(*slot, Value::Int(value));
                    return None;
                }
                let error = format!("\\setshell requires an integer, not \"{text}\"");
                Some(Turn::Fail(self.failure(program, "22P02", &error)))
            }
            _ => None,
        }
    }

    /// Returns what the current transaction of a built-in script changes.
    fn effects(&self, builtin: Builtin) -> TableEffects {
        let delta = match self.delta.map(|slot| self.variables.get(slot)) {
            Some(Content::Value(Value::Int(delta))) => *delta,
            _ => 0,
        };
        let added = u64::try_from(delta + DELTA_OFFSET).unwrap_or(0);
        TableEffects::of(
            effects_table(builtin),
            Effects { inserted: 1, added, ..Effects::default() },
        )
    }

    fn refuse(&self, program: &Program, error: &EvaluateError) -> Turn {
        Turn::Fail(self.failure(program, sqlstate_of(error), &error.describe(&program.names)))
    }

    fn fail(&self, program: &Program, message: &str) -> Turn {
        Turn::Fail(self.failure(program, "55000", message))
    }

    /// Returns an error of the script, with its position.
    #[expect(clippy::unnecessary_box_returns, reason = "errors are boxed everywhere")]
    fn failure(&self, program: &Program, sqlstate: &str, message: &str) -> Box<ServerError> {
        let script = program.scripts.get(self.script).map(|script| &script.script);
        let place = script.map_or_else(String::new, |script| {
            let at = self.at.saturating_sub(1);
            let line = script.commands.get(at).map_or(0, |command| command.line);
            format!("{}:{line}: ", script.name)
        });
        Box::new(ServerError {
            severity: "ERROR".to_owned(),
            sqlstate: SqlState::parse(sqlstate),
            message: format!("{place}{message}"),
            detail: None,
            hint: None,
            others: Vec::new(),
        })
    }

    /// Forgets what the last turn prepared, if it has not succeeded.
    fn forget_prepared(&mut self) {
        for number in self.preparing.drain(..) {
            if let Some(prepared) = self.prepared.get_mut(number) {
                *prepared = Prepared::Unknown;
            }
        }
    }
}

/// Returns the number in the ledger of the changes of a built-in script: only some of the tables depend on those of
/// `simple-update`.
pub(super) fn effects_table(builtin: Builtin) -> u32 {
    if builtin == Builtin::TpcbLike { 1 } else { 2 }
}

impl Program {
    /// Returns the statement of a script whose reply is read.
    fn answered(&self, script: usize, tx: &Transaction) -> Option<(&CompiledScript, &Sql)> {
        let script = self.scripts.get(script)?;
        let command = tx.command().checked_sub(script.first_command)?;
        match &script.script.commands.get(command)?.action {
            Action::Sql(sql) => Some((script, sql)),
            _ => None,
        }
    }
}

impl Generator for Client {
    fn has_next(&self) -> bool {
        self.state.transactions_left != Some(0)
    }

    fn skip(&mut self) {
        if let Some(left) = &mut self.state.transactions_left {
            *left = left.saturating_sub(1);
        }
    }

    fn next(&mut self, tx: &mut Transaction) -> bool {
        self.skip();
        let Self { program, state } = self;
        state.forget_prepared();
        state.script = state.choose(program);
        state.saved.random = Some(state.random.clone());
        state.saved.variables.copy_from(&state.variables);
        state.at = 0;
        state.in_pipeline = false;
        tx.begin_interactive(state.script);
        true
    }

    fn reply(&mut self, tx: &Transaction, reply: &Reply<'_>, _: &mut Outcome) {
        let Self { program, state } = self;
        let answered = program.answered(state.script, tx);
        if answered.is_none_or(|(_, sql)| sql.rows == Rows::Discard) {
            return;
        }
        let received = &mut state.received;
        received.rows += 1;
        received.values.clear();
        for (slot, value) in received.columns.iter().zip(reply.texts()) {
            if let Some(slot) = slot {
                received.values.push((*slot, value.map(<[u8]>::to_vec)));
            }
        }
    }

    fn columns(&mut self, tx: &Transaction, columns: &Columns<'_>) {
        let Self { program, state: State { script, received, .. } } = self;
        let Some((_, Sql { rows: Rows::Last(prefix) | Rows::Each(prefix), .. })) =
            program.answered(*script, tx)
        else {
            return;
        };
        received.columns.clear();
        received.values.clear();
        for column in columns.names() {
            let name = format!("{prefix}{column}");
            received.columns.push(program.names.find(&name));
            if !is_name(&name) {
                received.invalid.get_or_insert(name);
            }
        }
    }

    fn complete(&mut self, tx: &Transaction, tag: &str, outcome: &mut Outcome) {
        let Self { program, state } = self;
        let rows = rows_in_tag(tag);
        outcome.rows += rows;
        let Some((script, sql)) = program.answered(state.script, tx) else {
            return;
        };
        if let Some(builtin) = script.builtin {
            let finds_a_row = matches!(tag.as_bytes().first(), Some(b'U' | b'I' | b'S'));
            outcome.wrong |= finds_a_row && rows != 1;
            if tag.starts_with("INSERT") {
                outcome.effects = state.effects(builtin);
            }
            return;
        }
        match sql.rows {
            Rows::Discard => {}
            Rows::Last(_) => {
                state.received.last_rows = std::mem::take(&mut state.received.rows);
            }
            Rows::Each(_) => state.set_received(),
        }
    }

    fn proceed(
        &mut self,
        tx: &mut Transaction,
        in_block: bool,
        output: Option<&ShellOutput>,
    ) -> Turn {
        let Self { program, state } = self;
        if let Some(failed) = output.and_then(|output| state.end_command(program, output)) {
            return failed;
        }
        if state.at > 0
            && let Some(script) = program.scripts.get(state.script)
            && let Err((sqlstate, message)) = state.end_turn(script)
        {
            return Turn::Fail(state.failure(program, sqlstate, &message));
        }
        state.advance(program, tx, in_block)
    }

    fn restart(&mut self, tx: &mut Transaction) {
        let Self { state, .. } = self;
        state.forget_prepared();
        if let Some(random) = &state.saved.random {
            state.random = random.clone();
        }
        state.variables.copy_from(&state.saved.variables);
        state.at = 0;
        state.in_pipeline = false;
        tx.begin_interactive(state.script);
    }

    fn connected(&mut self) {
        let Self { program, state } = self;
        state.preparing.clear();
        for (prepared, statement) in state.prepared.iter_mut().zip(program.all()) {
            *prepared = if statement.is_prepared_first { Prepared::Yes } else { Prepared::No };
        }
    }
}
