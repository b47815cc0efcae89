//! Conducts a run: its stages one after the other, and what becomes of them.

use super::error::RunError;
use super::observer::Observer;
use super::scene::Scene;
use crate::plan::Plan;
use crate::record::{DatasetRecord, Ending, Part, Record, build};
use crate::workload::access::Access;
use crate::workload::check::Check;

/// What differs between runs on a dataset, runs that make their own tables, and runs of single statements.
pub(super) trait Runner {
    /// Makes everything ready for the first stage; returns the number of stages. What can be refused is
    /// refused here, before anything is changed.
    fn begin(&mut self, scene: &mut Scene<'_>) -> Result<usize, RunError>;

    /// Runs the stage of this number, from 0.
    fn stage(&mut self, number: usize, scene: &mut Scene<'_>) -> Result<Staged, RunError>;

    /// A stage gave no result. It was the first one if `nothing_measured`.
    fn without_result(&mut self, _: &RunError, _nothing_measured: bool, _: &mut Scene<'_>) {}

    /// Accounts for what the run has changed and verifies it; also where it ended early.
    fn end(&mut self, _: &mut Scene<'_>, _: &[Part], _: &mut Ending) -> Vec<Check> {
        Vec::new()
    }

    /// The dataset as it stands in the record.
    fn dataset(&self) -> Option<DatasetRecord>;

    /// The access paths that the statements must take.
    fn accesses(&self) -> Vec<Access>;

    /// Drops what must not stay. Comes last, when the record is safe and the control connection with its locks
    /// is closed, and also after an error.
    fn clean_up(&mut self, _: &Plan, _: &mut dyn Observer) {}
}

/// A stage with its result.
pub(super) struct Staged {
    pub(super) part: Part,
    pub(super) checks: Vec<Check>,
    /// Whether it is the last one, whatever was planned after it.
    pub(super) is_last: bool,
}

impl Staged {
    /// A stage without checks of its own.
    pub(super) fn of(part: Part) -> Self {
        let is_last = part.ended_early();
        Self { part, checks: Vec::new(), is_last }
    }
}

/// Runs everything, and cleans up in the end. The record is complete, and handed over, before that.
pub(super) fn conduct(mut scene: Scene<'_>, runner: &mut dyn Runner) -> Result<Record, RunError> {
    let record = measure(&mut scene, runner);
    let Scene { plan, observer, control, .. } = scene;
    // Whoever waits for its locks need not wait until the record is printed.
    drop(control);
    if let Ok(record) = &record {
        observer.complete(record);
    }
    runner.clean_up(&plan, observer);
    record
}

fn measure(scene: &mut Scene<'_>, runner: &mut dyn Runner) -> Result<Record, RunError> {
    let stages = runner.begin(scene)?;
    let (mut parts, mut checks, mut ending) = (Vec::new(), Vec::new(), Ending::default());
    for number in 0..stages {
        match runner.stage(number, scene) {
            Ok(Staged { part, checks: found, is_last }) => {
                parts.push(part);
                checks.extend(found);
                if is_last {
                    break;
                }
            }
            Err(error) => {
                runner.without_result(&error, parts.is_empty(), scene);
                if parts.is_empty() {
                    return Err(error);
                }
                // The stages before it are a result, with the reason why there are no more.
                if !scene.interrupt.requested() {
                    ending.failure = Some(if error.is_of_a_start() {
                        format!("the next stage failed to start: {error}")
                    } else {
                        error.to_string()
                    });
                }
                ending.interrupted = scene.interrupt.requested();
                break;
            }
        }
        if scene.interrupt.requested() && number + 1 < stages {
            ending.interrupted = true;
            break;
        }
    }
    checks.extend(runner.end(scene, &parts, &mut ending));
    let context = scene.context(runner.accesses(), runner.dataset());
    Ok(build(context, parts, checks, ending)?)
}
