//! The access paths of a stage, compared with the promised ones.

use crate::engine::{AccessFinding, Moment};
use crate::record::access::AccessRecord;
use crate::workload::access::{Access, Finding};

pub(super) fn accesses_of(
    findings: &[AccessFinding],
    promised: &[Access],
    stage: Option<&str>,
) -> Vec<AccessRecord> {
    findings
        .iter()
        .map(|found| AccessRecord {
            statement: found.statement.clone(),
            stage: stage.map(str::to_owned),
            moment: match found.moment {
                Moment::Before => "before",
                Moment::Middle => "middle",
                Moment::After => "after",
            }
            .to_owned(),
            expected: promised
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

/// The plan of a statement that ran once, from its own EXPLAIN.
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

pub(super) fn not_kept(access: &AccessRecord) -> String {
    format!(
        "the access path of {} was not kept ({} the run)",
        access.statement,
        if access.moment == "middle" { "in the middle of" } else { &access.moment }
    )
}
