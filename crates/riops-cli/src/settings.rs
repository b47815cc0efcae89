//! Where options come from: the command line, else the environment, else a file, else the default.
//!
//! The environment and the file become clap's fallbacks, so that a value is checked by the same
//! code wherever it comes from.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, CommandFactory, FromArgMatches};

use riops::plan::pgio::{self, PgioConf, Purpose};

use crate::args::Arguments;
use crate::failure::{USAGE, usage};
use crate::options::{OptionNames, settable, variable, with_suggestion};
use crate::scan::CommandLine;
use crate::sysbench_env;

/// Parses the command line with the environment and the file of `--config`. Otherwise the error, the
/// help or the version is printed, and the exit code is returned.
pub(crate) fn parse(line: &CommandLine) -> Result<Arguments, ExitCode> {
    let names = OptionNames::of(&Arguments::command());
    let (mut values, notices) = match config_path(line) {
        Some(path) => {
            read_known(Path::new(&path), purpose(line), &names).map_err(|error| usage(&error))?
        }
        None => (Values::new(), Vec::new()),
    };
    // Sysbench's container sets variables for options that riops does not have.
    if let Some(command) = sysbench_env::command_of(line) {
        let unicode = |(name, value): (OsString, OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        values.extend(sysbench_env::options(command, std::env::vars_os().filter_map(unicode)));
    }
    let stop_is_typed = STOPS.iter().any(|stop| line.uses(stop).next().is_some());
    let matched = with_fallbacks(Arguments::command(), &values, stop_is_typed)
        .try_get_matches_from(line.arguments())
        .and_then(|matches| {
            require_no_misplaced_option(&matches)?;
            Arguments::from_arg_matches(&matches)
        });
    let prints_help = matched.as_ref().is_err_and(|error| !error.use_stderr());
    if !prints_help {
        let variables = std::env::vars_os().map(|(name, _)| name).collect::<Vec<_>>();
        names
            .check_variables(variables.iter().map(OsString::as_os_str))
            .map_err(|error| usage(&error))?;
    }
    matched.map(|arguments| Arguments { notices, ..arguments }).map_err(|error| {
        let _ = error.print();
        ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(USAGE))
    })
}

/// Fails for an option between `run` and the workload: it belongs to --plan, and the workload would not
/// see it. clap's own way to refuse this (`args_conflicts_with_subcommands`) refuses global options too.
fn require_no_misplaced_option(matches: &ArgMatches) -> Result<(), clap::Error> {
    let Some(("run", run)) = matches.subcommand() else {
        return Ok(());
    };
    let Some((workload, _)) = run.subcommand() else {
        return Ok(());
    };
    let mut command = Arguments::command();
    command.build();
    let options = command.find_subcommand("run").into_iter().flat_map(Command::get_arguments);
    let typed = |arg: &&Arg| {
        let id = arg.get_id().as_str();
        !arg.is_global_set()
            && run.try_contains_id(id).is_ok()
            && run.value_source(id) == Some(ValueSource::CommandLine)
    };
    let misplaced = options.filter(typed).find_map(Arg::get_long).map(str::to_owned);
    match misplaced {
        None => Ok(()),
        Some(option) if option == "plan" => Err(command.error(
            ErrorKind::ArgumentConflict,
            format!("--plan names the workload itself: run it without {workload}"),
        )),
        Some(option) => Err(command.error(
            ErrorKind::ArgumentConflict,
            format!("--{option} must follow the workload: riops run {workload} --{option}"),
        )),
    }
}

/// The values of options, each as it would be typed.
type Values = BTreeMap<String, Vec<String>>;

/// The options that decide when a run stops. One on the command line replaces those of the
/// environment and the file.
const STOPS: [&str; 3] = ["duration", "transactions", "total-rows"];

/// What the file of `--config` is read for.
fn purpose(line: &CommandLine) -> Purpose {
    match line.subcommands().first() {
        Some(&"prepare") => Purpose::Prepare,
        Some(&"run") => Purpose::Run,
        _ => Purpose::Other,
    }
}

/// The file that the command line or the environment names.
fn config_path(line: &CommandLine) -> Option<OsString> {
    let typed = line.uses("config").filter_map(|option| option.value.clone()).last();
    typed.or_else(|| std::env::var_os(variable("config"))).filter(|path| !path.is_empty())
}

/// The options of a file, all of which must be known, and notices about it.
fn read_known(
    path: &Path,
    purpose: Purpose,
    names: &OptionNames,
) -> Result<(Values, Vec<String>), String> {
    let (values, notices) = read_file(path, purpose)?;
    match values.keys().find(|name| !names.contains(name)) {
        Some(name) => {
            let path = path.display();
            let message = format!("unrecognized option \"{name}\" in the file of --config, {path}");
            Err(with_suggestion(message, &names.nearest(name)))
        }
        None => Ok((values, notices)),
    }
}

/// The options of a file, and notices about it.
fn read_file(path: &Path, purpose: Purpose) -> Result<(Values, Vec<String>), String> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        format!("cannot read the file of --config, {}: {error}", path.display())
    })?;
    if pgio::is_pgio(&text) {
        let conf = PgioConf::parse(&text).map_err(|error| {
            format!("the file of --config, {}, is no pgio.conf: {error}", path.display())
        })?;
        if purpose == Purpose::Prepare && !conf.has_scale() {
            return Err(format!("{} does not set SCALE, the size of each table", path.display()));
        }
        let options = conf.options(purpose).into_iter();
        let values = options.map(|(name, value)| (name.to_owned(), vec![value])).collect();
        let notices = conf.without_effect();
        let said = notices.iter().map(|notice| format!("{}: {notice}", path.display())).collect();
        return Ok((values, said));
    }
    Ok((read_toml(path, &text)?, Vec::new()))
}

fn read_toml(path: &Path, text: &str) -> Result<Values, String> {
    let table: toml::Table = text.parse().map_err(|error| {
        format!("the file of --config, {}, is not valid TOML: {error}", path.display())
    })?;
    table
        .into_iter()
        .map(|(name, value)| {
            let values = as_typed(&value).ok_or_else(|| {
                format!("the file of --config sets `{name}` to {value}: give a text, a number, true, false or a list")
            })?;
            Ok((name.replace('_', "-"), values))
        })
        .collect()
}

fn as_typed(value: &toml::Value) -> Option<Vec<String>> {
    match value {
        toml::Value::String(text) => Some(vec![text.clone()]),
        toml::Value::Integer(number) => Some(vec![number.to_string()]),
        toml::Value::Float(number) => Some(vec![number.to_string()]),
        toml::Value::Boolean(flag) => Some(vec![flag.to_string()]),
        toml::Value::Array(values) => {
            values.iter().map(as_typed).collect::<Option<Vec<_>>>().map(|values| values.concat())
        }
        toml::Value::Datetime(_) | toml::Value::Table(_) => None,
    }
}

/// Gives every option with a long name, in every subcommand, its variable and its value from the
/// file.
pub(crate) fn with_fallbacks(command: Command, values: &Values, stop_is_typed: bool) -> Command {
    let names: Vec<_> =
        command.get_subcommands().map(|inner| inner.get_name().to_owned()).collect();
    let mut command = command.mut_args(|arg| with_fallback(arg, values, stop_is_typed));
    for name in names {
        command =
            command.mut_subcommand(name, |inner| with_fallbacks(inner, values, stop_is_typed));
    }
    command
}

fn with_fallback(arg: Arg, values: &Values, stop_is_typed: bool) -> Arg {
    let Some(long) = settable(&arg).map(str::to_owned) else {
        return arg;
    };
    if stop_is_typed && STOPS.contains(&long.as_str()) {
        return arg;
    }
    let arg = arg.env(variable(&long)).hide_env(true);
    match values.get(&long) {
        Some(from_file) => {
            // The help of a flag never shows a default.
            let hide = arg.get_action().takes_values();
            arg.default_values(from_file.clone()).hide_default_value(hide)
        }
        None => arg,
    }
}

#[cfg(test)]
mod tests {
    use riops::plan::{Plan, Stop};

    use super::*;
    use crate::args::Command;

    fn parse(arguments: &[&str]) -> Result<Arguments, ExitCode> {
        let arguments = arguments.iter().map(OsString::from).collect();
        super::parse(&CommandLine::scan(Arguments::command(), arguments))
    }

    #[test]
    fn the_command_line_is_consistent() {
        with_fallbacks(Arguments::command(), &BTreeMap::new(), false).debug_assert();
    }

    #[test]
    fn a_file_gives_values_as_they_would_be_typed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("riops.toml");
        std::fs::write(
            &path,
            "sessions = 8\nwarmup = \"1s\"\nindex_only = true\ntag = [\"a=1\", \"b=2\"]\n",
        )
        .unwrap();
        let read_file = |path| super::read_file(path, Purpose::Run).map(|(values, _)| values);
        let values = read_file(&path).unwrap();
        assert_eq!(values["sessions"], ["8"]);
        assert_eq!(values["index-only"], ["true"]);
        assert_eq!(values["tag"], ["a=1", "b=2"]);
        std::fs::write(&path, "sessions = { a = 1 }").unwrap();
        assert!(read_file(&path).unwrap_err().contains("sessions"));
        std::fs::write(&path, "sessions = ").unwrap();
        assert!(read_file(&path).unwrap_err().contains("not valid TOML"));
    }

    /// The plan that a command line makes.
    fn plan_of(words: &[&str]) -> Plan {
        let Command::Run(run) = parse(words).unwrap().command else { panic!("no run") };
        run.workload.unwrap().options().plan().unwrap()
    }

    #[test]
    fn the_command_line_wins_over_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("riops.toml");
        std::fs::write(&path, "sessions = 8\nbatch = 5\ntransactions = 9\n").unwrap();
        let config = format!("--config={}", path.display());
        let plan = plan_of(&["riops", "run", "rows", "-c", "3", &config]);
        assert_eq!((plan.sessions, plan.stop), (3, Stop::Transactions(9)));
        assert_eq!(plan.work.spec().facts().batch, Some(5));
    }

    #[test]
    fn a_typed_end_replaces_the_one_in_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("riops.toml");
        std::fs::write(&path, "transactions = 9\n").unwrap();
        let config = format!("--config={}", path.display());
        for typed in ["--duration=60", "--time=60", "-t60"] {
            let plan = plan_of(&["riops", "run", "rows", typed, &config]);
            assert_eq!(plan.stop, Stop::DurationS(60.0), "{typed}");
        }
    }
}
