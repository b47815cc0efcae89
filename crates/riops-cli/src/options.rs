//! The names of all options of all commands, and the environment variables that set them.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::sync::LazyLock;

use clap::{Arg, ArgAction, Command};
use riops::units::text::nearest;

/// Where a command line comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// From the user.
    Typed,
    /// From the command line of another tool, which describes the measurement completely. The environment only
    /// selects where it takes place and where it is stored.
    Translated,
}

/// The values of options, as they would be typed.
pub(crate) type Values = BTreeMap<String, Vec<String>>;

/// Prefix of the environment variables that set options.
const PREFIX: &str = "RIOPS_";

/// A connection string of pgbench that contains a password, which is not shown among the arguments.
pub(crate) const PGBENCH_CONNECTION: &str = "RIOPS_PGBENCH_CONNECTION";
/// Selects the format of sysbench's report: 1.0 or 1.1.
pub(crate) const SYSBENCH_VERSION: &str = "RIOPS_SYSBENCH_VERSION";

/// Variables with this prefix that set no option. The tests and the comparison with other tools use them.
const OTHER_VARIABLES: [&str; 7] = [
    "RIOPS_BINARY",
    "RIOPS_TEST_ALL",
    "RIOPS_WRITE_SCRIPTS",
    // For the commands before and after a run.
    "RIOPS_CELL",
    "RIOPS_ROUND",
    PGBENCH_CONNECTION,
    SYSBENCH_VERSION,
];

/// The commands whose subcommands are workloads.
const OF_WORKLOADS: [&str; 7] = ["prepare", "run", "sweep", "ab", "verify", "warm", "cleanup"];
/// The workload whose dataset the workload `point` uses.
const DATASET_OF_POINT: &str = "load";

/// The long names of all options, and the options of each alias.
#[derive(Debug, Default)]
pub(crate) struct OptionNames {
    names: BTreeSet<String>,
    aliases: BTreeMap<String, BTreeSet<String>>,
}

impl OptionNames {
    /// Returns the names of all commands' options.
    pub(crate) fn all() -> &'static Self {
        static ALL: LazyLock<OptionNames> = LazyLock::new(|| {
            let mut names = OptionNames::default();
            names.collect(crate::args::command());
            names
        });
        &ALL
    }

    /// Returns the names of a command's options, without the options of its subcommands.
    pub(crate) fn of_one(command: &Command) -> Self {
        let mut names = Self::default();
        names.collect_own(command);
        names
    }

    fn collect(&mut self, command: &Command) {
        self.collect_own(command);
        for subcommand in command.get_subcommands() {
            self.collect(subcommand);
        }
    }

    fn collect_own(&mut self, command: &Command) {
        for arg in command.get_arguments() {
            let Some(long) = settable(arg) else {
                continue;
            };
            self.names.insert(long.to_owned());
            for alias in arg.get_all_aliases().unwrap_or_default() {
                self.aliases.entry(alias.to_owned()).or_default().insert(long.to_owned());
            }
        }
    }

    /// Returns the option names of all commands of a workload, such as `prepare` and `verify`, or of all workloads.
    pub(crate) fn of_workload(workload: Option<&str>) -> Self {
        let mut names = Self::default();
        let of_workloads = |outer: &&Command| OF_WORKLOADS.contains(&outer.get_name());
        for outer in crate::args::command().get_subcommands().filter(of_workloads) {
            let is_named = |command: &&Command| match workload {
                None => true,
                Some(name) => {
                    command.get_name() == name
                        || command.get_all_aliases().any(|alias| alias == name)
                        || name == DATASET_OF_POINT && command.get_name() == "point"
                }
            };
            outer.get_subcommands().filter(is_named).for_each(|command| names.collect_own(command));
        }
        names
    }

    /// Returns whether an option has this long name.
    pub(crate) fn contains(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Returns whether an option has this long name or alias.
    pub(crate) fn is_known(&self, name: &str) -> bool {
        self.names.contains(name) || self.aliases.contains_key(name)
    }

    /// Returns the options to suggest for a name: the option with this name, otherwise those with this
    /// alias, otherwise the one with the closest name.
    pub(crate) fn nearest(&self, name: &str) -> Vec<&str> {
        if let Some(known) = self.names.get(name) {
            return vec![known];
        }
        if let Some(names) = self.aliases.get(name) {
            return names.iter().map(String::as_str).collect();
        }
        nearest(name, self.names.iter().map(String::as_str)).into_iter().collect()
    }

    /// Fails for the alphabetically first of these variables that has the prefix but sets no option.
    pub(crate) fn check_variables<'a>(
        variables: impl Iterator<Item = &'a OsStr>,
    ) -> Result<(), String> {
        let unknown = variables
            .map(OsStr::to_string_lossy)
            .filter(|name| name.starts_with(PREFIX) && !OTHER_VARIABLES.contains(&&**name))
            .filter(|name| !Self::all().names.iter().any(|long| variable(long) == **name))
            .min();
        let Some(unknown) = unknown else {
            return Ok(());
        };
        let message = format!("unrecognized environment variable \"{unknown}\"");
        let name = unknown.trim_start_matches(PREFIX).to_lowercase().replace('_', "-");
        let nearest = Self::all().nearest(&name).into_iter().map(variable).collect::<Vec<_>>();
        Err(with_suggestion(message, &nearest))
    }
}

/// Returns the long name of an option; `None` if the environment and the file of `--config` cannot set it.
pub(crate) fn settable(arg: &Arg) -> Option<&str> {
    let only_prints = matches!(
        arg.get_action(),
        ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version
    );
    arg.get_long().filter(|_| !only_prints)
}

/// Changes each option of a command and of its subcommands.
pub(crate) fn with_each_option(command: Command, change: &dyn Fn(Arg) -> Arg) -> Command {
    let names: Vec<_> =
        command.get_subcommands().map(|inner| inner.get_name().to_owned()).collect();
    names.into_iter().fold(command.mut_args(change), |command, name| {
        command.mut_subcommand(name, |inner| with_each_option(inner, change))
    })
}

/// Changes each option of a command, and of its subcommands with these names, outermost first.
pub(crate) fn with_options_along(
    command: Command,
    path: &[&str],
    change: &dyn Fn(Arg) -> Arg,
) -> Command {
    let command = command.mut_args(change);
    match path {
        [] => command,
        [name, rest @ ..] => {
            command.mut_subcommand(name, |inner| with_options_along(inner, rest, change))
        }
    }
}

/// Returns the environment variable of an option.
pub(crate) fn variable(long: &str) -> String {
    format!("{PREFIX}{}", long.replace('-', "_").to_uppercase())
}

/// Returns the message, followed by a hint line if there are names to suggest.
pub(crate) fn with_suggestion<T: AsRef<str>>(message: String, names: &[T]) -> String {
    let names = names.iter().map(AsRef::as_ref).collect::<Vec<_>>();
    if names.is_empty() {
        return message;
    }
    format!("{message}\nriops: hint: did you mean {}?", names.join(" or "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str) -> Result<(), String> {
        OptionNames::check_variables([OsStr::new(name)].into_iter())
    }

    #[test]
    fn accepts_the_variables_of_all_commands_and_of_the_tests() {
        for name in [
            "RIOPS_SESSIONS",
            "RIOPS_CONFIG",
            "RIOPS_TABLE_SIZE",
            "RIOPS_DISK_SIZE",
            "RIOPS_FORCE",
            "RIOPS_TEST_ALL",
            "RIOPS_BINARY",
            "RIOPS_WRITE_SCRIPTS",
            "RIOPSX",
            "PATH",
        ] {
            assert_eq!(check(name), Ok(()), "{name}");
        }
    }

    #[test]
    fn suggests_the_closest_variable_for_an_unknown_one() {
        for (name, hint) in [
            ("RIOPS_SESIONS", "did you mean RIOPS_SESSIONS?"),
            ("RIOPS_sessions", "did you mean RIOPS_SESSIONS?"),
            ("RIOPS_TABEL_SIZE", "did you mean RIOPS_TABLE_SIZE?"),
            ("RIOPS_EVENTS", "did you mean RIOPS_TRANSACTIONS?"),
            ("RIOPS_THREADS", "did you mean RIOPS_CONNECTIONS or RIOPS_SESSIONS?"),
        ] {
            let message = format!("unrecognized environment variable \"{name}\"");
            assert_eq!(check(name), Err(format!("{message}\nriops: hint: {hint}")));
        }
    }

    #[test]
    fn suggests_nothing_if_no_name_is_close() {
        for name in ["RIOPS_FAVORITE_COLOR", "RIOPS_HELP", "RIOPS_VERSION", "RIOPS_"] {
            let message = format!("unrecognized environment variable \"{name}\"");
            assert_eq!(check(name), Err(message));
        }
    }
}
