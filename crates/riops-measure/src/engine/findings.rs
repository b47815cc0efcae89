//! Findings of plan checks, aggregated over all sessions.

use crate::workload::access::Finding;

/// When a plan was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moment {
    /// Before the first transaction.
    Before,
    /// After the first transactions.
    First,
    /// During the measurement.
    During,
    /// After the last transaction.
    After,
}

/// Finding of a plan check that one or more sessions made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessFinding {
    /// Name of the statement.
    pub statement: String,
    /// Time of the check.
    pub moment: Moment,
    /// Plan of the statement, and whether it is as expected.
    pub finding: Finding,
    /// Number of sessions with this finding.
    pub sessions: u32,
}

/// A plan check without a verdict: the EXPLAIN failed, or its result cannot be judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UncheckedPlan {
    /// Name of the statement.
    pub statement: String,
    /// Time of the check.
    pub moment: Moment,
    /// Why there is no verdict: the first reason.
    pub reason: String,
    /// Number of sessions whose check had no verdict.
    pub sessions: u32,
}

/// Maximum stored length of a plan, longer than the plan of any statement of riops.
pub(super) const PLAN_BYTES_MAX: usize = 256 * 1024;

/// The result of an EXPLAIN.
#[derive(Debug, Default)]
pub(super) struct PlanText {
    pub(super) text: String,
    /// Whether the plan is longer than the maximum. It cannot be judged then.
    pub(super) is_cut: bool,
}

impl PlanText {
    pub(super) fn push(&mut self, line: &[u8]) {
        self.is_cut |= self.text.len() + line.len() >= PLAN_BYTES_MAX;
        if !self.is_cut {
            self.text.push_str(&String::from_utf8_lossy(line));
            self.text.push('\n');
        }
    }
}

/// Adds checks without a verdict to the entry for the same statement and moment, or appends them.
pub(super) fn note_unchecked(all: &mut Vec<UncheckedPlan>, more: UncheckedPlan) {
    let same = all
        .iter_mut()
        .find(|known| known.statement == more.statement && known.moment == more.moment);
    match same {
        Some(known) => known.sessions += more.sessions,
        None => all.push(more),
    }
}

/// Adds a finding to the equal finding in the list, or appends it.
pub(super) fn note(all: &mut Vec<AccessFinding>, more: AccessFinding) {
    let AccessFinding { statement, moment, finding, .. } = &more;
    let same = all.iter_mut().find(|known| {
        known.statement == *statement && known.moment == *moment && known.finding == *finding
    });
    match same {
        Some(known) => known.sessions += more.sessions,
        None => all.push(more),
    }
}

pub(super) fn merge(all: &mut Vec<AccessFinding>, more: Vec<AccessFinding>) {
    for finding in more {
        note(all, finding);
    }
}
