//! Options of `riops run` as a list of words, and their plans. The command line of riops parses them, so that an
//! experiment supports exactly the options of `riops run`.

use std::ffi::OsString;

use anyhow::Result;
use clap::{Arg, ArgAction, Command};
use riops::experiment::ServerChoice;
use riops::plan::{Plan, Trust};
use riops::server::ConnInfo;
use toml::Value;

use crate::args;
use crate::failure::{UsageError, refuse};
use crate::options::{OptionNames, with_suggestion};
use crate::settings;

/// Returns the command `riops run WORKLOAD`.
///
/// # Errors
/// If there is no such workload.
pub(crate) fn command_of(workload: &str) -> Result<Command> {
    if let Some(option) = workload.split_whitespace().find(|word| word.starts_with('-')) {
        let text =
            format!("workload \"{workload}\": {option} is an option, not a part of its name");
        return refuse(text);
    }
    let name = workload.split_whitespace().next().unwrap_or_default();
    let run = args::built().find_subcommand("run");
    run.and_then(|run| run.find_subcommand(name)).cloned().ok_or_else(|| {
        let names = riops::plan::WorkPlan::executable_names().join(", ");
        UsageError(format!("unknown workload \"{workload}\"; the workloads are {names}")).into()
    })
}

/// Returns an option and its value as typed: nothing for a switch that is off, several words for a list.
///
/// # Errors
/// If the workload has no such option, or the value cannot be typed.
pub(crate) fn typed(command: &Command, name: &str, value: &Value) -> Result<Vec<OsString>> {
    let name = long_name(command, name);
    let names = OptionNames::of_one(command);
    let arg = command.get_arguments().find(|arg| is_named(arg, &name));
    let Some(arg) = arg else {
        let known = command.get_name();
        let text = format!("riops run {known} has no option \"{name}\"");
        return refuse(with_suggestion(text, &names.nearest(&name)));
    };
    let is_switch = matches!(arg.get_action(), ArgAction::SetTrue);
    if let Value::Array(values) = value {
        return all_typed(command, values.iter().map(|value| (&name, value)));
    }
    Ok(match text_of(value)?.as_str() {
        "true" if is_switch => vec![format!("--{name}").into()],
        "false" if is_switch => Vec::new(),
        text => vec![format!("--{name}={text}").into()],
    })
}

/// Returns options and their values as typed.
///
/// # Errors
/// As [`typed`].
pub(crate) fn all_typed<'a>(
    command: &Command,
    options: impl IntoIterator<Item = (&'a String, &'a Value)>,
) -> Result<Vec<OsString>> {
    let words = options.into_iter().map(|(name, value)| typed(command, name, value));
    Ok(words.collect::<Result<Vec<_>>>()?.concat())
}

/// Returns the long name of an option that was typed with an alias or with underscores.
pub(crate) fn long_name(command: &Command, name: &str) -> String {
    let name = name.replace('_', "-");
    let arg = command.get_arguments().find(|arg| is_named(arg, &name));
    arg.and_then(Arg::get_long).map_or(name, str::to_owned)
}

/// Returns the words without those of the options that are set, and these. All words are `--name=value` or `--name`.
pub(crate) fn replaced(words: Vec<OsString>, set: &[OsString]) -> Vec<OsString> {
    let name =
        |word: &OsString| word.to_string_lossy().split('=').next().unwrap_or_default().to_owned();
    let kept = words.into_iter().filter(|word| set.iter().all(|other| name(other) != name(word)));
    kept.chain(set.iter().cloned()).collect()
}

fn is_named(arg: &Arg, name: &str) -> bool {
    arg.get_long() == Some(name)
        || arg.get_all_aliases().is_some_and(|aliases| aliases.contains(&name))
}

/// Returns a value as typed.
///
/// # Errors
/// For a table or a date.
pub(crate) fn text_of(value: &Value) -> Result<String> {
    Ok(match value {
        Value::String(text) => text.clone(),
        Value::Integer(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Boolean(flag) => flag.to_string(),
        Value::Array(values) => values.iter().map(text_of).collect::<Result<Vec<_>>>()?.join(","),
        Value::Datetime(_) | Value::Table(_) => {
            let text = format!("expected a string, a number, true, false or a list, not {value}");
            return refuse(text);
        }
    })
}

/// The plan and the server of `riops run` with these words.
pub(crate) struct Parsed {
    pub(crate) plan: Plan,
    /// Without a password: experiments are stored.
    pub(crate) server: ServerChoice,
    /// The connection string as given.
    pub(crate) database: Option<String>,
}

/// Parses words as `riops run` does.
///
/// # Errors
/// As `riops run`.
pub(crate) fn parse(words: &[OsString]) -> Result<Parsed> {
    let arguments = settings::parse_words(words).map_err(UsageError)?;
    let args::Command::Run(run) = arguments.command else {
        return refuse("expected options of riops run");
    };
    let Some(workload) = &run.workload else {
        return refuse("expected a workload of riops run");
    };
    let options = workload.options();
    let target = options.options().target;
    let embedded = &target.embedded;
    Ok(Parsed {
        // A file was checked before its options became words.
        plan: Plan { trust: Trust(true), ..options.plan()? },
        server: ServerChoice {
            database: target.database.as_deref().map(without_password),
            settings: embedded.server_set.clone(),
            server_dir: embedded.server_dir.clone(),
            server_data: embedded.server_data.clone(),
            server_user: embedded.server_user.clone(),
            server_port: embedded.server_port,
            cache_dir: embedded.cache_dir.clone(),
        },
        database: target.database.clone(),
    })
}

/// Returns a connection string with `***` in place of its password.
pub(crate) fn without_password(database: &str) -> String {
    ConnInfo::without_password(database).unwrap_or_else(|| "…".to_owned())
}

/// Fails for a password in options of a command line, which all users of the machine can read while the experiment is
/// conducted.
///
/// # Errors
/// [`UsageError`] that does not show it.
pub(crate) fn require_no_password(options: &[(String, String)]) -> Result<()> {
    let has_password =
        |text: &str| ConnInfo::without_password(text).is_some_and(|shown| shown != text.trim());
    let databases = options.iter().filter(|(name, _)| name == "database");
    if databases.flat_map(|(_, value)| value.split(',')).any(has_password) {
        let text = "a password in --axis or --set is visible to other users of the machine: use PGPASSWORD or a password file";
        return refuse(text);
    }
    Ok(())
}
