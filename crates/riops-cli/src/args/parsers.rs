//! Parsers of option values, and help texts with defaults.

use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use riops::units::Span;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Appends the default to a help text.
pub(crate) fn or_default(text: &str, default: impl Display) -> String {
    format!("{text} [default: {default}]")
}

/// Appends a default to a help text, spelled as in the plan's JSON.
pub(crate) fn or_named(text: &str, default: impl Serialize) -> String {
    let name = serde_json::to_value(default).ok();
    or_default(text, name.as_ref().and_then(Value::as_str).unwrap_or_default())
}

/// Parses one of these names, spelled as in the plan's JSON.
pub(crate) fn choice<T>(names: &'static [&'static str]) -> impl TypedValueParser<Value = T>
where
    T: DeserializeOwned + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(names).try_map(|name| serde_json::from_value(Value::String(name)))
}

/// Parses `NAME=VALUE`.
pub(crate) fn parse_pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

/// Parses a duration that has a unit. In pgbench, the number of the same option is in milliseconds; elsewhere
/// in riops, a number without a unit is in seconds.
pub(crate) fn parse_time_with_unit(text: &str) -> Result<Span, String> {
    if text.trim().replace('_', "").parse::<f64>().is_ok() {
        let number = text.trim();
        return Err(format!("a latency needs a unit: write {number}ms or {number}s"));
    }
    text.parse().map_err(|error: <Span as FromStr>::Err| error.to_string())
}

/// Parses the name of a PNG file.
pub(crate) fn parse_png(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
    match extension.as_deref() {
        None | Some("png") => Ok(path),
        Some(other) => {
            Err(format!("the graph is a PNG file: use the extension .png, not .{other}"))
        }
    }
}
