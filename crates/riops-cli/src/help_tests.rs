//! A snapshot of the `--help` of every command.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use clap::{Command, CommandFactory};

use crate::args::Arguments;
use crate::settings::with_fallbacks;

/// Where the snapshots are, beside this file.
const FOLDER: &str = "snapshots/help";

/// The path of every command, hidden ones included, but for those of `help`.
fn paths(command: &Command, path: &[&str], found: &mut Vec<String>) {
    let path = [path, &[command.get_name()]].concat();
    found.push(path.join(" "));
    for subcommand in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
        paths(subcommand, &path, found);
    }
}

fn help(path: &str) -> String {
    let command = with_fallbacks(Arguments::command(), &BTreeMap::new(), false);
    let words = path.split(' ').chain(["--help"]);
    command.term_width(100).try_get_matches_from(words).unwrap_err().to_string()
}

#[test]
fn the_help_of_every_command() {
    let mut commands = Vec::new();
    paths(&Arguments::command(), &[], &mut commands);
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
