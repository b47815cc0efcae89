//! The steps of the benchmark, each with its script.

use serde::{Deserialize, Serialize};

use crate::workload::fill;

const CREATE_TABLE: &str = include_str!("../../../sql/cbc/cbc-t00-ctas.sql");
const VACUUM: &str = include_str!("../../../sql/cbc/cbc-t01-vacuum.sql");
const CREATE_INDEX: &str = include_str!("../../../sql/cbc/cbc-t02-index.sql");
const SELECT_MAX: &str = include_str!("../../../sql/cbc/cbc-t03-select-max.sql");
const SELECT_RANGE: &str = include_str!("../../../sql/cbc/cbc-t04-selectr.sql");
const CLUSTER: &str = include_str!("../../../sql/cbc/cbc-t05-cluster.sql");
const INDEXED_SELECT_MAX: &str = include_str!("../../../sql/cbc/cbc-t06-iselect-max.sql");
/// The first statement of the first script. Where riops creates the table, there is none.
pub(super) const DROP_TABLE: &str = "drop table if exists settings_loop;\n";
const PROGRESS_VACUUM: &str = include_str!("../../../sql/cbc/progress_vacuum.sql");
const PROGRESS_CLUSTER: &str = include_str!("../../../sql/cbc/progress_cluster.sql");
const PROGRESS_CREATE_INDEX: &str = include_str!("../../../sql/cbc/progress_create_index.sql");

/// A statement that runs once, as a separate stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[expect(missing_docs, reason = "the names are the keys of the benchmark")]
pub enum Step {
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

impl Step {
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

    /// Returns its key in the output of the collector, the name of its pgbench script without the prefix `cbc-` of the file,
    /// and the text of that script.
    fn parts(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::CreateTable => ("CREATE_TABLE", "t00-ctas", CREATE_TABLE),
            Self::Vacuum => ("VACUUM", "t01-vacuum", VACUUM),
            Self::CreateIndex => ("CREATE_INDEX", "t02-index", CREATE_INDEX),
            Self::SelectU1 => ("SELECT_u1", "t03-select-max", SELECT_MAX),
            Self::SelectC1 => ("SELECT_c1", "t03-select-max", SELECT_MAX),
            Self::SelectR => ("SELECT_r", "t04-selectr", SELECT_RANGE),
            Self::Cluster => ("CLUSTER", "t05-cluster", CLUSTER),
            Self::SelectU2 => ("SELECT_u2", "t06-iselect-max", INDEXED_SELECT_MAX),
            Self::SelectC2 => ("SELECT_c2", "t06-iselect-max", INDEXED_SELECT_MAX),
        }
    }

    /// Returns the key used in the output of the collector.
    pub fn key(self) -> &'static str {
        self.parts().0
    }

    /// Returns the step with this key.
    pub fn of_key(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|step| step.key() == key)
    }

    /// Returns the name of the pgbench script, without the prefix `cbc-` of the file.
    pub fn script(self) -> &'static str {
        self.parts().1
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

    /// Returns the query for its progress (phase, done, total), given the backend process and the number of
    /// rows; `None` if the server does not report progress. The progress of CREATE TABLE AS is the growth
    /// of the database.
    pub fn progress_sql(self, process: i32, rows: u64) -> Option<String> {
        let (template, rows) = match self {
            Self::Vacuum => (PROGRESS_VACUUM, String::new()),
            Self::CreateIndex => (PROGRESS_CREATE_INDEX, String::new()),
            Self::Cluster => (PROGRESS_CLUSTER, rows.to_string()),
            _ => return None,
        };
        Some(fill(template, &[("process", &process.to_string()), ("rows", &rows)]))
    }

    /// Returns the statement of its script, with the placeholder `:scale` and without the final semicolon.
    pub(super) fn text(self) -> String {
        let text = fill(self.parts().2, &[]);
        let statement = text.trim().trim_end_matches(';');
        statement.strip_prefix(DROP_TABLE).unwrap_or(statement).to_owned()
    }
}
