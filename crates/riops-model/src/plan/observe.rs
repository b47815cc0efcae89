//! The parameters of `observe`: what runs is not the load of riops.

use serde::{Deserialize, Serialize};

use super::error::{PlanError, refuse};
use super::policy::Stop;
use super::query::{self, NamedQuery};
use super::spec::{Common, Spec, Traits};
use crate::units::secret::CommandLine;

/// The parameters of `riops observe`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObserveRun {
    /// The command with its arguments; empty to observe for a time.
    #[serde(default, skip_serializing_if = "CommandLine::is_empty")]
    pub command: CommandLine,
    /// Queries that count the work: the difference of their values gives rates. The first one is the main figure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<NamedQuery>,
    /// Whether the waits cover all sessions of the database, and not only the sessions of the command.
    #[serde(default)]
    pub database_wide: bool,
}

impl ObserveRun {
    /// The name of the main figure.
    pub fn counted(&self) -> Option<&str> {
        self.counts.first().map(|count| count.name.as_str())
    }
}

impl ObserveRun {
    /// Returns whether the waits cover all sessions of the database.
    pub fn watches_database(&self) -> bool {
        self.database_wide || self.command.is_empty()
    }
}

impl Spec for ObserveRun {
    fn traits(&self) -> Traits {
        Traits {
            name: "observe",
            is_undivided: true,
            counts_transactions: true,
            has_no_rows: true,
            has_no_statements: true,
            accepts_no_transactions: true,
            ..Traits::default()
        }
    }

    fn needs_trust(&self) -> Option<String> {
        match (self.command.is_empty(), self.counts.is_empty()) {
            (false, _) => Some(format!("executes the command {}", self.command)),
            (true, false) => Some("executes the queries of --count".to_owned()),
            (true, true) => None,
        }
    }

    fn validate(&self, common: &Common<'_>) -> Result<(), PlanError> {
        common.refuse_repetition_options("observe")?;
        common.refuse_settings("observe")?;
        query::validate("--count", self.counts.iter())?;
        if self.command.is_incomplete() {
            return refuse(format!(
                "the command {} cannot be executed again: its password or token was not stored; run riops observe with the command",
                self.command
            ));
        }
        match (self.command.is_empty(), common.stop) {
            (true, Stop::DurationS(_)) | (false, Stop::Transactions(1)) => Ok(()),
            (true, _) => refuse("observe without a command requires --for TIME"),
            (false, _) => {
                refuse("--for cannot be combined with a command, which is observed until it ends")
            }
        }
    }

    fn title(&self) -> String {
        match self.command.shown().first() {
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
            command: ["psql", "-c", "select 'a'"].map(str::to_owned).to_vec().into(),
            ..ObserveRun::default()
        };
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
        let hidden = ["psql", "postgresql://u:***@h"].map(str::to_owned).to_vec().into();
        let work = ObserveRun { command: hidden, ..ObserveRun::default() }.into();
        let error = Plan { work, ..plan.clone() }.validate().unwrap_err().to_string();
        assert!(error.contains("was not stored"), "{error}");
        let timed = Plan { stop: Stop::DurationS(5.0), ..plan };
        assert!(timed.validate().unwrap_err().to_string().contains("--for"));
    }
}
