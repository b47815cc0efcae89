//! Results of one command of a script.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::histogram::StoredHistogram;
use super::latency::LatencySummary;

/// Results of one command of a script.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CommandRecord {
    /// Number of the script in the plan, from 1.
    pub script: usize,
    /// Number in the script, from 1.
    pub number: usize,
    /// Its first line.
    pub title: String,
    /// Whether it takes time that is measured: a statement, or a wait.
    pub is_measured: bool,
    /// Times of successful executions in microseconds, from the send to the end of the reply.
    pub service_us: Option<LatencySummary>,
    /// Histogram of these times.
    pub histogram: Option<StoredHistogram>,
    /// Number of failed executions.
    #[serde(skip_serializing_if = "crate::units::is_default")]
    pub failures: u64,
    /// Number of them after which the transaction was retried.
    #[serde(skip_serializing_if = "crate::units::is_default")]
    pub retries: u64,
    /// Number of failed executions by SQLSTATE.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub errors: BTreeMap<String, u64>,
}
