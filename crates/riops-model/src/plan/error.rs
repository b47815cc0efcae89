//! The error of an invalid plan, and the macros of its types: what they require, and their forms as texts.

use crate::units::secret::{names_secret, redacted};
use crate::units::sql::is_plain;
use crate::units::text::is_unprintable;

/// The reason why a plan is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PlanError(pub String);

/// Refuses a plan.
///
/// # Errors
/// Always.
pub fn refuse<T>(message: impl Into<String>) -> Result<T, PlanError> {
    Err(PlanError(message.into()))
}

/// Fails with a message, as of `format!`, unless the condition is met.
macro_rules! require {
    ($is_met:expr, $($message:tt)+) => {
        if !$is_met {
            return $crate::plan::error::refuse(format!($($message)+));
        }
    };
}

/// Makes the text of `FromStr` and `Display` the form of a type in JSON.
macro_rules! text_in_json {
    ($type:ident) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
            }
        }
    };
}

/// Names the variants of an enumeration as in JSON.
macro_rules! names {
    ($type:ident { $($variant:ident: $name:literal),* }) => {
        crate::units::texts!(
            /// Returns the name on the command line.
            $type::as_str { $($variant: $name),* }
        );

        impl std::fmt::Display for $type {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.pad(self.as_str())
            }
        }
    };
}

pub(super) fn at_least_one(option: &str, value: impl Into<u64>) -> Result<(), PlanError> {
    require!(value.into() > 0, "{option} must be at least 1");
    Ok(())
}

/// Fails if a value exceeds its maximum. `reason` follows the maximum.
pub(super) fn at_most(
    option: &str,
    value: impl Into<u64>,
    most: impl Into<u64>,
    reason: &str,
) -> Result<(), PlanError> {
    let (value, most) = (value.into(), most.into());
    require!(value <= most, "{option} {value} exceeds the maximum of {most}{reason}");
    Ok(())
}

/// Fails if the name of a schema requires quotes.
pub(super) fn validate_schema(schema: &str) -> Result<(), PlanError> {
    require!(
        is_plain(schema),
        "--schema must consist of lowercase letters, digits and underscores, not \"{schema}\""
    );
    Ok(())
}

/// Fails for labels, tags (`NAME=VALUE`), facts and notes that a terminal would execute, that look like other ones, or that
/// contain a password.
///
/// # Errors
/// [`PlanError`] with the first such text.
pub fn require_public(texts: impl IntoIterator<Item = impl AsRef<str>>) -> Result<(), PlanError> {
    for text in texts {
        let text = text.as_ref();
        require!(
            !text.chars().any(is_unprintable),
            "labels and tags must not contain control characters, nor controls of bidirectional text: {text:?}"
        );
        require!(
            !names_secret(text),
            "labels, tags, facts and notes are stored and shown: \"{}\" must not contain a password",
            redacted(text)
        );
    }
    Ok(())
}

/// Returns tags or facts as texts `NAME=VALUE`.
pub fn pairs<'a>(
    pairs: impl IntoIterator<Item = (&'a String, &'a String)>,
) -> impl Iterator<Item = String> {
    pairs.into_iter().map(|(name, value)| format!("{name}={value}"))
}

/// Fails if a parameter differs from the first value of a list of stages: the list would override it.
pub(super) fn require_first<T: PartialEq>(
    field: &str,
    single: &T,
    several: &[T],
) -> Result<(), PlanError> {
    require!(
        several.first().is_none_or(|first| first == single),
        "invalid plan: \"{field}\" differs from its value in the first stage"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_that_a_terminal_executes_or_reorders_are_refused() {
        for label in
            ["a\u{1b}[2J", "\n", "\u{7f}", "\u{9b}2J", "abc\u{202e}fed", "\u{2066}", "\u{61c}"]
        {
            let error = require_public([label]).unwrap_err().to_string();
            assert!(error.contains("control characters") && !error.contains(label), "{error:?}");
        }
        require_public(["nightly ä 漢 🐘"]).unwrap();
    }

    #[test]
    fn texts_with_a_password_are_refused() {
        for text in [
            "postgresql://u:s3cret@h/d",
            "after a run on postgres://u:s3cret@h:1/d, idle",
            "https://u:s3cret@h/x",
            "PGPASSWORD=s3cret",
            "host=h password = s3cret",
            "psql postgres:/u:s3cret@h",
        ] {
            let error = require_public([text]).unwrap_err().to_string();
            assert!(error.contains("***") && !error.contains("s3cret"), "{error}");
        }
        for text in [
            "feature/x@abc123",
            "https://ci:8080/job/x@2/3",
            "commit=me/x:y@abc",
            "password=***",
            "the password: none",
            "postgresql://u@h/d",
            "at 10:30 @home",
        ] {
            require_public([text]).unwrap();
        }
    }
}
