//! The next run of an experiment, and an estimate of what is left.

use std::time::Duration;

use super::definition::{Between, Experiment, Goal};
use super::task::{Study, TURNS, Task, of_sweep};
use super::{ab, saturation};
use crate::comparison::OVERHEAD_S;
use crate::plan::{Plan, Stop};

/// Why an experiment ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// All runs ended.
    Complete,
    /// The user interrupted it.
    Interrupted,
    /// The next run would exceed the time limit.
    TimeLimit,
    /// All of the first runs failed.
    Failing,
}

/// Returns the next run; `None` if all is measured. It depends only on the definition and the finished runs: an experiment that
/// was killed continues as if it had not been.
pub fn next(study: &Study) -> Option<Task> {
    match &study.experiment.goal {
        Goal::Sweep { .. } => {
            let planned = of_sweep(&study.experiment);
            study.unsettled(planned).next()
        }
        Goal::Ab(settings) => ab::next(study, settings),
        Goal::Saturation(settings) => saturation::next(study, settings),
    }
}

/// The remaining part of an experiment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Remaining {
    /// Number of runs; the maximum for a search or an A/B test.
    pub runs: usize,
    /// Estimated time; `None` if the plans have no duration and no run was measured yet.
    pub seconds: Option<f64>,
    /// Whether the experiment may need fewer runs.
    pub is_maximum: bool,
}

/// Estimates the remaining part. `measured` is the number of runs that this process measured, in the time `elapsed`.
pub fn remaining(study: &Study, measured: usize, elapsed: Duration) -> Remaining {
    let experiment = &study.experiment;
    let (runs, is_maximum) = match &experiment.goal {
        Goal::Sweep { .. } => (study.unsettled(of_sweep(experiment)).count(), false),
        Goal::Ab(settings) => {
            let all = settings.blocks_max as usize * 2 * TURNS as usize;
            (all.saturating_sub(study.finished.len()), settings.machine.is_none())
        }
        Goal::Saturation(settings) => {
            let all = saturation::runs_max(experiment, settings);
            (all.saturating_sub(study.finished.len()), true)
        }
    };
    Remaining {
        runs,
        seconds: seconds_each(experiment, measured, elapsed).map(|seconds| seconds * runs as f64),
        is_maximum,
    }
}

/// Time for one run.
fn seconds_each(experiment: &Experiment, measured: usize, elapsed: Duration) -> Option<f64> {
    if measured > 0 {
        return Some(elapsed.as_secs_f64() / measured as f64);
    }
    let planned: Option<Vec<f64>> =
        experiment.cells.iter().map(|cell| planned_s(&cell.plan, &experiment.between)).collect();
    let planned = planned?;
    Some(planned.iter().sum::<f64>() / planned.len().max(1) as f64)
}

/// Planned time of one run; `None` if it does not end after a duration.
fn planned_s(plan: &Plan, between: &Between) -> Option<f64> {
    let Stop::DurationS(seconds) = plan.stop else {
        return None;
    };
    let stages = plan.work.stages().len().max(1) as f64;
    Some((plan.warmup_s + seconds) * stages + OVERHEAD_S + between.cool_down_s)
}
