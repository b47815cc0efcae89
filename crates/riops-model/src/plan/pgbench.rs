//! Features of a run of scripts that exist only for compatibility with pgbench.

use serde::{Deserialize, Serialize};

/// Vacuum of the tables of pgbench before a run, as in pgbench.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VacuumFirst {
    /// Nothing.
    #[default]
    None,
    /// Branches and tellers are vacuumed, and the history is emptied.
    Short,
    /// The same, and the accounts are vacuumed and analyzed.
    All,
}

/// A log of single transactions, in files as pgbench writes them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TransactionLog {
    /// Beginning of the names of the files.
    pub prefix: String,
    /// Share of the transactions that are logged, above 0 and at most 1.
    pub sampling_rate: f64,
    /// Length of the intervals whose sums are logged instead of transactions, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub aggregate_s: Option<u32>,
}

/// Optional contents of pgbench's report.
#[expect(clippy::struct_excessive_bools, reason = "each is an option of pgbench")]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PgbenchReport {
    /// Whether it has the latency of each command.
    pub per_command: bool,
    /// Percentiles of the latency that it has, in percent.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub percentiles: Vec<f64>,
    /// Whether failures are counted by their type, also in the log.
    pub failures_detailed: bool,
    /// Whether it has lines about the progress.
    pub progress: bool,
    /// Whether these have the time since 1970.
    pub progress_timestamp: bool,
    /// Whether a run without a successful transaction is complete, and errors of scripts are found when they are executed.
    pub allows_no_success: bool,
    /// Whether errors are shown that repeat a transaction, or end it after the last try.
    pub verbose_errors: bool,
    /// Whether each command of each client is shown.
    pub debug: bool,
}
