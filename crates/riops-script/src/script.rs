//! A parsed script: its commands in order.

use std::collections::HashSet;
use std::fmt::Write as _;

use crate::diagnostic::{DIAGNOSTICS_MAX, Diagnostic, Problem, Source};
use crate::expression::Expression;
use crate::variables::{Names, Slot, Variables};

/// A script.
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    /// Name, usually of its file.
    pub name: String,
    /// Its commands.
    pub commands: Vec<Command>,
    pub(crate) text: String,
    /// Where it reads variables.
    pub(crate) uses: Vec<Use>,
}

impl Script {
    /// Returns its SQL commands, with their lines.
    pub fn statements(&self) -> impl Iterator<Item = (usize, &Statement)> {
        self.commands.iter().filter_map(|command| match &command.action {
            Action::Sql(statement) => Some((command.line, statement)),
            _ => None,
        })
    }
}

/// A place that reads a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Use {
    /// Position in the text.
    pub(crate) at: usize,
    pub(crate) slot: Slot,
    /// Whether it is a parameter of a statement. The simple protocol leaves it in the text if it is undefined.
    pub(crate) is_parameter: bool,
}

/// Maximum number of parameters of a statement, as in pgbench.
const PARAMETERS_MAX: usize = 255;

/// Returns the errors that depend on all scripts and on the protocol, up to a maximum for each script: statements with
/// too many parameters, and each place that reads a variable that nothing defines, neither the caller, nor a command of
/// any of the scripts. Columns of `\gset` and `\aset` may define every variable with their prefix.
#[must_use]
pub fn errors_together(
    scripts: &[Script],
    names: &Names,
    defined: &[Slot],
    is_simple: bool,
) -> Vec<Diagnostic> {
    let mut known: HashSet<Slot> = defined.iter().copied().collect();
    let mut prefixes: Vec<&str> = Vec::new();
    for command in scripts.iter().flat_map(|script| &script.commands) {
        match &command.action {
            Action::Set(slot, _) | Action::SetShell(slot, _) => drop(known.insert(*slot)),
            Action::Sql(Statement { rows: Rows::Last(prefix) | Rows::Each(prefix), .. }) => {
                prefixes.push(prefix);
            }
            _ => {}
        }
    }
    let is_defined = |slot: Slot| {
        known.contains(&slot) || prefixes.iter().any(|prefix| names.name(slot).starts_with(prefix))
    };
    let errors_of = |script: &Script| -> Vec<Diagnostic> {
        let source = Source::new(&script.name, &script.text);
        let uses = script.uses.iter();
        let undefined = uses
            .filter(|each| !(is_defined(each.slot) || is_simple && each.is_parameter))
            .map(|each| {
                let text = format!("the variable \"{}\" is not defined", names.name(each.slot));
                Problem::new(each.at, text)
            });
        let too_wide = script
            .statements()
            .filter(|(_, statement)| !is_simple && statement.parameters().count() > PARAMETERS_MAX);
        let too_wide = too_wide.map(|(_, statement)| {
            let text = format!("a statement has at most {PARAMETERS_MAX} variables");
            Problem::new(statement.start, text)
        });
        let mut problems: Vec<Problem> = undefined.chain(too_wide).take(DIAGNOSTICS_MAX).collect();
        problems.sort_by_key(|problem| problem.at);
        problems.into_iter().map(|problem| source.diagnostic(problem)).collect()
    };
    scripts.iter().flat_map(errors_of).collect()
}

/// A command of a script.
#[derive(Debug, Clone, PartialEq)]
pub struct Command {
    /// Line on which it begins, from 1.
    pub line: usize,
    /// Its first line, for reports.
    pub title: String,
    /// What it does.
    pub action: Action,
}

/// What a command does.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Sends SQL.
    Sql(Statement),
    /// `\set`.
    Set(Slot, Expression),
    /// `\if`.
    If {
        /// The condition.
        condition: Expression,
        /// Number of the command at which it continues without a true condition. At an [`Action::ElseIf`], that
        /// condition is evaluated.
        otherwise: usize,
    },
    /// `\elif`. A branch that ends here continues at `end`.
    ElseIf {
        /// The condition, evaluated only when a condition before it was not true.
        condition: Expression,
        /// As for [`Action::If`].
        otherwise: usize,
        /// Number of the `\endif`.
        end: usize,
    },
    /// `\else`. A branch that ends here continues at `end`.
    Else {
        /// Number of the `\endif`.
        end: usize,
    },
    /// `\endif`.
    EndIf,
    /// `\sleep`.
    Sleep(Operand, Unit),
    /// `\shell`: the words of the command.
    Shell(Vec<Word>),
    /// `\setshell`: the variable, and the words of the command.
    SetShell(Slot, Vec<Word>),
    /// `\startpipeline`.
    StartPipeline,
    /// `\syncpipeline`.
    SyncPipeline,
    /// `\endpipeline`.
    EndPipeline,
}

/// An integer, or the variable that has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operand {
    /// An integer.
    Int(i64),
    /// A variable.
    Variable(Slot),
}

/// Unit of `\sleep`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Microseconds.
    Microseconds,
    /// Milliseconds.
    Milliseconds,
    /// Seconds.
    Seconds,
}

impl Unit {
    /// Returns its length in microseconds.
    #[must_use]
    pub fn microseconds(self) -> i64 {
        match self {
            Self::Microseconds => 1,
            Self::Milliseconds => 1_000,
            Self::Seconds => 1_000_000,
        }
    }
}

/// A word of a shell command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Word {
    /// A text.
    Text(String),
    /// A variable.
    Variable(Slot),
}

/// What happens to the rows of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rows {
    /// They are not read.
    Discard,
    /// `\gset`: the columns of the only row of the last statement become variables with this prefix.
    Last(String),
    /// `\aset`: the same for the last row of each statement.
    Each(String),
}

/// A variable in the text of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reference {
    /// Position in the text of its colon.
    pub start: usize,
    /// Position after its name.
    pub end: usize,
    /// The variable.
    pub slot: Slot,
    /// Whether it is in quotes or in a comment, where the server sees no parameter.
    pub is_quoted: bool,
}

/// An SQL command: one statement, or several that `\;` separates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// Its text, with variables.
    pub text: String,
    /// Position in the script.
    pub(crate) start: usize,
    /// The variables, in order.
    pub references: Vec<Reference>,
    /// Number of statements.
    pub statements: usize,
    /// What happens to its rows.
    pub rows: Rows,
}

impl Statement {
    /// Appends the text for the simple protocol: each variable is replaced by its text, without quoting. An undefined
    /// one remains: it may be a part of an array's bounds or of a quoted text.
    pub fn append_simple(&self, variables: &Variables, out: &mut Vec<u8>) {
        let text = self.text.as_bytes();
        let mut copied = 0;
        for Reference { start, end, slot, .. } in &self.references {
            out.extend_from_slice(text.get(copied..*start).unwrap_or_default());
            copied = *start;
            if variables.append_to(*slot, out) {
                copied = *end;
            }
        }
        out.extend_from_slice(text.get(copied..).unwrap_or_default());
    }

    /// Returns the text for the extended protocol, with a parameter for each variable outside of quotes.
    #[must_use]
    pub fn extended(&self) -> String {
        let mut sql = String::with_capacity(self.text.len());
        let mut copied = 0;
        for (number, Reference { start, end, .. }) in (1..).zip(self.parameters()) {
            sql.push_str(self.text.get(copied..*start).unwrap_or_default());
            // Writing to a String cannot fail.
            let _ = write!(sql, "${number}");
            copied = *end;
        }
        sql.push_str(self.text.get(copied..).unwrap_or_default());
        sql
    }

    /// Returns the variables that are parameters with the extended protocol.
    pub fn parameters(&self) -> impl Iterator<Item = &Reference> {
        self.references.iter().filter(|reference| !reference.is_quoted)
    }
}
