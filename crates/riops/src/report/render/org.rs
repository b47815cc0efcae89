//! Documents as Org mode: a form for all subjects.

use super::super::document::{Block, Document, Findings};
use super::super::table::{Cell, Table};

/// Returns the document as Org mode.
#[must_use]
pub fn document_org(document: &Document) -> String {
    document.blocks.iter().map(block).collect()
}

/// Returns the findings as Org mode, with the conclusion first.
#[must_use]
pub fn findings_org(findings: &Findings) -> String {
    let parts = [&findings.conclusion, &findings.results, &findings.conditions];
    format!("* {}\n{}", findings.title, parts.map(document_org).concat())
}

fn block(block: &Block) -> String {
    match block {
        Block::Title(text) => format!("** {text}\n"),
        Block::Line { label, text, .. } => format!("- {label} :: {text}\n"),
        Block::Pairs { label, pairs } => {
            pairs.iter().map(|(name, value)| format!("- {label} {name} :: {value}\n")).collect()
        }
        Block::Table(table) => table_org(table),
        Block::Chart(chart) => format!("#+CAPTION: {}\n{}\n", chart.title, chart.summary),
        Block::Verbatim(text) => format!("#+BEGIN_EXAMPLE\n{text}\n#+END_EXAMPLE\n"),
        Block::Commands { commands, .. } => {
            commands.iter().map(|hint| format!(": {} # {}\n", hint.command, hint.purpose)).collect()
        }
        Block::Gap => "\n".to_owned(),
    }
}

fn table_org(table: &Table) -> String {
    let line = |cells: Vec<&str>| format!("| {} |\n", cells.join(" | "));
    let titles = line(table.columns.iter().map(|column| column.title.as_str()).collect());
    let rows = table.rows.iter().map(|row| line(row.iter().map(Cell::text).collect()));
    format!("#+CAPTION: {}\n{titles}|-\n{}", table.title, rows.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::comparison::{Group, compare};
    use crate::report::{Extras, comparison, example_cbc, example_record, repeats_document};
    use crate::stats::Settings;

    #[test]
    fn every_subject_has_this_form() {
        let (mut a, mut b) = (vec![example_record()], vec![example_cbc()]);
        b[0] = Record { id: uuid::Uuid::from_u128(9), ..a[0].clone() };
        let found = compare(
            Group { name: "a", records: &a },
            Group { name: "b", records: &b },
            &Settings::default(),
        );
        let text = findings_org(&comparison(&found.unwrap()));
        assert!(text.contains("| figure | A | B | B relative to A |"), "{text}");
        a.append(&mut b);
        let text = document_org(&repeats_document(&a, "repeat=1"));
        assert!(text.contains("| figure | median |"), "{text}");
        let extras = Extras::new("no", 80);
        let text = document_org(&crate::report::run_document(&example_cbc(), &extras));
        assert!(text.contains("| step | time | read |"), "{text}");
    }

    use crate::record::Record;
}
