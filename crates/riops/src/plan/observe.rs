//! The parameters of `observe`: what runs is not the load of riops.

use serde::{Deserialize, Serialize};

use super::error::{PlanError, refuse};
use super::policy::Stop;
use super::query::{self, NamedQuery};
use super::spec::{Common, Spec, Traits};

/// The parameters of `riops observe`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObserveRun {
    /// The command with its arguments; empty to observe for a time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Queries that count what is done: the difference of their values gives rates. The first one is the main figure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<NamedQuery>,
    /// Whether the waits are those of all sessions of the database, and not only of the command.
    #[serde(default)]
    pub database_wide: bool,
}

impl ObserveRun {
    /// Whether the waits are those of all sessions of the database.
    pub fn watches_database(&self) -> bool {
        self.database_wide || self.command.is_empty()
    }

    /// Returns the command as one line.
    pub fn command_line(&self) -> String {
        let word = |word: &String| {
            let is_plain = |each: char| each.is_ascii_alphanumeric() || "-_./=:,@%+".contains(each);
            if !word.is_empty() && word.chars().all(is_plain) {
                word.clone()
            } else {
                format!("'{}'", word.replace('\'', "'\\''"))
            }
        };
        self.command.iter().map(word).collect::<Vec<_>>().join(" ")
    }
}

impl Spec for ObserveRun {
    fn traits(&self) -> Traits {
        Traits {
            name: "observe",
            is_observed: true,
            is_undivided: true,
            counts_transactions: true,
            has_no_rows: true,
            has_no_statements: true,
            allows_no_transactions: true,
            ..Traits::default()
        }
    }

    fn needs_trust(&self) -> Option<String> {
        match (self.command.is_empty(), self.counts.is_empty()) {
            (false, _) => Some(format!("executes the command {}", self.command_line())),
            (true, false) => Some("executes the queries of --count".to_owned()),
            (true, true) => None,
        }
    }

    fn validate(&self, common: &Common<'_>) -> Result<(), PlanError> {
        common.refuse_repetition_options("observe")?;
        query::validate("--count", self.counts.iter())?;
        match (self.command.is_empty(), common.stop) {
            (true, Stop::DurationS(_)) | (false, Stop::Transactions(1)) => Ok(()),
            (true, _) => refuse("observe without a command requires --for TIME"),
            (false, _) => {
                refuse("--for cannot be combined with a command, which is observed until it ends")
            }
        }
    }

    fn title(&self) -> String {
        match self.command.first() {
            Some(program) => format!("observe, {program}"),
            None => "observe".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Plan, Trust};

    #[test]
    fn a_command_is_observed_to_its_end_and_needs_trust() {
        let run = ObserveRun {
            command: ["psql", "-c", "select 'a'"].map(str::to_owned).to_vec(),
            ..ObserveRun::default()
        };
        assert_eq!(run.command_line(), r"psql -c 'select '\''a'\'''");
        let plan = Plan {
            work: run.into(),
            stop: Stop::Transactions(1),
            warmup_s: 0.0,
            trust: Trust(true),
            ..Plan::default()
        };
        assert_eq!(plan.validate(), Ok(()));
        let read = Plan { trust: Trust(false), ..plan.clone() };
        assert!(read.validate().unwrap_err().to_string().contains("executes the command psql"));
        let timed = Plan { stop: Stop::DurationS(5.0), ..plan };
        assert!(timed.validate().unwrap_err().to_string().contains("--for"));
    }
}
