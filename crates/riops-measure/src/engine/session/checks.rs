//! Checks the plans of a session: of the statements of its setup, and of the executions that its generator noted.

use riops_wire::backend::ServerError;

use super::{Activity, Ended, Session, SessionError};
use crate::engine::findings::{Moment, PLAN_BYTES_MAX};
use crate::engine::window::Window;
use crate::workload::access::Executed;
use riops_model::units::Nanos;

/// Number of transactions of a session before it first checks the plans of its executed statements.
const FIRST_TRANSACTIONS: u64 = 4;

impl Session {
    /// Returns whether its plans must be checked between two transactions.
    #[inline]
    pub(in crate::engine) fn is_check_due(&self, window: &Window, now: Nanos) -> bool {
        match self.next_check {
            Some(Moment::During) => window.is_past_half(now),
            Some(Moment::First) => self.started >= FIRST_TRANSACTIONS,
            _ => false,
        }
    }

    /// Returns the number of plan checks, after adding the executions that were noted since the last call.
    pub(in crate::engine) fn checks(&mut self) -> usize {
        self.executed.extend(self.answers.generator.take_executed());
        self.setup.checks.len() + self.executed.len()
    }

    /// Returns the execution that the check at `position` is about, unless it is one of the setup.
    pub(in crate::engine) fn executed(&mut self, position: usize) -> Option<&mut Executed> {
        self.executed.get_mut(position.checked_sub(self.setup.checks.len())?)
    }

    /// Returns the name of the statement that the check at `position` is about.
    pub(in crate::engine) fn checked_statement(&mut self, position: usize) -> Option<String> {
        match self.setup.checks.get(position) {
            Some(check) => Some(check.access.statement.clone()),
            None => self.executed(position).map(|executed| executed.statement.clone()),
        }
    }

    /// Appends the EXPLAIN of the check at `position` to the send buffer.
    pub(in crate::engine) fn start_check(&mut self, position: usize) -> Result<(), SessionError> {
        self.answers.plan.text.clear();
        self.answers.plan.is_cut = false;
        self.activity = Activity::Check(position);
        let explain = match self.setup.checks.get(position) {
            Some(check) => check.explain.clone(),
            None => {
                self.executed(position).map_or_else(String::new, |executed| executed.explain_sql())
            }
        };
        self.send_query(&explain)
    }

    /// Returns the result of a check.
    pub(super) fn end_check(&mut self, position: usize, failed: Option<Box<ServerError>>) -> Ended {
        self.activity = Activity::Work;
        if let Some(error) = failed {
            return Ended::CheckFailed(position, error);
        }
        if self.answers.plan.is_cut {
            let reason = format!("the plan is longer than {} kB", PLAN_BYTES_MAX / 1024);
            return Ended::Check(position, Err(reason));
        }
        let plan = std::mem::take(&mut self.answers.plan.text);
        let finding = match self.setup.checks.get(position) {
            Some(check) => Some(check.access.judge(&plan)),
            None => self.executed(position).and_then(|executed| executed.judge(&plan)),
        };
        let missing = || "EXPLAIN returned no plan".to_owned();
        Ended::Check(position, finding.map(Box::new).ok_or_else(missing))
    }
}
