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

/// Fails where a parameter is not the first of those of several stages, which would be run in its place.
pub(super) fn require_first<T: PartialEq>(
    field: &str,
    single: &T,
    several: &[T],
) -> Result<(), PlanError> {
    if several.first().is_none_or(|first| first == single) {
        return Ok(());
    }
    refuse(format!("`{field}` of a plan is not the first one of those of its stages"))
}
