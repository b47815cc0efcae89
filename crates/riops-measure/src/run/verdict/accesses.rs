//! The access paths of a stage, compared with the expected ones.

use crate::engine::{AccessFinding, Moment, StageResult};
use crate::workload::access::{Access, Finding};
use riops_model::record::{AccessRecord, TableScans, moment_text};
use riops_model::units;

pub(super) fn accesses_of(
    result: &StageResult,
    expected: &[Access],
    stage: Option<&str>,
) -> Vec<AccessRecord> {
    let first_plan = |statement: &str| {
        let first = result.workers.findings.iter().find(|check| check.statement == statement);
        first.map_or_else(String::new, |check| check.finding.outline.clone())
    };
    let expected_by =
        |statement: &str| expected.iter().find(|access| access.statement == statement);
    let record = |statement: &str, moment: Moment, sessions: u32| AccessRecord {
        statement: statement.to_owned(),
        stage: stage.map(str::to_owned),
        moment: match moment {
            Moment::Before => "before",
            Moment::First => "first",
            Moment::During => "middle",
            Moment::After => "after",
        }
        .to_owned(),
        expected: expected_by(statement)
            .map_or_else(|| first_plan(statement), |access| access.expected.to_string()),
        observed: expected_by(statement).is_none(),
        sessions,
        ..AccessRecord::default()
    };
    let checked = result.workers.findings.iter().map(|check: &AccessFinding| {
        let known = record(&check.statement, check.moment, check.sessions);
        AccessRecord {
            // Different values of a statement may have different plans, each of which must stay the same.
            expected: check.finding.first.clone().unwrap_or(known.expected),
            found: check.finding.outline.clone(),
            held: check.finding.is_expected,
            storage: check.finding.storage,
            ..known
        }
    });
    let unchecked = result.workers.unchecked.iter().map(|unchecked| AccessRecord {
        error: Some(unchecked.reason.clone()),
        ..record(&unchecked.statement, unchecked.moment, unchecked.sessions)
    });
    checked.chain(unchecked).collect()
}

/// Scans that no checked plan of a table has are reported from this number on, and from one in this many scans on: other
/// sessions may have executed a few.
const OTHER_SCANS_MIN: u64 = 3;
const SCANS_PER_OTHER: u64 = 100;

/// Returns where the scans that the server counted contradict the plans that were checked.
pub(super) fn contradictions(accesses: &[AccessRecord], scans: &[TableScans]) -> Vec<String> {
    let lines = || accesses.iter().flat_map(|access| access.found.lines()).map(str::trim_end);
    let on = |table: &str| {
        let (sequential, other) = (format!("Seq Scan on {table}"), format!(" on {table}"));
        let is_sequential = |line: &str| line.ends_with(&sequential);
        (
            lines().any(is_sequential),
            lines().any(|line| line.ends_with(&other) && !is_sequential(line)),
        )
    };
    let contradiction = |TableScans { table, sequential, index }: &TableScans| {
        let least = (sequential + index).div_ceil(SCANS_PER_OTHER).max(OTHER_SCANS_MIN);
        let (kind, count) = match on(table) {
            (false, true) if *sequential >= least => ("sequential", *sequential),
            (true, false) if *index >= least => ("index", *index),
            _ => return None,
        };
        let count = units::count(count);
        Some(format!(
            "the server counted {count} {kind} scans of {table}, but the checked plans have none: other values may have other plans"
        ))
    };
    scans.iter().filter_map(contradiction).collect()
}

/// Returns the access path of a statement that ran once, from its own EXPLAIN.
pub(super) fn access_of_statement(stage: &str, access: &Access, finding: &Finding) -> AccessRecord {
    AccessRecord {
        statement: access.statement.clone(),
        stage: Some(stage.to_owned()),
        moment: "after".to_owned(),
        expected: access.expected.to_string(),
        found: finding.outline.clone(),
        held: finding.is_expected,
        sessions: 1,
        ..AccessRecord::default()
    }
}

/// Returns the reasons of the verdict: access paths that are not as expected, and those that no session could
/// check. One that was not expected need not be checked.
pub(super) fn path_reasons(accesses: &[AccessRecord]) -> Vec<String> {
    let no_session_checked = |unchecked: &AccessRecord| {
        !accesses.iter().any(|access| {
            access.error.is_none()
                && access.statement == unchecked.statement
                && access.moment == unchecked.moment
        })
    };
    accesses
        .iter()
        .filter_map(|access| match &access.error {
            None if access.held => None,
            None => Some(unexpected_path(access)),
            Some(error) if !access.observed && no_session_checked(access) => Some(format!(
                "the access path of {} was not checked {} the run: {error}",
                access.statement,
                moment_text(&access.moment)
            )),
            Some(_) => None,
        })
        .collect()
}

/// Returns the reason of the verdict for an access path that is not the expected one.
pub(super) fn unexpected_path(access: &AccessRecord) -> String {
    let (statement, moment) = (&access.statement, moment_text(&access.moment));
    if access.observed {
        return format!("the plan of {statement} changed {moment} the run");
    }
    format!("the access path of {statement} was not as expected {moment} the run")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(statement: &str, held: bool, error: Option<&str>) -> AccessRecord {
        AccessRecord {
            statement: statement.to_owned(),
            stage: None,
            moment: "middle".to_owned(),
            expected: String::new(),
            observed: false,
            found: String::new(),
            held,
            sessions: 1,
            error: error.map(str::to_owned),
            storage: None,
        }
    }

    #[test]
    fn a_path_that_no_session_could_check_makes_the_run_invalid() {
        let checked = access("read", true, None);
        let failed = access("read", false, Some("EXPLAIN failed: canceled"));
        let other = access("update", true, None);
        assert_eq!(path_reasons(&[checked, failed.clone(), other.clone()]), [""; 0]);
        assert_eq!(
            path_reasons(&[failed, other]),
            ["the access path of read was not checked during the run: EXPLAIN failed: canceled"]
        );
        assert_eq!(
            path_reasons(&[access("read", false, None)]),
            ["the access path of read was not as expected during the run"]
        );
        let observed = |access: AccessRecord| AccessRecord { observed: true, ..access };
        assert_eq!(path_reasons(&[observed(access("command 1", false, Some("failed")))]), [""; 0]);
        assert_eq!(
            path_reasons(&[observed(access("command 1", false, None))]),
            ["the plan of command 1 changed during the run"]
        );
    }
}
