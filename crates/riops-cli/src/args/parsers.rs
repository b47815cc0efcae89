//! Parsers of option values, and help texts with defaults.

use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Arg;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, civil};
use riops::figure::Figure;
use riops::plan::{PlanError, Threshold};
use riops::units::Span;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Headings of options that the environment and the file of `--config` do not set: an option of the same name has
/// another meaning there.
pub(crate) const TYPED_ONLY: [&str; 2] = ["Filter", "Change"];

/// Parses a threshold whose figure exists.
pub(crate) fn parse_threshold(text: &str) -> Result<Threshold, PlanError> {
    let threshold = text.parse()?;
    Figure::required(&threshold).map(|_| threshold)
}

/// A switch that can be turned off, as sysbench's `--range-selects=off`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Switch(pub(crate) bool);

impl FromStr for Switch {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.to_ascii_lowercase().as_str() {
            "on" | "true" | "yes" | "1" => Ok(Self(true)),
            "off" | "false" | "no" | "0" => Ok(Self(false)),
            _ => Err("expected on or off".to_owned()),
        }
    }
}

impl Display for Switch {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(if self.0 { "on" } else { "off" })
    }
}

/// Adds a default to the help of an option, whose value stays `None`: the plan owns the default.
pub(crate) trait OrDefault: Sized {
    /// Adds the default.
    fn or_default(self, default: impl Display) -> Self;

    /// Adds the default, spelled as in the plan's JSON.
    fn or_named(self, default: impl Serialize) -> Self {
        self.or_default(name_of(default))
    }
}

impl OrDefault for Arg {
    fn or_default(self, default: impl Display) -> Self {
        let help = self.get_help().map(ToString::to_string).unwrap_or_default();
        self.help(format!("{help} [default: {default}]"))
    }
}

/// Returns the name of a default, spelled as in the plan's JSON.
pub(crate) fn name_of(default: impl Serialize) -> String {
    let name = serde_json::to_value(default).ok();
    name.as_ref().and_then(Value::as_str).unwrap_or_default().to_owned()
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

/// Parses a date, a date with time, or a time before now.
pub(crate) fn parse_instant(text: &str) -> Result<Timestamp, String> {
    instant(text, Timestamp::now(), 0)
}

/// Parses the end of a period: as [`parse_instant`], but a date includes its day.
pub(crate) fn parse_period_end(text: &str) -> Result<Timestamp, String> {
    instant(text, Timestamp::now(), 1)
}

/// `days` are added to a date without a time.
fn instant(text: &str, now: Timestamp, days: i64) -> Result<Timestamp, String> {
    let utc = |date: civil::DateTime| date.to_zoned(TimeZone::UTC).map(|zoned| zoned.timestamp());
    let ago = || {
        let seconds = match text.strip_suffix('d') {
            Some(days) => 86_400.0 * days.parse::<f64>().ok()?,
            None => text.parse::<Span>().ok()?.0.as_secs_f64(),
        };
        now.checked_sub(SignedDuration::try_from_secs_f64(seconds).ok()?).ok()
    };
    if let Ok(date) = text.parse::<civil::Date>()
        && !text.contains([':', 'T', ' '])
    {
        let start =
            date.checked_add(jiff::Span::new().days(days)).map_err(|error| error.to_string())?;
        return utc(start.at(0, 0, 0, 0)).map_err(|error| error.to_string());
    }
    let parsed = text.parse::<Timestamp>().ok().or_else(|| utc(text.parse().ok()?).ok());
    parsed.or_else(ago).ok_or_else(|| {
        "expected a date (2026-11-23), a date with time (2026-11-23T06:30), or a time before now (2h, 7d)"
            .to_owned()
    })
}

/// Parses a duration that has a unit. In pgbench, the number of the same option is in milliseconds; elsewhere
/// in riops, a number without a unit is in seconds.
pub(crate) fn parse_time_with_unit(text: &str) -> Result<Span, String> {
    if text.trim().replace('_', "").parse::<f64>().is_ok() {
        let value = text.trim();
        return Err(format!("a latency needs a unit: write {value}ms or {value}s"));
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
    fn a_time_is_a_date_a_date_with_time_or_a_time_before_now() {
        let now: Timestamp = "2026-11-23T06:30:00Z".parse().unwrap();
        let parsed = |text, days| instant(text, now, days).unwrap().to_string();
        assert_eq!(parsed("2026-11-20", 0), "2026-11-20T00:00:00Z");
        assert_eq!(parsed("2026-11-20", 1), "2026-11-21T00:00:00Z");
        for text in ["2026-11-20T12:00", "2026-11-20 12:00:00", "2026-11-20T12:00:00Z"] {
            assert_eq!(parsed(text, 1), "2026-11-20T12:00:00Z", "{text}");
        }
        assert_eq!(parsed("2026-11-20T12:00:00+02:00", 0), "2026-11-20T10:00:00Z");
        assert_eq!(parsed("2h", 0), "2026-11-23T04:30:00Z");
        assert_eq!(parsed("7d", 0), "2026-11-16T06:30:00Z");
        for text in ["", "yesterday", "2026-13-01", "d", "-1d5", "1e300d", "7dd"] {
            assert!(instant(text, now, 0).is_err(), "{text}");
        }
    }
}
