//! Conducts the A/B tests of a gate, and the search for the first slow commit.

use std::time::Instant;

use super::build::{Bisection, BuildError, Builder, Found, Next, Variant, commit_of};
use super::place::{ConductError, Conductor};
use crate::study::End;

use crate::study::Experiment;
use crate::study::evaluation::evaluate;
use crate::study::{BisectCommit, BisectStep, BisectView, GateVerdict, GateView, GateWorkload};
use crate::study::{Study, counted};

/// When a gate is red, and how long it takes.
#[derive(Debug, Clone, Copy)]
pub struct GateRules {
    /// Smallest relevant difference, as a share.
    pub effect: f64,
    /// Probability of a false verdict.
    pub error: f64,
    /// Time limit, in seconds.
    pub limit_s: Option<f64>,
    /// Whether tests that are stored are continued.
    pub continues: bool,
}

/// The result of a gate.
#[derive(Debug)]
pub struct Gated {
    /// The verdict.
    pub view: GateView,
    /// The tests of the workloads.
    pub studies: Vec<Study>,
    /// Whether the time limit has ended one of them.
    pub is_cut: bool,
}

/// Returns the A/B tests of two variants, whose false verdicts together have this probability.
pub type Tests<'a> = &'a dyn Fn(&[Variant; 2], f64) -> Result<Vec<Experiment>, ConductError>;

/// A search for the first slow commit.
pub struct BisectSearch<'a> {
    /// Builds the commits.
    pub builder: &'a Builder,
    /// A revision that is not slow, and one that is.
    pub good: &'a str,
    /// The slow one.
    pub bad: &'a str,
    /// The rules of the whole search.
    pub rules: GateRules,
    /// Defines the tests.
    pub tests: Tests<'a>,
}

/// The result of a search.
#[derive(Debug)]
pub struct Bisected {
    /// The measured commits and the result.
    pub view: BisectView,
    /// The tests of the commit that was found.
    pub cause: Vec<Study>,
    /// Why the search ended without a result.
    pub ended: Result<(), ConductError>,
}

impl Conductor<'_> {
    /// Measures the workloads of a gate, one after the other.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn gate(
        &self,
        names: [String; 2],
        tests: Vec<Experiment>,
        rules: &GateRules,
    ) -> Result<Gated, ConductError> {
        let start = Instant::now();
        let (mut workloads, mut studies, mut is_cut) = (Vec::new(), Vec::new(), false);
        for mut experiment in tests {
            if self.interrupt.is_requested() {
                break;
            }
            let left = |limit: f64| (limit - start.elapsed().as_secs_f64()).max(0.0);
            experiment.time_limit_s = rules.limit_s.map(left);
            let begun = Instant::now();
            let (study, end) = if rules.continues {
                self.start_or_continue(experiment)?
            } else {
                self.start(experiment)?
            };
            is_cut |= end == End::TimeLimit;
            let view = evaluate(&counted(&study));
            workloads.push(GateWorkload::new(&study, &view, end, begun.elapsed().as_secs_f64()));
            studies.push(study);
        }
        let view = GateView {
            verdict: GateVerdict::worst(&workloads),
            variants: names,
            effect: rules.effect,
            error: rules.error,
            seconds: start.elapsed().as_secs_f64(),
            exit: None,
            workloads,
        };
        Ok(Gated { view, studies, is_cut })
    }

    /// Measures commits against the good one until the first slow one is found. Finished measurements are found in the store,
    /// so that the same search continues after an interruption.
    ///
    /// # Errors
    /// [`ConductError::Refused`] if there is nothing to search. A failure after the first measurement is part of the result.
    pub fn bisect(&self, search: &BisectSearch<'_>) -> Result<Bisected, ConductError> {
        let repository = &search.builder.repository;
        let good = commit_of(repository, search.good)?;
        let bad = commit_of(repository, search.bad)?;
        let bisection = Bisection::new(repository.clone(), good.clone(), bad.clone());
        let commits = bisection.distance(&good, &bad)?;
        if commits == 0 {
            return Err(ConductError::Refused(format!(
                "--bad {} has no commit that --good {} does not have",
                search.bad, search.good
            )));
        }
        if bisection.distance(&bad, &good)? > 0 {
            return Err(ConductError::Refused(
                "--good is not an ancestor of --bad: specify their merge base, if it is good"
                    .to_owned(),
            ));
        }
        // With the one on the bad commit, and some for commits that are skipped.
        let judged_max = 2 * (commits.ilog2() as usize + 2);
        let error = search.rules.error;
        let view = BisectView { good, bad, commits, error, steps: Vec::new(), found: Vec::new() };
        let of_step = GateRules { error: error / judged_max as f64, ..search.rules };
        let mut steps = Steps {
            conductor: self,
            search,
            of_step,
            judged_max,
            start: Instant::now(),
            view,
            cause: None,
        };
        let ended = steps.conduct(bisection);
        let Steps { view, cause, .. } = steps;
        let is_found =
            |commit: &str| matches!(view.found.as_slice(), [only] if only.commit == commit);
        let cause = cause.filter(|(commit, _)| is_found(commit));
        let cause = cause.map_or_else(Vec::new, |(_, studies)| studies);
        Ok(Bisected { view, cause, ended })
    }
}

/// A search in progress.
struct Steps<'a> {
    conductor: &'a Conductor<'a>,
    search: &'a BisectSearch<'a>,
    of_step: GateRules,
    judged_max: usize,
    start: Instant,
    view: BisectView,
    /// The tests of the slow commit that was measured last.
    cause: Option<(String, Vec<Study>)>,
}

impl Steps<'_> {
    fn conduct(&mut self, mut bisection: Bisection) -> Result<(), ConductError> {
        let bad = self.view.bad.clone();
        let nothing = match self.step(&bisection, &bad)? {
            Found::Bad => None,
            Found::Good => {
                Some("the bad commit is not slower than the good one: there is nothing to find")
            }
            Found::Unknown => Some(
                "the bad commit cannot be judged; with a longer duration or more rounds, it may",
            ),
        };
        if let Some(text) = nothing {
            return Err(ConductError::Failed(text.to_owned()));
        }
        loop {
            if self.conductor.interrupt.is_requested() {
                return Ok(());
            }
            // With more verdicts, the error would be larger than the search permits.
            let judged = self.view.steps.iter().filter(|step| step.verdict.is_some()).count();
            match bisection.next(judged >= self.judged_max)? {
                Next::Found(suspects) => {
                    let commits = suspects.iter().map(|name| bisection.commit(name));
                    self.view.found = commits.collect::<Result<_, _>>()?;
                    return Ok(());
                }
                Next::Measure(commit) => {
                    let judgment = self.step(&bisection, &commit)?;
                    bisection.mark(commit, judgment);
                }
            }
        }
    }

    /// Measures a commit against the good one.
    fn step(&mut self, bisection: &Bisection, commit: &str) -> Result<Found, ConductError> {
        let Conductor { events, interrupt, .. } = self.conductor;
        let elapsed_s = self.start.elapsed().as_secs_f64();
        let limit_s = self.of_step.limit_s.map(|limit| limit - elapsed_s);
        let candidate = bisection.commit(commit)?;
        let position = bisection.distance(&self.view.good, commit)?;
        let builder = self.search.builder;
        let base = builder.variant(&self.view.good, events, interrupt)?;
        let head = match builder.variant(commit, events, interrupt) {
            Ok(head) => head,
            Err(error @ BuildError::Failed { .. }) => {
                events.notice(&format!("{error}; skipped"));
                let reason = "the build failed".to_owned();
                self.view.steps.push(BisectStep { reason, ..BisectStep::new(candidate, position) });
                return Ok(Found::Unknown);
            }
            Err(error) => return Err(error.into()),
        };
        let names = [base.name.clone(), head.name.clone()];
        let tests = (self.search.tests)(&[base, head], self.of_step.error)?;
        let rules = GateRules { limit_s, continues: true, ..self.of_step };
        let Gated { view, studies, is_cut } = self.conductor.gate(names, tests, &rules)?;
        if interrupt.is_requested() {
            return Ok(Found::Unknown);
        }
        if is_cut {
            let text = "time limit reached; the same command continues";
            return Err(ConductError::Failed(text.to_owned()));
        }
        let judgment = match view.verdict {
            GateVerdict::Slower => Found::Bad,
            GateVerdict::NotSlower => Found::Good,
            GateVerdict::Inconclusive | GateVerdict::Failed => Found::Unknown,
        };
        if judgment == Found::Bad {
            self.cause = Some((commit.to_owned(), studies));
        }
        let step = BisectStep::measured(candidate, position, &view);
        let BisectCommit { commit, subject } = &step.of;
        events.notice(&format!("{commit} {subject}: {}", view.verdict.as_str()));
        self.view.steps.push(step);
        Ok(judgment)
    }
}
