//! Documents as GitHub's Markdown, for a ticket or a page.

use std::fmt::Write as _;

use super::super::document::{Fact, Findings, Tone};
use super::super::table::{Cell, Table};
use crate::units::text::is_unprintable;

/// Returns the findings, with the conclusion first.
pub fn findings_markdown(findings: &Findings) -> String {
    // Writing to a String cannot fail.
    let mut text = format!("## {}\n", escaped(&findings.title));
    add_findings(&mut text, findings);
    text
}

/// Adds the findings without their title.
pub(in crate::report) fn add_findings(text: &mut String, findings: &Findings) {
    text.push('\n');
    for fact in findings.conclusion.facts() {
        for each in &fact.texts {
            let _ = writeln!(text, "- **{}**: {}", fact.label, escaped(each));
        }
    }
    findings.results.tables().for_each(|found| table(text, found));
    text.push('\n');
    for Fact { label, texts, .. } in findings.conditions.facts() {
        let texts: Vec<String> = texts.iter().map(|each| escaped(each)).collect();
        let _ = writeln!(text, "- {label}: {}", texts.join("; "));
    }
    if !findings.id.is_empty() {
        let _ = writeln!(text, "- experiment: {}", escaped(&findings.id));
    }
}

/// Adds a fact as a row of a table.
pub(in crate::report) fn row(text: &mut String, fact: &Fact) {
    let texts: Vec<_> = fact.texts.iter().map(|text| escaped(text)).collect();
    let texts = texts.join("<br>");
    let texts = if fact.tone == Some(Tone::Bad) { format!("**{texts}**") } else { texts };
    let _ = writeln!(text, "| {} | {texts} |", escaped(&fact.label));
}

/// Writes a table with its title.
pub(in crate::report) fn table(text: &mut String, table: &Table) {
    let cells = |cells: &mut dyn Iterator<Item = String>| {
        cells.fold("|".to_owned(), |line, cell| format!("{line} {cell} |"))
    };
    let mut title = table.title.chars();
    let first = title.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    let _ = writeln!(text, "\n**{}**\n", escaped(&(first + title.as_str())));
    let _ =
        writeln!(text, "{}", cells(&mut table.columns.iter().map(|column| escaped(&column.title))));
    let align = |number: bool| if number { "---:" } else { "---" }.to_owned();
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
pub(in crate::report) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
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
