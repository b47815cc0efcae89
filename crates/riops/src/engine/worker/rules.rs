//! What the plan and the stage require of the transaction loop.

use riops_wire::sqlstate::SqlState;

use crate::plan::{ErrorPolicy, LatencyLimit, Plan};
use crate::units::Nanos;

/// Settings of a plan that apply to the transaction loop.
#[derive(Debug, Clone)]
pub(in crate::engine) struct Rules {
    pub(in crate::engine) errors: ErrorPolicy,
    pub(in crate::engine) reconnect_every: Option<u64>,
    /// Whether the stage fails when a connection with transactions in flight is lost.
    pub(super) exact: bool,
    /// SQLSTATEs that are retried in addition to those retried for every workload.
    pub(super) retried: Vec<SqlState>,
    pub(in crate::engine) late_after: Nanos,
    pub(super) skip_late: bool,
}

impl Rules {
    pub(in crate::engine) fn of(plan: &Plan, exact: bool, retried: Vec<SqlState>) -> Self {
        let (late_after, skip_late) = match plan.latency_limit {
            None => (Nanos::MAX, false),
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a limit above 0 and at most an hour"
            )]
            Some(LatencyLimit { limit_s, skip }) => (Nanos((limit_s * 1e9) as u64), skip),
        };
        let (errors, reconnect_every) = (plan.errors, plan.reconnect_every);
        Self { errors, reconnect_every, exact, retried, late_after, skip_late }
    }
}
