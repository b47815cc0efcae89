//! `riops completions` and `riops man`: the completion script of a shell, and manual pages.

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap_complete::env::{Bash, EnvCompleter, Fish, Zsh};
use clap_mangen::Man;

use crate::args::{self, Shell};
use crate::completion::VARIABLE;
use crate::failure::UsageError;
use crate::options::with_suggestion;
use crate::ui;

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

fn unknown(command: &clap::Command, word: &str) -> UsageError {
    let names: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
    let nearest: Vec<_> = names.into_iter().filter(|name| strsim::jaro(name, word) > 0.7).collect();
    UsageError(with_suggestion(format!("{} has no command {word}", command.get_name()), &nearest))
}
