//! The list of stored runs.

use comfy_table::{CellAlignment, Table, presets};

use super::format::{duration_us, rate};
use crate::store::Listed;

/// The list of runs.
#[must_use]
pub fn runs_table(runs: &[Listed]) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header([
        "id",
        "started (UTC)",
        "workload",
        "label",
        "target",
        "sessions",
        "rows/s",
        "tx/s",
        "p99",
        "valid",
    ]);
    for run in runs {
        let short: String =
            run.id.chars().rev().take(8).collect::<Vec<_>>().into_iter().rev().collect();
        let started = run.started_at.get(..19).unwrap_or(&run.started_at).replace('T', " ");
        let valid = match (run.valid, run.status.as_str()) {
            (true, "done") => "yes".to_owned(),
            (true, status) => format!("yes, {status}"),
            (false, "done") => "NO".to_owned(),
            (false, status) => format!("NO, {status}"),
        };
        table.add_row([
            short,
            started,
            run.workload.clone(),
            run.label.clone().unwrap_or_default(),
            run.target.clone(),
            run.sessions.to_string(),
            run.rows_per_s.map(rate).unwrap_or_default(),
            run.transactions_per_s.map(rate).unwrap_or_default(),
            run.p99_us.map(duration_us).unwrap_or_default(),
            valid,
        ]);
    }
    for column in [5, 6, 7, 8] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut text = table.trim_fmt()
        + "
";
    if runs.is_empty() {
        text.push_str("no runs yet: make one with: riops run rows\n");
    }
    text
}
