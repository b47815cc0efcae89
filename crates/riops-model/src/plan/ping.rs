//! The parameters of the workload `ping`.

use serde::{Deserialize, Serialize};

use super::error::PlanError;
use super::policy::{Protocol, Stop};
use super::spec::{Common, Spec, Traits};

/// The statement of one round trip.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PingStatement {
    /// `select 1`: a statement that returns a row and reads no table.
    #[default]
    Select1,
    /// An empty query: nothing to parse, no row.
    Empty,
    /// A lone Sync message: no query, only the protocol round trip.
    Sync,
}

names!(PingStatement { Select1: "select1", Empty: "empty", Sync: "sync" });

/// The parameters of `run ping`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PingRun {
    /// Statement of each round trip.
    pub statement: PingStatement,
}

impl Spec for PingRun {
    fn traits(&self) -> Traits {
        Traits {
            name: "ping",
            counts_transactions: true,
            has_no_rows: true,
            wrong_replies: Some("no row or more than one row"),
            ..Traits::default()
        }
    }

    fn validate(&self, common: &Common<'_>) -> Result<(), PlanError> {
        require!(
            self.statement != PingStatement::Sync || common.protocol != Protocol::Simple,
            "--statement sync requires --protocol prepared or extended: the simple query protocol has no Sync message"
        );
        require!(
            self.statement == PingStatement::Select1 || !matches!(common.stop, Stop::Rows(_)),
            "--total-rows requires --statement select1: {} returns no rows",
            self.statement
        );
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;

    #[test]
    fn sync_requires_the_extended_protocol_and_returns_no_rows() {
        let sync = PingRun { statement: PingStatement::Sync };
        let plan = Plan { work: sync.into(), ..Plan::default() };
        assert_eq!(plan.validate(), Ok(()));
        let simple = Plan { protocol: Protocol::Simple, ..plan.clone() };
        assert!(simple.validate().unwrap_err().to_string().contains("--statement sync"));
        let by_rows = Plan { stop: Stop::Rows(5), ..plan };
        assert!(by_rows.validate().unwrap_err().to_string().contains("--total-rows"));
    }

    #[test]
    fn rejects_dataset_parameters_without_a_dataset() {
        let mut plan = Plan { work: PingRun::default().into(), ..Plan::default() };
        plan.dataset.insert("rows".to_owned(), 5.into());
        assert!(plan.validate().unwrap_err().to_string().contains("has no dataset"));
    }
}
