//! A query of the user whose value is measured.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::error::{PlanError, require};
use super::names::text_in_json;
use crate::units::sql::is_plain;

/// Maximum length of a name.
const NAME_MAX: usize = 40;
/// Maximum number of queries of a plan.
pub(super) const QUERIES_MAX: usize = 20;

/// A query that returns a number, with the name of the number: `NAME=SELECT …`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct NamedQuery {
    /// Name: lowercase letters, digits and underscores.
    pub name: String,
    /// The statement.
    pub sql: String,
}

impl FromStr for NamedQuery {
    type Err = PlanError;

    fn from_str(text: &str) -> Result<Self, PlanError> {
        let (name, sql) = text.split_once('=').unwrap_or((text, ""));
        let (name, sql) = (name.trim(), sql.trim().trim_end_matches(';').trim_end());
        let is_valid = is_plain(name) && !name.starts_with('_') && name.len() <= NAME_MAX;
        require!(
            is_valid && !sql.is_empty(),
            "invalid query \"{text}\": expected NAME=SELECT …, with a name of lowercase letters, digits and underscores (example: lag='select 1')"
        );
        Ok(Self { name: name.to_owned(), sql: sql.to_owned() })
    }
}

text_in_json!(NamedQuery);

impl fmt::Display for NamedQuery {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}={}", self.name, self.sql)
    }
}

/// Checks that the names of queries differ.
pub(super) fn validate<'a>(
    option: &str,
    queries: impl Iterator<Item = &'a NamedQuery>,
) -> Result<(), PlanError> {
    let mut names = BTreeSet::new();
    for NamedQuery { name, .. } in queries {
        require!(names.insert(name), "{option}: two queries have the name \"{name}\"");
    }
    let number = names.len();
    require!(number <= QUERIES_MAX, "{option}: at most {QUERIES_MAX} queries, not {number}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_has_a_name_and_a_statement() {
        let query: NamedQuery = "lag = select a = 1 from t; ".parse().unwrap();
        assert_eq!((query.name.as_str(), query.sql.as_str()), ("lag", "select a = 1 from t"));
        let json = serde_json::to_string(&query).unwrap();
        assert_eq!(json, r#""lag=select a = 1 from t""#);
        assert_eq!(serde_json::from_str::<NamedQuery>(&json).unwrap(), query);
        for invalid in ["select 1", "Lag=select 1", "lag=", "=select 1", "a b=select 1"] {
            assert!(invalid.parse::<NamedQuery>().is_err(), "{invalid}");
        }
        let both = [&query, &query];
        assert!(validate("--probe", both.into_iter()).is_err());
        assert!(validate("--probe", both[..1].iter().copied()).is_ok());
    }
}
