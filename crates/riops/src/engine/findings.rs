//! What looks at plans have shown, over all sessions.

use crate::workload::access::Finding;

/// When a plan was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moment {
    /// Before the first transaction.
    Before,
    /// In the middle of the measurement.
    Middle,
    /// After the last transaction.
    After,
}

/// A look at one plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessFinding {
    /// Name of the statement.
    pub statement: String,
    /// When.
    pub moment: Moment,
    /// What was seen.
    pub finding: Finding,
    /// In how many sessions.
    pub sessions: u32,
}

/// Adds a finding to those that are equal to it, or as a new one.
pub(super) fn note(
    findings: &mut Vec<AccessFinding>,
    statement: &str,
    moment: Moment,
    finding: Finding,
    sessions: u32,
) {
    let same = findings.iter_mut().find(|known| {
        known.statement == statement && known.moment == moment && known.finding == finding
    });
    match same {
        Some(known) => known.sessions += sessions,
        None => findings.push(AccessFinding {
            statement: statement.to_owned(),
            moment,
            finding,
            sessions,
        }),
    }
}

pub(super) fn merge(all: &mut Vec<AccessFinding>, more: Vec<AccessFinding>) {
    for AccessFinding { statement, moment, finding, sessions } in more {
        note(all, &statement, moment, finding, sessions);
    }
}
