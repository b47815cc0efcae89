//! Parsers of option values, and help texts with defaults.

use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
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

/// Parses `KEY` or `KEY=VALUE`.
pub(crate) fn parse_tag(text: &str) -> Result<(String, Option<String>), String> {
    if !text.contains('=') && !text.trim().is_empty() {
        return Ok((text.trim().to_owned(), None));
    }
    parse_pair(text).map(|(key, value)| (key, Some(value)))
}

/// Parses a day or a time (UTC unless it has an offset), or a time span before now: `30d`.
pub(crate) fn parse_moment(text: &str) -> Result<Timestamp, String> {
    let utc = |at: DateTime| at.to_zoned(TimeZone::UTC).map(|at| at.timestamp()).ok();
    let day = || utc(text.parse::<Date>().ok()?.at(0, 0, 0, 0));
    let ago = || {
        let span = text.parse::<jiff::Span>().ok().filter(|span| span.is_positive())?;
        Zoned::now().with_time_zone(TimeZone::UTC).checked_sub(span).ok().map(|at| at.timestamp())
    };
    let time = || text.parse::<Timestamp>().ok();
    // A day is also a valid DateTime at midnight, so it comes first.
    time().or_else(day).or_else(|| utc(text.parse().ok()?)).or_else(ago).ok_or_else(|| {
        "expected a day (2026-11-23), a time (2026-11-23T10:00Z) or a time span (30d)".to_owned()
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_a_day_a_time_or_a_time_span_before_now() {
        let day = "2026-11-23T00:00:00Z".parse::<Timestamp>().unwrap();
        assert_eq!(parse_moment("2026-11-23"), Ok(day));
        let time = Ok("2026-11-23T10:00:00Z".parse().unwrap());
        assert_eq!(parse_moment("2026-11-23T10:00Z"), time);
        assert_eq!(parse_moment("2026-11-23T10:00"), time);
        let month = parse_moment("30d").unwrap();
        assert!(
            month < Timestamp::now()
                && month > day - jiff::SignedDuration::from_hours(24 * 365 * 10)
        );
        for text in ["", "yesterday", "-3d", "2026-13-01"] {
            assert!(parse_moment(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_tag_has_an_optional_value() {
        assert_eq!(parse_tag("a=b"), Ok(("a".to_owned(), Some("b".to_owned()))));
        assert_eq!(parse_tag("a"), Ok(("a".to_owned(), None)));
        assert!(parse_tag("=b").is_err() && parse_tag("").is_err());
    }
}
