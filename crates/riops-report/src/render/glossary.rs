//! The terms that riops uses. The table in docs/glossary.md is the source.

use std::fmt::Write as _;
use std::sync::LazyLock;

use serde::Serialize;

use super::fill::{columns, fill};
use riops_model::units::text::nearest;

const PAGE: &str = include_str!("../../assets/glossary.md");
/// Columns between a term and its meaning.
const GAP: usize = 2;
const INDENT: usize = 2;

/// A term and its meaning, without links.
#[derive(Serialize)]
pub(crate) struct Term {
    /// Its anchor on a page.
    id: String,
    name: &'static str,
    meaning: String,
    /// A line of output with the term, or a command, and what it says.
    example: String,
}

/// The terms in the order of the page.
pub(crate) fn terms() -> &'static [Term] {
    static TERMS: LazyLock<Vec<Term>> = LazyLock::new(read_terms);
    &TERMS
}

/// Returns the anchor of the term with this name; `None` if it is not a term.
pub(crate) fn anchor(word: &str) -> Option<&'static str> {
    let word = word.to_lowercase();
    let term = terms().iter().find(|term| term.names().any(|name| name == word));
    term.map(|term| term.id.as_str())
}

impl Term {
    /// Its names in lower case. One entry may have several: `RIOPS, LIOPS`.
    fn names(&self) -> impl Iterator<Item = String> {
        self.name.split(", ").map(str::to_lowercase)
    }
}

fn read_terms() -> Vec<Term> {
    let rows = PAGE.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    // After the header and the line below it.
    let terms = rows.skip(2).filter_map(|row| {
        let (name, rest) = row.split_once(" | ")?;
        let (meaning, example) = rest.split_once(" | ")?;
        let [meaning, example] = [meaning, example].map(without_links);
        let words = name.split(|letter: char| !letter.is_alphanumeric());
        let words: Vec<String> =
            words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect();
        Some(Term { id: format!("term-{}", words.join("-")), name, meaning, example })
    });
    terms.collect()
}

/// The meaning of a term and an example, in lines of this width.
///
/// # Errors
/// The most similar terms, if there is no such term.
pub fn explanation(word: &str, width: usize) -> Result<String, Option<&'static str>> {
    let (terms, word) = (terms(), word.to_lowercase());
    let exact = terms.iter().filter(|term| term.names().any(|name| name == word));
    let similar = terms.iter().filter(|term| term.names().any(|name| name.starts_with(&word)));
    let mut text = String::new();
    for term in exact.chain(similar).take(1) {
        let _ = writeln!(text, "{}", term.name);
        for line in fill(&term.meaning, width.saturating_sub(INDENT)) {
            let _ = writeln!(text, "{:INDENT$}{line}", "");
        }
        let example = format!("example: {}", term.example);
        for line in fill(&example, width.saturating_sub(INDENT)) {
            let _ = writeln!(text, "{:INDENT$}{line}", "");
        }
    }
    if text.is_empty() { Err(nearest(&word, terms.iter().map(|term| term.name))) } else { Ok(text) }
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
    let widest = terms.iter().map(|term| columns(term.name)).max().unwrap_or_default();
    let indent = INDENT + widest + GAP;
    let mut text = String::new();
    for Term { name, meaning, .. } in terms {
        for (position, line) in fill(meaning, width.saturating_sub(indent)).iter().enumerate() {
            let name = if position == 0 { name } else { "" };
            let _ = writeln!(text, "{:INDENT$}{name:<widest$}{:GAP$}{line}", "", "");
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
        let meaning = |name| {
            let term = terms.iter().find(|term| term.name == name);
            term.map(|term| term.meaning.as_str())
        };
        assert!(terms.iter().all(|term| !term.example.is_empty()));
        assert_eq!(
            meaning("RIOPS"),
            Some("rows read or written per second (row I/Os per second), counted from the replies")
        );
        let figure = "a number that riops shows, stores and compares (catalog)";
        assert_eq!(meaning("figure"), Some(figure));
        assert!(terms.len() > 30, "{}", terms.len());
        let ids: std::collections::BTreeSet<_> = terms.iter().map(|term| &term.id).collect();
        assert_eq!(ids.len(), terms.len());
        assert_eq!(
            (anchor("disturbed"), anchor("Disturbed!")),
            (Some("term-disturbed-disturbed"), None)
        );
        let text = glossary_text(60);
        assert!(text.contains("\n  LIOPS   "), "{text}");
        assert!(text.lines().all(|line| columns(line) <= 60), "{text}");
        let text = explanation("drai", 60).unwrap();
        assert!(text.starts_with("drain\n  ") && text.contains("\n  example: "), "{text}");
        assert_eq!(explanation("bottelneck", 60), Err(Some("bottleneck")));
        assert_eq!(explanation("xyzzy", 60), Err(None));
    }
}
