//! Scripts compiled for a run: statements encoded except for the values of their variables.

use riops_script::evaluate::EvaluateError;
use riops_script::{Action, Names, Rows, Script, Slot, Statement as Sql, Variables};
use riops_wire::backend::ServerError;
use riops_wire::execution::Execution;
use riops_wire::frontend::EncodeError;
use riops_wire::pipeline::ANY_STATEMENTS;
use riops_wire::sqlstate::SqlState;

use crate::workload::transaction::Transaction;
use crate::workload::{ScriptCommand, Statement};
use riops_model::plan::script::{Builtin, Parsed, ScriptSource};
use riops_model::plan::{PlanError, Protocol, ScriptRun};

/// The scripts of a run. All sessions share them.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "independent options")]
pub(super) struct Program {
    pub(super) scripts: Vec<CompiledScript>,
    pub(super) names: Names,
    /// Upper bounds of the numbers that choose each script, in ascending order.
    pub(super) bounds: Vec<u64>,
    pub(super) protocol: Protocol,
    /// Whether a script uses the variable `scale`.
    pub(super) uses_scale: bool,
    /// Whether undefined variables and operands of the wrong type are treated as by pgbench.
    pub(super) is_as_pgbench: bool,
    /// Whether errors are shown that repeat a transaction, or end it after the last try.
    pub(super) is_verbose: bool,
    /// Whether each command is shown.
    pub(super) is_traced: bool,
}

/// A script and its statements.
#[derive(Debug, Clone)]
pub(super) struct CompiledScript {
    pub(super) script: Script,
    pub(super) builtin: Option<Builtin>,
    /// The statement of each command that has one.
    pub(super) encoded: Vec<Option<Encoded>>,
    /// Number of its first command, over all scripts.
    pub(super) first_command: usize,
    /// Whether any statement changes something.
    pub(super) changes: bool,
}

/// Position of a command.
#[derive(Debug, Clone, Copy)]
pub(super) struct Position {
    /// Number of the script, from 0.
    pub(super) script: usize,
    /// Number of the command in the script, from 0.
    pub(super) command: usize,
}

/// A statement with what is encoded in advance.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "independent properties of a statement")]
pub(super) struct Encoded {
    /// Position over all scripts, from 0.
    pub(super) position: usize,
    /// Name of the prepared statement, which messages show: its command, and of several scripts also its script.
    pub(super) name: String,
    pub(super) statement: Sql,
    /// Its text with parameters.
    pub(super) sql: String,
    pub(super) parameters: Vec<Slot>,
    pub(super) execution: Result<Execution, EncodeError>,
    /// Number of replies to expect.
    pub(super) replies: u32,
    /// Whether it commits an open transaction block.
    pub(super) ends_block: bool,
    pub(super) changes: bool,
    /// Whether EXPLAIN shows a plan of it.
    pub(super) has_plan: bool,
    /// Whether each session prepares it when it connects. Others are prepared at their first execution, because they
    /// depend on the statements before.
    pub(super) is_prepared_first: bool,
}

/// Statements that change no rows. A statement that begins with SELECT may call functions that do.
const READING: [&str; 21] = [
    "",
    "abort",
    "begin",
    "close",
    "commit",
    "declare",
    "discard",
    "end",
    "fetch",
    "listen",
    "move",
    "release",
    "reset",
    "rollback",
    "savepoint",
    "select",
    "set",
    "show",
    "start",
    "table",
    "values",
];

/// Statements that EXPLAIN accepts whatever follows the word.
const PLANNED: [&str; 7] = ["delete", "insert", "merge", "select", "update", "values", "with"];

/// Returns the word with which a text begins, in lower case, and its length.
fn leading_word(text: &str) -> (String, usize) {
    let end = text.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(text.len());
    (text.get(..end).unwrap_or_default().to_ascii_lowercase(), end)
}

/// Returns the first word of a statement, in lower case, after its comments. EXPLAIN may execute the statement after it,
/// whose word is returned then.
fn first_word(sql: &str) -> String {
    let mut rest = without_comments(sql);
    loop {
        let (word, end) = leading_word(rest);
        if !matches!(word.as_str(), "explain" | "analyze" | "verbose") {
            return word;
        }
        rest = without_comments(rest.get(end..).unwrap_or_default());
        if let Some(options) = rest.strip_prefix('(') {
            rest = options.split_once(')').map_or("", |(_, rest)| without_comments(rest));
        }
    }
}

/// Returns a statement from its first character that is neither a blank nor part of a comment.
fn without_comments(sql: &str) -> &str {
    let mut rest = sql.trim_start();
    loop {
        rest = if let Some(next) = rest.strip_prefix(';') {
            // An empty statement before `\;`.
            next
        } else if let Some(comment) = rest.strip_prefix("--") {
            comment.split_once('\n').map_or("", |(_, rest)| rest)
        } else if rest.starts_with("/*") {
            after_comment(rest)
        } else {
            return rest;
        }
        .trim_start();
    }
}

/// Returns what follows a comment, in which others may be nested.
fn after_comment(sql: &str) -> &str {
    let (mut depth, mut at) = (0, 0);
    while let Some(pair) = sql.as_bytes().get(at..at + 2) {
        match pair {
            b"/*" => depth += 1,
            b"*/" => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return sql.get(at..).unwrap_or_default();
        }
    }
    ""
}

impl Encoded {
    fn new(
        name: String,
        position: usize,
        sql: &Sql,
        parameters: &[&riops_script::Reference],
        protocol: Protocol,
    ) -> Self {
        let wire_name = if protocol == Protocol::Prepared { name.as_str() } else { "" };
        let is_described = sql.rows != Rows::Discard;
        let several = sql.statements != 1;
        let word = first_word(&sql.text);
        Self {
            position,
            execution: Execution::with_texts(wire_name, parameters.len(), is_described),
            statement: sql.clone(),
            sql: sql.with_parameters(parameters.iter().copied()),
            parameters: parameters.iter().map(|reference| reference.slot).collect(),
            replies: if protocol == Protocol::Simple { ANY_STATEMENTS } else { 1 },
            ends_block: several || matches!(word.as_str(), "commit" | "end" | "prepare"),
            changes: several || !READING.contains(&word.as_str()),
            has_plan: !several
                && PLANNED.contains(&leading_word(without_comments(&sql.text)).0.as_str()),
            is_prepared_first: false,
            name,
        }
    }

    /// Returns the statement as sessions prepare it. The server infers the types of its parameters.
    pub(super) fn prepared(&self) -> Statement {
        Statement::new(&self.name, self.sql.clone(), [])
    }
}

impl Program {
    /// Compiles the scripts of a run.
    pub(super) fn new(run: &ScriptRun, protocol: Protocol) -> Result<Self, PlanError> {
        let Parsed { scripts, mut names, .. } = run.parsed(protocol)?;
        let uses_scale = names.find("scale").is_some();
        for name in ["scale", "client_id", "random_seed", "default_seed"] {
            names.slot(name);
        }
        let given: Vec<Slot> = run.define.keys().filter_map(|name| names.find(name)).collect();
        let is_simple = protocol == Protocol::Simple;
        let (mut statements, mut commands) = (0, 0);
        let mut compiled = Vec::new();
        let scope = riops_script::Scope::new(&scripts, &names, &given, is_simple);
        for (script_number, (script, source)) in (1..).zip(scripts.iter().zip(&run.scripts)) {
            let mut encode = |(ordinal, command): (usize, &riops_script::Command)| {
                let Action::Sql(sql) = &command.action else { return None };
                let parameters: Vec<_> = scope.parameters(sql).collect();
                let name = match scripts.len() {
                    1 => format!("command {ordinal}"),
                    _ => format!("script {script_number} command {ordinal}"),
                };
                let encoded = Encoded::new(name, statements, sql, &parameters, protocol);
                statements += 1;
                Some(encoded)
            };
            let encoded: Vec<_> = (1..).zip(&script.commands).map(&mut encode).collect();
            let first_command = commands;
            commands += encoded.len();
            compiled.push(CompiledScript {
                script: script.clone(),
                builtin: source.builtin()?,
                changes: encoded.iter().flatten().any(|statement| statement.changes),
                encoded,
                first_command,
            });
        }
        let mut bound = 0;
        let bound_of = |source: &ScriptSource| {
            bound += u64::from(source.weight);
            bound
        };
        Ok(Self {
            scripts: compiled,
            names,
            bounds: run.scripts.iter().map(bound_of).collect(),
            protocol,
            uses_scale,
            is_as_pgbench: run.report.allows_no_success,
            is_verbose: run.report.verbose_errors,
            is_traced: run.report.debug,
        })
    }

    /// Returns all statements, in order.
    pub(super) fn all(&self) -> impl Iterator<Item = &Encoded> {
        self.scripts.iter().flat_map(|script| script.encoded.iter().flatten())
    }

    pub(super) fn all_mut(&mut self) -> impl Iterator<Item = &mut Encoded> {
        self.scripts.iter_mut().flat_map(|script| script.encoded.iter_mut().flatten())
    }

    /// Returns the commands, in order.
    pub(super) fn commands(&self) -> Vec<ScriptCommand> {
        let of_script = |(operation, script): (usize, &CompiledScript)| {
            let mut in_pipeline = false;
            let command = |(ordinal, command): (usize, &riops_script::Command)| {
                match command.action {
                    Action::StartPipeline => in_pipeline = true,
                    Action::EndPipeline => in_pipeline = false,
                    _ => {}
                }
                let is_measured = match command.action {
                    // Statements of a pipeline are measured at its end.
                    Action::Sql(_) => !in_pipeline,
                    Action::EndPipeline
                    | Action::Sleep(..)
                    | Action::Shell(_)
                    | Action::SetShell(..) => true,
                    _ => false,
                };
                ScriptCommand { operation, ordinal, title: command.title.clone(), is_measured }
            };
            (1..).zip(&script.script.commands).map(command).collect::<Vec<_>>()
        };
        self.scripts.iter().enumerate().flat_map(of_script).collect()
    }

    /// Returns the script and the line of a command.
    pub(super) fn place(&self, position: Position) -> Option<String> {
        let script = &self.scripts.get(position.script)?.script;
        let line = script.commands.get(position.command).map_or(0, |command| command.line);
        Some(format!("{}:{line}", script.name))
    }

    /// Returns an error of a script, with the line of the command.
    #[expect(clippy::unnecessary_box_returns, reason = "errors are boxed everywhere")]
    pub(super) fn failure(&self, position: Position, error: &ScriptError) -> Box<ServerError> {
        // The end of the script has no line.
        let is_end = matches!(error, ScriptError::State(text) if text.starts_with("end of"));
        let place = self.place(position).filter(|_| !is_end);
        let place = place.map_or_else(String::new, |place| format!("{place}: "));
        Box::new(ServerError {
            severity: String::new(),
            sqlstate: SqlState::parse(error.sqlstate()),
            message: format!("{place}{error}"),
            detail: None,
            hint: None,
            others: Vec::new(),
        })
    }

    /// Returns the number of the command that a transaction executes in its script, from 0.
    pub(super) fn command_in_script(&self, script: usize, tx: &Transaction) -> usize {
        let first = self.scripts.get(script).map_or(0, |script| script.first_command);
        tx.command().saturating_sub(first)
    }

    /// Returns the statement of a script whose reply is read.
    pub(super) fn answered(&self, script: usize, tx: &Transaction) -> Option<&Sql> {
        let script = self.scripts.get(script)?;
        let command = tx.command().checked_sub(script.first_command)?;
        match &script.script.commands.get(command)?.action {
            Action::Sql(sql) => Some(sql),
            _ => None,
        }
    }
}

// Errors of a script that are found while it is executed.

pub(super) type Result<T, E = ScriptError> = std::result::Result<T, E>;

/// An error of a script. Each has the SQLSTATE that the server has for the same error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ScriptError {
    /// An expression has no value.
    #[error("{text}")]
    Evaluation {
        /// SQLSTATE.
        sqlstate: &'static str,
        /// Description of the failure.
        text: String,
    },
    /// A command is not allowed in the state of the session.
    #[error("{0}")]
    State(&'static str),
    /// A variable has no value.
    #[error("{0}undefined variable \"{1}\"")]
    Undefined(&'static str, String),
    /// A column of `\gset` or `\aset` cannot be a variable.
    #[error("error storing into variable {0}")]
    Column(String),
    /// `\gset` got another number of rows.
    #[error("expected one row, got {0}")]
    Rows(u64),
    /// A command of the shell failed.
    #[error("execution of meta-command failed: {0}")]
    Shell(String),
    /// The output of a command of the shell is not an integer.
    #[error("shell command must return an integer (not \"{0}\")")]
    NotAnInteger(String),
}

impl ScriptError {
    /// Returns the error of an expression, described with the names of its variables.
    pub(super) fn from_evaluation(
        error: &EvaluateError,
        names: &riops_script::Names,
        variables: &Variables,
    ) -> Self {
        let sqlstate = match error {
            EvaluateError::DivisionByZero => "22012",
            EvaluateError::OutOfRange(_)
            | EvaluateError::DoubleOutOfRange(_)
            | EvaluateError::VariableOutOfRange(_) => "22003",
            EvaluateError::Coerce(..) => "42804",
            EvaluateError::Malformed(_) => "22P02",
            _ => "22023",
        };
        Self::Evaluation { sqlstate, text: error.describe(names, variables) }
    }

    pub(super) fn sqlstate(&self) -> &'static str {
        match self {
            Self::Evaluation { sqlstate, .. } => sqlstate,
            Self::State(_) => "55000",
            Self::Undefined(..) => "42704",
            Self::Column(_) => "42602",
            Self::Rows(_) => "21000",
            Self::Shell(_) => "38000",
            Self::NotAnInteger(_) => "22P02",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_are_classified_by_their_first_word() {
        for (sql, word) in
            [("Select 1", "select"), (" /* a */ UPDATE t", "update"), ("", ""), ("/* a", "")]
        {
            assert_eq!(first_word(sql), word);
        }
        for sql in [
            "/* a */ -- b\nupdate t",
            "/* /* é */ */ update t",
            "explain update t",
            "explain analyze verbose /* a */ update t",
            "explain (analyze, buffers) update t",
        ] {
            assert_eq!(first_word(sql), "update", "{sql}");
        }
        let program = Program::new(&ScriptRun::default(), Protocol::Prepared).unwrap();
        let facts: Vec<_> = program
            .all()
            .map(|encoded| {
                (
                    encoded.name.as_str(),
                    encoded.changes,
                    encoded.ends_block,
                    encoded.parameters.len(),
                )
            })
            .collect();
        let expected = [
            ("command 5", false, false, 0),
            ("command 6", true, false, 2),
            ("command 7", false, false, 1),
            ("command 8", true, false, 2),
            ("command 9", true, false, 2),
            ("command 10", true, false, 4),
            ("command 11", false, true, 0),
        ];
        assert_eq!(facts, expected);
        let commands = program.commands();
        assert_eq!(
            (commands.len(), commands.iter().filter(|command| command.is_measured).count()),
            (11, 7)
        );
    }
}
