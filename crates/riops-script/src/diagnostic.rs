//! Errors and warnings in a script, with their position.

use std::fmt;

/// Maximum number of errors that are reported for a script.
pub(crate) const DIAGNOSTICS_MAX: usize = 20;

/// Maximum number of characters of a line that are shown, and maximum number of them before the column.
const SHOWN_MAX: usize = 160;
const SHOWN_BEFORE: usize = 100;

/// An error at a position of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    /// Position in the text, in bytes.
    pub(crate) at: usize,
    /// The fault.
    pub(crate) message: String,
}

impl Problem {
    pub(crate) fn new(at: usize, message: impl Into<String>) -> Self {
        Self { at, message: message.into() }
    }

    /// Adds the name of the meta command.
    pub(crate) fn in_command(self, name: &str) -> Self {
        Self { at: self.at, message: format!("{} in command \"{name}\"", self.message) }
    }
}

/// An error or a warning in a script: file, line and column, the message, and the line with a caret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Name of the script, usually of its file.
    pub script: String,
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1, in characters.
    pub column: usize,
    /// The fault.
    pub message: String,
    /// The line, or the part of a long line around the column.
    pub source: String,
    /// Number of characters of `source` before the column.
    pub caret: usize,
    /// Whether the script can be executed all the same.
    pub is_warning: bool,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { script, line, column, message, source, caret, is_warning } = self;
        let indent = " ".repeat(*caret);
        let note = if *is_warning { "" } else { " error found here" };
        write!(f, "{script}:{line}:{column}: {message}\n  {source}\n  {indent}^{note}")
    }
}

impl std::error::Error for Diagnostic {}

/// The text of a script with the positions of its lines.
pub(crate) struct Source<'a> {
    name: &'a str,
    pub(crate) text: &'a str,
    /// Where each line starts.
    lines: Vec<usize>,
}

impl<'a> Source<'a> {
    pub(crate) fn new(name: &'a str, text: &'a str) -> Self {
        let ends = text.match_indices('\n').map(|(newline, _)| newline + 1);
        Self { name, text, lines: std::iter::once(0).chain(ends).collect() }
    }

    /// Returns the line of a position, from 1.
    pub(crate) fn line(&self, at: usize) -> usize {
        self.lines.partition_point(|start| *start <= at)
    }

    pub(crate) fn diagnostic(&self, problem: Problem) -> Diagnostic {
        let line = self.line(problem.at);
        let start = line.checked_sub(1).and_then(|line| self.lines.get(line)).copied().unwrap_or(0);
        // A problem at the end of the text has its position after the last character.
        let before = self.text.get(start..problem.at).unwrap_or_default();
        let rest = self.text.get(start..).unwrap_or_default();
        let column = before.chars().count();
        let first = column.saturating_sub(SHOWN_BEFORE);
        let shown = rest.lines().next().unwrap_or_default().chars().skip(first).take(SHOWN_MAX);
        // Control characters would change the terminal. A tab is one column wide, so that the caret is below its column.
        let visible = |character: char| match character {
            '\t' => ' ',
            _ if character.is_control() => '\u{fffd}',
            _ => character,
        };
        Diagnostic {
            script: self.name.to_owned(),
            line,
            column: column + 1,
            message: problem.message,
            source: shown.map(visible).collect(),
            caret: column - first,
            is_warning: false,
        }
    }

    pub(crate) fn warning(&self, problem: Problem) -> Diagnostic {
        Diagnostic { is_warning: true, ..self.diagnostic(problem) }
    }
}
