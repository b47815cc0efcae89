//! The list of stored runs.

use super::columns::{Align, Columns};
use super::format::{duration_us, rate};
use crate::store::RunSummary;

/// Last characters of a run id, which `riops runs` shows and accepts.
const ID_CHARS: usize = 8;

/// Characters of the start time: date, hour and minute.
const STARTED_CHARS: usize = 16;

/// The stored runs as a table, in lines of at most `width` columns.
#[must_use]
pub fn runs_table(runs: &[RunSummary], width: usize) -> String {
    if runs.is_empty() {
        return "no stored runs; start one with: riops run rows\n".to_owned();
    }
    let mut table = Columns::new([
        ("id", Align::Left),
        ("started (UTC)", Align::Left),
        ("workload", Align::Left),
        ("valid", Align::Left),
        ("rows/s", Align::Right),
        ("tx/s", Align::Right),
        ("p99", Align::Right),
        ("sessions", Align::Right),
        ("status", Align::Left),
        ("label", Align::Left),
        ("server", Align::Left),
    ]);
    for run in runs {
        let first = run.id.chars().count().saturating_sub(ID_CHARS);
        table.row([
            run.id.chars().skip(first).collect(),
            run.started_at.get(..STARTED_CHARS).unwrap_or(&run.started_at).replace('T', " "),
            run.workload.clone(),
            if run.valid { "yes" } else { "NO" }.to_owned(),
            run.rows_per_s.map(rate).unwrap_or_default(),
            run.transactions_per_s.map(rate).unwrap_or_default(),
            run.p99_us.map(duration_us).unwrap_or_default(),
            run.sessions.to_string(),
            Some(run.status.clone()).filter(|status| status != "done").unwrap_or_default(),
            run.label.clone().unwrap_or_default(),
            run.target.clone(),
        ]);
    }
    table.lines(width).join("\n") + "\n"
}
