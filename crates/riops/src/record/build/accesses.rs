//! The access paths of a stage, compared with the expected ones.

use crate::engine::{AccessFinding, Moment};
use crate::record::access::AccessRecord;
use crate::workload::access::{Access, Finding};

pub(super) fn accesses_of(
    findings: &[AccessFinding],
    expected: &[Access],
    stage: Option<&str>,
) -> Vec<AccessRecord> {
    findings
        .iter()
        .map(|found| AccessRecord {
            statement: found.statement.clone(),
            stage: stage.map(str::to_owned),
            moment: match found.moment {
                Moment::Before => "before",
                Moment::During => "middle",
                Moment::After => "after",
            }
            .to_owned(),
            expected: expected
                .iter()
                .find(|access| access.statement == found.statement)
                .map(|access| access.expected.to_string())
                .unwrap_or_default(),
            found: found.finding.outline.clone(),
            held: found.finding.held,
            sessions: found.sessions,
            storage: found.finding.storage.map(Into::into),
        })
        .collect()
}

/// Returns the access path of a statement that ran once, from its own EXPLAIN.
pub(super) fn access_of_statement(stage: &str, access: &Access, finding: &Finding) -> AccessRecord {
    AccessRecord {
        statement: access.statement.clone(),
        stage: Some(stage.to_owned()),
        moment: "after".to_owned(),
        expected: access.expected.to_string(),
        found: finding.outline.clone(),
        held: finding.held,
        sessions: 1,
        storage: None,
    }
}

/// Returns the reason of the verdict for an access path that is not the expected one.
pub(super) fn unexpected_path(access: &AccessRecord) -> String {
    format!(
        "the access path of {} was not as expected {} the run",
        access.statement,
        if access.moment == "middle" { "during" } else { &access.moment }
    )
}
