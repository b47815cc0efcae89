//! The summary of runs for a ticket, in GitHub's Markdown: what the first screen of the page shows, the access
//! paths and the table of the stages.

use std::fmt::Write as _;

use super::comparison::{ComparisonView, parts};
use super::table::Table;
use super::view::{Fact, RunView};
use super::{counters, run, title};
use crate::record::Record;
use crate::report::words;
use crate::units::text::is_unprintable;

/// Returns the summary of one or more records. Several records are compared by `comparison`; without it, their
/// figures are shown side by side.
#[must_use]
pub fn markdown(records: &[Record], comparison: Option<&ComparisonView>) -> String {
    let mut text = format!("## {}\n", escaped(&title(records)));
    let (comparison, whole) = parts(records, comparison);
    if let Some(comparison) = &comparison {
        let _ = writeln!(text, "\n### {}", escaped(&comparison.title));
        if let Some(lead) = &comparison.lead {
            let _ = writeln!(text, "\n{}", escaped(lead));
        }
        for found in &comparison.tables {
            table(&mut text, found);
        }
        for note in &comparison.notes {
            let _ = writeln!(text, "\n{}", escaped(note));
        }
    }
    for (position, record) in whole.iter().enumerate() {
        let view = run::view(record, position, records.len());
        summary(&mut text, &view, records.len() > 1);
        let tables = words::of(&record.plan.work).tables(record).into_iter();
        let tables = super::access_paths::paths(record).into_iter().chain(tables);
        for found in tables.chain(counters::errors(record)) {
            table(&mut text, &found);
        }
    }
    text
}

fn summary(text: &mut String, view: &RunView, has_title: bool) {
    if has_title {
        let _ = writeln!(text, "\n### {}", escaped(&view.title));
    }
    let figure = &view.figure;
    let _ = writeln!(
        text,
        "\n**{}: {} {}** · {}\n",
        escaped(&figure.label),
        escaped(&figure.value),
        escaped(&figure.unit),
        escaped(&figure.detail)
    );
    let _ = writeln!(text, "| | |\n| --- | --- |");
    if !view.tiles.is_empty() {
        let tiles: Vec<_> =
            view.tiles.iter().map(|tile| format!("{} {}", tile.label, tile.value)).collect();
        let _ = writeln!(text, "| latency | {} |", escaped(&tiles.join(" · ")));
    }
    view.verdict.iter().for_each(|fact| row(text, fact));
    let environment = view.sections.iter().flat_map(|section| &section.groups);
    for group in environment.filter(|group| !group.title.is_empty()) {
        group.facts.iter().for_each(|fact| row(text, fact));
    }
    let _ = writeln!(text, "| run | {} |", escaped(&view.identity));
}

fn row(text: &mut String, fact: &Fact) {
    let texts: Vec<_> = fact.texts.iter().map(|text| escaped(text)).collect();
    let texts = texts.join("<br>");
    let texts = if fact.tone == Some("bad") { format!("**{texts}**") } else { texts };
    let _ = writeln!(text, "| {} | {texts} |", escaped(&fact.label));
}

/// Writes a table with its title.
pub(in crate::report) fn table(text: &mut String, table: &Table) {
    let cells = |cells: &mut dyn Iterator<Item = String>| {
        cells.fold("|".to_owned(), |line, cell| format!("{line} {cell} |"))
    };
    let _ = writeln!(text, "\n**{}**\n", escaped(&table.title));
    let _ = writeln!(text, "{}", cells(&mut table.head.iter().map(|title| escaped(title))));
    let align = |column: usize| if column < table.words { "---" } else { "---:" }.to_owned();
    let _ = writeln!(text, "{}", cells(&mut (0..table.head.len()).map(align)));
    for row in &table.rows {
        let _ = writeln!(text, "{}", cells(&mut row.iter().map(|cell| escaped(cell.text()))));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{example_cbc, example_oltp, example_record};

    #[test]
    fn the_summary_of_a_run_with_errors() {
        insta::assert_snapshot!(markdown(&[example_oltp()], None));
    }

    #[test]
    fn several_runs_are_shown_side_by_side_without_a_verdict() {
        let text = markdown(&[example_record(), example_cbc()], None);
        assert!(text.contains("### Comparison\n\nSide by side, without a verdict."), "{text}");
        assert!(text.contains("### Run 1: rows") && text.contains("### Run 2: cbc"), "{text}");
    }

    #[test]
    fn texts_of_a_record_have_no_meaning_in_markdown() {
        let hostile = "a|b `c` <img src=x> **d** [e](f) @g\n| h & #1 \\";
        let mut record = example_record();
        record.label = Some(hostile.to_owned());
        record.tags.insert("note".to_owned(), hostile.to_owned());
        let text = markdown(&[record], None);
        let expected =
            "a\\|b \\`c\\` &lt;img src=x&gt; \\*\\*d\\*\\* \\[e\\](f) &#64;g \\| h &amp; \\#1 \\\\";
        assert_eq!(text.matches(expected).count(), 3, "{text}");
        assert!(!text.contains("<img"), "{text}");
    }
}
