//! `riops bisect`: measures commits until the first slow one is found.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, bail};
use riops::experiment::{BisectCommit, BisectStep, BisectView, GateVerdict, Study};
use riops::report::{self, Findings, experiment};
use riops::units::text::json_text;

use super::gate::{Measured, Plan, builder, measured, variant, write_page};
use crate::args::gate::Bisect;
use crate::experiment::build::{Bisection, Builder, Found, Next, commit_of};
use crate::experiment::gate::{GateFile, Rules};
use crate::experiment::results::print_findings;
use crate::failure::{BuildFailed, FAILED, INTERRUPTED, refuse};
use crate::ui::Ui;

/// Conducts the bisection, and continues it if it was interrupted: finished measurements are found in the store.
pub(super) fn run(options: &Bisect, ui: Ui) -> Result<ExitCode> {
    let gate = GateFile::read(&options.file, options.both.trust)?;
    let Some(builder) = builder(&options.both, &gate)? else {
        return refuse("a bisection needs a build of a commit: build = \"…\" or --build");
    };
    let repository = &builder.repository;
    let (good, bad) = (commit_of(repository, &options.good)?, commit_of(repository, &options.bad)?);
    let bisection = Bisection::new(repository.clone(), good.clone(), bad.clone());
    let commits = bisection.distance(&good, &bad)?;
    if commits == 0 {
        return refuse(format!(
            "--bad {} has no commit that --good {} does not have",
            options.bad, options.good
        ));
    }
    if bisection.distance(&bad, &good)? > 0 {
        return refuse(
            "--good is not an ancestor of --bad: specify their merge base, if it is good",
        );
    }
    let rules = gate.rules()?;
    // With the one on the bad commit, and some for commits that are skipped.
    let steps_max = 2 * (commits.ilog2() as usize + 2);
    let mut search = Search {
        view: BisectView {
            good,
            bad,
            commits,
            error: rules.error,
            steps: Vec::new(),
            found: Vec::new(),
        },
        rules: Rules { error: rules.error / steps_max as f64, ..rules },
        steps_max,
        limit_s: options.both.build.time_limit_s().or(gate.time_limit.map(|limit| limit.0)),
        start: Instant::now(),
        cause: None,
        gate,
        builder,
        options,
        ui,
    };
    let ended = search.conduct(bisection);
    search.show()?;
    ended?;
    Ok(ExitCode::from(match search.view.found.as_slice() {
        _ if ui.interrupt.requested() => INTERRUPTED,
        [_] => 0,
        _ => FAILED,
    }))
}

struct Search<'a> {
    view: BisectView,
    /// Those of a step.
    rules: Rules,
    steps_max: usize,
    limit_s: Option<f64>,
    start: Instant,
    /// The test of the slowest commit that was measured last.
    cause: Option<(String, Vec<Study>)>,
    gate: GateFile,
    builder: Builder,
    options: &'a Bisect,
    ui: Ui,
}

impl Search<'_> {
    fn conduct(&mut self, mut bisection: Bisection) -> Result<()> {
        let bad = self.view.bad.clone();
        match self.step(&bisection, &bad)? {
            Found::Bad => {}
            Found::Good => {
                bail!("the bad commit is not slower than the good one: there is nothing to find")
            }
            Found::Unknown => bail!(
                "the bad commit cannot be judged; with a longer duration or more blocks, it may"
            ),
        }
        loop {
            if self.ui.interrupt.requested() {
                return Ok(());
            }
            // More verdicts would have a larger error than that of the search.
            let judged = self.view.steps.iter().filter(|step| step.verdict.is_some()).count();
            match bisection.next(judged >= self.steps_max)? {
                Next::Found(found) => {
                    let commits = found.iter().map(|name| bisection.commit(name));
                    self.view.found = commits.collect::<Result<_>>()?;
                    return Ok(());
                }
                Next::Measure(commit) => {
                    let found = self.step(&bisection, &commit)?;
                    bisection.mark(commit, found);
                }
            }
        }
    }

    /// Measures a commit against the good one.
    fn step(&mut self, bisection: &Bisection, commit: &str) -> Result<Found> {
        let limit_s = self.limit_s.map(|limit| limit - self.start.elapsed().as_secs_f64());
        let of = bisection.commit(commit)?;
        let position = bisection.distance(&self.view.good, commit)?;
        let base = variant(&self.builder, &self.view.good, self.ui)?;
        let head = match variant(&self.builder, commit, self.ui) {
            Ok(head) => head,
            Err(error) if error.is::<BuildFailed>() => {
                self.ui.notice(&format!("{error:#}; skipped"));
                let reason = "the build failed".to_owned();
                self.view.steps.push(BisectStep { reason, ..BisectStep::new(of, position) });
                return Ok(Found::Unknown);
            }
            Err(error) => return Err(error),
        };
        let plan = Plan { rules: self.rules, limit_s, continues: true };
        let Measured { view, studies, is_cut } =
            measured(&self.gate, &[base, head], &plan, &self.options.both.store, self.ui)?;
        if self.ui.interrupt.requested() {
            return Ok(Found::Unknown);
        }
        if is_cut {
            bail!("time limit reached; the same command continues");
        }
        let found = match view.verdict {
            GateVerdict::Slower => Found::Bad,
            GateVerdict::NotSlower => Found::Good,
            GateVerdict::Inconclusive | GateVerdict::Failed => Found::Unknown,
        };
        if found == Found::Bad {
            self.cause = Some((commit.to_owned(), studies));
        }
        let step = BisectStep::measured(of, position, &view);
        let BisectCommit { commit, subject } = &step.of;
        self.ui.notice(&format!("{commit} {subject}: {}", view.verdict.as_str()));
        self.view.steps.push(step);
        Ok(found)
    }

    /// Prints the result, and what changed with the commit that was found.
    fn show(&self) -> Result<()> {
        let document = report::bisection(&self.view);
        let is_found =
            |commit: &str| matches!(self.view.found.as_slice(), [only] if only.commit == commit);
        let cause = self.cause.as_ref().filter(|(commit, _)| is_found(commit));
        let studies = cause.iter().flat_map(|(_, studies)| studies);
        let causes = studies.map(|study| experiment::experiment(&experiment::view(study)));
        let causes: Vec<Findings> = causes.collect();
        match self.options.both.output.as_str() {
            "json" => crate::ui::print(&json_text(&self.view)?)?,
            form => causes
                .iter()
                .chain([&document])
                .try_for_each(|findings| print_findings(findings, form))?,
        }
        write_page(&self.options.both, "riops bisect", &document, self.ui)
    }
}
