//! Access paths of statements, compared with the expected ones.

use serde::{Deserialize, Serialize};

/// Storage requests (`YugabyteDB`) of one execution of a statement.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StorageRequests {
    /// Read requests.
    pub reads: u64,
    /// Rows that these requests scanned, if the server reports them.
    pub rows_scanned: Option<u64>,
    /// Rows that the statement reads or updates.
    pub rows: u64,
}

/// The access path of a statement at one check.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessRecord {
    /// Name of the prepared statement.
    pub statement: String,
    /// Name of the stage; absent if the run has only one.
    pub stage: Option<String>,
    /// Time of the check: `before` the run, `first` (after the first transactions), `middle` (during) or `after` the run.
    pub moment: String,
    /// The expected access path; if none was expected, the plan that was found first.
    pub expected: String,
    /// Whether no access path was expected. The plan must stay the same.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub observed: bool,
    /// The plan, one node per line; empty if it could not be checked.
    pub found: String,
    /// Whether the plan has the expected access path; false if it could not be checked.
    pub held: bool,
    /// Number of sessions with this plan, or whose plan could not be checked; if no access path was expected, number of
    /// executions with different values.
    pub sessions: u32,
    /// Why the plan could not be checked.
    pub error: Option<String>,
    /// Storage requests of the EXPLAIN itself (`YugabyteDB`).
    pub storage: Option<StorageRequests>,
}

/// Returns the text for a moment of a check.
#[must_use]
pub fn moment_text(moment: &str) -> &str {
    match moment {
        "first" => "at the beginning of",
        "middle" => "during",
        other => other,
    }
}
