//! When the sessions of a worker check their plans, and what they found.

use super::super::findings::{AccessFinding, Moment, UncheckedPlan, note, note_unchecked};
use super::super::session::Session;
use super::super::window::Window;
use crate::units::Nanos;
use crate::workload::access::Finding;

/// Number of transactions of a session before the first check of the plans of what it has executed.
const FIRST_TRANSACTIONS: u64 = 4;

#[derive(Default)]
pub(in crate::engine) struct PlanChecks {
    /// The session that is checking its plans during the measurement. Only one session per worker does so at
    /// a time, to avoid a burst of EXPLAIN statements.
    checking: Option<usize>,
    pub(super) findings: Vec<AccessFinding>,
    pub(super) unchecked: Vec<UncheckedPlan>,
}

impl PlanChecks {
    /// Returns whether a session must check its plans now. No other session does until [`Self::end`].
    pub(super) fn begin(
        &mut self,
        number: usize,
        session: &Session,
        window: &Window,
        now: Nanos,
    ) -> bool {
        let is_due = match session.next_check {
            Some(Moment::During) => window.is_past_half(now),
            Some(Moment::First) => session.started >= FIRST_TRANSACTIONS,
            _ => false,
        };
        is_due && *self.checking.get_or_insert(number) == number
    }

    /// Allows another session to check its plans.
    pub(super) fn end(&mut self, number: usize) {
        self.checking = self.checking.filter(|&checking| checking != number);
    }

    /// Records the finding of a check, or why it has no verdict.
    pub(super) fn note(
        &mut self,
        session: &mut Session,
        check: usize,
        finding: Result<Box<Finding>, String>,
    ) {
        let checked = session.checked_statement(check).zip(session.next_check);
        let Some((statement, moment)) = checked else {
            return;
        };
        let sessions = 1;
        match finding {
            Ok(finding) => {
                let finding = AccessFinding { statement, moment, finding: *finding, sessions };
                note(&mut self.findings, finding);
            }
            Err(reason) => {
                let unchecked = UncheckedPlan { statement, moment, reason, sessions };
                note_unchecked(&mut self.unchecked, unchecked);
            }
        }
    }
}
