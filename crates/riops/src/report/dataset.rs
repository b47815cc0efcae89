//! What was prepared, verified and dropped, in words.

use std::fmt::Write as _;

use super::format::{count, rate};
use crate::dataset::Dropped;
use crate::dataset::prepare::Prepared;
use crate::workload::check::Check;

/// How a preparation ended.
#[must_use]
pub fn prepared_text(prepared: &Prepared) -> String {
    match prepared {
        Prepared::Kept => "the dataset is there already, with the same parameters: kept".to_owned(),
        Prepared::Made { rows, loading, total } => format!(
            "prepared {} rows in {:.1} s (loaded at {} rows/s; then indexes, statistics and a count)",
            count(*rows),
            total.as_secs_f64(),
            rate(*rows as f64 / loading.as_secs_f64()),
        ),
    }
}

/// Each check as a line.
#[must_use]
pub fn checks_text(checks: &[Check]) -> String {
    let mut text = String::new();
    for Check { name, expected, found, held } in checks {
        let verdict = if *held { "ok    " } else { "WRONG " };
        let _ = writeln!(text, "{verdict} {name}: expected {expected}, found {found}");
    }
    text
}

/// What was dropped of a workload.
#[must_use]
pub fn dropped_text(workload: &str, dropped: &Dropped) -> String {
    if let Some(schema) = &dropped.forgotten {
        return format!(
            "forgot the tables in schema {schema}: riops has not made them, and they stay as they are\n"
        );
    }
    let tables = match dropped.tables.len() {
        0 => None,
        1 => Some("1 table".to_owned()),
        number => Some(format!("{number} tables")),
    };
    let database = dropped.database.then(|| "the database riops_cbc".to_owned());
    let parts: Vec<_> = database.into_iter().chain(tables).collect();
    if parts.is_empty() {
        return format!("there was no dataset for the workload {workload}: nothing dropped\n");
    }
    format!("dropped {}\n", parts.join(" and "))
}
