//! Quantities with units, and their text forms.
//!
//! Independent of what is counted or timed.

pub mod conninfo;
pub mod format;
pub mod secret;
pub mod sql;
pub mod text;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::Serialize;

pub use format::{count, duration_us, nearest_integer, percent, rate};

/// Gives each variant of an enumeration a text: lists the variants, and declares the function that returns the text.
#[macro_export]
macro_rules! texts {
    ($(#[$doc:meta])* $type:ident::$text:ident { $($variant:ident: $name:literal),+ $(,)? }) => {
        impl $type {
            /// All of them.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$variant),+];

            $(#[$doc])*
            pub fn $text(self) -> &'static str {
                match self {
                    $(Self::$variant => $name),+
                }
            }
        }
    };
}
pub use crate::texts;

/// Whether a value is the default of its type, for `skip_serializing_if`.
pub fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Failure to parse a quantity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// Invalid count.
    #[error("`{0}` is not a whole number (examples: 1000, 1_000_000, 1e6, 2.5e6)")]
    Count(String),
    /// Invalid size.
    #[error("`{0}` is not a size (examples: 256MB, 8GB, 1.5TB, or 65536 for a number of blocks)")]
    Size(String),
    /// Invalid duration.
    #[error("`{0}` is not a duration (examples: 30, 30s, 500ms, 5m, 1h, 1m30s)")]
    Duration(String),
    /// Too long a duration.
    #[error("`{0}` is longer than {limit} h, the longest duration", limit = SPAN_HOURS_MAX)]
    TooLong(String),
}

/// A count: `1000`, `1_000_000`, `1e6`, `2.5e6`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Count(pub u64);

impl FromStr for Count {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        parse_count(text).map(Self).ok_or_else(|| UnitError::Count(text.to_owned()))
    }
}

fn parse_count(text: &str) -> Option<u64> {
    let (digits, power) = parse_decimal(text)?;
    digits.checked_mul(10u64.checked_pow(u32::try_from(power).ok()?)?)
}

/// Parses a number into its digits and a power of ten: `2.5e6` is 25 and 5. Avoids floating point, so
/// that counts and sizes are exact.
fn parse_decimal(text: &str) -> Option<(u64, i64)> {
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<u32>().ok()?),
        None => (text, 0),
    };
    let (integer, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = |part: &str| -> Option<String> {
        part.chars()
            .filter(|&character| character != '_')
            .map(|character| character.is_ascii_digit().then_some(character))
            .collect()
    };
    let (integer, fraction) = (digits(integer)?, digits(fraction)?);
    let fraction = fraction.trim_end_matches('0');
    let power = i64::from(exponent) - i64::try_from(fraction.len()).ok()?;
    Some((format!("{integer}{fraction}").parse().ok()?, power))
}

/// PostgreSQL's default block size, in bytes.
pub const BLOCK_BYTES: u64 = 8192;

/// A size: a number of blocks, or bytes with a unit as in PostgreSQL's settings: `256MB`, `8G`,
/// `1.5GB`, `1TiB`. Each unit is 1024 times the previous one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size(u64);

impl Size {
    /// Returns the size in blocks, rounded up.
    pub fn blocks(self) -> u64 {
        self.0
    }
}

impl FromStr for Size {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        parse_size(text).map(Self).ok_or_else(|| UnitError::Size(text.to_owned()))
    }
}

fn parse_size(text: &str) -> Option<u64> {
    let (amount, unit_bytes) = split_size(text)?;
    let Some(unit_bytes) = unit_bytes else {
        return parse_count(amount);
    };
    let (digits, power) = parse_decimal(amount)?;
    let scaled = u128::from(digits) * u128::from(unit_bytes);
    let factor = 10u128.checked_pow(u32::try_from(power.unsigned_abs()).ok()?)?;
    let bytes = if power < 0 { scaled.div_ceil(factor) } else { scaled.checked_mul(factor)? };
    u64::try_from(bytes).ok().map(|bytes| bytes.div_ceil(BLOCK_BYTES))
}

/// Splits a size into its number and the bytes of its unit, if any. `None` for an unknown unit.
///
/// Accepts the units of PostgreSQL's settings (`B`, `kB`, `MB`, `GB`, `TB`), case-insensitive; `G`, `GB` and
/// `GiB` are equivalent.
pub fn split_size(text: &str) -> Option<(&str, Option<u64>)> {
    let amount = text.trim_end_matches(|character: char| character.is_ascii_alphabetic());
    let unit = text.strip_prefix(amount)?.to_ascii_lowercase();
    let unit_bytes = match unit.as_str() {
        "" => None,
        "b" => Some(1),
        "k" | "kb" | "kib" => Some(1 << 10),
        "m" | "mb" | "mib" => Some(1 << 20),
        "g" | "gb" | "gib" => Some(1 << 30),
        "t" | "tb" | "tib" => Some(1 << 40),
        _ => return None,
    };
    Some((amount.trim(), unit_bytes))
}

impl fmt::Display for Count {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// Hours of the longest duration that is read: more than eleven years. Any later time can still be computed.
const SPAN_HOURS_MAX: u64 = 100_000;

/// A duration: `30` (seconds), `30s`, `500ms`, `250us`, `5m`, `1h`, `1m30s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span(pub Duration);

impl Span {
    /// The longest duration that is read.
    pub const MAX: Self = Self(Duration::from_hours(SPAN_HOURS_MAX));

    /// Returns a number of seconds: 0 for a negative number, and the longest duration for a larger number. Stored plans are
    /// not validated again.
    pub fn of_seconds(seconds: f64) -> Self {
        Self(Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Self::MAX.0).min(Self::MAX.0))
    }
}

impl FromStr for Span {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let span = parse_duration(text).map(Self);
        let span = span.ok_or_else(|| UnitError::Duration(text.to_owned()))?;
        if span > Self::MAX { Err(UnitError::TooLong(text.to_owned())) } else { Ok(span) }
    }
}

fn parse_duration(text: &str) -> Option<Duration> {
    if text.is_empty() {
        return None;
    }
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest
            .find(|character: char| !character.is_ascii_digit() && character != '.')
            .unwrap_or(rest.len());
        let (amount, tail) = rest.split_at(end);
        let unit_end =
            tail.find(|character: char| !character.is_ascii_alphabetic()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        let seconds = match unit {
            "us" => 0.000_001,
            "ms" => 0.001,
            "s" => 1.0,
            "m" | "min" => 60.0,
            "h" => 3600.0,
            "" if rest.len() == text.len() && tail.is_empty() => 1.0,
            _ => return None,
        };
        let amount: f64 = amount.parse().ok()?;
        total = total.checked_add(Duration::try_from_secs_f64(amount * seconds).ok()?)?;
        rest = tail;
    }
    Some(total)
}

impl fmt::Display for Span {
    /// Writes the shortest exact form that [`Span::from_str`] accepts, with millisecond precision.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let milliseconds = self.0.as_millis();
        if !milliseconds.is_multiple_of(1000) {
            return write!(formatter, "{milliseconds}ms");
        }
        match milliseconds / 1000 {
            seconds if seconds != 0 && seconds.is_multiple_of(3600) => {
                write!(formatter, "{}h", seconds / 3600)
            }
            seconds if seconds != 0 && seconds.is_multiple_of(60) => {
                write!(formatter, "{}m", seconds / 60)
            }
            seconds => write!(formatter, "{seconds}s"),
        }
    }
}

/// Nanoseconds: a duration, or a point in time on the clock of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Nanos(pub u64);

impl Nanos {
    /// Longer than any run.
    pub const MAX: Self = Self(u64::MAX);

    /// Returns the time from `earlier` to `self`; zero if `earlier` is later.
    pub fn since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }

    /// Returns the point in time `length` later.
    pub fn after(self, length: Self) -> Self {
        Self(self.0.saturating_add(length.0))
    }

    /// Returns the value in microseconds.
    pub fn as_micros(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// Returns the value in seconds.
    pub fn as_seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl From<Duration> for Nanos {
    fn from(duration: Duration) -> Self {
        Self(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl From<Nanos> for Duration {
    fn from(nanos: Nanos) -> Self {
        Self::from_nanos(nanos.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_counts_exactly() {
        let good = [
            ("0", 0),
            ("1_000_000", 1_000_000),
            ("1e6", 1_000_000),
            ("2.5E3", 2_500),
            ("1.0", 1),
            ("18446744073709551615", u64::MAX),
        ];
        for (text, count) in good {
            assert_eq!(text.parse(), Ok(Count(count)), "{text}");
        }
        for text in ["", "-1", "1.5", "1e", "e6", "1e30", "ten", "1 000", "18446744073709551616"] {
            assert!(text.parse::<Count>().is_err(), "{text}");
        }
    }

    #[test]
    fn parses_sizes_as_blocks_or_bytes_with_a_unit() {
        let good = [
            ("1024", 1024),
            ("1e6", 1_000_000),
            ("8k", 1),
            ("8193B", 2),
            ("256M", 32_768),
            ("8G", 1 << 20),
            ("1.5GB", 3 << 16),
            ("0.1kB", 1),
            ("1e3 MB", 128_000),
            ("1_0 GB", 10 << 17),
        ];
        for (text, blocks) in good {
            assert_eq!(text.parse::<Size>().map(Size::blocks), Ok(blocks), "{text}");
        }
        let bad = [
            "",
            "M",
            "5X",
            "-1G",
            "1.5",
            "99999999999T",
            "GB",
            "1GBB",
            "1GI",
            "1GIIB",
            "1 0GB",
            "1e99TB",
        ];
        for text in bad {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
    }

    #[test]
    fn each_size_unit_is_1024_times_the_previous_one_in_every_spelling() {
        for (unit, bytes) in [("k", 1u64 << 10), ("m", 1 << 20), ("g", 1 << 30), ("t", 1 << 40)] {
            for suffix in ["", "b", "B", "ib", "iB"] {
                for unit in [unit.to_owned(), unit.to_uppercase()] {
                    let text = format!("16{unit}{suffix}");
                    let blocks = text.parse::<Size>().map(Size::blocks);
                    assert_eq!(blocks, Ok(16 * bytes / BLOCK_BYTES), "{text}");
                }
            }
        }
    }

    #[test]
    fn parses_durations_with_and_without_units() {
        let good = [
            ("30", 30_000),
            ("0", 0),
            ("1.5", 1_500),
            ("30s", 30_000),
            ("500ms", 500),
            ("5m", 300_000),
            ("1h", 3_600_000),
            ("1m30s", 90_000),
        ];
        for (text, milliseconds) in good {
            assert_eq!(text.parse(), Ok(Span(Duration::from_millis(milliseconds))), "{text}");
        }
        for text in ["", "s", "-1s", "1d", "1m30", "1.2.3s", "1e300h", "99999999999999999999h"] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_duration_after_which_no_time_can_be_computed_is_not_read() {
        assert_eq!("100000h".parse(), Ok(Span::MAX));
        let error = "100000h1s".parse::<Span>().unwrap_err().to_string();
        assert_eq!(error, "`100000h1s` is longer than 100000 h, the longest duration");
        for seconds in [1e10, 1e19, 1e300, f64::INFINITY] {
            let later = std::time::Instant::now().checked_add(Span::of_seconds(seconds).0);
            assert!(later.is_some(), "{seconds}");
        }
        assert_eq!(Span::of_seconds(f64::NAN), Span(Duration::ZERO));
    }

    #[test]
    fn formatted_durations_parse_to_the_same_value() {
        for text in ["1500ms", "30s", "5m", "2h", "0s", "90s"] {
            assert_eq!(text.parse::<Span>().unwrap().to_string(), text);
        }
    }
}
