//! Per-session results, and the fairness among sessions.

use serde::{Deserialize, Serialize};

/// Results of one session within the measurement.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionRecord {
    /// Number of the session, from 1.
    pub number: u64,
    /// Process id of the backend of its last connection, if the server has one process per session.
    pub server_process: i32,
    /// Node of its last connection; only with several nodes.
    pub node: Option<String>,
    /// Results by kind of transaction.
    pub operations: Vec<SessionOperation>,
}

/// Transactions of one kind in one session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SessionOperation {
    /// Name of the kind.
    pub name: String,
    /// Transactions that ended within the measurement.
    pub transactions: u64,
    /// Rows of these transactions.
    pub rows: u64,
    /// Maximum service time, in microseconds.
    pub max_us: f64,
    /// Time spent in these transactions, in seconds.
    #[serde(default)]
    pub execution_s: f64,
}

/// Transactions per session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Fairness {
    /// Minimum.
    pub min: u64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Maximum.
    pub max: u64,
    /// Standard deviation.
    pub stdev: f64,
}

/// Time per session spent in transactions, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Execution {
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation.
    pub stdev: f64,
}
