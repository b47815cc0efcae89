//! The `riops` command: parses the command line, calls the library and prints the results. It must not
//! measure anything.

mod args;
mod commands;
mod failure;
#[cfg(test)]
mod help_tests;
mod options;
mod scan;
mod screen;
mod settings;
mod short_help;
mod sysbench_env;
mod target;
mod title;
mod ui;

use std::process::ExitCode;

use clap::CommandFactory;

use args::Arguments;
use scan::CommandLine;

fn main() -> ExitCode {
    let line = CommandLine::scan(Arguments::command(), std::env::args_os().collect());
    title::hide_password(&line);
    let arguments = match settings::parse(&line) {
        Ok(arguments) => arguments,
        Err(code) => return code,
    };
    match commands::run(arguments) {
        Ok(code) => code,
        Err(error) => failure::report(&error),
    }
}
