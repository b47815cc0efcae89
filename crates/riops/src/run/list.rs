//! Which runner conducts a workload: the one dispatch of this layer.

use super::conductor::Runner;
use super::fill::Fill;
use super::on_dataset::OnDataset;
use super::steps::Steps;
use crate::plan::work::dispatch_work;
use crate::plan::{CbcRun, LoadRun, Member, PlanError, WorkPlan};
use crate::workload::{Build, BuildFor, Workload};

/// The parameters of a workload that can be run.
trait Conducted {
    fn runner(&self) -> Box<dyn Runner>;
}

/// Most workloads are loops of sessions on a dataset that is there, or on none.
impl<T: Build + Member<WorkPlan> + 'static> Conducted for T {
    fn runner(&self) -> Box<dyn Runner> {
        Box::new(OnDataset::new(build::<T>))
    }
}

impl Conducted for LoadRun {
    fn runner(&self) -> Box<dyn Runner> {
        Box::new(Fill::new(self))
    }
}

impl Conducted for CbcRun {
    fn runner(&self) -> Box<dyn Runner> {
        Box::new(Steps::new(self))
    }
}

fn build<T: Build + Member<WorkPlan>>(
    work: &WorkPlan,
    found: BuildFor<'_>,
) -> Result<Box<dyn Workload>, PlanError> {
    let run = work.get::<T>();
    run.ok_or_else(|| PlanError("a stage is of another workload than its run".to_owned()))?
        .build(found)
}

/// The runner of a plan's workload.
pub(super) fn runner(work: &WorkPlan) -> Box<dyn Runner> {
    dispatch_work!(work, run => run.runner())
}
