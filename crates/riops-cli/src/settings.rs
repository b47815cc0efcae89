//! Sources of option values: the command line, then the environment, then a file, then the default.
//!
//! The environment and the file become defaults in clap, so that the same code checks all values.

use std::borrow::Cow::Borrowed;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use clap::builder::BoolishValueParser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};

use riops::host::files::{TEXT_BYTES_MAX, text_limited};
use riops::plan::pgio::{self, PgioConf, Purpose};
use riops::plan::{OltpTest, Order, WorkPlan};
use riops::study::names_program_or_file;
use riops::units::secret::redacted;
use riops::units::text::{lines, shell_word};

use crate::args::cells::SINGLE_RUN_ONLY;
use crate::args::groups::FIRST_STEPS;
use crate::args::{
    Arguments, ExperimentOptions, StoreOptions, TYPED_ONLY, TargetOptions, TestOptions,
};
use crate::effect::{WithoutEffect, require_effect};
use crate::failure::{ErrorForm, FAILED, USAGE};
use crate::given::given;
use crate::hints::Given;
use crate::options::{
    OptionNames, Origin, Values, settable, variable, with_options_along, with_suggestion,
};
use crate::scan::CommandLine;
use crate::short_help::shortened;
use crate::sysbench_env;

/// Parses the command line with the environment and the file of `--config`.
///
/// # Errors
/// The exit code, after the error, the help or the version was printed.
pub(crate) fn parse(line: &CommandLine, origin: Origin) -> Result<Arguments, ExitCode> {
    let form = error_form(line, &Values::new());
    let (values, notices) = read_values(line, origin).map_err(|error| form.print(&error, USAGE))?;
    let form = error_form(line, &values);
    match matched(line, &values, origin, false) {
        Ok(arguments) => Ok(Arguments { notices, error_form: form, ..arguments }),
        Err(Unparsed::Clap(error)) if needs_first_steps(&error, line) => {
            crate::ui::error_of_clap(FIRST_STEPS, FIRST_STEPS);
            Err(ExitCode::from(USAGE))
        }
        Err(Unparsed::Clap(error)) => Err(rejected(&error, form)),
        Err(Unparsed::Refused(error)) => Err(form.print(&error, USAGE)),
    }
}

/// Whether no command was given at all.
fn needs_first_steps(error: &clap::Error, line: &CommandLine) -> bool {
    let is_help = error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    is_help && line.command().get_name() == crate::args::command().get_name()
}

/// Whether a typed command line has no error.
pub(crate) fn is_valid(line: &CommandLine) -> bool {
    read_values(line, Origin::Typed)
        .is_ok_and(|(values, _)| matched(line, &values, Origin::Typed, false).is_ok())
}

/// Parses another command line in the same way: the words of a cell of an experiment.
///
/// # Errors
/// The text of the error.
pub(crate) fn parse_words(words: &[OsString]) -> Result<Arguments, String> {
    let line = CommandLine::read(words.to_vec());
    let (values, _) = read_values(&line, Origin::Typed)?;
    matched(&line, &values, Origin::Typed, true).map_err(|error| match error {
        Unparsed::Clap(error) => {
            let text = error.render().to_string();
            let text = text.strip_prefix(PREFIX).unwrap_or(&text);
            let (message, _usage) = text.split_once("\n\nUsage").unwrap_or((text, ""));
            let message = redacted(message);
            message.trim().trim_end_matches(POINTER).trim().to_owned()
        }
        Unparsed::Refused(error) => error,
    })
}

/// Why a command line was not parsed.
enum Unparsed {
    /// The error of clap, or the help.
    Clap(clap::Error),
    /// An unknown environment variable, or an option without effect.
    Refused(String),
}

/// Returns the values of the environment of sysbench and of the file of `--config`, and notices about the file.
fn read_values(line: &CommandLine, origin: Origin) -> Result<(Values, Vec<String>), String> {
    let (mut values, notices) = match config_path(line, origin) {
        Some(path) => read_known(Path::new(&path), purpose(line))?,
        None => (Values::new(), Vec::new()),
    };
    // The image of sysbench also sets variables for options that riops does not have.
    if let Some(command) = sysbench_env::command_of(line)
        && origin == Origin::Typed
    {
        let unicode = |(name, value): (OsString, OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        values.extend(sysbench_env::options(command, std::env::vars_os().filter_map(unicode)));
    }
    Ok((values, notices))
}

fn matched(
    line: &CommandLine,
    values: &Values,
    origin: Origin,
    is_cell: bool,
) -> Result<Arguments, Unparsed> {
    let is_typed = |group: &&[&str]| group.iter().any(|option| line.value(option).is_some());
    let replaced = REPLACED.into_iter().filter(is_typed).flatten().copied();
    let replaced: Vec<&str> = replaced.collect();
    let fallbacks = Fallbacks { values, replaced: &replaced, origin };
    let add = |arg| fallbacks.added_to(arg);
    let is_short_help = line.asks_for_short_help();
    let parse = |root: &Command| {
        let command = with_options_along(root.clone(), &line.subcommands(), &add);
        let mut command = if is_short_help { shortened(command) } else { command };
        let parsed = command.try_get_matches_from_mut(line.arguments());
        (command, parsed)
    };
    // Errors and the help name other subcommands.
    let reduced = (!is_short_help).then(|| parse(crate::args::command_for(line.arguments())));
    let accepted = reduced.filter(|(_, parsed)| parsed.is_ok());
    let (mut command, parsed) = accepted.unwrap_or_else(|| parse(crate::args::command()));
    let parsed = parsed
        .map_err(|error| with_own_suggestion(error, line))
        .and_then(|matches| require_no_misplaced_option(&command, &matches).map(|()| matches));
    let prints_help = parsed.as_ref().is_err_and(|error| !error.use_stderr());
    if !prints_help {
        let variables = std::env::vars_os().map(|(name, _)| name).collect::<Vec<_>>();
        OptionNames::check_variables(variables.iter().map(OsString::as_os_str))
            .map_err(Unparsed::Refused)?;
    }
    let matches = parsed.map_err(Unparsed::Clap)?;
    require_effect(&mut command, line, &matches, values, origin, is_cell).map_err(|error| {
        match error {
            WithoutEffect::Refused(text) => Unparsed::Refused(text),
            WithoutEffect::Incomplete(error) => Unparsed::Clap(error),
        }
    })?;
    let arguments = Arguments::from_arg_matches(&matches).map_err(Unparsed::Clap)?;
    let given = Given { run: run_words(line), ..given(&command, &matches) };
    Ok(Arguments { given, cell_words: cell_words(line), ..arguments })
}

/// Returns the words of `riops run WORKLOAD`, `run` first, without the options for its server, store and output, and without those
/// that name the run. Empty for other commands.
fn run_words(line: &CommandLine) -> Vec<String> {
    let ["run", _workload, ..] = line.subcommands().as_slice() else {
        return Vec::new();
    };
    let others = TargetOptions::augment_args(Command::new("run"));
    let others = OptionNames::of_one(&StoreOptions::augment_args(others));
    let is_removed = |long: &str| {
        others.contains(long) || SINGLE_RUN_ONLY.contains(&long) || NOT_REPEATED.contains(&long)
    };
    let words = line.without(is_removed);
    words.iter().skip(1).map(|word| shell_word(&word.to_string_lossy())).collect()
}

/// Returns the words of `riops run` for the cells of `riops sweep WORKLOAD` and `riops ab WORKLOAD`: the command line without
/// the options of the experiment. Empty for other commands.
fn cell_words(line: &CommandLine) -> Vec<OsString> {
    let subcommands = line.subcommands();
    let (experiment, own) = match subcommands.as_slice() {
        ["sweep", _workload, ..] => {
            ("sweep", ExperimentOptions::augment_args(Command::new("sweep")))
        }
        ["ab", _workload, ..] => ("ab", TestOptions::augment_args(Command::new("ab"))),
        _ => return Vec::new(),
    };
    let own = OptionNames::of_one(&own);
    // An experiment stores one record per run and prints none.
    let is_removed =
        |long: &str| own.contains(long) || ["repeat", "output", "details"].contains(&long);
    let mut words = line.without(is_removed);
    if let Some(word) = words.iter_mut().find(|word| *word == experiment) {
        *word = "run".into();
    }
    words
}

/// Options of a run that another one does not repeat.
const NOT_REPEATED: [&str; 8] =
    ["output", "details", "no-intervals", "label", "tag", "quiet", "repeat", "drop"];

/// The prefix of clap's errors.
const PREFIX: &str = "error:";
/// Their last line, which is not part of the message.
const POINTER: &str = "For more information, try '--help'.";

/// Prints an error of clap, or the help, and returns its exit code. Errors start with the name of the program, as
/// riops's own errors do.
fn rejected(error: &clap::Error, form: ErrorForm) -> ExitCode {
    let code = u8::try_from(error.exit_code()).unwrap_or(USAGE);
    let plain = error.render().to_string();
    // The colors of clap are the same sequences that a value could contain.
    let is_shown = |text: &String| matches!(lines(text), Borrowed(_));
    let is_safe = error.context().all(|(_, value)| match value {
        ContextValue::String(text) => is_shown(text),
        ContextValue::Strings(texts) => texts.iter().all(is_shown),
        _ => true,
    });
    let colored = if is_safe { error.render().ansi().to_string() } else { plain.clone() };
    if !error.use_stderr() {
        return match crate::ui::help_of_clap(&plain, &colored) {
            Ok(()) => ExitCode::from(code),
            Err(error) => form.print(&format!("{error:#}"), FAILED),
        };
    }
    // The words that clap repeats may be a mistyped address.
    let shown = redacted(&plain);
    let colored = if shown == plain { colored } else { shown.clone() };
    let plain = shown;
    let named = |text: &str| text.replacen(PREFIX, "riops:", 1);
    crate::ui::error_of_clap(&named(&plain), &named(&colored));
    let Some(text) = plain.strip_prefix(PREFIX) else {
        return form.print_json(plain.trim_end(), code);
    };
    form.print_json(text.trim().trim_end_matches(POINTER).trim_end(), code)
}

/// How errors of this command are printed: as JSON if its results are.
fn error_form(line: &CommandLine, values: &Values) -> ErrorForm {
    if !line.has_option("output") {
        return ErrorForm::Text;
    }
    let from_file = || values.get("output").into_iter().flatten().map(OsString::from).collect();
    let outputs = match (line.values("output"), std::env::var_os(variable("output"))) {
        (typed, _) if !typed.is_empty() => typed,
        (_, Some(value)) => vec![value],
        (_, None) => from_file(),
    };
    if outputs.iter().any(|output| output == "json" || output == "json=-") {
        ErrorForm::Json
    } else {
        ErrorForm::Text
    }
}

/// Short options of pgbench that riops has under their long names only.
const SHORT_IN_PGBENCH: [(&str, &str); 7] = [
    ("R", "rate"),
    ("L", "latency-limit"),
    ("M", "protocol"),
    ("T", "duration"),
    ("P", "interval"),
    ("s", "scale"),
    ("D", "define"),
];

/// Replaces clap's suggestion for an unknown option, and suggests `run` for a workload. clap also suggests options whose names
/// have little in common with what was typed.
fn with_own_suggestion(mut error: clap::Error, line: &CommandLine) -> clap::Error {
    if let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand)
        && let Some(command) = run_command(typed)
    {
        let text = format!("'riops {command}' measures this workload");
        error.remove(ContextKind::SuggestedSubcommand);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![text.into()]));
        return error;
    }
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidArg) else {
        return error;
    };
    let (kind, name) = (error.kind(), typed.trim_start_matches('-').to_owned());
    if kind == ErrorKind::UnknownArgument && !typed.starts_with("--") {
        // An option of another command is not a value.
        error.remove(ContextKind::Suggested);
        let known = SHORT_IN_PGBENCH.iter().find(|(short, _)| name.starts_with(*short));
        let own = OptionNames::of_one(line.command());
        if let Some((_, long)) = known.filter(|(_, long)| own.contains(long)) {
            let text = format!("'-{name}' of pgbench is '--{long}'");
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![text.into()]));
        }
        return error;
    }
    if kind != ErrorKind::UnknownArgument || !typed.starts_with("--") {
        return error;
    }
    error.remove(ContextKind::SuggestedArg);
    error.remove(ContextKind::Suggested);
    let own = OptionNames::of_one(line.command());
    // clap's own usage line contains the option that it suggests.
    let usage = line.command().clone().render_usage();
    error.insert(ContextKind::Usage, ContextValue::StyledStr(usage));
    if let [nearest, ..] = own.nearest(&name).as_slice() {
        let suggested = ContextValue::String(format!("--{nearest}"));
        error.insert(ContextKind::SuggestedArg, suggested);
    } else if name == "details" && line.subcommands().last() == Some(&"show") {
        let text = "without it, this command prints everything";
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![text.into()]));
    } else if is_option_of_cells(line, &name) {
        let text = format!("'--set {name}=VALUE' sets an option of the runs");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![text.into()]));
    } else if let Some(text) = commands_with(crate::args::built(), &name) {
        let text = format!("'--{name}' is an option of {text}");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![text.into()]));
    }
    error
}

/// Whether the command conducts an experiment of files, whose runs have an option of this name.
fn is_option_of_cells(line: &CommandLine, name: &str) -> bool {
    let run = crate::args::built().find_subcommand("run");
    matches!(line.subcommands().as_slice(), ["ab" | "sweep"])
        && run.is_some_and(|run| {
            run.get_subcommands().any(|workload| OptionNames::of_one(workload).contains(name))
        })
}

/// Returns the command that measures a workload of this name, or a test of sysbench.
fn run_command(name: &str) -> Option<String> {
    if WorkPlan::executable_names().iter().any(|known| known == name) {
        return Some(format!("run {name}"));
    }
    name.parse::<OltpTest>().ok().map(|test| format!("run oltp {test}"))
}

/// The commands with an option of this name: `'riops prepare rows'`; `None` if there are none.
fn commands_with(root: &Command, name: &str) -> Option<String> {
    /// More commands are not listed.
    const COMMANDS_MAX: usize = 3;
    let mut commands = Vec::new();
    for outer in root.get_subcommands() {
        for command in std::iter::once(outer).chain(outer.get_subcommands()) {
            if !command.is_hide_set() && OptionNames::of_one(command).contains(name) {
                commands.push(format!("'{}'", command.get_bin_name().unwrap_or_default()));
            }
        }
    }
    match commands.len() {
        0 => None,
        1..=COMMANDS_MAX => Some(commands.join(", ")),
        _ => Some(format!("{}, …", commands.get(..COMMANDS_MAX)?.join(", "))),
    }
}

/// Fails for an option between `run` and the workload. It belongs to --plan, and the workload would ignore it.
/// clap's setting for this (`args_conflicts_with_subcommands`) would also reject global options.
fn require_no_misplaced_option(command: &Command, matches: &ArgMatches) -> Result<(), clap::Error> {
    let Some((name @ ("run" | "sweep" | "ab"), run)) = matches.subcommand() else {
        return Ok(());
    };
    let Some((workload, _)) = run.subcommand() else {
        return Ok(());
    };
    let options = command.find_subcommand(name).into_iter().flat_map(Command::get_arguments);
    let typed = |arg: &&Arg| {
        let id = arg.get_id().as_str();
        !arg.is_global_set()
            && run.try_contains_id(id).is_ok()
            && run.value_source(id) == Some(ValueSource::CommandLine)
    };
    let text = match options.filter(typed).find_map(Arg::get_long) {
        None => return Ok(()),
        Some("plan") => format!("--plan contains the workload; omit {workload}"),
        Some(option) => {
            format!("--{option} must follow the workload: riops {name} {workload} --{option}")
        }
    };
    Err(crate::args::built().clone().error(ErrorKind::ArgumentConflict, text))
}

/// Whether an option with this value names a program, a file or an SQL expression, which a file must not permit itself.
pub(crate) fn needs_permission(option: &str, value: &str) -> bool {
    match option {
        // A setting of the server may concern other sessions, and the programs that it executes.
        "setting" => true,
        name if name.starts_with("set.") => true,
        "allow-shell" | "trust" | "log" | "server-dir" | "server-data" | "cache-dir"
        | "command" | "count" | "probe" | "prometheus" => true,
        "server-set" => {
            value.split_once('=').is_some_and(|(name, _)| names_program_or_file(name.trim()))
        }
        "order" => matches!(value.parse(), Ok(Order::Sql(_))),
        _ => false,
    }
}

/// The options that end a run, and the options of the random seed. An option on the command line replaces its whole group
/// in the environment and the file.
const REPLACED: [&[&str]; 2] =
    [&["duration", "transactions", "total-rows", "max-duration"], &["seed", "rand-seed"]];

/// The command that the file of `--config` is read for.
fn purpose(line: &CommandLine) -> Purpose {
    match line.subcommands().first() {
        Some(&"prepare") => Purpose::Prepare,
        Some(&"run" | &"observe" | &"sweep" | &"ab") => Purpose::Run,
        _ => Purpose::Other,
    }
}

/// Returns the file of `--config`, from the command line or the environment.
fn config_path(line: &CommandLine, origin: Origin) -> Option<OsString> {
    let from_environment =
        || (origin == Origin::Typed).then(|| std::env::var_os(variable("config"))).flatten();
    line.value("config").or_else(from_environment).filter(|path| !path.is_empty())
}

/// Reads the options of a file, all of which must be known, and notices about it.
fn read_known(path: &Path, purpose: Purpose) -> Result<(Values, Vec<String>), String> {
    let names = OptionNames::all();
    let (values, notices) = read_file(path, purpose)?;
    let path = path.display();
    for (name, values) in &values {
        if let Some(value) = values.iter().find(|value| needs_permission(name, value)) {
            return Err(format!(
                "configuration file {path} cannot set \"{name}\" to {value}: give this permission on the command line or in the environment"
            ));
        }
    }
    if let Some(name) = values.keys().find(|name| !names.contains(name)) {
        let message = format!("unrecognized option \"{name}\" in configuration file {path}");
        return Err(with_suggestion(message, &names.nearest(name)));
    }
    Ok((values, notices))
}

/// Reads the options of a file, and notices about it.
fn read_file(path: &Path, purpose: Purpose) -> Result<(Values, Vec<String>), String> {
    let (text, path) = (text_limited(path, TEXT_BYTES_MAX), path.display());
    let text = text.map_err(|error| format!("cannot read configuration file {path}: {error}"))?;
    if !pgio::is_pgio(&text) {
        let table = text.parse::<toml::Table>();
        let table = table
            .map_err(|error| format!("configuration file {path} is not valid TOML: {error}"))?;
        let values = table.into_iter().map(|(name, value)| {
            let values = as_typed(&value).ok_or_else(|| {
                format!(
                    "configuration file sets \"{name}\" to a value of the type {}; expected a string, a number, true, false or a list",
                    value.type_str()
                )
            })?;
            Ok((name.replace('_', "-"), values))
        });
        return Ok((values.collect::<Result<_, String>>()?, Vec::new()));
    }
    let conf = PgioConf::parse(&text)
        .map_err(|error| format!("configuration file {path} is not a valid pgio.conf: {error}"))?;
    if purpose == Purpose::Prepare && !conf.has_scale() {
        return Err(format!(
            "configuration file {path} does not set SCALE, the size of each table"
        ));
    }
    let options = conf.options(purpose).into_iter();
    let notices = conf.without_effect().into_iter().map(|notice| format!("{path}: {notice}"));
    Ok((options.map(|(name, value)| (name.to_owned(), vec![value])).collect(), notices.collect()))
}

fn as_typed(value: &toml::Value) -> Option<Vec<String>> {
    match value {
        toml::Value::String(text) => Some(vec![text.clone()]),
        toml::Value::Integer(value) => Some(vec![value.to_string()]),
        toml::Value::Float(value) => Some(vec![value.to_string()]),
        toml::Value::Boolean(flag) => Some(vec![flag.to_string()]),
        toml::Value::Array(values) => {
            values.iter().map(as_typed).collect::<Option<Vec<_>>>().map(|values| values.concat())
        }
        toml::Value::Datetime(_) | toml::Value::Table(_) => None,
    }
}

/// The options that the environment sets for a translated command line, by their headings and their names: none of them
/// changes what is measured.
const OF_TRANSLATED: (&[&str], &[&str]) = (
    &["Server", "Embedded server", "Live figures", "Nodes"],
    &[
        "store",
        "no-store",
        "label",
        "tag",
        "workers",
        "driver",
        "metrics-port",
        "allow-shell",
        "quiet",
        "skip-space-check",
        "thread-init-timeout",
    ],
);

/// Adds to every option with a long name its environment variable.
#[cfg(test)]
pub(crate) fn with_environment(command: Command, origin: Origin) -> Command {
    let fallbacks = Fallbacks { values: &Values::new(), replaced: &[], origin };
    crate::options::with_each_option(command, &|arg| fallbacks.added_to(arg))
}

/// The values of options that are not on the command line.
#[derive(Clone, Copy)]
struct Fallbacks<'a> {
    /// Values from a file.
    values: &'a Values,
    /// Names of options without a fallback, because another option of their group was typed.
    replaced: &'a [&'a str],
    origin: Origin,
}

impl Fallbacks<'_> {
    /// Adds to an option with a long name its environment variable and its value from the file.
    fn added_to(self, mut arg: Arg) -> Arg {
        let Some(long) = settable(&arg).map(str::to_owned) else {
            return arg;
        };
        let heading = arg.get_help_heading().unwrap_or_default();
        if TYPED_ONLY.contains(&heading) || self.replaced.contains(&long.as_str()) {
            return arg;
        }
        let (headings, names) = OF_TRANSLATED;
        let is_anywhere = headings.contains(&heading) || names.contains(&long.as_str());
        if self.origin == Origin::Typed || is_anywhere {
            arg = arg.env(variable(&long)).hide_env(true);
        }
        if matches!(arg.get_action(), ArgAction::SetTrue) {
            // RIOPS_QUIET=1
            arg = arg.value_parser(BoolishValueParser::new());
        }
        if let Some(from_file) = self.values.get(&long) {
            // clap does not show the defaults of flags.
            let hide = arg.get_action().takes_values();
            arg = arg.default_values(from_file.clone()).hide_default_value(hide);
        }
        arg
    }
}

#[cfg(test)]
mod tests {
    use riops::plan::{Caches, Plan, Stop};

    use super::*;
    use crate::args::{Command, Runs};

    fn parse(arguments: &[&str]) -> Result<Arguments, ExitCode> {
        let arguments = arguments.iter().map(OsString::from).collect();
        super::parse(&CommandLine::read(arguments), Origin::Typed)
    }

    #[test]
    fn the_command_line_passes_the_checks_of_clap() {
        with_environment(crate::args::command().clone(), Origin::Typed).debug_assert();
    }

    #[test]
    fn the_environment_does_not_change_the_measurement_of_another_tool() {
        let variables = |origin| {
            let root = with_environment(crate::args::command().clone(), origin);
            let run = root.find_subcommand("run").and_then(|run| run.find_subcommand("script"));
            let with_variable = |arg: &&Arg| arg.get_env().is_some();
            let options =
                run.unwrap().get_arguments().filter(with_variable).filter_map(Arg::get_long);
            options.map(str::to_owned).collect::<Vec<_>>()
        };
        let (typed, translated) = (variables(Origin::Typed), variables(Origin::Translated));
        for option in ["database", "store", "label", "server-port", "metrics-listen"] {
            assert!(translated.contains(&option.to_owned()), "{option}: {translated:?}");
        }
        for option in ["rate", "sessions", "reconnect", "schema", "log", "max-duration", "strict"] {
            assert!(!translated.contains(&option.to_owned()), "{option}: {translated:?}");
            assert!(typed.contains(&option.to_owned()), "{option}: {typed:?}");
        }
    }

    #[test]
    fn a_file_contains_values_as_they_would_be_typed() {
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

    /// Returns the plan of a command line.
    fn plan_of(words: &[&str]) -> Plan {
        let Command::Run(run) = parse(words).unwrap().command else { panic!("no run") };
        run.workload.unwrap().options().plan().unwrap()
    }

    #[test]
    fn the_command_line_overrides_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("riops.toml");
        std::fs::write(&path, "sessions = 8\nbatch = 5\ntransactions = 9\n").unwrap();
        let config = format!("--config={}", path.display());
        let plan = plan_of(&["riops", "run", "rows", "-c", "3", &config]);
        assert_eq!((plan.sessions, plan.stop), (3, Stop::Transactions(9)));
        assert_eq!(plan.work.traits().batch, Some(5));
    }

    #[test]
    fn the_filters_of_a_list_are_only_typed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("riops.toml");
        std::fs::write(&path, "label = \"nightly\"\ntag = [\"a=1\"]\nlimit = 3\n").unwrap();
        let config = format!("--config={}", path.display());
        let Command::Runs(Runs::List(list)) =
            parse(&["riops", "runs", "list", &config]).unwrap().command
        else {
            panic!("no list")
        };
        assert_eq!((list.filter.label.as_deref(), list.filter.tag.len(), list.limit), (None, 0, 3));
        let words = ["riops", "runs", "tag", "last", "a=2", &config];
        let Command::Runs(Runs::Tag(tag)) = parse(&words).unwrap().command else {
            panic!("no tag")
        };
        assert_eq!(tag.label, None);
    }

    #[test]
    fn cold_is_a_switch_with_an_optional_value() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("riops.toml");
        let caches = |option: &str, file: &str| {
            std::fs::write(&path, file).unwrap();
            let config = format!("--config={}", path.display());
            let words = ["riops", "run", "rows", &config, option];
            let words: Vec<_> = words.into_iter().filter(|word| !word.is_empty()).collect();
            plan_of(&words).work.traits().caches
        };
        assert_eq!(caches("--cold", ""), Caches::Cold);
        assert_eq!(caches("--cold=try", ""), Caches::ColdTry);
        assert_eq!(caches("", "cold = true\n"), Caches::Cold);
        assert_eq!(caches("", "cold = \"try\"\n"), Caches::ColdTry);
        assert_eq!(caches("--cold", "cold = false\n"), Caches::Cold);
        assert_eq!(caches("", "cold = false\n"), Caches::AsFound);
        // The plans of earlier versions.
        let plan = serde_json::to_string(&plan_of(&["riops", "run", "rows", "--cold"])).unwrap();
        assert!(plan.contains(r#""caches":"cold""#), "{plan}");
        let cbc = plan_of(&["riops", "run", "cbc", "--cold=try"]);
        assert!(!cbc.work.traits().requires_cold());
        assert!(plan_of(&["riops", "run", "cbc", "--cold"]).work.traits().requires_cold());
    }

    #[test]
    fn a_stop_option_on_the_command_line_replaces_the_one_in_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("riops.toml");
        std::fs::write(&path, "transactions = 9\n").unwrap();
        let config = format!("--config={}", path.display());
        for typed in ["--duration=60", "--time=60", "-t60"] {
            let plan = plan_of(&["riops", "run", "rows", typed, &config]);
            assert_eq!(plan.stop, Stop::DurationS(60.0), "{typed}");
        }
    }

    /// Returns the error of a command line as it is printed.
    fn error_of(words: &[&str]) -> String {
        let arguments = words.iter().map(OsString::from).collect();
        let line = CommandLine::read(arguments);
        let error =
            crate::args::command().clone().try_get_matches_from(line.arguments()).unwrap_err();
        with_own_suggestion(error, &line).to_string()
    }

    #[test]
    fn suggests_the_nearest_option_of_the_command() {
        let text = error_of(&["riops", "run", "rows", "--sesions", "3"]);
        assert!(text.contains("a similar argument exists: '--sessions'"), "{text}");
    }

    #[test]
    fn suggests_the_command_of_an_option_and_never_an_unrelated_option() {
        let text = error_of(&["riops", "run", "rows", "--recreate"]);
        assert!(text.contains("'--recreate' is an option of 'riops prepare rows'"), "{text}");
        let text = error_of(&["riops", "ab", "a.toml", "b.toml", "--duration", "3s"]);
        assert!(text.contains("'--set duration=VALUE' sets an option of the runs"), "{text}");
        let text = error_of(&["riops", "run", "script", "-R", "5"]);
        assert!(text.contains("'-R' of pgbench is '--rate'"), "{text}");
        let text = error_of(&["riops", "runs", "show", "last", "--details"]);
        assert!(text.contains("tip: without it, this command prints everything"), "{text}");
        let text = error_of(&["riops", "run", "rows", "--zzz"]);
        assert!(!text.contains("tip"), "{text}");
    }
}
