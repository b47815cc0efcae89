//! Tests of `--help`: a snapshot of every command, and a check that its defaults are the plan's defaults.

use std::collections::BTreeSet;
use std::path::Path;

use clap::error::ErrorKind;
use clap::{Arg, Command, FromArgMatches};
use riops::plan::{DatasetPlan, Parameters, Plan};

use crate::args::{self, Arguments};
use crate::options::Origin;
use crate::settings::with_environment;

/// Where the snapshots are, beside this file.
const FOLDER: &str = "snapshots/help";

/// Collects the path of every command, including hidden commands, but without `help`.
fn paths(command: &Command, path: &[&str], collected: &mut Vec<String>) {
    let path = [path, &[command.get_name()]].concat();
    collected.push(path.join(" "));
    for subcommand in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
        paths(subcommand, &path, collected);
    }
}

fn help(path: &str) -> String {
    let command = with_environment(crate::args::command().clone(), Origin::Typed);
    let words = path.split(' ').chain(["--help"]);
    command.term_width(100).try_get_matches_from(words).unwrap_err().to_string()
}

#[test]
fn the_help_of_every_command() {
    let mut commands = Vec::new();
    paths(crate::args::command(), &[], &mut commands);
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(FOLDER);
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    let name = |command: &str| command.replace(' ', "-");
    settings.bind(|| {
        for command in &commands {
            insta::assert_snapshot!(name(command), help(command));
        }
    });
    // The snapshot of a command that was renamed or removed has to go with it.
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(FOLDER);
    let files: BTreeSet<_> = std::fs::read_dir(folder)
        .unwrap()
        .filter_map(|entry| {
            let file = entry.unwrap().file_name().into_string().unwrap();
            file.strip_suffix(".snap").map(str::to_owned)
        })
        .collect();
    assert_eq!(files, commands.iter().map(|command| name(command)).collect());
}

#[test]
fn every_command_has_a_description_of_its_own() {
    fn check(command: &Command) {
        let abouts: Vec<_> = command
            .get_subcommands()
            .map(|inner| inner.get_about().map(ToString::to_string))
            .collect();
        let different: BTreeSet<_> = abouts.iter().flatten().collect();
        assert_eq!(different.len(), abouts.len(), "{}: {abouts:?}", command.get_name());
        command.get_subcommands().for_each(check);
    }
    check(crate::args::command());
}

/// The plan of `riops run WORKLOAD` with more options, and the dataset that it would prepare. `None`
/// where an option has no meaning without another one.
fn plan(workload: &str, options: &[&str]) -> Option<(Plan, Option<DatasetPlan>)> {
    let words = [&["riops", "run", workload], options].concat();
    let matches = match crate::args::command().clone().try_get_matches_from(words) {
        Err(error) if error.kind() == ErrorKind::MissingRequiredArgument => return None,
        matches => matches.unwrap(),
    };
    let run = match Arguments::from_arg_matches(&matches).unwrap().command {
        args::Command::Run(run) => run,
        other => panic!("{other:?}"),
    };
    // Each run has a different seed.
    let plan = Plan { seed: 0, ..run.workload.unwrap().options().plan().ok()? };
    let prepared = plan.prepared().unwrap();
    // The parameters as typed differ, not their meaning.
    Some((Plan { dataset: Parameters::new(), ..plan }, prepared))
}

/// The default that the help shows for an option, where it is one word.
fn default(arg: &Arg) -> Option<String> {
    let given = arg.get_default_values().first().map(|value| value.to_string_lossy().into_owned());
    let in_text = || {
        let text = arg.get_help()?.to_string();
        Some(text.split_once("[default: ")?.1.split_once(']')?.0.to_owned())
    };
    given.or_else(in_text).filter(|default| !default.contains(' '))
}

#[test]
fn a_typed_default_has_the_meaning_of_an_omitted_option() {
    let mut command = crate::args::command().clone();
    command.build();
    let workloads = command.find_subcommand("run").unwrap().get_subcommands();
    let mut compared = 0;
    for workload in workloads.filter(|workload| workload.get_name() != "help") {
        // There is nothing to observe by default.
        let Some(untyped) = plan(workload.get_name(), &[]) else {
            assert_eq!(workload.get_name(), "observe");
            continue;
        };
        for arg in workload.get_arguments().filter(|arg| arg.get_action().takes_values()) {
            let (Some(long), Some(default)) = (arg.get_long(), default(arg)) else {
                continue;
            };
            let typed = format!("--{long}={default}");
            if let Some(plan) = plan(workload.get_name(), &[&typed]) {
                assert_eq!(plan, untyped, "riops run {} {typed}", workload.get_name());
                compared += 1;
            }
        }
    }
    assert!(compared > 80, "only {compared} defaults were found in the help");
}
