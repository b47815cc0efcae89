//! The executions of a client whose plans are checked.

use std::sync::Arc;

use riops_script::{Action, Command, Content, Slot, Value, Variables};
use riops_wire::backend::ServerError;

use super::program::{Encoded, Position};
use crate::workload::OnMessage;
use crate::workload::access::Executed;
use riops_model::plan::Protocol;
use riops_model::units::sql::literal;

/// Number of executions of each statement that are noted: the first ones.
const EXECUTIONS_MAX: u8 = 3;

/// The first executions of each statement.
#[derive(Debug)]
pub(super) struct Noted {
    /// Number of executions of each statement, up to the maximum.
    executions: Vec<u8>,
    /// Executions with different values.
    all: Vec<Executed>,
    /// Number of executions that were taken.
    taken: usize,
}

impl Noted {
    pub(super) fn new(statements: usize) -> Self {
        Self { executions: vec![0; statements], all: Vec::new(), taken: 0 }
    }

    /// Notes one of the first executions of a statement, unless it has the same values as another one.
    pub(super) fn note(&mut self, protocol: Protocol, encoded: &Encoded, variables: &Variables) {
        match self.executions.get_mut(encoded.position) {
            Some(count) if *count < EXECUTIONS_MAX && encoded.has_plan => *count += 1,
            _ => return,
        }
        let executed = if protocol == Protocol::Simple {
            let text = text_of(|out| encoded.statement.append_simple(variables, out));
            Executed::as_text(&encoded.name, text)
        } else {
            let value = |slot: &Slot| match variables.get(*slot) {
                Content::Value(Value::Null) => "null".to_owned(),
                _ => literal(&text_of(|out| {
                    variables.append_to(*slot, out);
                })),
            };
            let values: Vec<_> = encoded.parameters.iter().map(value).collect();
            let has_name = protocol == Protocol::Prepared;
            Executed::with_values(&encoded.name, &encoded.sql, &values, has_name)
        };
        if !self.all.contains(&executed) {
            self.all.push(executed);
        }
    }

    /// Returns the executions that were noted since the last call.
    pub(super) fn take(&mut self) -> Vec<Executed> {
        let before = std::mem::replace(&mut self.taken, self.all.len());
        self.all.get(before..).unwrap_or_default().to_vec()
    }
}

/// Returns the text that `append` writes.
pub(super) fn text_of(append: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut text = Vec::new();
    append(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

// Output of a client while it runs: the values of `debug()`, notices of the server, and on request its commands and its
// errors, as in pgbench.

/// The callbacks of a client, and its number.
pub(super) struct Shown {
    pub(super) on_message: OnMessage,
    pub(super) on_notice: OnMessage,
    /// Number of the session, from 0.
    session: u32,
}

impl Shown {
    pub(super) fn new(session: u32) -> Self {
        Self { on_message: Arc::new(|_| {}), on_notice: Arc::new(|_| {}), session }
    }

    /// Shows a value of `debug()`.
    pub(super) fn debug(&self, position: Position, value: Value) {
        let text = match value {
            Value::Null => "null".to_owned(),
            Value::Boolean(_) => format!("boolean {value}"),
            Value::Int(_) => format!("int {value}"),
            Value::Double(_) => format!("double {value}"),
        };
        // As pgbench, it counts the commands from 1 here.
        let (script, command) = (position.script, position.command + 1);
        (self.on_message)(&format!("debug(script={script},command={command}): {text}"));
    }

    /// Shows a command before it is executed, as pgbench with `--debug`.
    #[cold]
    pub(super) fn command(&self, command: &Command, variables: &Variables) {
        let (step, text) = match &command.action {
            Action::Sql(sql) => ("sending", text_of(|out| sql.append_simple(variables, out))),
            _ => ("executing", command.title.clone()),
        };
        (self.on_message)(&format!("client {} {step} {text}", self.session));
    }

    /// Shows that the replies to a turn have arrived.
    #[cold]
    pub(super) fn reply(&self) {
        (self.on_message)(&format!("client {} receiving", self.session));
    }

    /// Shows an error that repeats the transaction, or ends it after the last try.
    pub(super) fn error(&self, position: Position, error: &ServerError, is_repeated: bool) {
        let Position { script, command } = position;
        let (client, text) = (self.session, error.in_lines());
        let end = if is_repeated { "repeats" } else { "ends" };
        (self.on_message)(&format!(
            "client {client} got an error in command {command} (SQL) of script {script}; {text}\nclient {client} {end} the transaction after the error"
        ));
    }
}
