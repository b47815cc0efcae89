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

    /// Returns the execution that check `number` is about, unless it is one of the setup.
    pub(in crate::engine) fn executed(&mut self, number: usize) -> Option<&mut Executed> {
        self.executed.get_mut(number.checked_sub(self.setup.checks.len())?)
    }

    /// Returns the name of the statement that check `number` is about.
    pub(in crate::engine) fn checked_statement(&mut self, number: usize) -> Option<String> {
        match self.setup.checks.get(number) {
            Some(check) => Some(check.access.statement.clone()),
            None => self.executed(number).map(|executed| executed.statement.clone()),
        }
    }

    /// Appends the EXPLAIN of check `number` to the send buffer.
    pub(in crate::engine) fn start_check(&mut self, number: usize) -> Result<(), SessionError> {
        self.answers.plan.text.clear();
        self.answers.plan.is_cut = false;
        self.activity = Activity::Check(number);
        let explain = match self.setup.checks.get(number) {
            Some(check) => check.explain.clone(),
            None => self.executed(number).map_or_else(String::new, |each| each.explain_sql()),
        };
        self.send_query(&explain)
    }

    /// Returns the result of a check.
    pub(super) fn end_check(&mut self, number: usize, failed: Option<Box<ServerError>>) -> Ended {
        self.activity = Activity::Work;
        if let Some(error) = failed {
            return Ended::CheckFailed(number, error);
        }
        if self.answers.plan.is_cut {
            let reason = format!("the plan is longer than {} kB", PLAN_BYTES_MAX / 1024);
            return Ended::Check(number, Err(reason));
        }
        let plan = std::mem::take(&mut self.answers.plan.text);
        let finding = match self.setup.checks.get(number) {
            Some(check) => Some(check.access.judge(&plan)),
            None => self.executed(number).and_then(|executed| executed.judge(&plan)),
        };
        let missing = || "EXPLAIN returned no plan".to_owned();
        Ended::Check(number, finding.map(Box::new).ok_or_else(missing))
    }
}
