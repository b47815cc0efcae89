//! The place of a comparison in a page: above the runs that it compares.

use serde::Serialize;

use super::table::{Cell, Table};
use crate::record::Record;
use crate::report::words;

/// A comparison, as a page shows it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparisonView {
    /// Title.
    pub title: String,
    /// The result in a sentence.
    pub lead: Option<String>,
    /// What differs, then the figures.
    pub tables: Vec<Table>,
    /// Explanations below the tables.
    pub notes: Vec<String>,
}

/// Returns the figures of several runs side by side, without a verdict; `None` for a single run.
#[must_use]
pub fn side_by_side(records: &[Record]) -> Option<ComparisonView> {
    if records.len() < 2 {
        return None;
    }
    let rows = records.iter().enumerate().map(|(position, record)| {
        let words = words::of(&record.plan.work);
        let figure = super::summary::figure(record, words);
        vec![
            Cell::word(super::summary::title(record, Some(position + 1)))
                .with_link(format!("#run-{}", position + 1)),
            Cell::number(format!("{} {}", figure.value, figure.unit)),
        ]
    });
    let mut tables = vec![Table::new("Figures", ["run", "result"], 1, rows.collect())];
    tables.extend(over(records));
    Some(ComparisonView {
        title: "Comparison".to_owned(),
        lead: Some("One run each: no verdict.".to_owned()),
        tables,
        notes: Vec::new(),
    })
}

/// Returns the tables that compare several records: one per workload that supports it.
fn over(records: &[Record]) -> Vec<Table> {
    let mut seen = Vec::new();
    let mut first = |record: &&Record| {
        let new = !seen.contains(&record.workload);
        seen.push(record.workload.clone());
        new
    };
    let firsts = records.iter().filter(|record| first(record));
    firsts.filter_map(|record| words::of(&record.plan.work).table_over(records)).collect()
}
