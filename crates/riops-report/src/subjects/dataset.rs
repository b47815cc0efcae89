//! The results of preparation, verification and cleanup as text.

use riops_model::record::dataset::{Dropped, Warmed};
use riops_model::record::{Check, Prepared};
use riops_model::units::format::{count, joined, number_of, rate};
use riops_model::units::text::one_line;

/// The result of a preparation.
pub fn prepared_text(prepared: &Prepared) -> String {
    match prepared {
        Prepared::Unchanged => {
            "the dataset exists with the same parameters; nothing to do".to_owned()
        }
        Prepared::Created { rows: 0, total, .. } => {
            format!("created the empty tables in {:.1} s", total.as_secs_f64())
        }
        Prepared::Created { rows, loading, total } => format!(
            "prepared {} rows in {:.1} s (loaded at {} rows/s, then indexes, statistics and row count)",
            count(*rows),
            total.as_secs_f64(),
            rate(*rows as f64 / loading.as_secs_f64()),
        ),
    }
}

/// Returns the tables that `riops warm` has read, as text.
pub fn warmed_text(warmed: &Warmed) -> String {
    let tables = number_of(warmed.tables as u64, "table");
    format!("{tables} with all indexes: {}", warmed.state.text())
}

/// Returns a line for each check, and the result.
pub fn checks_text(checks: &[Check]) -> String {
    let lines =
        checks.iter().map(|Check { name, expected, found: actual, held, unknown, .. }| {
            let verdict = match (unknown, held) {
                (true, _) => "unknown",
                (false, true) => "ok    ",
                (false, false) => "WRONG ",
            };
            one_line(&format!("{verdict} {name}: expected {expected}, found {actual}")).into_owned()
        });
    let all = number_of(checks.len() as u64, "check");
    let count_of = |is: fn(&&Check) -> bool| checks.iter().filter(is).count();
    let unknown = count_of(|check| check.unknown);
    let result = match count_of(|check| !check.held && !check.unknown) {
        0 if unknown == 0 => format!("all {all} passed"),
        0 => format!("{} of {all} passed", checks.len() - unknown),
        failed => format!("{failed} of {all} FAILED"),
    };
    let unresolved = count_of(|check| check.unresolved > 0);
    let others =
        [(unknown, "unknown"), (unresolved, "with changes whose outcome remains unresolved (±)")];
    let others = others.into_iter().filter(|(value, _)| *value > 0);
    let others = others.map(|(value, what)| format!("{value} {what}"));
    let last = joined(std::iter::once(result).chain(others), ", ");
    joined(lines.chain([last, String::new()]), "\n")
}

/// The objects that were dropped.
pub fn dropped_text(workload: &str, dropped: &Dropped) -> String {
    if let Some(schema) = &dropped.unregistered_schema {
        return format!(
            "unregistered the tables in schema {}; riops did not create them and did not drop them\n",
            one_line(schema)
        );
    }
    let table_count = Some(dropped.tables.len() as u64).filter(|&table_count| table_count > 0);
    let tables = table_count.map(|table_count| number_of(table_count, "table"));
    let database = dropped.database.then(|| "the database riops_cbc".to_owned());
    let parts = joined(database.into_iter().chain(tables), " and ");
    if parts.is_empty() {
        return format!("no dataset for the workload {workload}; nothing dropped\n");
    }
    format!("dropped {parts}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_failed_unknown_and_unresolved_checks() {
        let check = |expected: &str, actual: u32, held, unresolved, unknown| Check {
            name: "sum".to_owned(),
            expected: expected.to_owned(),
            found: actual.to_string(),
            held,
            unresolved,
            unknown,
        };
        let exact = check("5", 5, true, 0, false);
        let unresolved = check("5 to 8 (3 unresolved: ±3)", 6, true, 3, false);
        let unknown = check("unknown (a run did not report its changes)", 6, true, 0, true);
        let wrong = check("0", 6, false, 0, false);
        insta::assert_snapshot!(checks_text(&[exact.clone(), unresolved, unknown.clone(), wrong]));
        let last = |checks: &[Check]| checks_text(checks).lines().last().unwrap().to_owned();
        assert_eq!(last(std::slice::from_ref(&exact)), "all 1 check passed");
        let text = "1 of 2 checks passed, 1 unknown";
        assert_eq!(last(&[exact, unknown]), text);
    }
}
