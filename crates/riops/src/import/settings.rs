//! How results are imported.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::format::Format;

/// Meaning of column 7 in the log of pgbench, if there is no column 8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column7 {
    /// The delay of the start (`--rate`).
    Lag,
    /// The number of retries (`--max-tries`).
    Retries,
}

/// How results are imported.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Format of all files; `None`: recognized from the contents.
    pub format: Option<Format>,
    /// Label of the runs; of records, it replaces theirs.
    pub label: Option<String>,
    /// Tags of the runs, in addition to those of records.
    pub tags: BTreeMap<String, String>,
    /// Start of the run, if its results do not contain it.
    pub started_at: Option<Timestamp>,
    /// Meaning of column 7 in the log of pgbench; `None`: derived from the values.
    pub column_7: Option<Column7>,
}
