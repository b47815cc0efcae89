//! Selects the runner of a workload: the only dispatch of this layer.

use super::conductor::Runner;
use super::fill::Fill;
use super::observe::Observe;
use super::on_dataset::OnDataset;
use super::steps::Steps;
use crate::plan::work::dispatch_work;
use crate::plan::{CbcRun, LoadRun, ObserveRun, Spec, WorkPlan};
use crate::workload::Build;

/// The parameters of a workload, which select its runner.
trait Conducted {
    fn runner(&self) -> Box<dyn Runner>;
}

/// Most workloads are loops of sessions, on a prepared dataset or without one.
impl<T: Build + Spec + Clone + Into<WorkPlan> + 'static> Conducted for T {
    fn runner(&self) -> Box<dyn Runner> {
        Box::new(OnDataset::new(self))
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

impl Conducted for ObserveRun {
    fn runner(&self) -> Box<dyn Runner> {
        Box::new(Observe::new(self))
    }
}

/// Returns the runner for the workload of a plan.
pub(super) fn runner(work: &WorkPlan) -> Box<dyn Runner> {
    dispatch_work!(work, run => run.runner())
}
