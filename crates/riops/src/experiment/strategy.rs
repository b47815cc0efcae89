//! What an experiment runs next: a pure function of its definition and its finished runs. Therefore an experiment
//! that was killed continues as if it had not been.

use super::definition::Goal;
use super::task::{Study, Task};
use super::{ab, order, saturation};

/// The next step of an experiment.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step {
    /// Measure this.
    Run(Task),
    /// All is measured.
    Done,
}

/// Returns the next step.
#[must_use]
pub fn next(study: &Study) -> Step {
    let task = match &study.experiment.goal {
        Goal::Sweep { .. } => {
            let mut planned = order::of_sweep(&study.experiment).into_iter();
            planned.find(|task| !study.is_settled(task))
        }
        Goal::Ab(settings) => ab::next(study, settings),
        Goal::Saturation(settings) => saturation::next(study, settings),
    };
    task.map_or(Step::Done, Step::Run)
}
