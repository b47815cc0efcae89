//! Options of `riops run` as a list of words, their plans, and the axes of an experiment: options with several values,
//! and variants, which are several options at once. The command line of riops parses the words, so that an experiment
//! supports exactly the options of `riops run`.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;

use anyhow::Result;
use clap::{Arg, ArgAction, Args, Command};
use riops::plan::{Plan, Trust};
use riops::server::ConnInfo;
pub(crate) use riops::study::VARIANT;
use riops::study::{Axis, ServerChoice};
use riops::units::secret::CommandLine;
use riops::units::text::is_unprintable;
use toml::{Table, Value};

use crate::args::{self, GraphOptions, ResultOptions};
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
    let Some(arg) = command.get_arguments().find(|arg| is_named(arg, &name)) else {
        let text = format!("riops run {} has no option \"{name}\"", command.get_name());
        return refuse(with_suggestion(text, &OptionNames::of_one(command).nearest(&name)));
    };
    require_effect_on_cells(&name)?;
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

/// Fails for an option of `riops run` that says what is printed or stored: it has no effect on the runs of an experiment.
fn require_effect_on_cells(long: &str) -> Result<()> {
    let results = GraphOptions::augment_args(ResultOptions::augment_args(Command::new("run")));
    let is_result = results.get_arguments().any(|arg| arg.get_long() == Some(long));
    if is_result || ["session-detail", "quiet"].contains(&long) {
        let of_command = "the command line of the experiment says what is printed and stored";
        return refuse(format!(
            "\"{long}\" has no effect on the runs of an experiment: {of_command}"
        ));
    }
    if ["restart", "trust"].contains(&long) {
        return refuse(format!("\"{long}\" is accepted on the command line only: --{long}"));
    }
    Ok(())
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

/// Returns the words with the options of `set` replaced or added. All words are `--name=value` or `--name`.
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
        Value::Integer(value) => value.to_string(),
        Value::Float(value) => value.to_string(),
        Value::Boolean(flag) => flag.to_string(),
        Value::Array(values) => values.iter().map(text_of).collect::<Result<Vec<_>>>()?.join(","),
        Value::Datetime(_) | Value::Table(_) => {
            let text = format!("expected a string, a number, true, false or a list, not {value}");
            return refuse(text);
        }
    })
}

/// Connection strings with passwords, by the same strings without passwords.
pub(crate) type Databases = BTreeMap<String, String>;

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

/// Whether a connection string has a password.
pub(crate) fn has_password(database: &str) -> bool {
    ConnInfo::without_password(database).is_some_and(|shown| shown != database.trim())
}

/// Fails for a password in options of a command line, which all users of the machine can read while the experiment is
/// conducted.
///
/// # Errors
/// [`UsageError`] that does not show it.
pub(crate) fn require_no_password(options: &[(String, String)]) -> Result<()> {
    let databases = options.iter().filter(|(name, _)| name == "database");
    if databases.flat_map(|(_, value)| value.split(',')).any(has_password) {
        let text = "a password in --axis or --set is visible to other users of the machine: use PGPASSWORD or a password file";
        return refuse(text);
    }
    Ok(())
}

/// Start of the name of an axis of a setting of the server.
const SETTING_PREFIX: &str = "set.";

/// More cells are a mistake.
const CELLS_MAX: usize = 10_000;

/// An axis whose values are options of `riops run`.
#[derive(Debug, Clone)]
pub(crate) struct TypedAxis {
    pub(crate) name: String,
    pub(crate) values: Vec<TypedValue>,
}

/// A value of an axis.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TypedValue {
    pub(crate) text: String,
    /// The options that it stands for.
    pub(crate) words: Vec<OsString>,
}

impl TypedAxis {
    /// An axis of an option.
    ///
    /// # Errors
    /// If the workload has no such option.
    pub(crate) fn of_option(command: &Command, name: &str, values: &[Value]) -> Result<Self> {
        if let Some(setting) = name.strip_prefix(SETTING_PREFIX) {
            return Self::of_setting(command, setting, values);
        }
        let name = long_name(command, name);
        if name == "seed" {
            return refuse("\"seed\" cannot be an axis: all cells of a round use the same keys");
        }
        let value = |value: &Value| {
            let text = text_of(value)?;
            let shown = match name.as_str() {
                "database" => without_password(&text),
                "command" => CommandLine::of_shell(text).shown().pop().unwrap_or_default(),
                _ => text,
            };
            Ok(TypedValue { text: shown, words: typed(command, &name, value)? })
        };
        let values = values.iter().map(value).collect::<Result<_>>()?;
        Self { name, values }.checked()
    }

    /// An axis of a setting of the server.
    ///
    /// # Errors
    /// If the workload has no sessions that could have settings.
    pub(crate) fn of_setting(command: &Command, name: &str, values: &[Value]) -> Result<Self> {
        let value = |value: &Value| {
            let text = text_of(value)?;
            let pair = Value::String(format!("{name}={text}"));
            Ok(TypedValue { text, words: typed(command, "setting", &pair)? })
        };
        let values = values.iter().map(value).collect::<Result<_>>()?;
        Self { name: name.to_owned(), values }.checked()
    }

    /// The axis of `--vary`: of an option, otherwise of a setting of the server.
    ///
    /// # Errors
    /// As for these.
    pub(crate) fn of_either(command: &Command, name: &str, values: &[Value]) -> Result<Self> {
        let long = long_name(command, name);
        if command.get_arguments().any(|arg| is_named(arg, &long)) {
            return Self::of_option(command, name, values);
        }
        Self::of_setting(command, name.strip_prefix(SETTING_PREFIX).unwrap_or(name), values)
    }

    /// The axis of the variants.
    ///
    /// # Errors
    /// If the workload has no such options.
    pub(crate) fn of_variants(command: &Command, variants: &Table) -> Result<Self> {
        let variant = |(name, options): (&String, &Value)| {
            let Value::Table(options) = options else {
                return refuse(format!("variant \"{name}\": expected a table of options"));
            };
            Ok(TypedValue { text: name.clone(), words: all_typed(command, options)? })
        };
        let values = variants.iter().map(variant).collect::<Result<_>>()?;
        Self { name: VARIANT.to_owned(), values }.checked()
    }

    /// Fails if a value is missing, repeated or cannot be shown.
    pub(super) fn checked(self) -> Result<Self> {
        let mut seen = BTreeSet::new();
        if self.values.is_empty() {
            return refuse(format!("axis \"{}\" has no values", self.name));
        }
        for TypedValue { text, .. } in &self.values {
            if text.chars().any(is_unprintable) || text.is_empty() {
                return refuse(format!("axis \"{}\": invalid value {text:?}", self.name));
            }
            if !seen.insert(text) {
                return refuse(format!("axis \"{}\" has the value \"{text}\" twice", self.name));
            }
        }
        Ok(self)
    }

    /// The axis as stored.
    pub(crate) fn plain(&self) -> Axis {
        let values = self.values.iter().map(|value| value.text.clone()).collect();
        Axis { name: self.name.clone(), values }
    }
}

/// Returns the values of `VALUE,…`.
pub(crate) fn split_list(list: &str) -> Vec<Value> {
    list.split(',').map(|value| Value::String(value.trim().to_owned())).collect()
}

/// Returns all combinations of the values with their options, the last axis varying fastest.
///
/// # Errors
/// If there are too many.
pub(crate) fn combinations(axes: &[TypedAxis]) -> Result<Vec<(Vec<String>, Vec<OsString>)>> {
    let count = axes.iter().map(|axis| axis.values.len()).try_fold(1_usize, usize::checked_mul);
    if count.is_none_or(|count| count > CELLS_MAX) {
        return refuse(format!("the axes have more than {CELLS_MAX} combinations"));
    }
    let mut cells = vec![(Vec::new(), Vec::new())];
    for axis in axes {
        let with_each = |(values, words): (Vec<String>, Vec<OsString>)| {
            axis.values.iter().map(move |value| {
                let values = values.iter().chain([&value.text]).cloned().collect();
                (values, [&words[..], &value.words].concat())
            })
        };
        cells = cells.into_iter().flat_map(with_each).collect();
    }
    Ok(cells)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(name: &str, list: &str) -> Result<TypedAxis> {
        let command = command_of("rows").unwrap();
        TypedAxis::of_option(&command, name, &split_list(list))
    }

    #[test]
    fn combinations_vary_the_last_axis_fastest() {
        let axes = [axis("sessions", "1,2").unwrap(), axis("index_only", "false,true").unwrap()];
        let cells = combinations(&axes).unwrap();
        let expected = [
            (["1", "false"], vec!["--sessions=1"]),
            (["1", "true"], vec!["--sessions=1", "--index-only"]),
            (["2", "false"], vec!["--sessions=2"]),
            (["2", "true"], vec!["--sessions=2", "--index-only"]),
        ];
        let expected = expected.map(|(values, words)| {
            let words: Vec<OsString> = words.into_iter().map(OsString::from).collect();
            (values.map(str::to_owned).to_vec(), words)
        });
        assert_eq!(cells, expected);
        assert_eq!(combinations(&[]).unwrap(), [(Vec::new(), Vec::new())]);
    }

    #[test]
    fn rejects_unknown_options_repeated_values_and_too_many_cells() {
        let error = |name, list| axis(name, list).unwrap_err().to_string();
        assert!(error("sesions", "1").contains("did you mean sessions?"));
        assert!(error("batch", "1,2,1").contains("\"1\" twice"));
        assert!(error("batch", "1,,2").contains("invalid value"));
        let many: Vec<_> = (1..=101).map(|value| value.to_string()).collect();
        let many = axis("batch", &many.join(",")).unwrap();
        assert!(combinations(&[many.clone(), many]).is_err());
    }

    #[test]
    fn the_password_of_a_database_is_not_part_of_its_value() {
        let url = "postgresql://me:secret@h/db";
        let axis = axis("database", url).unwrap();
        assert_eq!(axis.plain().values, ["postgresql://me:***@h/db"]);
        assert_eq!(axis.values[0].words, [OsString::from(format!("--database={url}"))]);
        let command = command_of("observe").unwrap();
        let values = split_list("PGPASSWORD=secret psql,psql");
        let axis = TypedAxis::of_option(&command, "command", &values).unwrap();
        assert_eq!(axis.plain().values, ["PGPASSWORD=*** psql", "psql"]);
    }

    #[test]
    fn a_variant_is_several_options_at_once() {
        let variants =
            "small = { server-set = [\"shared_buffers=16MB\", \"work_mem=1MB\"], sessions = 2 }";
        let command = command_of("rows").unwrap();
        let axis = TypedAxis::of_variants(&command, &variants.parse().unwrap()).unwrap();
        let words =
            ["--server-set=shared_buffers=16MB", "--server-set=work_mem=1MB", "--sessions=2"];
        let words = words.map(OsString::from).to_vec();
        assert_eq!(axis.values, [TypedValue { text: "small".to_owned(), words }]);
    }
}
