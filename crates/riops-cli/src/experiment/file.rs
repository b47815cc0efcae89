//! Experiment files.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::Result;
use clap::Command;
use riops::host::files::{TEXT_BYTES_MAX, text_limited};
use riops::study::{Between, Order, Reset, Search};
use riops::units::Span;
use serde::Deserialize;
use toml::{Table, Value};

use super::draft::Draft;
use super::words::{
    TypedAxis, TypedValue, VARIANT, all_typed, command_of, long_name, require_no_password, text_of,
    typed,
};
use crate::args::TrustOption;
use crate::failure::{UsageError, refuse};
use crate::settings::needs_permission;

/// Pairs of the name and the text of the file.
macro_rules! ready {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../experiments/", $name, ".toml")))),*]
    };
}

/// The experiments that riops contains, by name.
const READY: [(&str, &str); 11] = ready![
    "cbc-clients",
    "compare-two-servers",
    "find-my-limit",
    "instances",
    "io-method",
    "load-methods",
    "oltp-nodes",
    "oltp-threads",
    "pgio-memory-to-disk",
    "upgrade",
    "ybio-batch-size",
];

/// An experiment file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ExperimentFile {
    workload: String,
    name: Option<String>,
    description: Option<String>,
    repeat: Option<u32>,
    run_order: Option<Order>,
    seed: Option<u64>,
    baseline: Option<String>,
    effect: Option<String>,
    find_saturation: Option<Search>,
    sessions_max: Option<u32>,
    time_limit: Option<Time>,
    reset: Option<Reset>,
    #[serde(default)]
    own_database: bool,
    /// Options of `riops run`.
    #[serde(default)]
    options: Table,
    /// Options of `riops run` with several values.
    #[serde(default)]
    axes: Table,
    /// Names of several options at once.
    #[serde(default)]
    variants: Table,
    #[serde(default)]
    between: BetweenFile,
}

/// What happens between the runs.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct BetweenFile {
    checkpoint: bool,
    vacuum: bool,
    idle_device: Option<Time>,
    cool_down: Option<Time>,
    before: Option<String>,
    after: Option<String>,
}

/// A duration as typed: `30s`.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Time(pub(crate) f64);

impl TryFrom<String> for Time {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let span: Span = text.parse().map_err(|error| format!("{error}"))?;
        Ok(Self(span.0.as_secs_f64()))
    }
}

/// Reads an experiment file, or a ready experiment by its name. `set` replaces options.
///
/// # Errors
/// If the file cannot be read, or has unknown keys or options.
pub(crate) fn read(path: &Path, set: &[(String, String)], trust: TrustOption) -> Result<Draft> {
    require_no_password(set)?;
    let shown = path.display();
    let text = match text_limited(path, TEXT_BYTES_MAX) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::FileTooLarge => {
            return refuse(format!("experiment file {shown}: {error}"));
        }
        Err(error) => {
            let ready =
                path.to_str().and_then(|name| READY.iter().find(|(known, _)| *known == name));
            ready.map(|(_, text)| (*text).to_owned()).ok_or_else(|| {
                UsageError(format!(
                    "\"{shown}\" is neither a workload nor a ready experiment ({}), and cannot be read as an experiment file: {error}",
                    READY.map(|(name, _)| name).join(", ")
                ))
            })?
        }
    };
    let file: ExperimentFile = toml::from_str(&text)
        .map_err(|error| UsageError(format!("experiment file {shown}: {error}")))?;
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    require_trust(&file, set, trust)
        .and_then(|()| draft(file, stem.unwrap_or_default(), set))
        .map_err(|error| UsageError(format!("experiment file {shown}: {error:#}")).into())
}

/// Fails if an option of a file needs the permission of a person. Another server would get the password of the
/// environment.
pub(super) fn require_trusted_option(command: &Command, name: &str, value: &Value) -> Result<()> {
    let long = long_name(command, name);
    let texts = match value {
        Value::Array(values) => values.iter().map(text_of).collect::<Result<Vec<_>>>()?,
        value => vec![text_of(value)?],
    };
    if ["database", "config"].contains(&long.as_str())
        || texts.iter().any(|text| needs_permission(&long, text))
    {
        return refuse(format!(
            "{long} = {value} names a program, a file, a server, a setting of it or an SQL expression: permit it with --trust, or set it on the command line"
        ));
    }
    Ok(())
}

/// Fails if the file names a program or a file, unless it is trusted. `set` replaces options.
fn require_trust(
    file: &ExperimentFile,
    set: &[(String, String)],
    trust: TrustOption,
) -> Result<()> {
    if trust.trust {
        return Ok(());
    }
    if let Some(command) = file.between.before.as_ref().or(file.between.after.as_ref()) {
        return refuse(format!("\"{command}\" is executed: permit it with --trust"));
    }
    let command = command_of(&file.workload)?;
    let is_set = |name: &str| {
        set.iter().any(|(known, _)| long_name(&command, known) == long_name(&command, name))
    };
    let variants = file.variants.values().filter_map(Value::as_table).flatten();
    let options = file.options.iter().filter(|(name, _)| !is_set(name)).chain(&file.axes);
    options
        .chain(variants)
        .try_for_each(|(name, value)| require_trusted_option(&command, name, value))
}

fn draft(file: ExperimentFile, stem: String, set: &[(String, String)]) -> Result<Draft> {
    let command = command_of(&file.workload)?;
    let mut options = file.options;
    for (name, value) in set {
        let long = long_name(&command, name);
        options.retain(|known, _| long_name(&command, known) != long);
        options.insert(long, Value::String(value.clone()));
    }
    let axes = file.axes.iter().map(|(name, values)| match values {
        Value::Array(values) => TypedAxis::of_option(&command, name, values),
        _ => refuse(format!("axis \"{name}\": expected a list of values")),
    });
    let mut axes = axes.collect::<Result<Vec<_>>>()?;
    if !file.variants.is_empty() {
        axes.push(TypedAxis::of_variants(&command, &file.variants)?);
    }
    let name = file.name.unwrap_or(stem);
    let effect = file.effect.as_deref().map(crate::args::parse_share).transpose();
    let effect = effect.map_err(|error| UsageError(format!("effect: {error}")))?;
    Ok(Draft {
        description: file.description,
        words: [run_words(&file.workload), all_typed(&command, &options)?].concat(),
        axes,
        repeats: file.repeat,
        order: file.run_order,
        seed: file.seed,
        baseline: file.baseline,
        effect: effect.map(|share| share.0),
        search: file.find_saturation,
        sessions_max: file.sessions_max,
        between: Between {
            checkpoint: file.between.checkpoint,
            vacuum: file.between.vacuum,
            idle_device_s: file.between.idle_device.map(|time| time.0),
            cool_down_s: file.between.cool_down.map_or(0.0, |time| time.0),
            before: file.between.before,
            after: file.between.after,
        },
        reset: file.reset.unwrap_or_default(),
        has_own_database: file.own_database,
        time_limit_s: file.time_limit.map(|time| time.0),
        ..Draft::new(name, file.workload)
    })
}

/// Returns the words `riops run WORKLOAD`.
pub(crate) fn run_words(workload: &str) -> Vec<OsString> {
    ["riops", "run"].into_iter().chain(workload.split_whitespace()).map(OsString::from).collect()
}

/// Reads a file with the options of a variant and its workload, as for `--config`. Returns the workload and the
/// options as words.
///
/// # Errors
/// As [`read`].
pub(crate) fn read_variant(path: &Path, trust: TrustOption) -> Result<(String, Vec<OsString>)> {
    let shown = path.display();
    let failed = |error: String| UsageError(format!("variant {shown}: {error}"));
    let text = text_limited(path, TEXT_BYTES_MAX).map_err(|error| failed(error.to_string()))?;
    let mut options: Table = text.parse().map_err(|error| failed(format!("{error}")))?;
    let Some(Value::String(workload)) = options.remove("workload") else {
        return Err(
            failed("missing key \"workload\", for example workload = \"rows\"".to_owned()).into()
        );
    };
    let command = command_of(&workload)?;
    let words = options.iter().map(|(name, value)| {
        if !trust.trust {
            require_trusted_option(&command, name, value)?;
        }
        typed(&command, name, value)
    });
    let words = words.collect::<Result<Vec<_>>>().map_err(|error| failed(error.to_string()))?;
    Ok((workload, words.concat()))
}

/// Returns the axis of two variants.
///
/// # Errors
/// If a name has control characters.
pub(crate) fn variants(values: [TypedValue; 2]) -> Result<TypedAxis> {
    TypedAxis { name: VARIANT.to_owned(), values: values.into() }.checked()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<Draft> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("batches.toml");
        std::fs::write(&path, text).unwrap();
        read(&path, &[("duration".to_owned(), "3s".to_owned())], TrustOption { trust: false })
    }

    #[test]
    fn a_file_has_options_axes_in_their_order_and_rules() {
        let draft = read_text(
            "workload = \"rows\"\nrepeat = 2\nrun-order = \"sequential\"\neffect = \"5%\"\ntime-limit = \"1m\"\n\
             [options]\nduration = \"10s\"\nrows = 1000\n[axes]\nsessions = [2, 1]\nbatch = [10, 100]\n\
             [between]\ncheckpoint = true\nidle-device = \"30s\"\n",
        )
        .unwrap();
        assert_eq!(draft.name, "batches");
        let words = ["riops", "run", "rows", "--duration=3s", "--rows=1000"];
        let mut sorted = draft.words.clone();
        sorted.sort_by_key(|word| words.iter().position(|known| word == known));
        assert_eq!(sorted, words.map(OsString::from));
        let axes: Vec<_> = draft.axes.iter().map(|axis| axis.name.as_str()).collect();
        assert_eq!(axes, ["sessions", "batch"]);
        assert_eq!(draft.axes[0].plain().values, ["2", "1"]);
        assert_eq!((draft.repeats, draft.order), (Some(2), Some(Order::Sequential)));
        assert_eq!((draft.effect, draft.time_limit_s), (Some(0.05), Some(60.0)));
        assert!(draft.between.checkpoint);
        assert_eq!(draft.between.idle_device_s, Some(30.0));
    }

    #[test]
    fn rejects_unknown_fields_workloads_and_options() {
        let error = |text| read_text(text).unwrap_err().to_string();
        assert!(error("workload = \"rows\"\nrepeats = 2\n").contains("unknown field `repeats`"));
        assert!(error("workload = \"row\"\n").contains("unknown workload \"row\""));
        assert!(error("repeat = 2\n").contains("missing field `workload`"));
        let text = error("workload = \"rows\"\n[options]\nsesions = 2\n");
        assert!(text.contains("no option \"sesions\"") && text.contains("sessions"), "{text}");
        assert!(error("workload = \"rows\"\n[axes]\nbatch = 2\n").contains("expected a list"));
        assert!(error("workload = \"rows\"\neffect = \"2\"\n").contains("percentage"));
    }
}
