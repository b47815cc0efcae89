//! What a client shows while it runs: the values of `debug()`, notices of the server, and on request its commands and its
//! errors, as pgbench does.

use std::sync::Arc;

use riops_script::{Action, Command, Value, Variables};
use riops_wire::backend::ServerError;

use super::noted::text_of;
use crate::workload::OnMessage;

/// The callbacks of a client, and its number.
pub(super) struct Shown {
    pub(super) on_message: OnMessage,
    pub(super) on_notice: OnMessage,
    /// Number of the session, from 0.
    number: u32,
}

impl Shown {
    pub(super) fn new(number: u32) -> Self {
        Self { on_message: Arc::new(|_| {}), on_notice: Arc::new(|_| {}), number }
    }

    /// Shows a value of `debug()`.
    pub(super) fn debug(&self, (script, command): (usize, usize), value: Value) {
        let text = match value {
            Value::Null => "null".to_owned(),
            Value::Boolean(_) => format!("boolean {value}"),
            Value::Int(_) => format!("int {value}"),
            Value::Double(_) => format!("double {value}"),
        };
        (self.on_message)(&format!("debug(script={script},command={command}): {text}"));
    }

    /// Shows a command before it is executed, as pgbench with `--debug`.
    #[cold]
    pub(super) fn command(&self, command: &Command, variables: &Variables) {
        let (step, text) = match &command.action {
            Action::Sql(sql) => ("sending", text_of(|out| sql.append_simple(variables, out))),
            _ => ("executing", command.title.clone()),
        };
        (self.on_message)(&format!("client {} {step} {text}", self.number));
    }

    /// Shows that the replies to a turn have arrived.
    #[cold]
    pub(super) fn reply(&self) {
        (self.on_message)(&format!("client {} receiving", self.number));
    }

    /// Shows an error that repeats the transaction, or ends it after the last try.
    pub(super) fn error(
        &self,
        (script, command): (usize, usize),
        error: &ServerError,
        is_repeated: bool,
    ) {
        let (client, text) = (self.number, error.in_lines());
        let end = if is_repeated { "repeats" } else { "ends" };
        (self.on_message)(&format!(
            "client {client} got an error in command {command} (SQL) of script {script}; {text}\nclient {client} {end} the transaction after the error"
        ));
    }
}
