//! When the sessions of a worker check their plans.

use super::super::findings::Moment;
use super::super::session::Session;
use super::super::window::Window;
use crate::units::Nanos;

/// Number of transactions of a session before the first check of the plans of what it has executed.
const FIRST_TRANSACTIONS: u64 = 4;

#[derive(Default)]
pub(in crate::engine) struct PlanChecks {
    /// The session that is checking its plans during the measurement. Only one session per worker does so at
    /// a time, to avoid a burst of EXPLAIN statements.
    checking: Option<usize>,
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
}
