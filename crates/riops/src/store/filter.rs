//! Which runs a list contains.

use jiff::Timestamp;

use crate::summary::Sort;

/// Which runs a list contains. The default is all runs, newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunFilter {
    /// The full id of a run.
    pub id: Option<String>,
    /// Name of the workload, for example `oltp`, or its title, for example `oltp, point-select`.
    pub workload: Option<String>,
    /// The label.
    pub label: Option<String>,
    /// Tags with their value, or any value. A run must have all of them.
    pub tags: Vec<(String, Option<String>)>,
    /// Facts about the server, in the same way.
    pub facts: Vec<(String, Option<String>)>,
    /// Earliest start.
    pub since: Option<Timestamp>,
    /// Latest start, exclusive.
    pub until: Option<Timestamp>,
    /// Only valid or only invalid runs.
    pub valid: Option<bool>,
    /// Also imported runs, which riops did not verify.
    pub unverified: bool,
    /// Order.
    pub sort: Sort,
    /// Number of runs to skip, in this order.
    pub offset: u32,
    /// Maximum number of runs; absent: all.
    pub limit: Option<u32>,
}
