//! The client of one session: it executes the scripts command by command.

use std::sync::Arc;

use riops_script::evaluate::Context;
use riops_script::expression::Expression;
use riops_script::random::Random;
use riops_script::{
    Action, Content, Operand, Rows, Slot, Statement as Sql, Unit, Value, Variables, Word,
};
use riops_wire::backend::{Columns, ServerError};
use riops_wire::frontend::{self, Object};

use super::noted::{Noted, Shown, text_of};
use super::program::{CompiledScript, Encoded, Position, Program, Result, ScriptError};
use super::received::Received;
use super::table::effects_of;
use crate::workload::access::Executed;
use crate::workload::effects::TransactionEffects;
use crate::workload::load::rows_in_tag;
use crate::workload::transaction::{Reply, Transaction, TransactionOutcome};
use crate::workload::turn::{ShellCommand, ShellOutput, Turn};
use crate::workload::{Generator, OnMessage};
use riops_model::plan::Protocol;
use riops_model::plan::script::Builtin;
use riops_model::units::Nanos;

/// State of a prepared statement in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Prepared {
    No,
    Yes,
    /// The message was sent in a turn that failed.
    Unknown,
}

/// A client.
pub(super) struct Client {
    /// Shared by all sessions, and therefore only read.
    program: Arc<Program>,
    state: State,
}

/// Mutable state of a client.
struct State {
    /// Chooses the script of each transaction.
    choice: Random,
    random: Random,
    variables: Variables,
    /// State at the beginning of the transaction, to which a retry returns.
    saved: (Random, Variables),
    script: usize,
    /// The script of the next transaction, if it is chosen already: a skipped start does not choose again.
    chosen: Option<usize>,
    /// Number of the next command.
    at: usize,
    /// Whether a pipeline is open.
    in_pipeline: bool,
    /// Whether the rows of the command that was sent last set variables.
    reads_rows: bool,
    /// Whether each connection begins with the statements that can be prepared then.
    prepares_first: bool,
    prepared: Vec<Prepared>,
    /// Statements that the current turn prepares.
    preparing: Vec<usize>,
    received: Received,
    /// Slot of the random difference of a built-in script.
    delta: Option<Slot>,
    /// Number of transactions that it may still start; `None` for any number.
    transactions_left: Option<u64>,
    noted: Option<Noted>,
    shown: Shown,
}

impl Client {
    pub(super) fn new(
        program: Arc<Program>,
        random: Random,
        variables: Variables,
        choice: Random,
        session: u32,
        transactions: Option<u64>,
        prepares_first: bool,
    ) -> Self {
        let statements = program.all().count();
        // The plans of one session represent all sessions.
        let notes_executions = session == 0;
        let state = State {
            delta: program.names.find("delta"),
            prepared: vec![Prepared::No; statements],
            saved: (random.clone(), variables.clone()),
            choice,
            random,
            variables,
            script: 0,
            chosen: None,
            at: 0,
            in_pipeline: false,
            reads_rows: false,
            prepares_first,
            preparing: Vec::new(),
            received: Received::default(),
            transactions_left: transactions,
            noted: notes_executions.then(|| Noted::new(statements)),
            shown: Shown::new(session),
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
                let draw = self.choice.up_to(sum.saturating_sub(1));
                program.bounds.partition_point(|bound| *bound <= draw)
            }
        }
    }

    /// Ends the turn that was answered: its rows set variables.
    fn end_turn(&mut self, script: &CompiledScript) -> Result<()> {
        // The statements of an open pipeline are not sent yet.
        if !self.in_pipeline {
            self.end_preparing(Prepared::Yes);
        }
        if !self.reads_rows {
            return Ok(());
        }
        match self.last_action(script) {
            Some(Action::Sql(Sql { rows, .. })) => self.received.end(rows, &mut self.variables),
            _ => Ok(()),
        }
    }

    /// Returns the position of the command before the next one.
    fn position(&self) -> Position {
        Position { script: self.script, command: self.at.saturating_sub(1) }
    }

    /// Returns the command before the next one.
    fn last_action<'a>(&self, script: &'a CompiledScript) -> Option<&'a Action> {
        Some(&script.script.commands.get(self.at.checked_sub(1)?)?.action)
    }

    fn evaluate(&mut self, program: &Program, expression: &Expression) -> Result<Value> {
        let position = self.position();
        let (variables, random) = (&mut self.variables, &mut self.random);
        let mut debug = |value: Value| self.shown.debug(position, value);
        let value = Context { variables, random, debug: &mut debug }.evaluate(expression);
        value.map_err(|error| ScriptError::from_evaluation(&error, &program.names, &self.variables))
    }

    /// Returns an error if a variable has no value: it is a column of `\gset` or `\aset` that was not received.
    fn require(
        &self,
        program: &Program,
        command: &'static str,
        slots: &[Slot],
        sign: &str,
    ) -> Result<()> {
        let is_undefined = |slot: &&Slot| matches!(self.variables.get(**slot), Content::Undefined);
        slots.iter().find(is_undefined).map_or(Ok(()), |slot| {
            Err(ScriptError::Undefined(command, format!("{sign}{}", program.names.name(*slot))))
        })
    }

    /// Appends a statement to the current turn.
    fn append(&mut self, tx: &mut Transaction, protocol: Protocol, encoded: &Encoded) {
        let variables = &self.variables;
        if let Some(noted) = &mut self.noted {
            noted.note(protocol, encoded, variables);
        }
        if protocol == Protocol::Simple {
            return tx.append(encoded.replies, |out| {
                frontend::query(out, |out| encoded.statement.append_simple(variables, out))
            });
        }
        let known = self.prepared.get(encoded.position).copied();
        let parses = protocol == Protocol::Extended
            || known.is_some_and(|known| known != Prepared::Yes)
                && !self.preparing.contains(&encoded.position);
        if parses && protocol == Protocol::Prepared {
            self.preparing.push(encoded.position);
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
                        Content::Value(Value::Null) => false,
                        _ => variables.append_to(*slot, out),
                    })
                })
            })
        });
    }

    /// Executes the commands up to the next that waits.
    fn advance(
        &mut self,
        program: &Program,
        script: &CompiledScript,
        tx: &mut Transaction,
        in_block: bool,
    ) -> Turn {
        if program.is_traced && self.at > 0 {
            self.shown.reply();
        }
        while let Some(command) = script.script.commands.get(self.at) {
            if program.is_traced {
                self.shown.command(command, &self.variables);
            }
            let at = self.at;
            self.at += 1;
            match self.execute(program, tx, script, at, &command.action, in_block) {
                Ok(None) => {}
                Ok(Some(turn)) => return turn,
                Err(error) => {
                    // The error belongs to this command, not to the command that sent the last turn.
                    tx.set_command(script.first_command + at);
                    return Turn::Fail(program.failure(self.position(), &error));
                }
            }
        }
        let open = if self.in_pipeline {
            "end of script reached with pipeline open"
        } else if in_block {
            "end of script reached without completing the last transaction"
        } else {
            return Turn::End;
        };
        Turn::Fail(program.failure(self.position(), &ScriptError::State(open)))
    }

    /// Executes one command. Returns what it waits for, if it does.
    fn execute(
        &mut self,
        program: &Program,
        tx: &mut Transaction,
        script: &CompiledScript,
        at: usize,
        action: &Action,
        in_block: bool,
    ) -> Result<Option<Turn>> {
        let command = script.first_command + at;
        self.reads_rows = false;
        match action {
            Action::Sql(_) => {
                if let Some(Some(encoded)) = script.encoded.get(at) {
                    return self.send(tx, program, script, command, encoded, in_block);
                }
            }
            Action::Set(slot, expression) => {
                let value = self.evaluate(program, expression)?;
                self.variables.set(*slot, value);
            }
            Action::Sleep(operand, unit) => {
                self.begin_wait(tx, command);
                return self.sleep(program, *operand, *unit).map(Some);
            }
            Action::Shell(words) | Action::SetShell(_, words) => {
                self.begin_wait(tx, command);
                let wants_output = matches!(action, Action::SetShell(..));
                let text = self.shell_command(program, words)?;
                return Ok(Some(Turn::Shell(Box::new(ShellCommand { text, wants_output }))));
            }
            Action::StartPipeline if self.in_pipeline => {
                return Err(ScriptError::State("the session is already in pipeline mode"));
            }
            Action::StartPipeline => {
                self.in_pipeline = true;
                // Everything up to the end of a pipeline is one turn, in which an implicit transaction may commit.
                tx.begin_turn(command, true);
            }
            Action::SyncPipeline | Action::EndPipeline if !self.in_pipeline => {
                return Err(ScriptError::State("the session is not in pipeline mode"));
            }
            Action::SyncPipeline => tx.end_batch(),
            Action::EndPipeline => {
                self.in_pipeline = false;
                tx.set_command(command);
                tx.end_batch();
                return Ok(Some(Turn::Send));
            }
            branch => self.branch(program, script, branch)?,
        }
        Ok(None)
    }

    /// Begins a turn that sends nothing, unless a pipeline is open: its statements are sent later.
    fn begin_wait(&self, tx: &mut Transaction, command: usize) {
        if self.in_pipeline {
            tx.set_command(command);
        } else {
            tx.begin_turn(command, false);
        }
    }

    /// Sends a statement, or adds it to the open pipeline.
    fn send(
        &mut self,
        tx: &mut Transaction,
        program: &Program,
        script: &CompiledScript,
        command: usize,
        encoded: &Encoded,
        in_block: bool,
    ) -> Result<Option<Turn>> {
        // pgbench sends NULL.
        if program.protocol != Protocol::Simple && !program.is_as_pgbench {
            self.require(program, "", &encoded.parameters, "")?;
        }
        if self.in_pipeline {
            let text = match encoded.statement.rows {
                Rows::Each(_) => "\\aset is not allowed in pipeline mode",
                Rows::Last(_) => "\\gset is not allowed in pipeline mode",
                Rows::Discard => {
                    self.append(tx, program.protocol, encoded);
                    return Ok(None);
                }
            };
            return Err(ScriptError::State(text));
        }
        let may_commit = if in_block { encoded.ends_block } else { encoded.changes };
        tx.begin_turn(command, may_commit && script.changes);
        self.append(tx, program.protocol, encoded);
        tx.end_batch();
        self.reads_rows = encoded.statement.rows != Rows::Discard;
        if self.reads_rows {
            self.received.begin();
        }
        if let (true, Some(builtin)) = (encoded.ends_block, script.builtin) {
            tx.changes(self.effects(builtin));
        }
        Ok(Some(Turn::Send))
    }

    /// Executes a command of a conditional.
    fn branch(
        &mut self,
        program: &Program,
        script: &CompiledScript,
        action: &Action,
    ) -> Result<()> {
        let (mut condition, mut otherwise) = match action {
            Action::If { condition, otherwise } => (condition, *otherwise),
            // The branch before it has ended.
            Action::ElseIf { end, .. } | Action::Else { end } => {
                self.at = *end;
                return Ok(());
            }
            _ => return Ok(()),
        };
        while !self.evaluate(program, condition)?.is_true() {
            self.at = otherwise;
            match script.script.commands.get(otherwise).map(|command| &command.action) {
                Some(Action::ElseIf { condition: next, otherwise: after, .. }) => {
                    self.at = otherwise + 1;
                    (condition, otherwise) = (next, *after);
                }
                _ => break,
            }
        }
        Ok(())
    }

    fn sleep(&self, program: &Program, operand: Operand, unit: Unit) -> Result<Turn> {
        let amount = match operand {
            Operand::Int(amount) => amount,
            Operand::Variable(slot) => {
                self.require(program, "sleep: ", &[slot], "")?;
                match self.variables.get(slot) {
                    Content::Value(Value::Int(amount)) => *amount,
                    _ => leading_integer(&self.text(slot)),
                }
            }
        };
        let microseconds = amount.saturating_mul(unit.microseconds());
        let time = Nanos(u64::try_from(microseconds).unwrap_or(0).saturating_mul(1_000));
        Ok(Turn::Sleep(time))
    }

    fn shell_command(&self, program: &Program, words: &[Word]) -> Result<String> {
        let text = |word: &Word| match word {
            Word::Text(word) => Ok(word.clone()),
            Word::Variable(slot) => {
                self.require(program, "", &[*slot], ":")?;
                Ok(self.text(*slot))
            }
        };
        Ok(words.iter().map(text).collect::<Result<Vec<_>, _>>()?.join(" "))
    }

    fn text(&self, slot: Slot) -> String {
        text_of(|out| {
            self.variables.append_to(slot, out);
        })
    }

    /// Uses the output of a command of the shell.
    fn end_command(&mut self, script: &CompiledScript, output: &ShellOutput) -> Result<()> {
        match (output, self.last_action(script)) {
            (Err(error), _) => Err(ScriptError::Shell(error.clone())),
            (Ok(text), Some(Action::SetShell(..))) if text.trim().is_empty() => {
                Err(ScriptError::Shell("could not read result of shell command".to_owned()))
            }
            (Ok(text), Some(Action::SetShell(slot, _))) => {
                let value = text.trim().parse();
                let value = value.map_err(|_| ScriptError::NotAnInteger(text.clone()))?;
                self.variables.set(*slot, Value::Int(value));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Returns what the current transaction of a built-in script changes.
    fn effects(&self, builtin: Builtin) -> TransactionEffects {
        let delta = match self.delta.map(|slot| self.variables.get(slot)) {
            Some(Content::Value(Value::Int(delta))) => *delta,
            _ => 0,
        };
        effects_of(builtin, delta)
    }

    /// Begins the transaction, or a new attempt.
    fn begin(&mut self, tx: &mut Transaction) {
        // Only statements of a turn without success remain here: they may or may not be prepared.
        self.end_preparing(Prepared::Unknown);
        self.at = 0;
        self.in_pipeline = false;
        tx.begin_interactive(self.script);
    }

    fn end_preparing(&mut self, is_prepared: Prepared) {
        while let Some(position) = self.preparing.pop() {
            if let Some(prepared) = self.prepared.get_mut(position) {
                *prepared = is_prepared;
            }
        }
    }
}

/// Returns the integer with which a text begins, or 0.
fn leading_integer(text: &str) -> i64 {
    let text = text.trim_ascii_start();
    let sign = usize::from(text.starts_with(['-', '+']));
    let digits = text.bytes().skip(sign).take_while(u8::is_ascii_digit).count();
    text.get(..sign + digits).and_then(|integer| integer.parse().ok()).unwrap_or(0)
}

impl Generator for Client {
    fn has_next(&self) -> bool {
        self.state.transactions_left != Some(0)
    }

    fn skip(&mut self) -> Option<usize> {
        let Self { program, state } = self;
        if let Some(left) = &mut state.transactions_left {
            *left = left.saturating_sub(1);
        }
        state.chosen = state.chosen.or_else(|| Some(state.choose(program)));
        state.chosen
    }

    fn next(&mut self, tx: &mut Transaction) -> bool {
        self.skip();
        let Self { state, .. } = self;
        state.script = state.chosen.take().unwrap_or(0);
        state.saved.0 = state.random.clone();
        state.saved.1.copy_from(&state.variables);
        state.begin(tx);
        true
    }

    fn reply(&mut self, _: &Transaction, reply: &Reply<'_>, _: &mut TransactionOutcome) {
        if self.state.reads_rows {
            self.state.received.row(reply);
        }
    }

    fn columns(&mut self, tx: &Transaction, columns: &Columns<'_>) {
        let Self { program, state: State { script, received, .. } } = self;
        if let Some(Sql { rows: Rows::Last(prefix) | Rows::Each(prefix), .. }) =
            program.answered(*script, tx)
        {
            received.columns(prefix, columns.names(), &program.names);
        }
    }

    fn complete(&mut self, tx: &Transaction, tag: &str, outcome: &mut TransactionOutcome) {
        let Self { program, state } = self;
        let rows = rows_in_tag(tag);
        outcome.rows += rows;
        if let Some(builtin) = program.scripts.get(state.script).and_then(|script| script.builtin) {
            let kind = tag.as_bytes().first();
            let finds_a_row = matches!(kind, Some(b'U' | b'I' | b'S'));
            outcome.wrong |= finds_a_row && rows != 1;
            if kind == Some(&b'I') {
                outcome.effects = state.effects(builtin);
            }
        } else if state.reads_rows
            && let Some(sql) = program.answered(state.script, tx)
        {
            state.received.complete(&sql.rows, &mut state.variables);
        }
    }

    fn proceed(
        &mut self,
        tx: &mut Transaction,
        in_block: bool,
        output: Option<&ShellOutput>,
    ) -> Turn {
        let Self { program, state } = self;
        let Some(script) = program.scripts.get(state.script) else {
            return Turn::End;
        };
        let mut ended = output.map_or(Ok(()), |output| state.end_command(script, output));
        if state.at > 0 && ended.is_ok() {
            ended = state.end_turn(script);
        }
        match ended {
            Ok(()) => state.advance(program, script, tx, in_block),
            Err(error) => Turn::Fail(program.failure(state.position(), &error)),
        }
    }

    fn restart(&mut self, tx: &mut Transaction) {
        let Self { state, .. } = self;
        state.random = state.saved.0.clone();
        state.variables.copy_from(&state.saved.1);
        state.begin(tx);
    }

    fn show_with(&mut self, on_message: &OnMessage, on_notice: &OnMessage) {
        self.state.shown.on_message = Arc::clone(on_message);
        self.state.shown.on_notice = Arc::clone(on_notice);
    }

    fn notice(&mut self, notice: &ServerError) {
        (self.state.shown.on_notice)(&notice.in_lines());
    }

    fn failed(&mut self, tx: &Transaction, error: &ServerError, is_repeated: bool) {
        let Self { program, state } = self;
        if program.is_verbose && error.is_retryable() {
            let command = program.command_in_script(state.script, tx);
            let position = Position { script: state.script, command };
            state.shown.error(position, error, is_repeated);
        }
    }

    fn place(&self, tx: &Transaction) -> Option<String> {
        let command = self.program.command_in_script(self.state.script, tx);
        self.program.place(Position { script: self.state.script, command })
    }

    fn notes_executions(&self) -> bool {
        self.state.noted.is_some()
    }

    fn take_executed(&mut self) -> Vec<Executed> {
        self.state.noted.as_mut().map_or_else(Vec::new, Noted::take)
    }

    fn connected(&mut self) {
        let Self { program, state } = self;
        state.preparing.clear();
        for (prepared, statement) in state.prepared.iter_mut().zip(program.all()) {
            let is_prepared = state.prepares_first && statement.is_prepared_first;
            *prepared = if is_prepared { Prepared::Yes } else { Prepared::No };
        }
    }
}
