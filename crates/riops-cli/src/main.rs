//! The `riops` command: parses the command line, calls the library and prints the results. It must not
//! measure anything.

mod args;
mod bar_terminal;
mod commands;
mod experiment;
mod failure;
mod file;
mod given;
#[cfg(test)]
mod help_tests;
mod hints;
mod live;
mod measure;
mod options;
mod password;
mod scan;
mod screen;
mod settings;
mod short_help;
mod stored;
mod stored_runs;
mod sysbench_env;
mod target;
mod tee;
mod terminal;
mod title;
mod ui;
mod unstored;

use std::process::ExitCode;

use hints::Given;
use scan::CommandLine;

fn main() -> ExitCode {
    let line = CommandLine::scan(args::command(), std::env::args_os().collect());
    title::hide_password(&line);
    let arguments = match settings::parse(&line) {
        Ok(arguments) => arguments,
        Err(code) => return code,
    };
    // Until the end of the process, so that all parts of it can refer to the options.
    let given: &'static Given = Box::leak(Box::new(given::given(&arguments)));
    let form = arguments.error_form;
    match commands::run(arguments, given) {
        Ok(code) => code,
        Err(error) => failure::report(&error, given, form),
    }
}
