//! What to try next.

use super::super::model::{Limit, Summary};

/// A command with the reason to run it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::report) struct Hint {
    command: String,
    why: &'static str,
}

impl Hint {
    pub(in crate::report) fn new(command: impl Into<String>, why: &'static str) -> Self {
        Self { command: command.into(), why }
    }

    /// As a line.
    pub(in crate::report) fn text(&self) -> String {
        format!("{:<38} ({})", self.command, self.why)
    }
}

/// Makes the commands of hints for one workload and server.
pub(in crate::report) struct Commands<'a> {
    workload: &'a str,
    /// On another database than the embedded server's, a command without it would measure the wrong one.
    server: &'static str,
}

impl<'a> Commands<'a> {
    pub(in crate::report) fn of(summary: &Summary<'a>) -> Self {
        let server = if summary.record.target.embedded { "" } else { " -d …" };
        Self { workload: &summary.record.workload, server }
    }

    /// The same run with another option.
    pub(in crate::report) fn same(&self, option: &str, why: &'static str) -> Hint {
        Hint::new(format!("riops run {}{} {option}", self.workload, self.server), why)
    }

    /// Another command on the same server.
    pub(in crate::report) fn other(&self, command: &str, why: &'static str) -> Hint {
        Hint::new(format!("{command}{}", self.server), why)
    }
}

/// What may raise the figure.
pub(in crate::report) fn scaling(summary: &Summary<'_>, commands: &Commands<'_>) -> Vec<Hint> {
    let plan = &summary.record.plan;
    match summary.limit() {
        Limit::Waiting => {
            vec![commands.same(&format!("-c {}", plan.sessions * 4), "more sessions")]
        }
        Limit::Client => vec![commands.same(&format!("-j {}", plan.workers * 2), "more workers")],
        _ => Vec::new(),
    }
}

/// The list of runs.
pub(in crate::report) fn stored_runs() -> Hint {
    Hint::new("riops runs list", "all stored runs")
}
