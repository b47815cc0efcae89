//! From the parameters of a plan to the workload that they describe: the one dispatch of this layer.

use super::Workload;
use crate::plan::work::dispatch_dataset;
use crate::plan::{DatasetPlan, Member, PlanError, Protocol};
use crate::server::Flavor;

/// For what a workload is built.
#[derive(Debug, Clone, Copy)]
pub struct BuildFor<'a> {
    /// The dataset that was found; `None` where the workload needs none.
    pub dataset: Option<&'a DatasetPlan>,
    /// The server's.
    pub flavor: Flavor,
    /// How the statements are sent.
    pub protocol: Protocol,
}

impl<'a> BuildFor<'a> {
    /// The dataset, where the workload needs one of this type.
    ///
    /// # Errors
    /// [`PlanError`] where it is another one.
    pub fn dataset<T: Member<DatasetPlan>>(&self) -> Result<&'a T, PlanError> {
        self.dataset
            .and_then(DatasetPlan::get)
            .ok_or_else(|| PlanError("the dataset is not that of the workload".to_owned()))
    }
}

/// The parameters of a run whose stages are loops of sessions.
pub trait Build {
    /// The workload that does this.
    ///
    /// # Errors
    /// [`PlanError`] where the dataset does not allow it.
    fn build(&self, found: BuildFor<'_>) -> Result<Box<dyn Workload>, PlanError>;
}

/// The parameters of a dataset.
pub trait Describe {
    /// A workload on such a dataset, with the defaults of a run, to prepare and to verify it; `None` where
    /// neither exists.
    fn describe(&self) -> Option<Box<dyn Workload>>;
}

/// A workload on the dataset, to prepare and to verify it.
///
/// # Errors
/// [`PlanError`] for a dataset that only its own run makes.
pub fn on(dataset: &DatasetPlan) -> Result<Box<dyn Workload>, PlanError> {
    let described = dispatch_dataset!(dataset, parameters => parameters.describe());
    described.ok_or_else(|| {
        PlanError(format!("the dataset of {} is made by its run alone", dataset.spec().name()))
    })
}
