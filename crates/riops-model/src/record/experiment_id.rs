//! The id of an experiment.

use std::fmt;
use std::ops::Deref;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The id of an experiment: a UUID in the form with hyphens. Ids name files and databases, so that an id from a store, a file
/// or another agent is parsed before it is used.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ExperimentId(String);

/// A text that is not an id of an experiment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not the id of an experiment, which is a UUID")]
pub struct InvalidId(String);

impl ExperimentId {
    /// Returns a new id.
    pub fn random() -> Self {
        Self(Uuid::now_v7().to_string())
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ExperimentId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        match text.parse::<Uuid>() {
            Ok(id) if id.to_string() == text => Ok(Self(text.to_owned())),
            _ => Err(InvalidId(text.to_owned())),
        }
    }
}

impl TryFrom<String> for ExperimentId {
    type Error = InvalidId;

    fn try_from(text: String) -> Result<Self, InvalidId> {
        text.parse()
    }
}

impl From<ExperimentId> for String {
    fn from(id: ExperimentId) -> Self {
        id.0
    }
}

impl Deref for ExperimentId {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ExperimentId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_uuid_with_hyphens() {
        let id = ExperimentId::random();
        assert_eq!(id.to_string().parse(), Ok(id.clone()));
        let json = serde_json::to_string(&id).unwrap();
        assert_eq!(serde_json::from_str::<ExperimentId>(&json).unwrap(), id);
        let upper = id.to_uppercase();
        for text in ["", "../../project/Cargo", "/etc/passwd", "a", "last", "{}", &upper] {
            assert!(text.parse::<ExperimentId>().is_err(), "{text}");
            assert!(serde_json::from_value::<ExperimentId>(text.into()).is_err(), "{text}");
        }
    }
}
