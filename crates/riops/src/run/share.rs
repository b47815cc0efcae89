//! The sessions of a stage that belong to one of several clients.

use crate::plan::Plan;
use crate::workload::{Stage, Workload};

/// Returns a stage with the sessions of this client. All are created, because their keys depend on the number of all.
pub(super) fn stage(workload: &dyn Workload, plan: &Plan) -> Stage {
    let mut stage = workload.stage(plan);
    if let Some(share) = plan.share {
        let mut numbers = 0..plan.sessions;
        stage.sessions.retain(|_| numbers.next().is_some_and(|number| share.has(number)));
    }
    stage
}
