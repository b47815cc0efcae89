//! Groups that cannot be compared.

use std::collections::BTreeSet;

use super::figures::counts_transactions;
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
    /// Some runs count transactions, and others rows.
    #[error("some of the runs count transactions, the others rows: they have no figure in common")]
    Counts,
}

/// Returns the workload of all runs. Imported runs can be compared with those of a workload if both count
/// transactions, or both rows.
pub(super) fn one_workload(a: Group<'_>, b: Group<'_>) -> Result<String, ComparisonError> {
    let runs = || a.records.iter().chain(b.records);
    let names: BTreeSet<&str> = runs().map(|run| run.workload.as_str()).collect();
    let measured = runs().filter(|run| run.imported.is_none());
    let workloads: BTreeSet<&str> = measured.map(|run| run.workload.as_str()).collect();
    let counts: BTreeSet<bool> = runs().map(counts_transactions).collect();
    match (names.is_empty(), workloads.len(), counts.len()) {
        (true, ..) => Err(ComparisonError::NothingValid(a.name.to_owned())),
        (_, 0 | 1, 1) => Ok(names.into_iter().collect::<Vec<_>>().join(", ")),
        (_, 0 | 1, _) => Err(ComparisonError::Counts),
        _ => Err(ComparisonError::Workloads(names.into_iter().collect::<Vec<_>>().join(", "))),
    }
}

/// Fails if a run is in both groups: it would be compared with itself.
pub(super) fn no_common_run(a: Group<'_>, b: Group<'_>) -> Result<(), ComparisonError> {
    let common = a.records.iter().find(|run| b.records.iter().any(|other| other.id == run.id));
    common.map_or(Ok(()), |run| Err(ComparisonError::Common(run.id.to_string())))
}
