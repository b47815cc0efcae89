//! `imported`: the results of another tool. They cannot be executed; the parameters describe what ran.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::error::{PlanError, refuse};
use super::spec::{Common, Spec, Traits};

/// The run of another tool, as far as its results show it.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedRun {
    /// Name of the tool.
    pub tool: String,
    /// Version of the tool.
    pub version: Option<String>,
    /// Name of the test or the script.
    pub test: Option<String>,
    /// Whether the tool counted rows. Otherwise all counts of rows are 0 and mean nothing.
    #[serde(default)]
    pub counts_rows: bool,
    /// Whether the tool counted statements. Otherwise all counts of statements are 0 and mean nothing.
    #[serde(default)]
    pub counts_statements: bool,
    /// Other values of the results, with the names of the tool.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: BTreeMap<String, String>,
}

impl Spec for ImportedRun {
    fn traits(&self) -> Traits {
        Traits {
            name: "imported",
            is_imported: true,
            is_undivided: true,
            counts_transactions: !self.counts_rows,
            has_no_rows: !self.counts_rows,
            has_no_statements: !self.counts_statements,
            ..Traits::default()
        }
    }

    fn validate(&self, _: &Common<'_>) -> Result<(), PlanError> {
        refuse(format!(
            "an imported run cannot be executed: riops has only the results of {}",
            if self.tool.is_empty() { "another tool" } else { &self.tool }
        ))
    }

    fn title(&self) -> String {
        format!("imported, {}", self.tool)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Plan, WorkPlan};

    #[test]
    fn an_imported_run_cannot_be_executed() {
        let run = ImportedRun { tool: "pgbench".to_owned(), ..ImportedRun::default() };
        let plan = Plan { work: run.into(), ..Plan::default() };
        let error = plan.validate().unwrap_err().to_string();
        assert_eq!(
            error,
            "an imported run cannot be executed: riops has only the results of pgbench"
        );
        assert!(!WorkPlan::executable_names().contains(&"imported".to_owned()));
        assert!(WorkPlan::names().contains(&"imported".to_owned()));
        let error = Plan::from_json("{}").unwrap_err().to_string();
        assert!(error.contains("ping") && !error.contains("imported"), "{error}");
    }
}
