//! Reads the command line before its options get values from the environment and from a file.
//!
//! Some values are needed earlier: a password, which must be removed from the process title; the file of `--config`,
//! whose values become clap's defaults; and the subcommand, because only `oltp` reads sysbench's environment variables.
//! clap reads them, with any value and up to the first argument that it rejects. It reports the error later.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};

use crate::options::{OptionNames, with_each_option};

/// Returns the definition of the command line for these words. Options accept any value. Help and version are flags.
fn definition(words: &[OsString]) -> Command {
    let flag = |id: &'static str| Arg::new(id).action(ArgAction::SetTrue).global(true);
    let with_any_value = |arg: Arg| {
        if arg.get_action().takes_values() {
            arg.value_parser(value_parser!(OsString)).value_delimiter(None::<char>)
        } else {
            arg
        }
    };
    with_each_option(crate::args::command_for(words).clone(), &with_any_value)
        .disable_help_flag(true)
        .disable_help_subcommand(true)
        .disable_version_flag(true)
        .args([flag("help").long("help"), flag("short-help").short('h')])
        .arg(flag("version").short('V').long("version"))
}

/// A command line, as far as clap accepts it.
#[derive(Debug)]
pub(crate) struct CommandLine {
    arguments: Vec<OsString>,
    definition: Command,
    matches: ArgMatches,
}

impl CommandLine {
    /// Reads the arguments. The first one is the name of the program.
    pub(crate) fn read(mut arguments: Vec<OsString>) -> Self {
        // No option of riops accepts a value that starts with two dashes as a separate argument.
        for argument in arguments.iter_mut().skip(1).take_while(|argument| **argument != "--") {
            if let Some(dashed) = with_dashes(argument) {
                *argument = dashed;
            }
        }
        let definition = definition(&arguments);
        let lenient = definition.clone().ignore_errors(true).args_override_self(true);
        let matches = lenient.try_get_matches_from(&arguments).unwrap_or_default();
        Self { arguments, definition, matches }
    }

    /// Returns all arguments in order. Underscores in option names, as sysbench writes them, are replaced by
    /// dashes.
    pub(crate) fn arguments(&self) -> &[OsString] {
        &self.arguments
    }

    /// The commands that were named, each with its matches: `riops`, `run`, `rows`.
    fn levels(&self) -> Vec<(&Command, &ArgMatches)> {
        let mut levels = vec![(&self.definition, &self.matches)];
        while let Some((command, matches)) = levels.last().copied()
            && let Some((name, inner)) = matches.subcommand()
            && let Some(command) = command.find_subcommand(name)
        {
            levels.push((command, inner));
        }
        levels
    }

    /// Returns the names of the subcommands, outermost first.
    pub(crate) fn subcommands(&self) -> Vec<&str> {
        self.levels().iter().skip(1).map(|(command, _)| command.get_name()).collect()
    }

    /// Returns the command that was named last, with the global options.
    pub(crate) fn command(&self) -> &'static Command {
        let find = |at: &'static Command, name: &str| at.find_subcommand(name).unwrap_or(at);
        self.subcommands().into_iter().fold(crate::args::built(), find)
    }

    /// Returns whether the command that was named last has an option with this long name, which is not global.
    pub(crate) fn has_option(&self, long: &str) -> bool {
        let levels = self.levels();
        let mut options =
            levels.last().into_iter().flat_map(|(command, _)| command.get_arguments());
        options.any(|arg| arg.get_long() == Some(long))
    }

    /// Returns the last value of the option with this long name; `None` if it was not typed.
    pub(crate) fn value(&self, long: &str) -> Option<OsString> {
        self.values(long).pop()
    }

    /// Returns the values of the option with this long name, of the innermost command for which it was typed.
    pub(crate) fn values(&self, long: &str) -> Vec<OsString> {
        let levels = self.levels();
        let innermost = levels.last().map(|(_, matches)| *matches);
        let of_level = |(command, matches): &(&Command, &ArgMatches)| {
            let arg = command.get_arguments().find(|arg| arg.get_long() == Some(long))?;
            let matches = innermost.filter(|_| arg.is_global_set()).unwrap_or(matches);
            let values: Vec<OsString> =
                typed(arg, matches).into_iter().map(|(_, value)| value.to_owned()).collect();
            Some(values).filter(|values| !values.is_empty())
        };
        levels.iter().rev().find_map(of_level).unwrap_or_default()
    }

    /// Returns whether `-h` was typed and not `--help`.
    pub(crate) fn asks_for_short_help(&self) -> bool {
        let (_, matches) = self.levels().pop().unwrap_or((&self.definition, &self.matches));
        matches.get_flag("short-help")
    }

    /// Returns whether clap accepts the command line, whatever the values are.
    pub(crate) fn is_accepted(&self) -> bool {
        self.definition.clone().try_get_matches_from(&self.arguments).is_ok()
    }

    /// Returns an equivalent command line without the options with these long names: after each subcommand its
    /// arguments, then its options as `--name=value`.
    pub(crate) fn without(&self, is_removed: impl Fn(&str) -> bool) -> Vec<OsString> {
        let mut words: Vec<OsString> = self.arguments.first().cloned().into_iter().collect();
        let levels = self.levels();
        for (position, (command, matches)) in levels.iter().enumerate() {
            if position > 0 {
                words.push(command.get_name().into());
            }
            let own = command.get_arguments().filter(|arg| !arg.is_global_set());
            // The innermost matches contain the global options of all levels.
            let is_innermost = position + 1 == levels.len();
            let globals =
                self.definition.get_arguments().filter(|arg| arg.is_global_set() && is_innermost);
            let (positionals, options): (Vec<&Arg>, Vec<&Arg>) = own
                .chain(globals)
                .filter(|arg| !arg.get_long().is_some_and(&is_removed))
                .partition(|arg| arg.is_positional());
            let positionals = positionals.into_iter().flat_map(|arg| typed(arg, matches));
            let positionals: Vec<_> = positionals.map(|(_, value)| value.to_owned()).collect();
            let options = options.into_iter().flat_map(|arg| {
                typed(arg, matches).into_iter().map(move |(index, value)| (index, word(arg, value)))
            });
            let mut options: Vec<_> = options.collect();
            options.sort();
            let options = options.into_iter().map(|(_, word)| word);
            if positionals.iter().any(|word| *word != "-" && word.as_bytes().starts_with(b"-")) {
                words.extend(options.chain([OsString::from("--")]).chain(positionals));
            } else {
                words.extend(positionals.into_iter().chain(options));
            }
        }
        words
    }
}

/// Returns the values of an option as typed, each with its position; `true` for a flag.
fn typed<'a>(arg: &Arg, matches: &'a ArgMatches) -> Vec<(usize, &'a OsStr)> {
    let id = arg.get_id().as_str();
    if matches.value_source(id) != Some(ValueSource::CommandLine) {
        return Vec::new();
    }
    let values = matches.get_raw(id).into_iter().flatten();
    matches.indices_of(id).into_iter().flatten().zip(values).collect()
}

/// Returns an option with its value.
fn word(arg: &Arg, value: &OsStr) -> OsString {
    let long = arg.get_long().map(|long| format!("--{long}"));
    let short = || arg.get_short().map(|short| format!("-{short}"));
    let mut word = OsString::from(long.or_else(short).unwrap_or_default());
    if arg.get_action().takes_values() {
        word.push("=");
        word.push(value);
    }
    word
}

/// Returns an option of riops whose name has underscores, as in sysbench, with dashes.
fn with_dashes(argument: &OsStr) -> Option<OsString> {
    let bytes = argument.as_bytes();
    let end = bytes.iter().position(|byte| *byte == b'=').unwrap_or(bytes.len());
    let (name, value) = bytes.split_at(end);
    let name = str::from_utf8(name.strip_prefix(b"--")?).ok().filter(|name| name.contains('_'))?;
    let dashed = name.replace('_', "-");
    let is_known = OptionNames::all().is_known(&dashed);
    is_known.then(|| OsString::from_vec([b"--", dashed.as_bytes(), value].concat()))
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
