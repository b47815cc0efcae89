//! Builds the workload that the parameters of a plan describe. The only dispatch on workloads in this module.

use super::Workload;
use crate::server::Dialect;
use riops_model::plan::{DatasetPlan, ImportedRun, Member, PlanError, Protocol};

/// Context in which a workload is built.
#[derive(Debug, Clone, Copy)]
pub struct BuildFor<'a> {
    /// Dataset found in the server; `None` if the workload does not need one.
    pub dataset: Option<&'a DatasetPlan>,
    /// Part of it that the run uses, which may be the whole.
    pub used: Option<&'a DatasetPlan>,
    /// Dialect of the server.
    pub dialect: Dialect,
    /// Protocol that sends the statements.
    pub protocol: Protocol,
}

/// Returns a dataset as the type that the workload requires.
///
/// # Errors
/// Returns [`PlanError`] if the dataset is missing or of another type.
pub(super) fn typed<T: Member<DatasetPlan>>(
    dataset: Option<&DatasetPlan>,
) -> Result<&T, PlanError> {
    dataset
        .and_then(DatasetPlan::get)
        .ok_or_else(|| PlanError("the dataset belongs to another workload".to_owned()))
}

/// Parameters of a run whose stages are loops of sessions.
pub trait Build {
    /// Builds the workload for these parameters.
    ///
    /// # Errors
    /// Returns [`PlanError`] if the parameters do not fit the dataset.
    fn build(&self, target: BuildFor<'_>) -> Result<Box<dyn Workload>, PlanError>;
}

impl Build for ImportedRun {
    /// The results of another tool have no statements that riops could repeat.
    fn build(&self, _: BuildFor<'_>) -> Result<Box<dyn Workload>, PlanError> {
        Err(PlanError("an imported run cannot be executed".to_owned()))
    }
}

/// Parameters of a dataset.
pub trait Describe {
    /// Returns a workload with default run parameters that can prepare and verify the dataset; `None` if the
    /// dataset supports neither.
    fn describe(&self) -> Option<Box<dyn Workload>>;
}

/// Returns a workload that can prepare and verify the dataset.
///
/// # Errors
/// Returns [`PlanError`] if only a run can create the dataset.
pub fn on(dataset: &DatasetPlan) -> Result<Box<dyn Workload>, PlanError> {
    let described = riops_model::dispatch_dataset!(dataset, parameters => parameters.describe());
    described.ok_or_else(|| {
        PlanError(format!("the dataset of {} is created only by its run", dataset.traits().name))
    })
}
