//! `riops completions` and `riops man`: the completion script of a shell, and manual pages.

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap_complete::env::{Bash, EnvCompleter, Fish, Zsh};
use clap_mangen::Man;

use riops::report::{explanation, glossary_text};
use riops::units::text::nearest;

use crate::args::{self, Shell};
use crate::completion::VARIABLE;
use crate::failure::UsageError;
use crate::options::with_suggestion;
use crate::ui;

/// Columns of a text without a terminal.
const EXPLANATION_COLUMNS_MAX: usize = 100;

/// Prints the script with which a shell executes riops to complete command lines.
pub(super) fn completions(shell: Shell) -> Result<ExitCode> {
    let shell: &dyn EnvCompleter = match shell {
        Shell::Bash => &Bash,
        Shell::Fish => &Fish,
        Shell::Zsh => &Zsh,
    };
    let mut script = Vec::new();
    shell.write_registration(VARIABLE, "riops", "riops", "riops", &mut script)?;
    ui::print_bytes(&script)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the manual page of a command, or writes the manual pages of all commands to a directory.
pub(super) fn man(options: &args::Man) -> Result<ExitCode> {
    if let Some(folder) = &options.all {
        std::fs::create_dir_all(folder)
            .and_then(|()| clap_mangen::generate_to(args::command().clone(), folder))
            .with_context(|| format!("cannot write the manual pages to {}", folder.display()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut command = args::built();
    for word in &options.command {
        command = command.find_subcommand(word).ok_or_else(|| unknown(command, word))?;
    }
    let mut page = Vec::new();
    Man::new(command.clone()).render(&mut page)?;
    ui::print_bytes(&page)?;
    Ok(ExitCode::SUCCESS)
}

/// Prints what a term means, with an example; without a term, all of them.
pub(super) fn explain(term: &str) -> Result<ExitCode> {
    let columns = ui::output_columns().min(EXPLANATION_COLUMNS_MAX);
    if term.is_empty() {
        return ui::print_done(&glossary_text(columns));
    }
    match explanation(term, columns) {
        Ok(text) => ui::print_done(&text),
        Err(nearest) => {
            let text = format!("\"{term}\" is not a term of riops: riops explain lists them");
            Err(UsageError(with_suggestion(text, nearest.as_slice())).into())
        }
    }
}

fn unknown(command: &clap::Command, word: &str) -> UsageError {
    let nearest = nearest(word, command.get_subcommands().map(clap::Command::get_name));
    let text = format!("{} has no command {word}", command.get_name());
    UsageError(with_suggestion(text, nearest.as_slice()))
}
