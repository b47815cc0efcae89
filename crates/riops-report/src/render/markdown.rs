//! Documents as GitHub's Markdown, for a ticket or a page.

use std::fmt::Write as _;

use super::super::document::{Fact, Findings, Tone};
use super::super::table::{Cell, Table};
use riops_model::units::text::is_unprintable;

/// Returns the findings, with the conclusion first.
pub fn findings_markdown(findings: &Findings) -> String {
    // Writing to a String cannot fail.
    let mut text = format!("## {}\n", escaped(&findings.title));
    add_findings(&mut text, findings);
    text
}

/// Adds the findings without their title.
pub(crate) fn add_findings(text: &mut String, findings: &Findings) {
    text.push('\n');
    for fact in findings.conclusion.facts() {
        for line in &fact.texts {
            let _ = writeln!(text, "- **{}**: {}", escaped(&fact.label), escaped(line));
        }
    }
    findings.results.tables().for_each(|result| table(text, result));
    text.push('\n');
    for Fact { label, texts, .. } in findings.conditions.facts() {
        let texts: Vec<String> = texts.iter().map(|line| escaped(line)).collect();
        let _ = writeln!(text, "- {}: {}", escaped(&label), texts.join("; "));
    }
    if !findings.id.is_empty() {
        let _ = writeln!(text, "- experiment: {}", escaped(&findings.id));
    }
}

/// Adds a fact as a row of a table.
pub(crate) fn row(text: &mut String, fact: &Fact) {
    let texts: Vec<_> = fact.texts.iter().map(|text| escaped(text)).collect();
    let texts = texts.join("<br>");
    let texts = if fact.tone == Some(Tone::Bad) { format!("**{texts}**") } else { texts };
    let _ = writeln!(text, "| {} | {texts} |", escaped(&fact.label));
}

/// Writes a table with its title.
pub(crate) fn table(text: &mut String, table: &Table) {
    let cells = |cells: &mut dyn Iterator<Item = String>| {
        cells.fold("|".to_owned(), |line, cell| format!("{line} {cell} |"))
    };
    let mut title = table.title.chars();
    let first = title.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    let _ = writeln!(text, "\n**{}**\n", escaped(&(first + title.as_str())));
    let _ =
        writeln!(text, "{}", cells(&mut table.columns.iter().map(|column| escaped(&column.title))));
    let align = |is_number: bool| if is_number { "---:" } else { "---" }.to_owned();
    let _ =
        writeln!(text, "{}", cells(&mut table.columns.iter().map(|column| align(column.number))));
    for row in &table.rows {
        let _ = writeln!(text, "{}", cells(&mut row.iter().map(|cell| escaped(Cell::text(cell)))));
    }
    if let Some(note) = &table.note {
        let _ = writeln!(text, "\n{}", escaped(note));
    }
}

/// Returns a text of a record without any meaning in Markdown or HTML: labels and error texts can contain anything.
/// `@` would notify people.
pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let (mut before, mut rest) = (None, text.chars().peekable());
    while let Some(character) = rest.next() {
        // Between letters, as in the name of a setting, `_` has no meaning.
        let is_word = |neighbor: Option<char>| neighbor.is_some_and(char::is_alphanumeric);
        let is_within = is_word(before) && is_word(rest.peek().copied());
        before = Some(character);
        match character {
            '_' if !is_within => escaped.push_str("\\_"),
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '@' => escaped.push_str("&#64;"),
            '\\' | '|' | '`' | '*' | '[' | ']' | '#' | '~' => {
                escaped.push('\\');
                escaped.push(character);
            }
            // A cell has one line.
            '\n' => escaped.push(' '),
            character if is_unprintable(character) => escaped.extend(character.escape_unicode()),
            character => escaped.push(character),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::document::Document;
    use crate::table::text_column;

    /// Characters with a meaning in a line of Markdown, and texts without any.
    fn hostile() -> impl Strategy<Value = String> {
        let parts = [
            "|", "`", "``", "<", "<br>", ">", "\n", "\r\n", "\n\n", "*", "**", "_", "__", "[",
            "](x)", "![", "\\", "~~", "#", "&amp;", "@all", "\t", "- ", "work_mem", "a", " ", "é",
            "\u{2028}",
        ];
        prop::collection::vec(prop::sample::select(parts.to_vec()), 1..8)
            .prop_map(|parts| parts.concat())
    }

    /// Findings in which every text is this one.
    fn findings(text: &str) -> Findings {
        let mut findings = Findings::new(text.to_owned());
        findings.conclusion.line(text, text);
        findings.conditions.line(text, text);
        let table = Table::from_items(text, [text, text], |cell| {
            [(text_column(text), cell.into()), (text_column("b"), cell.into())]
        });
        findings.results.table(table.with_note(text.to_owned()));
        findings.id = text.to_owned();
        findings
    }

    /// The lines with the number of marks of each, without those that a backslash takes the meaning of.
    fn structure(text: &str) -> Vec<[usize; 9]> {
        let marks_of = |line: &str| {
            let letters: Vec<char> = line.chars().collect();
            let mut marks = [0; 9];
            let mut at = 0;
            while let Some(letter) = letters.get(at) {
                let is_word = |at: Option<usize>| {
                    at.and_then(|at| letters.get(at))
                        .is_some_and(|neighbor| neighbor.is_alphanumeric())
                };
                let is_within =
                    *letter == '_' && is_word(at.checked_sub(1)) && is_word(Some(at + 1));
                match "|`<>*_[]@".chars().position(|mark| mark == *letter) {
                    Some(mark) if !is_within => marks[mark] += 1,
                    _ => {}
                }
                at += if *letter == '\\' { 2 } else { 1 };
            }
            marks
        };
        text.lines().map(marks_of).collect()
    }

    proptest! {
        #[test]
        fn no_text_changes_the_structure(text in hostile()) {
            let plain = structure(&findings_markdown(&findings("plain")));
            prop_assert_eq!(structure(&findings_markdown(&findings(&text))), plain, "{}", escaped(&text));
            let mut document = Document::default();
            document.line(&text, text.as_str());
            for fact in document.facts() {
                let mut line = String::new();
                row(&mut line, &fact);
                prop_assert_eq!(structure(&line), structure("| a | b |"), "{}", line);
            }
        }
    }

    #[test]
    fn a_name_of_a_setting_stays_readable() {
        assert_eq!(escaped("random_page_cost _x_ a_"), "random_page_cost \\_x\\_ a\\_");
    }
}
