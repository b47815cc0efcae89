//! Splits the command line in the same way as clap, before clap parses it.
//!
//! Three values are needed before clap returns them: the connection string, which must be removed from the
//! process title; the file of `--config`, whose values become clap's defaults; and the subcommand, because
//! only `oltp` reads sysbench's environment variables. The scan reports no errors: it ends at the first
//! argument that clap rejects, and clap then reports the error.

use std::ffi::{OsStr, OsString};

use clap::{Arg, Command};
use clap_lex::{OsStrExt, ParsedArg, RawArgs, ShortFlags};

/// A command line, with the canonical names of its subcommands and options.
#[derive(Debug)]
pub(crate) struct CommandLine {
    arguments: Vec<OsString>,
    subcommands: Vec<String>,
    options: Vec<TypedOption>,
    is_complete: bool,
}

/// One option on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TypedOption {
    /// Its long name, whichever name or alias was typed.
    pub(crate) long: String,
    /// Its value; `None` for a flag, and if an optional value was omitted.
    pub(crate) value: Option<OsString>,
    /// Index of the argument that contains its name.
    pub(crate) position: usize,
    /// Index of its value, if the value is a separate argument.
    value_position: Option<usize>,
    /// The short flags before it in the same argument: `q` for `-d` in `-qd`.
    flags_before: String,
}

impl CommandLine {
    /// Scans the arguments. The first one is the name of the program. The command is built: it has `--help` and the global
    /// options in every subcommand.
    pub(crate) fn scan(command: &Command, arguments: Vec<OsString>) -> Self {
        let raw = RawArgs::new(&arguments);
        let mut scanner = Scanner {
            command,
            pending: None,
            positionals_filled: 0,
            is_escaped: false,
            line: Self {
                arguments,
                subcommands: Vec::new(),
                options: Vec::new(),
                is_complete: true,
            },
        };
        let mut cursor = raw.cursor();
        let mut position = 0;
        let _ = raw.next(&mut cursor);
        while let Some(argument) = raw.next(&mut cursor) {
            position += 1;
            if scanner.read(position, &argument).is_err() {
                scanner.line.is_complete = false;
                break;
            }
        }
        scanner.line.is_complete &= scanner.pending.is_none_or(is_value_optional);
        scanner.line
    }

    /// Returns all arguments in order. Underscores in option names, as sysbench writes them, are replaced by
    /// dashes.
    pub(crate) fn arguments(&self) -> &[OsString] {
        &self.arguments
    }

    /// Returns the names of the subcommands, outermost first.
    pub(crate) fn subcommands(&self) -> Vec<&str> {
        self.subcommands.iter().map(String::as_str).collect()
    }

    /// Returns every use of the option with this long name.
    pub(crate) fn uses<'a>(&'a self, long: &'a str) -> impl Iterator<Item = &'a TypedOption> {
        self.options.iter().filter(move |option| option.long == long)
    }

    /// Returns whether `-h` was typed and not `--help`.
    pub(crate) fn asks_for_short_help(&self) -> bool {
        self.uses("help").any(|option| {
            let argument = self.arguments.get(option.position);
            argument.is_some_and(|argument| !argument.as_encoded_bytes().starts_with(b"--"))
        })
    }

    /// Returns whether the scan reached the end. Otherwise clap rejects the command line.
    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Returns the arguments without the options with these long names, and their values.
    pub(crate) fn without_options(&self, is_removed: impl Fn(&str) -> bool) -> Vec<OsString> {
        let removed: Vec<_> =
            self.options.iter().filter(|option| is_removed(&option.long)).collect();
        let kept = self.arguments.iter().enumerate().filter(|(position, _)| {
            removed.iter().all(|option| {
                option.position != *position && option.value_position != Some(*position)
            })
        });
        kept.map(|(_, argument)| argument.clone()).collect()
    }

    /// Returns the arguments without this option and its value.
    pub(crate) fn without(&self, option: &TypedOption) -> Vec<OsString> {
        let mut rest = Vec::with_capacity(self.arguments.len());
        for (position, argument) in self.arguments.iter().enumerate() {
            if position == option.position {
                if !option.flags_before.is_empty() {
                    rest.push(format!("-{}", option.flags_before).into());
                }
            } else if Some(position) != option.value_position {
                rest.push(argument.clone());
            }
        }
        rest
    }
}

/// The argument is one that clap rejects.
struct Rejected;

/// Follows clap's parser (`Parser::parse` in `clap_builder`), but does not interpret values.
struct Scanner<'a> {
    /// The subcommand reached so far.
    command: &'a Command,
    /// The last option, while its value is expected as the next argument.
    pending: Option<&'a Arg>,
    positionals_filled: usize,
    /// Whether a bare `--` has been read.
    is_escaped: bool,
    line: CommandLine,
}

impl<'a> Scanner<'a> {
    fn read(&mut self, position: usize, argument: &ParsedArg<'_>) -> Result<(), Rejected> {
        if self.is_escaped {
            return self.positional();
        }
        let command = self.command;
        let is_option = |flags: ShortFlags<'_>| !self.is_negative_value(&flags);
        if argument.is_escape() || argument.is_long() || argument.to_short().is_some_and(is_option)
        {
            self.pending.take_if(|arg| is_value_optional(arg));
        }
        if self.pending.is_none()
            && let Ok(name) = argument.to_value()
            && let Some(subcommand) = command.find_subcommand(name)
        {
            self.line.subcommands.push(subcommand.get_name().to_owned());
            self.command = subcommand;
            self.positionals_filled = 0;
            return Ok(());
        }
        if argument.is_escape() {
            self.is_escaped = true;
            return if self.pending.is_none() { Ok(()) } else { Err(Rejected) };
        }
        if let Some((name, value)) = argument.to_long() {
            return self.long(position, name.map_err(|_| Rejected)?, value);
        }
        match argument.to_short() {
            Some(flags) if !self.is_negative_value(&flags) => self.short(position, flags),
            _ if self.pending.take().is_some() => {
                if let Some(option) = self.line.options.last_mut() {
                    option.value = Some(argument.to_value_os().to_owned());
                    option.value_position = Some(position);
                }
                Ok(())
            }
            _ => self.positional(),
        }
    }

    fn long(&mut self, position: usize, name: &str, value: Option<&OsStr>) -> Result<(), Rejected> {
        if self.pending.is_some() {
            return Err(Rejected);
        }
        let command = self.command;
        let dashed = name.replace('_', "-");
        let typed = find_long(command, name);
        let arg = typed.or_else(|| find_long(command, &dashed)).ok_or(Rejected)?;
        if typed.is_none()
            && let Some(argument) = self.line.arguments.get_mut(position)
        {
            let mut renamed = OsString::from(format!("--{dashed}"));
            if let Some(value) = value {
                renamed.push("=");
                renamed.push(value);
            }
            *argument = renamed;
        }
        if !arg.get_action().takes_values() {
            if value.is_some() {
                return Err(Rejected);
            }
        } else if value.is_none() {
            if !arg.is_require_equals_set() {
                self.pending = Some(arg);
            } else if !is_value_optional(arg) {
                return Err(Rejected);
            }
        }
        self.option(arg, position, value, "");
        Ok(())
    }

    /// Reads a group of short flags. The last one may have a value: `-q`, `-qd URL`, `-qdURL`, `-qd=URL`.
    fn short(&mut self, position: usize, mut flags: ShortFlags<'_>) -> Result<(), Rejected> {
        if self.pending.is_some() {
            return Err(Rejected);
        }
        let command = self.command;
        let mut before = String::new();
        while let Some(flag) = flags.next_flag() {
            let flag = flag.map_err(|_| Rejected)?;
            let arg = find_short(command, flag).ok_or(Rejected)?;
            let attached = flags.clone().next_value_os();
            let after_equals = attached.and_then(|value| value.strip_prefix("="));
            if !arg.get_action().takes_values() {
                self.option(arg, position, None, &before);
            } else if arg.is_require_equals_set() && after_equals.is_none() {
                if !is_value_optional(arg) {
                    return Err(Rejected);
                }
                self.option(arg, position, None, &before);
            } else {
                let value = after_equals.or(attached);
                self.option(arg, position, value, &before);
                self.pending = value.is_none().then_some(arg);
                return Ok(());
            }
            before.push(flag);
        }
        Ok(())
    }

    fn option(&mut self, arg: &Arg, position: usize, value: Option<&OsStr>, flags_before: &str) {
        self.line.options.push(TypedOption {
            long: arg.get_long().unwrap_or(arg.get_id().as_str()).to_owned(),
            value: value.map(ToOwned::to_owned),
            position,
            value_position: None,
            flags_before: flags_before.to_owned(),
        });
    }

    /// Returns whether an argument such as `-3` is a value at this position, and not an option.
    fn is_negative_value(&self, flags: &ShortFlags<'_>) -> bool {
        let expected = self.pending.into_iter().chain(self.next_positional());
        flags.is_negative_number() && expected.into_iter().any(Arg::is_allow_negative_numbers_set)
    }

    /// Returns the positional argument that receives the next value.
    fn next_positional(&self) -> Option<&'a Arg> {
        self.command
            .get_positionals()
            .find(|arg| arg.get_index() == Some(self.positionals_filled + 1))
    }

    fn positional(&mut self) -> Result<(), Rejected> {
        if self.is_escaped && self.command.get_positionals().any(Arg::is_last_set) {
            return Ok(());
        }
        let arg = self.next_positional().filter(|arg| !arg.is_last_set()).ok_or(Rejected)?;
        if !takes_many(arg) {
            self.positionals_filled += 1;
        }
        Ok(())
    }
}

fn find_long<'a>(command: &'a Command, name: &str) -> Option<&'a Arg> {
    command.get_arguments().find(|arg| {
        arg.get_long() == Some(name)
            || arg.get_all_aliases().is_some_and(|aliases| aliases.contains(&name))
    })
}

fn find_short(command: &Command, flag: char) -> Option<&Arg> {
    command.get_arguments().find(|arg| {
        arg.get_short() == Some(flag)
            || arg.get_all_short_aliases().is_some_and(|aliases| aliases.contains(&flag))
    })
}

fn is_value_optional(arg: &Arg) -> bool {
    arg.get_num_args().is_some_and(|range| range.min_values() == 0)
}

fn takes_many(arg: &Arg) -> bool {
    arg.get_num_args().is_some_and(|range| range.max_values() > 1)
}

#[cfg(test)]
#[path = "scan_tests.rs"]
mod tests;
