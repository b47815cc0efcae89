//! Labeled lines: written once by the sections, then shown with a given width, or read by other forms.

use super::columns::Columns;
use super::fill::{columns, fill};
use crate::units::text::one_line;

/// Columns before a label.
const INDENT: usize = 2;
/// Columns of a label with the gap behind it.
const LABEL_COLUMNS: usize = 13;
/// Columns by which a text is indented if its label is on a separate line.
const NARROW_INDENT: usize = 4;
/// With less space behind its name, a value goes below the name.
const VALUE_COLUMNS_MIN: usize = 24;

/// A labeled text and the texts that continue it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Labeled {
    pub(super) label: String,
    pub(super) texts: Vec<String>,
}

/// Labeled lines.
pub(super) struct Block {
    width: usize,
    text: String,
    lines: Vec<Labeled>,
}

impl Block {
    /// An empty block whose lines have at most `width` columns.
    pub(super) fn new(width: usize) -> Self {
        Self { width, text: String::new(), lines: Vec::new() }
    }

    /// The finished text.
    pub(super) fn finish(self) -> String {
        self.text
    }

    /// What the lines and pairs say, without their layout.
    pub(super) fn into_lines(self) -> Vec<Labeled> {
        self.lines
    }

    /// A text without a label from the first column on; further lines are indented.
    pub(super) fn title(&mut self, text: &str) {
        self.hanging(0, INDENT, text);
    }

    /// A labeled text; an empty label continues the line above.
    pub(super) fn line(&mut self, label: &str, text: &str) {
        self.note(label, text.to_owned());
        let space = self.width.saturating_sub(INDENT + LABEL_COLUMNS);
        for (position, line) in fill(text, space).iter().enumerate() {
            let label = if position == 0 { label } else { "" };
            self.push(&format!("{:INDENT$}{label:<LABEL_COLUMNS$}{line}", ""));
        }
    }

    /// Shell commands, each with its purpose: beside the commands if all fit there, else below each. A command
    /// that is too long is continued as a shell expects it.
    pub(super) fn commands(&mut self, label: &str, commands: &[(&str, &str)]) {
        let space = self.width.saturating_sub(INDENT + LABEL_COLUMNS);
        let widest = commands.iter().map(|(command, _)| columns(command)).max().unwrap_or(0);
        let beside: Vec<_> = commands
            .iter()
            .map(|(command, purpose)| format!("{command:<widest$}  ({purpose})"))
            .collect();
        let is_narrow = beside.iter().any(|line| columns(line) > space);
        let mut label = label;
        for ((command, purpose), beside) in commands.iter().zip(&beside) {
            if is_narrow {
                // Two columns are for the backslash.
                let words = with_quoted_spaces(command, ' ', '\u{a0}');
                let lines = fill(&words, space.saturating_sub(2)).join(" \\\n");
                for line in lines.lines() {
                    let line = with_quoted_spaces(line, '\u{a0}', ' ');
                    self.line_unbroken(std::mem::take(&mut label), &line);
                }
                for line in fill(&format!("({purpose})"), space.saturating_sub(INDENT)) {
                    self.line_unbroken("", &format!("{:INDENT$}{line}", ""));
                }
            } else {
                self.line_unbroken(std::mem::take(&mut label), beside);
            }
        }
    }

    /// Text whose spaces have a meaning, such as the plan of a statement.
    pub(super) fn verbatim(&mut self, text: &str) {
        for line in text.lines() {
            let rest = line.trim_start();
            let indent = INDENT + NARROW_INDENT + line.len() - rest.len();
            self.hanging(indent, indent + NARROW_INDENT, rest);
        }
    }

    /// Names and values below each other.
    pub(super) fn pairs(&mut self, label: &str, pairs: &[(String, String)]) {
        for (position, (name, value)) in pairs.iter().enumerate() {
            self.note(if position == 0 { label } else { "" }, format!("{name}: {value}"));
        }
        let names = pairs.iter().map(|(name, _)| columns(name)).max().unwrap_or(0) + 2;
        let is_narrow = self.width < INDENT + LABEL_COLUMNS + names + VALUE_COLUMNS_MIN;
        let indent = if is_narrow { NARROW_INDENT } else { INDENT + LABEL_COLUMNS };
        if is_narrow {
            self.push(&format!("{:INDENT$}{label}", ""));
        }
        for (position, (name, value)) in pairs.iter().enumerate() {
            let label = if position == 0 && !is_narrow { label } else { "" };
            let start = format!("{:INDENT$}{label}", "");
            for (line, part) in
                fill(value, self.width.saturating_sub(indent + names)).iter().enumerate()
            {
                let (start, name) =
                    if line == 0 { (start.as_str(), name.as_str()) } else { ("", "") };
                self.push(&format!("{start:<indent$}{name:<names$}{part}"));
            }
        }
    }

    /// A table: beside the label if it fits there, otherwise below it.
    pub(super) fn table(&mut self, label: &str, table: &Columns) {
        let beside = INDENT + LABEL_COLUMNS;
        if table.columns() <= self.width.saturating_sub(beside) {
            for (position, line) in table.lines(usize::MAX).iter().enumerate() {
                self.line_unbroken(if position == 0 { label } else { "" }, line);
            }
            return;
        }
        if !label.is_empty() {
            self.push(&format!("{:INDENT$}{label}", ""));
        }
        self.indented_table(table);
    }

    /// A table without a label.
    pub(super) fn indented_table(&mut self, table: &Columns) {
        for line in table.lines(self.width.saturating_sub(INDENT)) {
            self.push(&format!("{:INDENT$}{line}", ""));
        }
    }

    /// A text without a label, below a table.
    pub(super) fn indented(&mut self, text: &str) {
        self.hanging(INDENT, INDENT, text);
    }

    /// Lines that are not broken, such as those of a chart.
    pub(super) fn unbroken(&mut self, line: &str) {
        self.push(&format!("{:INDENT$}{line}", ""));
    }

    /// An empty line.
    pub(super) fn gap(&mut self) {
        self.text.push('\n');
    }

    fn note(&mut self, label: &str, text: String) {
        match self.lines.last_mut().filter(|_| label.is_empty()) {
            Some(last) => last.texts.push(text),
            None => self.lines.push(Labeled { label: label.to_owned(), texts: vec![text] }),
        }
    }

    fn line_unbroken(&mut self, label: &str, text: &str) {
        self.push(&format!("{:INDENT$}{label:<LABEL_COLUMNS$}{text}", ""));
    }

    fn hanging(&mut self, first: usize, others: usize, text: &str) {
        for (position, line) in fill(text, self.width.saturating_sub(others)).iter().enumerate() {
            let indent = if position == 0 { first } else { others };
            self.push(&format!("{:indent$}{line}", ""));
        }
    }

    fn push(&mut self, line: &str) {
        self.text.push_str(one_line(line).trim_end());
        self.text.push('\n');
    }
}

/// Replaces a character between single quotes, where a shell command must not be broken.
fn with_quoted_spaces(command: &str, from: char, to: char) -> String {
    let mut is_quoted = false;
    let replaced = command.chars().map(|character| {
        is_quoted ^= character == '\'';
        if is_quoted && character == from { to } else { character }
    });
    replaced.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(width: usize, add: impl Fn(&mut Block)) -> String {
        let mut block = Block::new(width);
        add(&mut block);
        block.finish()
    }

    #[test]
    fn a_long_text_continues_below_its_first_word() {
        let text =
            text(40, |block| block.line("latency", "p50 1.18 ms · p90 1.79 ms · max 14.6 ms"));
        assert_eq!(
            text,
            "  latency      p50 1.18 ms ·\n               p90 1.79 ms · max 14.6 ms\n"
        );
    }

    #[test]
    fn a_long_command_can_be_pasted_into_a_shell() {
        let commands = [("riops run rows --batch 1", "one row"), ("riops doctor", "check")];
        let add = |block: &mut Block| block.commands("try next", &commands);
        assert_eq!(
            text(36, add),
            "  try next     riops run rows \\\n               --batch 1\n                 (one row)\n               riops doctor\n                 (check)\n"
        );
        assert_eq!(
            text(80, add),
            "  try next     riops run rows --batch 1  (one row)\n               riops doctor              (check)\n"
        );
        let quoted = [("riops doctor -d 'host=db port=1 user=me'", "check")];
        assert_eq!(
            text(36, |block| block.commands("try next", &quoted)),
            "  try next     riops doctor -d \\\n               'host=db port=1 user=me'\n                 (check)\n"
        );
    }

    #[test]
    fn names_and_values_move_to_the_left_in_a_narrow_terminal() {
        let pairs = [("wallclock time".to_owned(), "12.5 s, 99% of the time".to_owned())];
        let add = |block: &mut Block| block.pairs("result", &pairs);
        assert_eq!(text(80, add), "  result       wallclock time  12.5 s, 99% of the time\n");
        assert_eq!(
            text(40, add),
            "  result\n    wallclock time  12.5 s, 99% of the\n                    time\n"
        );
    }

    #[test]
    fn the_indentation_of_a_plan_is_kept() {
        let text = text(30, |block| block.verbatim("Aggregate\n  Seq Scan on rows_0001, filter"));
        assert_eq!(text, "      Aggregate\n        Seq Scan on\n            rows_0001, filter\n");
    }
}
