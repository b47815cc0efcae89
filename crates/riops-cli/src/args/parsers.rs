//! How values are read, and how their defaults are shown.

use std::fmt::Display;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A help text that ends with the default.
pub(crate) fn or_default(text: &str, default: impl Display) -> String {
    format!("{text} [default: {default}]")
}

/// A help text that ends with the default, as the plan's JSON has it.
pub(crate) fn or_named(text: &str, default: impl Serialize) -> String {
    let name = serde_json::to_value(default).ok();
    or_default(text, name.as_ref().and_then(Value::as_str).unwrap_or_default())
}

/// Reads one of these names, which are those of the plan's JSON.
pub(crate) fn choice<T>(names: &'static [&'static str]) -> impl TypedValueParser<Value = T>
where
    T: DeserializeOwned + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(names).try_map(|name| serde_json::from_value(Value::String(name)))
}

/// Reads `NAME=VALUE`.
pub(crate) fn parse_pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err(format!("`{text}` has no form NAME=VALUE")),
    }
}
