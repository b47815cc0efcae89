//! Groups that cannot be compared.

use std::collections::BTreeSet;

use super::group::Group;

/// Two groups of runs cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum ComparisonError {
    /// No run of the group can be used.
    #[error("no run of \"{0}\" is valid and ended as planned: there is nothing to compare")]
    NothingValid(String),
    /// A run is in both groups.
    #[error("run {0} is in both groups: choose groups without common runs")]
    Common(String),
    /// The runs are of several workloads.
    #[error("the runs are of several workloads ({0}): select one with --workload")]
    Workloads(String),
}

/// Returns the workload of all runs.
pub(super) fn one_workload(a: Group<'_>, b: Group<'_>) -> Result<String, ComparisonError> {
    let titles = |group: Group<'_>| -> BTreeSet<String> {
        group.records.iter().map(|run| run.workload.clone()).collect()
    };
    let all: BTreeSet<_> = titles(a).union(&titles(b)).cloned().collect();
    let mut names = all.iter();
    match (names.next(), names.next()) {
        (Some(name), None) => Ok(name.clone()),
        (None, _) => Err(ComparisonError::NothingValid(a.name.to_owned())),
        _ => Err(ComparisonError::Workloads(all.into_iter().collect::<Vec<_>>().join(", "))),
    }
}

/// Fails if a run is in both groups: it would be compared with itself.
pub(super) fn no_common_run(a: Group<'_>, b: Group<'_>) -> Result<(), ComparisonError> {
    let common = a.records.iter().find(|run| b.records.iter().any(|other| other.id == run.id));
    common.map_or(Ok(()), |run| Err(ComparisonError::Common(run.id.to_string())))
}
