//! The command `riops`: reads what the user wants, asks the library, prints what it says.

mod args;
mod commands;
mod failure;
mod settings;
mod sysbench_env;
mod target;
mod title;
mod ui;

use std::process::ExitCode;

fn main() -> ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    title::hide_password(&words);
    let arguments = match settings::parse(words) {
        Ok(arguments) => arguments,
        Err(code) => return code,
    };
    match commands::run(arguments) {
        Ok(code) => code,
        Err(error) => failure::report(&error),
    }
}
