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
    /// Operands that certainly have the wrong type.
    pub(crate) mismatches: Vec<Problem>,
}

impl Script {
    /// Returns its SQL commands, with the numbers of the commands, from 1, and their lines.
    pub fn statements(&self) -> impl Iterator<Item = ((usize, usize), &Statement)> {
        (1..).zip(&self.commands).filter_map(|(ordinal, command)| match &command.action {
            Action::Sql(statement) => Some(((ordinal, command.line), statement)),
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
    pub(crate) place: Place,
}

/// Where a variable is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// In a meta command.
    Command,
    /// A parameter of a statement. The simple protocol leaves it in the text if it is undefined.
    Parameter,
    /// In quotes within a statement, where only the simple protocol replaces it.
    Quotes,
}

/// Maximum number of parameters of a statement, as in pgbench.
const PARAMETERS_MAX: usize = 255;
/// Variables that every client has.
const PRESET: [&str; 4] = ["scale", "client_id", "random_seed", "default_seed"];

/// The variables that scripts have in common, and the protocol.
pub struct Scope<'a> {
    names: &'a Names,
    defined: HashSet<Slot>,
    /// Prefixes of `\gset` and `\aset`, whose columns may define every variable that begins with one.
    prefixes: Vec<&'a str>,
    is_simple: bool,
    /// Whether an undefined variable and an operand of the wrong type are errors only when they are evaluated.
    is_late: bool,
}

impl<'a> Scope<'a> {
    /// Creates the scope of these scripts, with the variables that the user has defined.
    pub fn new(scripts: &'a [Script], names: &'a Names, given: &[Slot], is_simple: bool) -> Self {
        let preset = PRESET.iter().filter_map(|name| names.find(name));
        let mut defined: HashSet<Slot> = preset.chain(given.iter().copied()).collect();
        let mut prefixes: Vec<&str> = Vec::new();
        for command in scripts.iter().flat_map(|script| &script.commands) {
            match &command.action {
                Action::Set(slot, _) | Action::SetShell(slot, _) => drop(defined.insert(*slot)),
                Action::Sql(Statement {
                    rows: Rows::Last(prefix) | Rows::Each(prefix), ..
                }) => prefixes.push(prefix),
                _ => {}
            }
        }
        Self { names, defined, prefixes, is_simple, is_late: false }
    }

    /// Returns the scope in which undefined variables and operands of the wrong type are errors only when they are
    /// evaluated, as in pgbench.
    pub fn with_late_errors(self, is_late: bool) -> Self {
        Self { is_late, ..self }
    }

    fn is_defined(&self, slot: Slot) -> bool {
        let is_column = |prefix: &&str| self.names.name(slot).starts_with(prefix);
        self.defined.contains(&slot) || self.prefixes.iter().any(is_column)
    }

    /// Returns the variables of a statement that are parameters. An undefined one is none with the simple protocol,
    /// which leaves it in the text: it may be a part of an array's bounds.
    pub fn parameters(&self, statement: &'a Statement) -> impl Iterator<Item = &'a Reference> {
        let is_one = |reference: &&Reference| {
            !reference.is_quoted && (!self.is_simple || self.is_defined(reference.slot))
        };
        statement.references.iter().filter(is_one)
    }

    /// Returns the errors of a script that depend on the scope, up to a maximum: statements with too many parameters,
    /// and each place that reads a variable that nothing defines.
    pub fn errors(&self, script: &Script) -> Vec<Diagnostic> {
        let source = Source::new(&script.name, &script.text);
        let undefined = script
            .uses
            .iter()
            .filter(|usage| match usage.place {
                Place::Command => !self.is_defined(usage.slot),
                Place::Parameter => !self.is_simple && !self.is_defined(usage.slot),
                Place::Quotes => false,
            })
            .map(|usage| {
                let name = self.names.name(usage.slot);
                Problem::new(usage.at, format!("undefined variable \"{name}\""))
            });
        let early = undefined.chain(script.mismatches.iter().cloned()).filter(|_| !self.is_late);
        let is_too_wide = |statement: &Statement| {
            let parameters = statement.references.iter().filter(|reference| !reference.is_quoted);
            !self.is_simple && parameters.count() > PARAMETERS_MAX
        };
        let too_wide = script.statements().filter(|(_, statement)| is_too_wide(statement));
        let too_wide = too_wide.map(|(_, statement)| {
            let text = format!("statement has too many arguments (maximum is {PARAMETERS_MAX})");
            Problem::new(statement.start, text)
        });
        // `t_$1` is a name, and `1$1` an error.
        let follows_name = |at: usize| {
            let before = at.checked_sub(1).and_then(|at| script.text.as_bytes().get(at));
            before.is_some_and(|byte| {
                byte.is_ascii_alphanumeric() || b"_$".contains(byte) || !byte.is_ascii()
            })
        };
        let glued =
            self.defined_in(script, Place::Parameter).filter(|usage| follows_name(usage.at));
        let glued = glued.map(|usage| {
            let name = self.names.name(usage.slot);
            let text = format!(
                "the variable \"{name}\" follows a name or a number, so that it is not a parameter: use --protocol simple"
            );
            Problem::new(usage.at, text)
        });
        let all = early.chain(too_wide).chain(glued);
        let mut problems: Vec<Problem> = all.take(DIAGNOSTICS_MAX).collect();
        problems.sort_by_key(|problem| problem.at);
        problems.into_iter().map(|problem| source.diagnostic(problem)).collect()
    }

    /// Returns what is probably a mistake in a script, up to a maximum: variables in quotes, which only the simple protocol
    /// replaces.
    pub fn warnings(&self, script: &Script) -> Vec<Diagnostic> {
        let source = Source::new(&script.name, &script.text);
        let quoted = self.defined_in(script, Place::Quotes).map(|usage| {
            let name = self.names.name(usage.slot);
            let text = format!(
                "the variable \"{name}\" is not replaced in quotes: remove the quotes, or use --protocol simple"
            );
            source.warning(Problem::new(usage.at, text))
        });
        quoted.take(DIAGNOSTICS_MAX).collect()
    }

    /// Returns where a script has variables that something defines; none with the simple protocol, which replaces all.
    fn defined_in<'s>(&self, script: &'s Script, place: Place) -> impl Iterator<Item = &'s Use> {
        let is_one = move |usage: &&Use| {
            usage.place == place && !self.is_simple && self.is_defined(usage.slot)
        };
        script.uses.iter().filter(is_one)
    }
}

/// A command of a script.
#[derive(Debug, Clone, PartialEq)]
pub struct Command {
    /// Position in the text.
    pub(crate) start: usize,
    /// Line on which it begins, from 1.
    pub line: usize,
    /// Its first line, for reports.
    pub title: String,
    /// Its action.
    pub action: Action,
}

/// Action of a command.
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

/// Use of the rows of a statement.
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
    /// Use of its rows.
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

    /// Returns the text with parameters instead of these variables.
    pub fn with_parameters<'a>(&self, parameters: impl Iterator<Item = &'a Reference>) -> String {
        let mut sql = String::with_capacity(self.text.len());
        let mut copied = 0;
        for (ordinal, Reference { start, end, .. }) in (1..).zip(parameters) {
            sql.push_str(self.text.get(copied..*start).unwrap_or_default());
            // Writing to a String cannot fail.
            let _ = write!(sql, "${ordinal}");
            copied = *end;
        }
        sql.push_str(self.text.get(copied..).unwrap_or_default());
        sql
    }
}
