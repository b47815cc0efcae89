//! The names of all options of all commands, and the variables that set them.

use std::collections::{BTreeMap, BTreeSet};

use clap::{Arg, ArgAction, Command};

/// How the variables of options begin.
const PREFIX: &str = "RIOPS_";

/// The long names of all options, and the options that each alias stands for.
#[derive(Debug, Default)]
pub(crate) struct OptionNames {
    names: BTreeSet<String>,
    aliases: BTreeMap<String, BTreeSet<String>>,
}

impl OptionNames {
    /// Collects them from a command and all its subcommands.
    pub(crate) fn of(command: &Command) -> Self {
        let mut found = Self::default();
        found.collect(command);
        found
    }

    fn collect(&mut self, command: &Command) {
        for arg in command.get_arguments() {
            let Some(long) = settable(arg) else {
                continue;
            };
            self.names.insert(long.to_owned());
            for alias in arg.get_all_aliases().unwrap_or_default() {
                self.aliases.entry(alias.to_owned()).or_default().insert(long.to_owned());
            }
        }
        for subcommand in command.get_subcommands() {
            self.collect(subcommand);
        }
    }

    /// Whether an option has this long name.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// The options that a wrong name probably means: the one of this name, else those with this alias,
    /// else the one with the nearest name.
    pub(crate) fn nearest(&self, name: &str) -> Vec<&str> {
        if let Some(known) = self.names.get(name) {
            return vec![known];
        }
        if let Some(names) = self.aliases.get(name) {
            return names.iter().map(String::as_str).collect();
        }
        // One mistake in three characters, but at least one.
        let distance_max = (name.chars().count() / 3).max(1);
        let distances =
            self.names.iter().map(|known| (strsim::osa_distance(name, known), known.as_str()));
        let nearest = distances.min().filter(|(distance, _)| *distance <= distance_max);
        nearest.into_iter().map(|(_, known)| known).collect()
    }
}

/// The long name of an option that the environment and the file of `--config` can set.
pub(crate) fn settable(arg: &Arg) -> Option<&str> {
    let only_prints = matches!(
        arg.get_action(),
        ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version
    );
    arg.get_long().filter(|_| !only_prints)
}

/// The variable of an option.
pub(crate) fn variable(long: &str) -> String {
    format!("{PREFIX}{}", long.replace('-', "_").to_uppercase())
}

/// The message, with a hint below it if there is a name to suggest.
pub(crate) fn with_suggestion<T: AsRef<str>>(message: String, names: &[T]) -> String {
    let names = names.iter().map(AsRef::as_ref).collect::<Vec<_>>();
    if names.is_empty() {
        return message;
    }
    format!("{message}\nriops: hint: did you mean {}?", names.join(" or "))
}
