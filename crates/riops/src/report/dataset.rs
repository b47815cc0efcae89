//! The results of preparation, verification and cleanup as text.

use std::fmt::Write as _;

use super::format::{count, number_of, rate};
use crate::dataset::Dropped;
use crate::dataset::prepare::Prepared;
use crate::workload::check::Check;

/// The result of a preparation.
#[must_use]
pub fn prepared_text(prepared: &Prepared) -> String {
    match prepared {
        Prepared::Unchanged => {
            "the dataset exists with the same parameters; nothing to do".to_owned()
        }
        Prepared::Created { rows, loading, total } => format!(
            "prepared {} rows in {:.1} s (loaded at {} rows/s, then indexes, statistics and row count)",
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
    let failed = checks.iter().filter(|check| !check.held).count();
    let _ = match failed {
        0 => writeln!(text, "all {} passed", number_of(checks.len() as u64, "check")),
        failed => writeln!(text, "{failed} of {} FAILED", number_of(checks.len() as u64, "check")),
    };
    text
}

/// The objects that were dropped.
#[must_use]
pub fn dropped_text(workload: &str, dropped: &Dropped) -> String {
    if let Some(schema) = &dropped.unregistered_schema {
        return format!(
            "unregistered the tables in schema {schema}; riops did not create them and did not drop them\n"
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
        return format!("no dataset for the workload {workload}; nothing dropped\n");
    }
    format!("dropped {}\n", parts.join(" and "))
}
