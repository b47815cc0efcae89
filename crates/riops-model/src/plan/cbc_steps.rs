//! The steps of the workload `cbc`, and the selects that several sessions repeat.

use serde::{Deserialize, Serialize};

/// A statement that runs once, as a separate stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[expect(missing_docs, reason = "the names are the keys of the benchmark")]
pub enum CbcStep {
    CreateTable,
    Vacuum,
    CreateIndex,
    SelectU1,
    SelectC1,
    SelectR,
    Cluster,
    SelectU2,
    SelectC2,
}

impl CbcStep {
    /// All steps, in the order of the benchmark.
    pub const ALL: [Self; 9] = [
        Self::CreateTable,
        Self::Vacuum,
        Self::CreateIndex,
        Self::SelectU1,
        Self::SelectC1,
        Self::SelectR,
        Self::Cluster,
        Self::SelectU2,
        Self::SelectC2,
    ];

    /// Returns its key in the output of the collector, and the name of its pgbench script without the prefix `cbc-` of the file.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::CreateTable => ("CREATE_TABLE", "t00-ctas"),
            Self::Vacuum => ("VACUUM", "t01-vacuum"),
            Self::CreateIndex => ("CREATE_INDEX", "t02-index"),
            Self::SelectU1 => ("SELECT_u1", "t03-select-max"),
            Self::SelectC1 => ("SELECT_c1", "t03-select-max"),
            Self::SelectR => ("SELECT_r", "t04-selectr"),
            Self::Cluster => ("CLUSTER", "t05-cluster"),
            Self::SelectU2 => ("SELECT_u2", "t06-iselect-max"),
            Self::SelectC2 => ("SELECT_c2", "t06-iselect-max"),
        }
    }

    /// Returns the key used in the output of the collector.
    pub fn key(self) -> &'static str {
        self.names().0
    }

    /// Returns the step with this key.
    pub fn of_key(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|step| step.key() == key)
    }

    /// Returns the name of the pgbench script, without the prefix `cbc-` of the file.
    pub fn script(self) -> &'static str {
        self.names().1
    }

    /// Returns whether the step is a select, which runs with EXPLAIN (ANALYZE, BUFFERS).
    pub fn is_select(self) -> bool {
        matches!(
            self,
            Self::SelectU1 | Self::SelectC1 | Self::SelectR | Self::SelectU2 | Self::SelectC2
        )
    }

    /// Returns whether the step is meant to run with cold caches.
    pub fn is_uncached(self) -> bool {
        matches!(self, Self::SelectU1 | Self::SelectU2)
    }
}

/// A select that sessions repeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CbcQuery {
    /// One name, before CLUSTER.
    SelectMax,
    /// The whole table.
    SelectRange,
    /// One name, after CLUSTER.
    IndexedSelectMax,
}

impl CbcQuery {
    /// Selects that run before CLUSTER.
    pub const BEFORE_CLUSTER: [Self; 2] = [Self::SelectMax, Self::SelectRange];

    /// All selects.
    pub const ALL: [Self; 3] = [Self::SelectMax, Self::SelectRange, Self::IndexedSelectMax];

    /// Returns the name of the pgbench script, without the prefix `cbc-` of the file.
    pub fn script(self) -> &'static str {
        match self {
            Self::SelectMax => "t03-select-max-no-explain",
            Self::SelectRange => "t04-selectr-no-explain",
            Self::IndexedSelectMax => "t06-iselect-max-no-explain",
        }
    }

    /// Returns the step with the same select.
    pub fn step(self) -> CbcStep {
        match self {
            Self::SelectMax => CbcStep::SelectC1,
            Self::SelectRange => CbcStep::SelectR,
            Self::IndexedSelectMax => CbcStep::SelectC2,
        }
    }
}
