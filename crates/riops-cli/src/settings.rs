//! Where options come from: the command line, else the environment, else a file, else the default.
//!
//! All three are one mechanism: the environment and the file become what clap falls back to, so
//! that a value is checked alike wherever it stands.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::{Arg, ArgAction, Command, CommandFactory, FromArgMatches};

use riops::plan::pgio::{self, PgioConf, Purpose};

use crate::args::Arguments;
use crate::failure::USAGE;
use crate::sysbench_env;
use crate::ui;

/// Reads the command line with all that stands behind it. On an error, on --help and on --version
/// it has printed what there is to say, and returns the exit code.
pub(crate) fn parse(arguments: Vec<OsString>) -> Result<Arguments, ExitCode> {
    let arguments: Vec<OsString> = with_dashes(arguments);
    let command_word = arguments.iter().skip(1).find_map(|word| match word.to_str()? {
        "prepare" => Some(Purpose::Prepare),
        "run" => Some(Purpose::Run),
        "verify" | "cleanup" | "doctor" => Some(Purpose::Other),
        _ => None,
    });
    let read = config_path(&arguments).map_or_else(
        || Ok((BTreeMap::new(), Vec::new())),
        |path| read_file(Path::new(&path), command_word.unwrap_or(Purpose::Other)),
    );
    let (values, notices) = match read {
        Ok(read) => read,
        Err(message) => return Err(usage(&message)),
    };
    let mut unused = values.clone();
    let mut values = values;
    // A variable that no option has is somebody else's business: it is not missed.
    if let Some(command) = sysbench_env::command_of(&arguments) {
        values.extend(sysbench_env::options(command, std::env::vars()));
    }
    let stop_is_typed = arguments.iter().filter_map(|typed| typed.to_str()).any(is_stop);
    if stop_is_typed {
        // One of these replaces whatever environment and file say of the others.
        values.retain(|name, _| !STOPS.contains(&name.as_str()));
        unused.retain(|name, _| !STOPS.contains(&name.as_str()));
    }
    let command = with_fallbacks(Arguments::command(), &values, &mut unused, stop_is_typed);
    if let Some(name) = unused.keys().next() {
        return Err(usage(&format!(
            "the file of --config sets `{name}`, which is no option of riops"
        )));
    }
    let matched = command
        .try_get_matches_from(arguments)
        .and_then(|matches| Arguments::from_arg_matches(&matches));
    matched.map(|arguments| Arguments { notices, ..arguments }).map_err(|error| {
        let _ = error.print();
        ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(USAGE))
    })
}

/// The values of options, each as it would be typed.
type Values = BTreeMap<String, Vec<String>>;

/// Options of which one decides when a run stops.
const STOPS: [&str; 5] = ["duration", "time", "transactions", "events", "total-rows"];

/// Whether a word of the command line is one of them.
fn is_stop(typed: &str) -> bool {
    match typed.strip_prefix("--") {
        Some(long) => STOPS.contains(&long.split('=').next().unwrap_or(long)),
        None => typed.starts_with("-t"),
    }
}

fn usage(message: &str) -> ExitCode {
    ui::error(message);
    ExitCode::from(USAGE)
}

/// Sysbench's spelling: `--report_interval=1` for `--report-interval=1`. Only names change, and
/// nothing behind a bare `--`.
fn with_dashes(arguments: Vec<OsString>) -> Vec<OsString> {
    let mut names_end = false;
    arguments
        .into_iter()
        .map(|argument| {
            names_end |= argument == "--";
            match argument.to_str() {
                Some(text) if text.starts_with("--") && !names_end => {
                    let (name, value) = text.split_at(text.find('=').unwrap_or(text.len()));
                    format!("{}{value}", name.replace('_', "-")).into()
                }
                _ => argument,
            }
        })
        .collect()
}

/// The file that the command line or the environment names.
fn config_path(arguments: &[OsString]) -> Option<OsString> {
    let mut rest = arguments.iter().take_while(|argument| *argument != "--");
    while let Some(argument) = rest.next() {
        if argument == "--config" {
            return rest.next().cloned();
        }
        if let Some(path) = argument.to_str().and_then(|text| text.strip_prefix("--config=")) {
            return Some(path.into());
        }
    }
    std::env::var_os("RIOPS_CONFIG").filter(|path| !path.is_empty())
}

/// The options of a file, and what there is to say about it.
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
fn with_fallbacks(
    command: Command,
    values: &Values,
    unused: &mut Values,
    stop_is_typed: bool,
) -> Command {
    let names: Vec<_> =
        command.get_subcommands().map(|inner| inner.get_name().to_owned()).collect();
    let mut command = command.mut_args(|arg| with_fallback(arg, values, unused, stop_is_typed));
    for name in names {
        command = command
            .mut_subcommand(name, |inner| with_fallbacks(inner, values, unused, stop_is_typed));
    }
    command
}

fn with_fallback(arg: Arg, values: &Values, unused: &mut Values, stop_is_typed: bool) -> Arg {
    let Some(long) = arg.get_long().map(str::to_owned) else {
        return arg;
    };
    if matches!(
        arg.get_action(),
        ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version
    ) {
        return arg;
    }
    if stop_is_typed && STOPS.contains(&long.as_str()) {
        return arg;
    }
    let arg = arg.env(format!("RIOPS_{}", long.replace('-', "_").to_uppercase())).hide_env(true);
    match values.get(&long) {
        Some(from_file) => {
            unused.remove(&long);
            // A flag shows no default in its help anyway.
            let hide = arg.get_action().takes_values();
            arg.default_values(from_file.clone()).hide_default_value(hide)
        }
        None => arg,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(arguments: &[&str]) -> Vec<OsString> {
        arguments.iter().map(OsString::from).collect()
    }

    #[test]
    fn the_command_line_is_consistent() {
        with_fallbacks(Arguments::command(), &BTreeMap::new(), &mut BTreeMap::new(), false)
            .debug_assert();
    }

    #[test]
    fn underscores_become_dashes_in_names_only() {
        let typed = texts(&["riops", "run", "--warmup_time=1_0", "--label", "a_b", "--", "--c_d"]);
        let read = texts(&["riops", "run", "--warmup-time=1_0", "--label", "a_b", "--", "--c_d"]);
        assert_eq!(with_dashes(typed), read);
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

    #[test]
    fn the_command_line_wins_over_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("riops.toml");
        std::fs::write(&path, "sessions = 8\nbatch = 5\ntransactions = 9\n").unwrap();
        let config = format!("--config={}", path.display());
        let parsed = parse(texts(&["riops", "run", "rows", "-c", "3", &config])).unwrap();
        let crate::args::Command::Run { workload: crate::args::Run::Rows(rows) } = parsed.command
        else {
            panic!("no run")
        };
        assert_eq!(
            (rows.run.sessions, rows.batch.first().map(|count| count.0)),
            (Some(3), Some(5))
        );
    }

    #[test]
    fn a_typed_end_replaces_the_one_in_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("riops.toml");
        std::fs::write(&path, "transactions = 9\n").unwrap();
        let config = format!("--config={}", path.display());
        for typed in ["--duration=60", "--time=60", "-t60"] {
            let parsed = parse(texts(&["riops", "run", "rows", typed, &config])).unwrap();
            let crate::args::Command::Run { workload: crate::args::Run::Rows(rows) } =
                parsed.command
            else {
                panic!("no run")
            };
            assert!(rows.drive.transactions.is_none() && rows.drive.duration.is_some(), "{typed}");
        }
    }
}
