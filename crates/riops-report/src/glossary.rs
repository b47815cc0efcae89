//! The terms that riops uses. The table in docs/glossary.md is the source.

use std::fmt::Write as _;

use super::render::fill::{columns, fill};

const PAGE: &str = include_str!("../assets/glossary.md");
/// Columns between a term and its meaning.
const GAP: usize = 2;
const INDENT: usize = 2;

/// The terms and their meanings, without links.
fn terms() -> Vec<(&'static str, String)> {
    let rows = PAGE.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    // After the header and the line below it.
    let cells = rows.skip(2).filter_map(|row| row.split_once(" | "));
    cells.map(|(term, meaning)| (term, without_links(meaning))).collect()
}

/// The text of Markdown with the words of its links and without marks of code.
fn without_links(text: &str) -> String {
    let mut parts = text.split('[');
    let first = parts.next().unwrap_or_default().to_owned();
    let plain = parts.fold(first, |plain, part| {
        let (words, rest) = part.split_once("](").unwrap_or((part, ""));
        plain + words + rest.split_once(')').map_or("", |(_, rest)| rest)
    });
    plain.replace('`', "")
}

/// The terms in lines of this width.
pub fn glossary_text(width: usize) -> String {
    let terms = terms();
    let widest = terms.iter().map(|(term, _)| columns(term)).max().unwrap_or_default();
    let indent = INDENT + widest + GAP;
    let mut text = String::new();
    for (term, meaning) in &terms {
        for (position, line) in fill(meaning, width.saturating_sub(indent)).iter().enumerate() {
            let term = if position == 0 { term } else { "" };
            let _ = writeln!(text, "{:INDENT$}{term:<widest$}{:GAP$}{line}", "", "");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_terms_match_the_page_without_its_marks() {
        let terms = terms();
        let meaning =
            |name| terms.iter().find(|(term, _)| *term == name).map(|(_, text)| text.as_str());
        assert_eq!(
            meaning("RIOPS"),
            Some("rows read or written per second, counted from the replies")
        );
        let figure = "a number that riops shows, stores and compares (catalog)";
        assert_eq!(meaning("figure"), Some(figure));
        assert!(terms.len() > 30, "{terms:?}");
        let text = glossary_text(60);
        assert!(text.contains("\n  LIOPS   "), "{text}");
        assert!(text.lines().all(|line| columns(line) <= 60), "{text}");
    }
}
