//! What is run and on what, by workload.

use serde::{Deserialize, Serialize};

use super::{
    CbcDataset, CbcRun, LoadDataset, LoadRun, OltpDataset, OltpRun, PlanError, PointRun,
    RowsDataset, RowsRun,
};

/// What the sessions of a run do: in a record under the name of the workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkPlan {
    /// Random row reads and writes.
    Rows(RowsRun),
    /// Parallel loads.
    Load(LoadRun),
    /// Point selects and updates.
    Point(PointRun),
    /// Sysbench's transactions.
    Oltp(OltpRun),
    /// Bulk commands on one wide table.
    Cbc(CbcRun),
}

impl WorkPlan {
    pub(super) fn validate(&self) -> Result<(), PlanError> {
        match self {
            Self::Rows(run) => run.validate(),
            Self::Load(run) => run.validate(),
            Self::Point(run) => run.validate(),
            Self::Oltp(run) => run.validate(),
            Self::Cbc(run) => run.validate(),
        }
    }

    /// Whether any transaction changes rows.
    #[must_use]
    pub fn writes(&self) -> bool {
        match self {
            Self::Rows(run) => run.updates(),
            Self::Load(_) => true,
            Self::Point(run) => run.updates(),
            Self::Oltp(run) => run.writes() > 0,
            // Its table is made by the run itself, and by nothing that repeats.
            Self::Cbc(_) => false,
        }
    }

    /// Whether the rows of this operation count in the ledger of changes.
    #[must_use]
    pub fn counts_changes_of(&self, operation: &str) -> bool {
        match self {
            // What stays in the index leaves no trace in the rows.
            Self::Rows(run) => operation == "update" && !run.index_only,
            Self::Load(_) => true,
            Self::Point(_) => operation == "update",
            // Its changes are counted by their effects.
            Self::Oltp(_) | Self::Cbc(_) => false,
        }
    }

    /// How many stages the run has.
    #[must_use]
    pub fn stage_count(&self) -> usize {
        match self {
            Self::Rows(run) => run.stages().len(),
            Self::Load(run) => run.stages().len(),
            Self::Point(_) | Self::Oltp(_) | Self::Cbc(_) => 1,
        }
    }
}

/// What was prepared: in a record under the name of its workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DatasetPlan {
    /// Tables whose rows lie scattered behind an index.
    Rows(RowsDataset),
    /// A table that was loaded.
    Load(LoadDataset),
    /// Sysbench's tables.
    Oltp(OltpDataset),
    /// The wide table of `cbc`.
    Cbc(CbcDataset),
}
