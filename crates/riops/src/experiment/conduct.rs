//! Conducts an experiment: determines the next step, prepares and measures it, until nothing is left, the time limit
//! is reached, or the user interrupts it.

use std::time::Instant;

use crate::host::Interrupt;
use crate::plan::Plan;
use crate::record::{Record, Status};
use crate::study::{End, Finished, Remaining, Study, Task, next, remaining};
use crate::units::Span;

/// The place where the runs of an experiment are measured.
pub trait Bench {
    /// An error that ends the experiment: its results can no longer be stored.
    type Error;

    /// Called before a run.
    fn starting(&mut self, study: &Study, task: &Task, remaining: &Remaining);

    /// Brings the server and the dataset into the state that the run requires, measures the plan, and stores its
    /// record. The inner error is the failure of the run. `is_first` is true for the first run of this process.
    ///
    /// # Errors
    /// If the record could not be stored.
    fn measure(
        &mut self,
        study: &Study,
        task: &Task,
        plan: &Plan,
        is_first: bool,
    ) -> Result<Result<Box<Record>, String>, Self::Error>;

    /// Stores that the last run failed and left no record, and reports the run that ended.
    ///
    /// # Errors
    /// If the failure could not be stored.
    fn ended(&mut self, study: &Study) -> Result<(), Self::Error>;
}

/// Runs that may fail before the first success: the cause is probably not in their cells.
const FAILURES_MAX: usize = 3;

/// Conducts what is left of an experiment. The runs that end are added to `study`.
///
/// # Errors
/// Returns the errors of `bench`. The finished runs are stored, and the experiment can be resumed.
pub fn conduct<B: Bench>(
    study: &mut Study,
    bench: &mut B,
    interrupt: &Interrupt,
) -> Result<End, B::Error> {
    let start = Instant::now();
    let limit = study.experiment.time_limit_s.map(|seconds| Span::of_seconds(seconds).0);
    let mut measured = 0;
    loop {
        if interrupt.is_requested() {
            return Ok(End::Interrupted);
        }
        let Some(task) = next(study) else {
            return Ok(End::Complete);
        };
        // A task of this experiment always has a plan.
        let Some(plan) = study.experiment.plan(&task) else {
            return Ok(End::Complete);
        };
        let elapsed = start.elapsed();
        let left = remaining(study, measured, elapsed);
        let next_s = left.seconds.map_or(0.0, |seconds| seconds / left.runs.max(1) as f64);
        if limit.is_some_and(|limit| elapsed.as_secs_f64() + next_s > limit.as_secs_f64()) {
            return Ok(End::TimeLimit);
        }
        bench.starting(study, &task, &left);
        let result = bench.measure(study, &task, &plan, measured == 0)?;
        let is_interrupted = match &result {
            Ok(record) => record.status == Status::Interrupted,
            Err(_) => interrupt.is_requested(),
        };
        if is_interrupted {
            return Ok(End::Interrupted);
        }
        study.finished.push(Finished::new(task, result));
        measured += 1;
        bench.ended(study)?;
        let new = study.finished.iter().rev().take(measured);
        if measured == FAILURES_MAX && new.clone().all(|finished| finished.result.is_err()) {
            return Ok(End::Failing);
        }
    }
}

#[cfg(test)]
mod tests {

    use std::collections::BTreeSet;

    use super::*;
    use crate::study::{Experiment, Failure, example};

    /// Measures nothing: each run has a record without results. Stores what a process that is killed leaves behind.
    #[derive(Default)]
    struct FakeBench {
        stored: Vec<Record>,
        failures: Vec<Failure>,
        failing_sessions: Option<u32>,
        /// Whether every run fails.
        fails: bool,
        /// Number of runs after which the process is killed, before or after the record was stored.
        killed_after: Option<(usize, bool)>,
    }

    struct Killed;

    impl Bench for FakeBench {
        type Error = Killed;

        fn starting(&mut self, _: &Study, _: &Task, _: &Remaining) {}

        fn measure(
            &mut self,
            _: &Study,
            _: &Task,
            plan: &Plan,
            _: bool,
        ) -> Result<Result<Box<Record>, String>, Killed> {
            let is_last = self.killed_after.is_some_and(|(runs, _)| runs == self.stored.len());
            if is_last && self.killed_after.is_some_and(|(_, is_stored)| !is_stored) {
                return Err(Killed);
            }
            if self.fails || Some(plan.sessions) == self.failing_sessions {
                return Ok(Err("too many connections".to_owned()));
            }
            let record = example::record(plan);
            self.stored.push(record.clone());
            if is_last { Err(Killed) } else { Ok(Ok(Box::new(record))) }
        }

        fn ended(&mut self, study: &Study) -> Result<(), Killed> {
            self.failures = study.failures();
            Ok(())
        }
    }

    fn run(experiment: &Experiment, bench: &mut FakeBench) -> Result<End, Killed> {
        let mut study =
            Study::load(experiment.clone(), bench.stored.clone(), bench.failures.clone());
        conduct(&mut study, bench, &Interrupt::new())
    }

    #[test]
    fn an_experiment_killed_at_any_run_measures_each_cell_exactly_once() {
        let experiment = example::sweep(4);
        for runs in 0..12 {
            for is_stored in [false, true] {
                let mut bench =
                    FakeBench { killed_after: Some((runs, is_stored)), ..FakeBench::default() };
                assert!(run(&experiment, &mut bench).is_err());
                assert_eq!(bench.stored.len(), runs + usize::from(is_stored));
                bench.killed_after = None;
                assert!(matches!(run(&experiment, &mut bench), Ok(End::Complete)));
                let tasks: BTreeSet<_> = bench
                    .stored
                    .iter()
                    .map(|record| (record.tags["cell"].clone(), record.tags["block"].clone()))
                    .collect();
                assert_eq!((bench.stored.len(), tasks.len()), (12, 12));
            }
        }
    }

    #[test]
    fn a_failed_cell_is_not_repeated_and_the_others_are_measured() {
        let experiment = example::sweep(3);
        let mut bench = FakeBench { failing_sessions: Some(2), ..FakeBench::default() };
        assert!(matches!(run(&experiment, &mut bench), Ok(End::Complete)));
        assert_eq!(bench.stored.len(), 6);
        let [failure] = bench.failures.as_slice() else { panic!("{:?}", bench.failures) };
        assert_eq!((failure.task.cell, failure.error.as_str()), (1, "too many connections"));
        // Not measured again by another process either.
        assert!(matches!(run(&experiment, &mut bench), Ok(End::Complete)));
        assert_eq!(bench.stored.len(), 6);
    }

    #[test]
    fn an_experiment_whose_first_runs_all_fail_ends() {
        let experiment = example::sweep(5);
        let mut bench = FakeBench { fails: true, ..FakeBench::default() };
        assert!(matches!(run(&experiment, &mut bench), Ok(End::Failing)));
        assert_eq!(bench.failures.len(), 3);
        // Continued, it fails again, but a cell without the fault is measured.
        bench.fails = false;
        assert!(matches!(run(&experiment, &mut bench), Ok(End::Complete)));
        assert_eq!((bench.stored.len(), bench.failures.len()), (6, 3));
    }

    #[test]
    fn a_repeated_run_replaces_the_failed_one() {
        let experiment = example::sweep(2);
        let mut bench = FakeBench::default();
        assert!(matches!(run(&experiment, &mut bench), Ok(End::Complete)));
        let mut failed = bench.stored[0].clone();
        failed.status = Status::Failed;
        failed.failure = Some("connection lost".to_owned());
        let records = [&[failed.clone()], bench.stored.as_slice()].concat();
        let failures = vec![Failure {
            task: experiment.task_of(&failed).unwrap(),
            error: "connection lost".to_owned(),
        }];
        let study = Study::load(experiment, records, failures);
        assert_eq!((study.finished.len(), study.failures()), (bench.stored.len(), Vec::new()));
    }

    #[test]
    fn an_experiment_ends_before_the_run_that_would_exceed_its_time_limit() {
        // A run of these plans takes 10 s and the warm-up.
        let experiment = Experiment { time_limit_s: Some(5.0), ..example::sweep(3) };
        let mut bench = FakeBench::default();
        assert!(matches!(run(&experiment, &mut bench), Ok(End::TimeLimit)));
        assert_eq!(bench.stored.len(), 0);
    }

    #[test]
    fn an_interrupt_ends_the_experiment_between_two_runs() {
        let interrupt = Interrupt::new();
        interrupt.request();
        let mut study = Study::load(example::sweep(3), Vec::new(), Vec::new());
        let end = conduct(&mut study, &mut FakeBench::default(), &interrupt);
        assert!(matches!(end, Ok(End::Interrupted)));
    }
}
