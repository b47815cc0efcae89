//! The error of an invalid plan.

/// The reason why a plan is invalid.
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

/// Fails if a parameter differs from the first value of a list of stages: the list would override it.
pub(super) fn require_first<T: PartialEq>(
    field: &str,
    single: &T,
    several: &[T],
) -> Result<(), PlanError> {
    if several.first().is_none_or(|first| first == single) {
        return Ok(());
    }
    refuse(format!("invalid plan: \"{field}\" differs from its value in the first stage"))
}
