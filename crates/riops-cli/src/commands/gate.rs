//! `riops gate`: whether the head is slower than the base, as an exit code and in the forms of CI services.

use std::cell::RefCell;
use std::process::ExitCode;

use anyhow::Result;
use riops::experiment::{Builder, Machines, Variant};
use riops::fleet::rank;
use riops::report::{self, Rendered, findings_in};
use riops::server::embedded::cache_directory;
use riops::store::StoreLocation;
use riops::study::{GateVerdict, GateView, Machine, ServerChoice};
use riops::units::text::json_text;

use crate::args::fleet::AGENTS_WITHIN;
use crate::args::gate::{BuildOptions, ExitCodes, Gate, JudgedOptions, MachinesOptions};
use crate::experiment::conductor::{conductor, select};
use crate::experiment::gate::{GateFile, SKIPPED, Undecided, named_apart, recoded};
use crate::failure::{BREACHED, FAILED, INTERRUPTED, conduct_error, refuse};
use crate::output::Outputs;
use crate::stored;
use crate::target::embedded_options;
use crate::ui::Ui;

/// Conducts the gate of a file.
pub(super) fn run(options: &Gate, ui: Ui) -> Result<ExitCode> {
    let in_bisect = options.exit_code == ExitCodes::Bisect;
    conducted(options, in_bisect, ui).map_err(|error| recoded(error, in_bisect))
}

fn conducted(options: &Gate, in_bisect: bool, ui: Ui) -> Result<ExitCode> {
    let outputs = Outputs::open_answer(&options.both.answer, ui)?;
    let (mut view, undecided) = judged(options, ui)?;
    if view.verdict == GateVerdict::Inconclusive && !in_bisect {
        let (code, rule) = undecided.code();
        view.exit = Some(format!("exit code {code}: inconclusive = \"{rule}\""));
    }
    write(options, &view, undecided == Undecided::Fail, outputs)?;
    let code = match (view.verdict, in_bisect) {
        _ if ui.interrupt.is_requested() => INTERRUPTED,
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
    let databases = RefCell::default();
    let select = |choice: &ServerChoice| select(choice, &databases.borrow(), ui);
    let machines = machines(options, &file, ui)?;
    let conductor = conductor(&options.both.store, None, &select, ui)?;
    let variant = |builder: &Builder, revision: &str| {
        builder.variant(revision, &conductor.events, ui.interrupt)
    };
    let variants = match builder(&options.both, &file)? {
        None if options.base.is_some() => {
            return refuse("--base has no effect without a command that builds");
        }
        None => ["base", "head"].map(|name| Variant { name: name.to_owned(), prefix: None }),
        Some(builder) => {
            let base = options.base.clone().map_or_else(|| builder.merge_base(), Ok)?;
            [variant(&builder, &base)?, variant(&builder, &options.head)?]
        }
    };
    let rules = file.rules(options.both.build.time_limit_s())?;
    let tests = file.tests(&variants, rules.error, &ui.given().target, &databases)?;
    let [base, head] = &variants;
    let names = [base.name.clone(), named_apart(base, head)];
    let view = match &machines {
        Some(machines) => conductor.gate_of_machines(names, tests, &rules, machines),
        None => conductor.gate(names, tests, &rules).map(|gated| gated.view),
    };
    Ok((view.map_err(conduct_error)?, file.inconclusive))
}

/// Returns which of several machines this is; `None` for a single one.
fn machines(options: &Gate, file: &GateFile, ui: Ui) -> Result<Option<Machines>> {
    let MachinesOptions { fleet, machines, machine, machines_within } = &options.machines;
    let (Some(gate), Some(machines)) = (fleet.clone(), *machines) else {
        return Ok(None);
    };
    riops::plan::require_public([&gate])?;
    let needed = file.machines_needed()?;
    if machines < needed {
        return refuse(format!(
            "{machines} machines cannot show a difference with the error of this gate: at least {needed} are needed"
        ));
    }
    if !matches!(stored::location(&options.both.store, ui)?, StoreLocation::Postgresql(_)) {
        return refuse(
            "--fleet requires --store postgresql://…: the machines meet in this database",
        );
    }
    let (rank, _) = rank(|name| std::env::var(name).ok());
    let Some(index) = machine.or(rank) else {
        return refuse("--fleet requires --machine K, the number of this machine, from 0");
    };
    if index >= machines {
        return refuse(format!("--machine must be below --machines {machines}"));
    }
    let within = machines_within.unwrap_or(AGENTS_WITHIN).0;
    Ok(Some(Machines { own: Machine { gate, index, machines }, within }))
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

fn write(options: &Gate, view: &GateView, fails: bool, outputs: Outputs) -> Result<()> {
    outputs.emit(|form, lines| {
        Ok(match form {
            "json" => Rendered::Data(json_text(view)?),
            "markdown" => Rendered::Data(report::gate_markdown(view)),
            "junit" => Rendered::Data(report::gate_junit(view, fails)),
            form => findings_in(form, &report::gate(view), lines)?,
        })
    })?;
    if options.annotations || std::env::var_os("GITHUB_ACTIONS").is_some_and(|on| on == "true") {
        crate::ui::print_error(&report::gate_annotations(view, fails));
    }
    Ok(())
}
