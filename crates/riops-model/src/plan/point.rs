//! The parameters of the workload `point`, which uses the table of `load`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::error::PlanError;
use super::keys::Distribution;
use super::load::validate_field_length;
use super::policy::Caches;
use super::spec::{Common, Mix, Spec, Traits};

/// The mix of statements of `run point`; the default is selects only.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PointOperations {
    /// Percentage of updates; the other statements are selects.
    pub update_percent: u8,
}

impl FromStr for PointOperations {
    type Err = PlanError;

    fn from_str(text: &str) -> Result<Self, PlanError> {
        let shares = || {
            let (select, update) = text.strip_prefix("mixed:")?.split_once('/')?;
            let (select, update): (u8, u8) = (select.parse().ok()?, update.parse().ok()?);
            (select.checked_add(update)? == 100).then_some(update)
        };
        let update_percent = match text {
            "select" => Some(0),
            "update" => Some(100),
            _ => shares(),
        };
        update_percent.map(|update_percent| Self { update_percent }).ok_or_else(|| PlanError(format!(
            "unknown operation \"{text}\": expected select, update, or mixed:SELECT%/UPDATE% with percentages that add up to 100 (for example, mixed:90/10)"
        )))
    }
}

text_in_json!(PointOperations);

impl fmt::Display for PointOperations {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.update_percent {
            0 => formatter.write_str("select"),
            100 => formatter.write_str("update"),
            update => write!(formatter, "mixed:{}/{update}", 100 - update.min(100)),
        }
    }
}

/// The parameters of `run point`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PointRun {
    /// Mix of statements.
    pub op: PointOperations,
    /// Distribution of the keys.
    pub distribution: Distribution,
    /// Length of each text that an update writes, in characters; absent: the length in the table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field_length: Option<u32>,
    /// State of the caches at the start.
    pub caches: Caches,
    /// Whether updates run without a distributed transaction (YugabyteDB).
    pub non_transactional: bool,
}

impl PointRun {
    /// Whether any statement is a select.
    pub fn selects(&self) -> bool {
        self.op.update_percent < 100
    }

    /// Whether any statement is an update.
    pub fn updates(&self) -> bool {
        self.op.update_percent > 0
    }
}

impl Spec for PointRun {
    fn traits(&self) -> Traits {
        Traits {
            name: "point",
            dataset: Some("load"),
            writes: self.updates(),
            counts_rows_of: Some(|operation| operation == "update"),
            mix: (self.selects() && self.updates()).then_some(Mix {
                operation: "update",
                percent: self.op.update_percent,
                of_rows: false,
                rows_each: (1, 1),
            }),
            update_percent: Some(self.op.update_percent),
            distribution: Some(self.distribution),
            caches: self.caches,
            wrong_replies: Some("no row, more than one row, or a text of the wrong length"),
            ..Traits::default()
        }
    }

    fn validate(&self, _: &Common<'_>) -> Result<(), PlanError> {
        require!(
            self.field_length.is_none() || self.updates(),
            "--field-length requires --op update or mixed: it is the length of the texts that updates write"
        );
        self.field_length.map_or(Ok(()), validate_field_length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_round_trip_through_text() {
        for text in ["select", "update", "mixed:90/10", "mixed:1/99"] {
            assert_eq!(text.parse::<PointOperations>().unwrap().to_string(), text);
        }
        for text in ["", "delete", "mixed", "mixed:90", "mixed:90/20", "mixed:200/-100"] {
            assert!(text.parse::<PointOperations>().is_err(), "{text}");
        }
    }
}
