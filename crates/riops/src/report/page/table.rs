//! Tables of the HTML report, and the table of the stages of a record.

use serde::Serialize;

use super::super::format::{duration_us, percent, rate};
use super::super::model::device;
use crate::record::{Record, StageRecord};

/// A table of the HTML report.
#[derive(Debug, Serialize)]
pub(in crate::report) struct Table {
    pub(in crate::report) title: &'static str,
    pub(in crate::report) head: Vec<&'static str>,
    /// Number of text columns. They precede the numeric columns.
    pub(in crate::report) words: usize,
    pub(in crate::report) rows: Vec<Vec<Cell>>,
    pub(in crate::report) note: Option<String>,
}

/// A cell of a table.
#[derive(Debug, Serialize)]
pub(in crate::report) struct Cell {
    text: String,
    number: bool,
    /// Length of the bar behind the text, in percent.
    share: Option<u32>,
}

impl Cell {
    pub(in crate::report) fn word(text: impl Into<String>) -> Self {
        Self { text: text.into(), number: false, share: None }
    }

    pub(in crate::report) fn number(text: impl Into<String>) -> Self {
        Self { text: text.into(), number: true, share: None }
    }

    pub(in crate::report) fn mb_s(value: Option<f64>) -> Self {
        Self::number(value.map_or_else(|| "–".to_owned(), |mb_s| format!("{mb_s:.1}")))
    }

    pub(in crate::report) fn share(value: Option<f64>) -> Self {
        Self::number(value.map_or_else(|| "–".to_owned(), percent))
    }

    /// Adds a bar of this length, 0 to 1.
    pub(in crate::report) fn with_bar(self, share: f64) -> Self {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 100")]
        let percent = (share.clamp(0.0, 1.0) * 100.0).round() as u32;
        Self { share: Some(percent), ..self }
    }
}

/// Returns the table of the stages of a record, one per row.
pub(in crate::report) fn stages(record: &Record) -> Table {
    loop_table(record.stages.iter().map(loop_row).collect())
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
    (!rows.is_empty()).then(|| Table {
        title: "Wait events",
        head: vec!["stage", "event", "share of the session time"],
        words: 2,
        rows,
        note: Some("CPU: active without a wait event. idle: waiting for the client.".to_owned()),
    })
}

/// Returns a table with the columns of [`loop_row`].
pub(in crate::report) fn loop_table(rows: Vec<Vec<Cell>>) -> Table {
    Table {
        title: "Stages",
        head: vec![
            "stage",
            "sessions",
            "rows/s",
            "tx/s",
            "p50",
            "p99",
            "max",
            "read MB/s",
            "write MB/s",
            "busy",
        ],
        words: 1,
        rows,
        note: None,
    }
}

/// Returns the row of one stage.
pub(in crate::report) fn loop_row(stage: &StageRecord) -> Vec<Cell> {
    let latency = |pick: fn(&crate::record::LatencySummary) -> f64| {
        let latency =
            stage.session_loop.response_us.as_ref().or(stage.session_loop.service_us.as_ref());
        Cell::number(latency.map_or_else(|| "–".to_owned(), |latency| duration_us(pick(latency))))
    };
    let device = device(stage);
    vec![
        Cell::word(stage.name.clone()),
        Cell::number(stage.sessions.to_string()),
        Cell::number(rate(stage.throughput.rows_per_s)),
        Cell::number(rate(stage.throughput.transactions_per_s)),
        latency(|latency| latency.p50),
        latency(|latency| latency.p99),
        latency(|latency| latency.max),
        Cell::mb_s(device.map(|device| device.read_mb_s)),
        Cell::mb_s(device.map(|device| device.write_mb_s)),
        Cell::share(device.map(|device| device.busy_share)),
    ]
}
