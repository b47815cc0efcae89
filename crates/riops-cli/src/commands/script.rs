//! `riops script check`.

use std::process::ExitCode;

use anyhow::Result;
use riops::dataset::Initialization;
use riops::plan::Protocol;
use riops::record::checked_statement::Finding;
use riops::report;
use riops::script::{self, Names, Scope, Script, parse};
use riops::server::Connection;

use crate::args::run::cores;
use crate::args::{CheckScript, InitializeScript, ScriptCommand};
use crate::failure::{NOT_VALID, refuse, select_error};
use crate::file::read_script;
use crate::target;
use crate::ui::Ui;

pub(crate) fn run(command: &ScriptCommand, ui: Ui) -> Result<ExitCode> {
    match command {
        ScriptCommand::Check(options) => check(options, ui),
        ScriptCommand::Initialize(options) => initialize(options, ui),
    }
}

/// Creates the tables of pgbench step by step. As in pgbench, the last line is a message, not a result.
fn initialize(options: &InitializeScript, ui: Ui) -> Result<ExitCode> {
    let dataset = options.dataset()?;
    let target = target::select(&options.target, ui).map_err(select_error)?;
    let initialization = Initialization {
        target: &target.conninfo,
        dataset,
        steps: &options.steps.0,
        connections: cores(),
        skip_space_check: options.skip_space_check,
        interrupt: ui.interrupt,
    };
    let durations = initialization.run(&mut |text| ui.notice(text))?;
    target.close()?;
    let total: f64 = durations.iter().map(|(_, took)| took.as_secs_f64()).sum();
    let steps =
        durations.iter().map(|(step, took)| format!("{} {:.2} s", step.name(), took.as_secs_f64()));
    let steps: Vec<String> = steps.collect();
    ui.notice(&format!("done in {total:.2} s ({}).", steps.join(", ")));
    Ok(ExitCode::SUCCESS)
}

/// Checks scripts: their text, and unless it is switched off, each statement with the server.
fn check(options: &CheckScript, ui: Ui) -> Result<ExitCode> {
    let mut names = Names::default();
    let given: Vec<_> = options.define.iter().map(|(name, _)| names.slot(name)).collect();
    let mut scripts = Vec::new();
    let mut errors = Vec::new();
    for file in &options.files {
        match parse(file, &read_script(file)?, &mut names) {
            Ok(script) => scripts.push(script),
            Err(problems) => errors.extend(problems),
        }
    }
    let is_simple = options.protocol == Protocol::Simple;
    let scope = Scope::new(&scripts, &names, &given, is_simple);
    if errors.is_empty() {
        let of_script =
            |script| scope.errors(script).into_iter().chain(Script::pipeline_errors(script));
        errors = scripts.iter().flat_map(of_script).collect();
    }
    if !errors.is_empty() {
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        return refuse(texts.join("\n"));
    }
    for warning in scripts.iter().flat_map(|script| scope.warnings(script)) {
        ui.lines(&format!("warning: {warning}"));
    }
    if options.offline {
        let texts: String = scripts.iter().map(report::script_title).collect();
        return crate::ui::print_done(&texts);
    }
    let target = target::open(&options.target, ui)?;
    let mut connection = Connection::open_measured(&target.conninfo, ui.interrupt)?;
    let mut is_refused = false;
    let mut texts = Vec::new();
    for script in &scripts {
        let mut text = report::script_title(script);
        for checked in script::check(&mut connection, script, &names, &scope)? {
            is_refused |= matches!(checked.finding, Finding::Refused(_));
            text += &report::script_statement(&checked);
        }
        texts.push(text);
    }
    drop(connection);
    target.close()?;
    crate::ui::print(&texts.join("\n"))?;
    Ok(if is_refused { ExitCode::from(NOT_VALID) } else { ExitCode::SUCCESS })
}
