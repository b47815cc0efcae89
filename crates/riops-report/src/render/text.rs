//! A document as text for a terminal or a pipe, in lines of a given width.

use std::fmt::Write as _;

use crate::document::{Block, Document, Hint, Lines, Tone};
use crate::render::fill::{columns, fill};
use crate::render::plot;
use crate::render::table::{table_columns, table_lines, with_bars};
use crate::table::Table;
use riops_model::units::text::one_line;

/// Columns before a label.
const INDENT: usize = 2;
/// Columns of a label with the gap behind it.
const LABEL_COLUMNS: usize = 13;
/// Columns before a text.
pub(crate) const TEXT_INDENT: usize = INDENT + LABEL_COLUMNS;
/// Columns by which a text is indented if its label is on a separate line.
const NARROW_INDENT: usize = 4;
/// With less space behind its name, a value starts further to the left.
const VALUE_COLUMNS_MIN: usize = 24;

/// The sequence that ends a color.
const RESET: &str = "\x1b[0m";

/// Calls `escape` for the parts of a text between the sequences that [`text`] writes.
pub fn keep_colors(text: &str, escape: impl Fn(&str) -> String) -> String {
    let tones = [Tone::Main, Tone::Good, Tone::Warn, Tone::Bad].map(Tone::sequence);
    let find = |rest: &str| {
        let sequences = tones.iter().chain([&RESET]);
        sequences.filter_map(|sequence| Some((rest.find(sequence)?, sequence.len()))).min()
    };
    let (mut kept, mut rest) = (String::new(), text);
    while let Some((at, length)) = find(rest) {
        let (before, sequence) = rest.split_at(at);
        let (sequence, after) = sequence.split_at(length);
        kept += &(escape(before) + sequence);
        rest = after;
    }
    kept + &escape(rest)
}

/// The document in lines of this width, if its words allow it.
pub fn text(document: &Document, lines: impl Into<Lines>) -> String {
    let Lines { columns, colors, .. } = lines.into();
    let mut writer = Writer { width: columns, colors, text: String::new(), heading: String::new() };
    document.blocks.iter().for_each(|block| writer.block(block));
    writer.text
}

struct Writer {
    width: usize,
    colors: bool,
    text: String,
    /// The last title: a table with the same title needs no label.
    heading: String,
}

impl Writer {
    fn block(&mut self, block: &Block) {
        match block {
            Block::Title(text) => {
                self.hanging(0, INDENT, text);
                self.heading.clone_from(text);
            }
            Block::Line { label, text, tone } => self.labeled(label, text, *tone),
            Block::Pairs { label, pairs } => self.pairs(label, pairs),
            Block::Table(table) => self.table(table),
            Block::Chart(chart) => {
                let lines = plot::lines(chart, self.width.saturating_sub(INDENT));
                if !lines.is_empty() {
                    self.text.push('\n');
                    self.hanging(0, INDENT, &chart.title);
                    for line in &lines {
                        self.push(&format!("{:INDENT$}{line}", ""));
                    }
                }
            }
            Block::Picture(_) | Block::Flame(_) => {}
            Block::Verbatim(text) => {
                for line in text.lines() {
                    let rest = line.trim_start();
                    let indent = INDENT + NARROW_INDENT + line.len() - rest.len();
                    if indent + columns(rest) <= self.width {
                        self.push(&format!("{:indent$}{rest}", ""));
                    } else {
                        self.hanging(indent, indent + NARROW_INDENT, rest);
                    }
                }
            }
            Block::Commands { label, commands } => self.commands(label, commands),
            Block::Gap => self.text.push('\n'),
        }
    }

    /// A labeled text; an empty label continues the line above.
    fn labeled(&mut self, label: &str, text: &str, tone: Option<Tone>) {
        let space = self.width.saturating_sub(TEXT_INDENT);
        let lines = fill(text, space);
        // A long word, such as an id, gets more room below the label.
        let is_wide = lines.iter().any(|line| columns(line) > space);
        // A long label is above its text.
        let is_above = columns(label) >= LABEL_COLUMNS || is_wide && !label.is_empty();
        if is_above {
            self.push(&format!("{:INDENT$}{label}", ""));
        }
        let (lines, indent) = if is_wide {
            (fill(text, self.width.saturating_sub(NARROW_INDENT)), NARROW_INDENT)
        } else {
            (lines, TEXT_INDENT)
        };
        for (position, line) in lines.iter().enumerate() {
            let label = if position == 0 && !is_above { label } else { "" };
            let start = format!("{:INDENT$}{label}", "");
            self.toned(&format!("{start:<indent$}"), line, tone);
        }
    }

    /// Shell commands, each with its purpose: beside the commands if all fit there, else below each. A command
    /// that is too long is continued as a shell expects it.
    fn commands(&mut self, label: &str, commands: &[Hint]) {
        let space = self.width.saturating_sub(TEXT_INDENT);
        let widest = commands.iter().map(|hint| columns(&hint.command)).max().unwrap_or(0);
        let beside = |hint: &Hint| format!("{:<widest$}  ({})", hint.command, hint.purpose);
        let beside: Vec<_> = commands.iter().map(beside).collect();
        let is_narrow = beside.iter().any(|line| columns(line) > space);
        let mut label = label;
        for (Hint { command, purpose }, beside) in commands.iter().zip(&beside) {
            if is_narrow {
                // Two columns are for the backslash.
                let words = with_quoted_spaces(command, ' ', '\u{a0}');
                let lines = fill(&words, space.saturating_sub(2)).join(" \\\n");
                for line in lines.lines() {
                    let line = with_quoted_spaces(line, '\u{a0}', ' ');
                    self.unbroken(std::mem::take(&mut label), &line);
                }
                for line in fill(&format!("({purpose})"), space.saturating_sub(INDENT)) {
                    self.unbroken("", &format!("{:INDENT$}{line}", ""));
                }
            } else {
                self.unbroken(std::mem::take(&mut label), beside);
            }
        }
    }

    /// Names and values below each other.
    fn pairs(&mut self, label: &str, pairs: &[(String, String)]) {
        let names = pairs.iter().map(|(name, _)| columns(name)).max().unwrap_or(0) + 2;
        let is_narrow = self.width < TEXT_INDENT + names + VALUE_COLUMNS_MIN;
        let indent = if is_narrow { NARROW_INDENT } else { TEXT_INDENT };
        if is_narrow {
            self.push(&format!("{:INDENT$}{label}", ""));
        }
        for (position, (name, value)) in pairs.iter().enumerate() {
            let label = if position == 0 && !is_narrow { label } else { "" };
            let start = format!("{:INDENT$}{label}", "");
            let lines = fill(value, self.width.saturating_sub(indent + names));
            if lines.iter().any(|line| indent + names + columns(line) > self.width) {
                self.hanging(indent, indent, name);
                self.hanging(indent + INDENT, indent + INDENT, value);
                continue;
            }
            for (line, part) in lines.iter().enumerate() {
                let (start, name) =
                    if line == 0 { (start.as_str(), name.as_str()) } else { ("", "") };
                self.push(&format!("{start:<indent$}{name:<names$}{part}"));
            }
        }
    }

    /// A table: beside its title if it fits there, otherwise below it.
    fn table(&mut self, table: &Table) {
        let title = if table.title == self.heading { "" } else { table.title.as_str() };
        let table = &with_bars(table);
        let beside = TEXT_INDENT;
        let is_label = !title.is_empty() && columns(title) < LABEL_COLUMNS;
        if is_label && table_columns(table) <= self.width.saturating_sub(beside) {
            for (position, line) in table_lines(table, usize::MAX).iter().enumerate() {
                self.unbroken(if position == 0 { title } else { "" }, line);
            }
        } else {
            if !title.is_empty() {
                self.push(&format!("{:INDENT$}{title}", ""));
            }
            for line in table_lines(table, self.width.saturating_sub(INDENT)) {
                self.push(&format!("{:INDENT$}{line}", ""));
            }
        }
        if let Some(note) = &table.note {
            let indent = if is_label { beside } else { INDENT };
            self.hanging(indent, indent, note);
        }
    }

    fn unbroken(&mut self, label: &str, text: &str) {
        self.push(&format!("{:INDENT$}{label:<LABEL_COLUMNS$}{text}", ""));
    }

    fn hanging(&mut self, first: usize, others: usize, text: &str) {
        for (position, line) in fill(text, self.width.saturating_sub(others)).iter().enumerate() {
            let indent = if position == 0 { first } else { others };
            self.push(&format!("{:indent$}{line}", ""));
        }
    }

    /// Adds a line whose text has the color of its tone.
    fn toned(&mut self, start: &str, text: &str, tone: Option<Tone>) {
        match tone.filter(|_| self.colors) {
            None => self.push(&format!("{start}{text}")),
            Some(tone) => {
                let (start, text) = (one_line(start), one_line(text));
                let _ = writeln!(self.text, "{start}{}{text}{RESET}", tone.sequence());
            }
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
    use riops_model::units::text::lines;

    fn text(width: usize, add: impl Fn(&mut Document)) -> String {
        let mut document = Document::default();
        add(&mut document);
        super::text(&document, width)
    }

    #[test]
    fn a_long_text_continues_below_its_first_word() {
        let text = text(40, |document| {
            document.line("latency", "p50 1.18 ms · p90 1.79 ms · max 14.6 ms");
        });
        assert_eq!(
            text,
            "  latency      p50 1.18 ms ·\n               p90 1.79 ms · max 14.6 ms\n"
        );
    }

    #[test]
    fn a_long_command_can_be_pasted_into_a_shell() {
        let commands = vec![
            Hint::new("riops run rows --batch 1", "one row"),
            Hint::new("riops doctor", "check"),
        ];
        let add = |document: &mut Document| document.commands("try next", commands.clone());
        assert_eq!(
            text(36, add),
            "  try next     riops run rows \\\n               --batch 1\n                 (one row)\n               riops doctor\n                 (check)\n"
        );
        assert_eq!(
            text(80, add),
            "  try next     riops run rows --batch 1  (one row)\n               riops doctor              (check)\n"
        );
        let quoted = vec![Hint::new("riops doctor -d 'host=db port=1 user=me'", "check")];
        assert_eq!(
            text(36, |document| document.commands("try next", quoted.clone())),
            "  try next     riops doctor -d \\\n               'host=db port=1 user=me'\n                 (check)\n"
        );
    }

    #[test]
    fn names_and_values_move_to_the_left_in_a_narrow_terminal() {
        let pairs = vec![("wallclock time".to_owned(), "12.5 s, 99% of the time".to_owned())];
        let add = |document: &mut Document| document.pairs("result", pairs.clone());
        assert_eq!(text(80, add), "  result       wallclock time  12.5 s, 99% of the time\n");
        assert_eq!(
            text(40, add),
            "  result\n    wallclock time  12.5 s, 99% of the\n                    time\n"
        );
    }

    #[test]
    fn verdicts_have_colors_and_values_cannot_add_any() {
        let mut document = Document::default();
        document.line("label", "a\x1b[31mb");
        document.toned("valid", "yes: \x1b[31m", Tone::Good);
        let text = super::text(&document, Lines { colors: true, ..Lines::from(80) });
        let expected =
            "  label        a\\u{1b}[31mb\n  valid        \x1b[32myes: \\u{1b}[31m\x1b[0m\n";
        assert_eq!(text, expected);
        let escape = |text: &str| lines(text).into_owned();
        assert_eq!(keep_colors(&text, escape), text);
        assert_eq!(
            keep_colors("\x1b[2J\x1b[31ma\x1b[0m\x1b", escape),
            "\\u{1b}[2J\x1b[31ma\x1b[0m\\u{1b}"
        );
    }

    #[test]
    fn the_indentation_of_a_plan_is_kept() {
        let text =
            text(30, |document| document.verbatim("Aggregate\n  Seq Scan on rows_0001, filter"));
        assert_eq!(text, "      Aggregate\n        Seq Scan on\n            rows_0001, filter\n");
    }
}
