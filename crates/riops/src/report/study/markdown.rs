//! The result of an experiment as Markdown, for a ticket or a page.

use std::fmt::Write as _;

use super::super::page::markdown::{escaped, table};
use super::lead::{conclusion, head};
use super::model::StudyView;
use super::tables::tables;
use super::text::title;

/// Returns the result as GitHub-flavored Markdown: the conclusion, then the tables.
#[must_use]
pub fn markdown(view: &StudyView) -> String {
    // Writing to a String cannot fail.
    let mut text = format!("## {}\n\n", escaped(&title(view)));
    for (label, texts) in conclusion(view) {
        for each in texts {
            let _ = writeln!(text, "- **{label}**: {}", escaped(&each));
        }
    }
    for found in tables(view) {
        table(&mut text, &found);
    }
    text.push('\n');
    for (label, texts) in head(view) {
        let texts: Vec<String> = texts.iter().map(|each| escaped(each)).collect();
        let _ = writeln!(text, "- {label}: {}", texts.join("; "));
    }
    let _ = writeln!(text, "- experiment: {}", escaped(&view.id));
    text
}
