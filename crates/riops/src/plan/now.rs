//! The parameters of the workload `now`.

use serde::{Deserialize, Serialize};

use super::error::PlanError;
use super::spec::{Common, Spec, Traits};

/// The parameters of `run now`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NowRun {}

impl Spec for NowRun {
    fn traits(&self) -> Traits {
        Traits { name: "now", counts_transactions: true, ..Traits::default() }
    }

    fn validate(&self, _: &Common<'_>) -> Result<(), PlanError> {
        Ok(())
    }
}
