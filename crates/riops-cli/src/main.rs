//! The `riops` command: parses the command line, calls the library and prints the results. It must not
//! measure anything.

mod args;
mod bar_terminal;
mod commands;
mod completion;
mod effect;
mod experiment;
mod failure;
mod file;
mod fleet;
mod given;
#[cfg(test)]
mod help_tests;
mod hints;
mod measure;
mod options;
mod originals;
mod output;
mod scan;
mod screen;
mod settings;
mod short_help;
mod site;
mod standard_output;
mod stored;
mod sysbench_env;
mod target;
mod terminal;
mod title;
mod ui;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use hints::Given;
use options::Origin;
use scan::CommandLine;
use ui::Ui;

fn main() -> ExitCode {
    completion::answer();
    standard_output::keep_closed();
    survive_file_size_limit();
    let arguments = originals::named(std::env::args_os().collect());
    if let Some((tool, own)) = originals::find_tool(&arguments) {
        let translated = |words| execute(&CommandLine::read(words), Origin::Translated);
        return originals::run(tool, own, Ui::new(false, leaked(Given::default())), translated);
    }
    let line = CommandLine::read(arguments);
    title::hide_password(&line);
    execute(&line, Origin::Typed)
}

/// A write beyond the limit of the size of files (`ulimit -f`) fails then with an error, as on a full disk. Without a
/// handler, the signal would kill riops. The handler is not inherited by the programs that riops executes.
fn survive_file_size_limit() {
    let ignored = Arc::new(AtomicBool::new(false));
    // Fails only for signals that cannot be handled.
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, ignored);
}

/// Executes a command line.
fn execute(line: &CommandLine, origin: Origin) -> ExitCode {
    let mut arguments = match settings::parse(line, origin) {
        Ok(arguments) => arguments,
        Err(code) => return code,
    };
    let given = leaked(std::mem::take(&mut arguments.given));
    let form = arguments.error_form;
    match commands::run(arguments, given) {
        Ok(code) => code,
        Err(error) => failure::report(&error, given, form),
    }
}

/// The options exist until the end of the process, so that all parts of it can refer to them.
fn leaked(given: Given) -> &'static Given {
    Box::leak(Box::new(given))
}
