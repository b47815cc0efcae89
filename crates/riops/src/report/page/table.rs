//! Tables of the HTML report, and the table of the stages of a record.

use serde::Serialize;

use super::super::format::{duration_us, percent, rate};
use super::super::model::device;
use crate::record::{LatencySummary, Record, StageRecord};

/// A table of a page.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Table {
    /// Title.
    pub title: String,
    /// Titles of the columns.
    pub head: Vec<String>,
    /// Number of text columns. They precede the numeric columns.
    pub words: usize,
    /// The rows: a cell for each column.
    pub rows: Vec<Vec<Cell>>,
    /// Explanation below the table.
    pub note: Option<String>,
}

impl Table {
    /// Returns a table whose first `words` columns are texts.
    pub(in crate::report) fn new(
        title: &str,
        head: impl IntoIterator<Item = &'static str>,
        words: usize,
        rows: Vec<Vec<Cell>>,
    ) -> Self {
        let head = head.into_iter().map(str::to_owned).collect();
        Self { title: title.to_owned(), head, words, rows, note: None }
    }

    /// Adds an explanation below the table.
    #[must_use]
    pub(in crate::report) fn with_note(self, note: impl Into<String>) -> Self {
        Self { note: Some(note.into()), ..self }
    }
}

/// A cell of a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cell {
    text: String,
    number: bool,
    /// Length of the bar behind the text, in percent.
    share: Option<u32>,
    /// Address of a link.
    href: Option<String>,
}

impl Cell {
    /// Returns a cell with a text.
    pub fn word(text: impl Into<String>) -> Self {
        Self { text: text.into(), number: false, share: None, href: None }
    }

    /// Returns a cell with a number, which is aligned to the right.
    pub fn number(text: impl Into<String>) -> Self {
        Self { text: text.into(), number: true, share: None, href: None }
    }

    /// Makes the text a link.
    #[must_use]
    pub fn with_link(self, href: impl Into<String>) -> Self {
        Self { href: Some(href.into()), ..self }
    }

    /// Returns the text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    pub(in crate::report) fn mb_s(value: Option<f64>) -> Self {
        Self::number(value.map_or_else(|| "–".to_owned(), |mb_s| format!("{mb_s:.1}")))
    }

    pub(in crate::report) fn share(value: Option<f64>) -> Self {
        Self::number(value.map_or_else(|| "–".to_owned(), percent))
    }

    /// Adds a bar of this length, 0 to 1.
    #[must_use]
    pub fn with_bar(self, share: f64) -> Self {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 100")]
        let percent = (share.clamp(0.0, 1.0) * 100.0).round() as u32;
        Self { share: Some(percent), ..self }
    }
}

/// Returns the table of the stages of a record, one per row.
pub(in crate::report) fn stages(record: &Record) -> Table {
    loop_table(record.stages.iter())
}

/// Returns the table of the wait events of the sessions, if they were sampled.
pub(in crate::report) fn waits(record: &Record) -> Option<Table> {
    let loops = record.stages.iter().filter(|stage| stage.statement.is_none());
    let waits = loops.flat_map(|stage| {
        let waits = stage.probes.iter().flat_map(|probes| &probes.waits);
        waits.map(move |wait| (stage, wait))
    });
    let rows: Vec<_> = waits
        .map(|(stage, wait)| {
            let share = Cell::share(Some(wait.share)).with_bar(wait.share);
            vec![Cell::word(stage.name.clone()), Cell::word(wait.event.clone()), share]
        })
        .collect();
    (!rows.is_empty()).then(|| {
        Table::new("Wait events", ["stage", "event", "share of the session time"], 2, rows)
            .with_note("CPU: active without a wait event. idle: waiting for the client.")
    })
}

/// Returns a table of session loops, one per row.
pub(in crate::report) fn loop_table<'a>(
    stages: impl Iterator<Item = &'a StageRecord> + Clone,
) -> Table {
    let has_response = stages.clone().any(|stage| stage.session_loop.response_us.is_some());
    let mut head = vec!["stage", "sessions", "rows/s", "tx/s"];
    if has_response {
        head.extend(["response p50", "response p99", "response max"]);
        head.extend(["service p50", "service p99", "service max"]);
    } else {
        head.extend(["p50", "p99", "max"]);
    }
    head.extend(["read MB/s", "write MB/s", "busy"]);
    let rows = stages.map(|stage| loop_row(stage, has_response)).collect();
    Table::new("Stages", head, 1, rows)
}

/// Returns the row of one stage.
fn loop_row(stage: &StageRecord, has_response: bool) -> Vec<Cell> {
    let device = device(stage);
    let mut row = vec![
        Cell::word(stage.name.clone()),
        Cell::number(stage.sessions.to_string()),
        Cell::number(rate(stage.throughput.rows_per_s)),
        Cell::number(rate(stage.throughput.transactions_per_s)),
    ];
    if has_response {
        row.extend(latencies(stage.session_loop.response_us.as_ref()));
    }
    row.extend(latencies(stage.session_loop.service_us.as_ref()));
    row.extend([
        Cell::mb_s(device.map(|device| device.read_mb_s)),
        Cell::mb_s(device.map(|device| device.write_mb_s)),
        Cell::share(device.map(|device| device.busy_share)),
    ]);
    row
}

/// Median, 99th percentile and maximum.
fn latencies(found: Option<&LatencySummary>) -> [Cell; 3] {
    let text = |pick: fn(&LatencySummary) -> f64| {
        Cell::number(found.map_or_else(|| "–".to_owned(), |latency| duration_us(pick(latency))))
    };
    [text(|latency| latency.p50), text(|latency| latency.p99), text(|latency| latency.max)]
}
