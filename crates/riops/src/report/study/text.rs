//! The result of an experiment as text for a terminal.

use super::super::block::Block;
use super::super::columns::{Align, Columns};
use super::super::page::Table;
use super::cells::INTERVAL;
use super::charts::charts;
use super::lead::{conclusion, head};
use super::model::{StudyKind, StudyView};
use super::plot::lines;
use super::tables::tables;

/// Columns that are left out of a table that is too wide.
const OPTIONAL: [&str; 8] =
    [INTERVAL, "QPS", "vs. baseline", "client CPU", "server CPU", "per session", "TPS share", "±"];

/// Returns the result in lines of at most `columns` columns.
#[must_use]
pub fn text(view: &StudyView, columns: usize) -> String {
    let mut block = Block::new(columns);
    block.title(&title(view));
    block.gap();
    labeled(&mut block, &head(view));
    for table in tables(view) {
        block.gap();
        block.title(&table.title);
        block.indented_table(&terminal(&table));
        if let Some(note) = &table.note {
            block.indented(note);
        }
    }
    for chart in charts(view) {
        let lines = lines(&chart, columns.saturating_sub(2));
        if !lines.is_empty() {
            block.gap();
            block.title(&chart.title);
            for line in &lines {
                block.unbroken(line);
            }
        }
    }
    block.gap();
    labeled(&mut block, &conclusion(view));
    block.finish()
}

/// `riops sweep · ybio-batch-size · rows`.
pub(super) fn title(view: &StudyView) -> String {
    let command = match view.kind {
        StudyKind::Sweep => "sweep",
        StudyKind::Ab => "ab",
        StudyKind::Saturation => "sweep --find-saturation",
    };
    let workload =
        if view.name == view.workload { String::new() } else { format!(" · {}", view.workload) };
    format!("riops {command} · {}{workload}", view.name)
}

fn labeled(block: &mut Block, lines: &[(&'static str, Vec<String>)]) {
    for (label, texts) in lines {
        for (at, text) in texts.iter().enumerate() {
            block.line(if at == 0 { label } else { "" }, text);
        }
    }
}

/// A table of the page for the terminal.
fn terminal(table: &Table) -> Columns {
    let align = |(at, title): (usize, &String)| {
        let align = if OPTIONAL.contains(&title.as_str()) {
            Align::OptionalRight
        } else if at < table.words
            || title.is_empty()
            || title == "verdict"
            || title == "bottleneck"
        {
            Align::Left
        } else {
            Align::Right
        };
        (title.clone(), align)
    };
    let mut columns = Columns::new(table.head.iter().enumerate().map(align));
    for row in &table.rows {
        columns.row(row.iter().map(|cell| cell.text().to_owned()));
    }
    columns
}
