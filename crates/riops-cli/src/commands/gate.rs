//! `riops gate`: whether the head is slower than the base, as an exit code and in the forms of CI services.

use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use riops::experiment::{End, GateVerdict, GateView, GateWorkload, Study};
use riops::report::{self, Delivery, Findings, Layout, experiment};
use riops::server::embedded::cache_directory;
use riops::units::text::json_text;

use crate::args::StoreOptions;
use crate::args::fleet::FleetOptions;
use crate::args::gate::{BuildOptions, ExitCodes, Gate, JudgedOptions};
use crate::args::sweep::StudyOptions;
use crate::experiment::build::{Builder, commit_of, git, output_of, short};
use crate::experiment::conductor::Conductor;
use crate::experiment::gate::{GateFile, Rules, SKIPPED, Undecided, Variant, recoded};
use crate::experiment::results::{Results, print_findings};
use crate::failure::{BREACHED, FAILED, INTERRUPTED, refuse};
use crate::file;
use crate::target::embedded_options;
use crate::ui::Ui;

/// Conducts the gate of a file.
pub(super) fn run(options: &Gate, ui: Ui) -> Result<ExitCode> {
    let in_bisect = options.exit_code == ExitCodes::Bisect;
    let (mut view, undecided) = match judged(options, ui) {
        Ok(found) => found,
        Err(error) => return Err(recoded(error, in_bisect)),
    };
    if view.verdict == GateVerdict::Inconclusive && !in_bisect {
        let (code, rule) = undecided.code();
        view.exit = Some(format!("exit code {code}: inconclusive = \"{rule}\""));
    }
    write(options, &view, undecided == Undecided::Fail, ui)?;
    let code = match (view.verdict, in_bisect) {
        _ if ui.interrupt.requested() => INTERRUPTED,
        (GateVerdict::NotSlower, _) => 0,
        (GateVerdict::Slower, _) => FAILED,
        (_, true) => SKIPPED,
        (GateVerdict::Failed, false) => BREACHED,
        (GateVerdict::Inconclusive, false) => undecided.code().0,
    };
    Ok(ExitCode::from(code))
}

/// Returns the result, and the rule for an inconclusive one.
fn judged(options: &Gate, ui: Ui) -> Result<(GateView, Undecided)> {
    let file = GateFile::read(&options.file, options.both.trust)?;
    let builder = builder(&options.both, &file)?;
    let variants = match &builder {
        None if options.base.is_some() => {
            return refuse("--base has no effect without a command that builds");
        }
        None => ["base", "head"].map(|name| Variant { name: name.to_owned(), prefix: None }),
        Some(builder) => {
            let base = match &options.base {
                Some(base) => base.clone(),
                None => merge_base(builder)?,
            };
            [variant(builder, &base, ui)?, variant(builder, &options.head, ui)?]
        }
    };
    let limit_s = options.both.build.time_limit_s().or(file.time_limit.map(|limit| limit.0));
    let rules = file.rules()?;
    let plan = Plan { rules, limit_s, continues: false };
    let found = measured(&file, &variants, &plan, &options.both.store, ui)?;
    Ok((found.view, file.inconclusive))
}

/// How the workloads of a file are measured.
pub(super) struct Plan {
    pub(super) rules: Rules,
    pub(super) limit_s: Option<f64>,
    /// Whether tests that are stored are continued.
    pub(super) continues: bool,
}

/// What was found.
pub(super) struct Measured {
    pub(super) view: GateView,
    /// The tests of the workloads.
    pub(super) studies: Vec<Study>,
    /// Whether the time limit has ended one of them.
    pub(super) is_cut: bool,
}

/// Measures all workloads of a file with two variants.
pub(super) fn measured(
    file: &GateFile,
    [base, head]: &[Variant; 2],
    &Plan { rules, limit_s, continues }: &Plan,
    store_options: &StoreOptions,
    ui: Ui,
) -> Result<Measured> {
    let start = Instant::now();
    let study_options = StudyOptions::default();
    let results = Results { form: "text", options: &study_options };
    let fleet = FleetOptions::default();
    let conductor = Conductor { store_options, fleet: &fleet, results, ui };
    let (mut workloads, mut studies, mut is_cut) = (Vec::new(), Vec::new(), false);
    // Of two variants with the same name, as in a test of the method itself, the second one has another.
    let mut second = head.clone();
    if second.name == base.name {
        second.name.push_str(" (again)");
    }
    for mut draft in file.drafts([base, &second], rules.error, &ui.given().target)? {
        if ui.interrupt.requested() {
            break;
        }
        draft.time_limit_s = limit_s.map(|limit| (limit - start.elapsed().as_secs_f64()).max(0.0));
        let begun = Instant::now();
        let (study, end) = conductor.measured(draft, continues)?;
        is_cut |= end == End::TimeLimit;
        let view = experiment::view(&study);
        workloads.push(GateWorkload::new(&study, &view, end, begun.elapsed().as_secs_f64()));
        studies.push(study);
    }
    let names = [base.name.clone(), second.name];
    let seconds = start.elapsed().as_secs_f64();
    let view = GateView::new(names, (rules.effect, rules.error, seconds), workloads);
    Ok(Measured { view, studies, is_cut })
}

/// Returns what builds commits, if there is a command.
pub(super) fn builder(options: &JudgedOptions, file: &GateFile) -> Result<Option<Builder>> {
    let BuildOptions { build, repository, builds, .. } = &options.build;
    let Some(command) = build.as_ref().or(file.build.as_ref()) else {
        return Ok(None);
    };
    let builds = match builds {
        Some(builds) => std::path::absolute(builds)?,
        None => cache_directory(&embedded_options(&options.target.embedded))?.join("builds"),
    };
    Ok(Some(Builder { repository: repository.clone(), command: command.clone(), builds }))
}

/// Builds a revision.
pub(super) fn variant(builder: &Builder, revision: &str, ui: Ui) -> Result<Variant> {
    let commit = commit_of(&builder.repository, revision)?;
    let prefix = builder.prefix(&commit, ui)?;
    Ok(Variant { name: short(&commit).to_owned(), prefix: Some(prefix) })
}

/// Returns the commit from which HEAD branched off.
fn merge_base(builder: &Builder) -> Result<String> {
    let mut command = git(&builder.repository);
    match output_of(command.args(["merge-base", "HEAD", "origin/HEAD"])) {
        Ok(commit) => Ok(commit),
        Err(_) => refuse("specify the commit of the base: --base REV (there is no origin/HEAD)"),
    }
}

/// Writes the page of `--html`.
pub(super) fn write_page(
    options: &JudgedOptions,
    title: &str,
    findings: &Findings,
    ui: Ui,
) -> Result<()> {
    let Some(path) = &options.html else {
        return Ok(());
    };
    let layout = Layout::new(title, Delivery::Inline);
    file::write(path, &report::findings_html(findings, &layout)?, ui)
}

fn write(options: &Gate, view: &GateView, fails: bool, ui: Ui) -> Result<()> {
    match options.both.output.as_str() {
        "json" => crate::ui::print(&json_text(view)?)?,
        "markdown" => crate::ui::print(&report::gate_markdown(view))?,
        form => print_findings(&report::gate(view), form)?,
    }
    if let Some(path) = &options.markdown {
        file::write(path, &report::gate_markdown(view), ui)?;
    }
    if let Some(path) = &options.junit {
        file::write(path, &report::gate_junit(view, fails), ui)?;
    }
    write_page(&options.both, "riops gate", &report::gate(view), ui)?;
    if options.annotations || std::env::var_os("GITHUB_ACTIONS").is_some_and(|on| on == "true") {
        crate::ui::print_error(&report::gate_annotations(view, fails));
    }
    Ok(())
}
