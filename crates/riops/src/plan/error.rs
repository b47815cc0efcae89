//! Why a plan is refused.

/// Why a plan cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PlanError(pub(crate) String);

pub(super) fn refuse<T>(message: String) -> Result<T, PlanError> {
    Err(PlanError(message))
}

pub(super) fn at_least_one(option: &str, value: u64) -> Result<(), PlanError> {
    if value == 0 {
        return refuse(format!("{option} must be at least 1"));
    }
    Ok(())
}
