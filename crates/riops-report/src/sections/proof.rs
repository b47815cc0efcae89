//! The verified data of a valid run. It must claim nothing that was not verified.

use crate::table::{Table, text_column};
use crate::words::Words;
use riops_model::record::{Check, Record, UnknownOutcomes};
use riops_model::units::format::{joined, number_of};

/// Returns the verified properties of a valid run.
pub(crate) fn proof(record: &Record, words: &dyn Words) -> String {
    let resolved = record.unknown_outcomes.map_or_else(String::new, |outcomes| resolved(&outcomes));
    match doubt(record) {
        Some(doubt) => format!("{}; {doubt}{resolved}", words.replies()),
        None => format!("{}{resolved}", words.proof(record)),
    }
}

/// Why it is not known whether the data are as acknowledged; `None` if they are.
fn doubt(record: &Record) -> Option<String> {
    let text = |check: &Check| {
        format!("{}: expected {}, found {}", check.name, check.expected, check.found)
    };
    if record.checks.is_empty() && record.plan.work.traits().writes {
        let why = if record.plan.verify { "" } else { " (--no-verify)" };
        return Some(format!("the data were not verified{why}"));
    }
    if let Some(check) = record.checks.iter().find(|check| check.unknown) {
        return Some(format!("the data could not be verified: {}", text(check)));
    }
    let unresolved = || record.checks.iter().filter(|check| check.unresolved > 0);
    let first = unresolved().next()?;
    let more = match unresolved().count() {
        1 => String::new(),
        checks => format!(", and {} more like it", number_of(checks as u64 - 1, "check")),
    };
    Some(format!("not every change could be verified: {}{more}", text(first)))
}

/// The outcomes of the transactions that lost their connection.
fn resolved(outcomes: &UnknownOutcomes) -> String {
    let UnknownOutcomes { applied, not_applied, unresolved } = *outcomes;
    let all = number_of(applied + not_applied + unresolved, "transaction");
    let parts =
        [(applied, "committed"), (not_applied, "not committed"), (unresolved, "unresolved")];
    let parts = parts.iter().filter(|(value, _)| *value > 0);
    let parts = joined(parts.map(|(value, what)| format!("{value} {what}")), ", ");
    format!("; {all} with an unknown outcome: {parts}")
}

/// The checks of the data.
pub(crate) fn checks_table(record: &Record) -> Table {
    Table::from_items("checks of the data", &record.checks, |check| {
        let result = match (check.held, check.unknown) {
            (_, true) => "cannot be verified",
            (true, false) => "as expected",
            (false, false) => "DIFFERENT",
        };
        [
            (text_column("check"), check.name.as_str().into()),
            (text_column("expected"), check.expected.as_str().into()),
            (text_column("found"), check.found.as_str().into()),
            (text_column("result"), result.into()),
        ]
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{example_record, words};
    use riops_model::plan::{RowsRun, WorkPlan};

    fn record(checks: Vec<Check>) -> Record {
        let mut record = example_record();
        record.plan.work = RowsRun { update_percent: 20, ..RowsRun::default() }.into();
        record.checks = checks;
        record
    }

    fn text(record: &Record) -> String {
        let work: &WorkPlan = &record.plan.work;
        proof(record, words::for_work(work))
    }

    fn check(expected: &str) -> Check {
        Check {
            name: "increments of scratch in riops.rows_0001".to_owned(),
            expected: expected.to_owned(),
            found: "105".to_owned(),
            held: true,
            unresolved: 0,
            unknown: false,
        }
    }

    #[test]
    fn claims_nothing_that_was_not_verified() {
        let replies = "every statement returned all its rows";
        let mut exact = record(vec![check("105")]);
        let all = format!("{replies}, and every acknowledged change is in the database");
        assert_eq!(text(&exact), all);
        exact.unknown_outcomes =
            Some(UnknownOutcomes { applied: 2, not_applied: 1, unresolved: 0 });
        let resolved = "; 3 transactions with an unknown outcome: 2 committed, 1 not committed";
        assert_eq!(text(&exact), format!("{all}{resolved}"));
        let unresolved = Check { unresolved: 10, ..check("100 to 110 (10 unresolved: ±10)") };
        let mut unresolved = record(vec![check("105"), unresolved.clone(), unresolved]);
        unresolved.unknown_outcomes =
            Some(UnknownOutcomes { applied: 0, not_applied: 0, unresolved: 2 });
        assert_eq!(
            text(&unresolved),
            format!(
                "{replies}; not every change could be verified: increments of scratch in riops.rows_0001: expected 100 to 110 (10 unresolved: ±10), found 105, and 1 check more like it; 2 transactions with an unknown outcome: 2 unresolved"
            )
        );
        let unknown = record(vec![Check { unknown: true, ..check("at least 100") }]);
        assert!(text(&unknown).contains("; the data could not be verified: increments"));
        let mut skipped = record(Vec::new());
        assert_eq!(text(&skipped), format!("{replies}; the data were not verified"));
        skipped.plan.verify = false;
        assert_eq!(text(&skipped), format!("{replies}; the data were not verified (--no-verify)"));
    }

    #[test]
    fn a_run_that_only_reads_needs_no_verification() {
        let mut reads = record(Vec::new());
        reads.plan.work = RowsRun::default().into();
        assert_eq!(text(&reads), "every statement returned all its rows");
    }
}
