//! Statements, errors and transactions of a stage, counted by kind and by session.

use serde::{Deserialize, Serialize};

/// Statements that received a reply, by kind, regardless of the outcome of their transaction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Queries {
    /// Statements that return rows.
    pub read: u64,
    /// Statements that changed one or more rows.
    pub write: u64,
    /// Other statements: BEGIN, COMMIT, and changes that matched no row.
    pub other: u64,
}

impl Queries {
    /// Counts a statement by its command tag: `SELECT 1`, `UPDATE 5`, `COMMIT`.
    #[inline]
    pub fn note(&mut self, tag: &str) {
        match tag.as_bytes() {
            [b'S', ..] => self.read += 1,
            [b'U' | b'I' | b'D', .., b' ', b'0'] => self.other += 1,
            // `COPY 5` writes rows; `COMMIT` does not.
            [b'U' | b'I' | b'D', ..] | [b'C', b'O', b'P', b'Y', b' ', ..] => self.write += 1,
            _ => self.other += 1,
        }
    }
}

impl Queries {
    /// Returns the number of statements of all kinds.
    pub fn total(self) -> u64 {
        // A damaged record may contain any numbers; an import refuses it later.
        self.read.saturating_add(self.write).saturating_add(self.other)
    }

    /// Returns whether no statement was counted.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

/// Errors with the same SQLSTATE.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ErrorEntry {
    /// SQLSTATE, five characters.
    pub sqlstate: String,
    /// Number of errors.
    pub count: u64,
    /// Number of errors after which the transaction was retried.
    #[serde(default)]
    pub retried: u64,
    /// Time that all sessions together spent in attempts with this error, in seconds.
    #[serde(default)]
    pub attempts_s: f64,
    /// The first error message.
    pub sample: String,
    /// Up to four other error messages.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub more_samples: Vec<String>,
    /// The longest outage around such an error: time without a successful transaction, in seconds.
    pub without_success_s: Option<f64>,
    /// Time around this outage during which the rate of the intervals stayed below 90 % of the earlier rate,
    /// in seconds.
    pub below_90_percent_s: Option<f64>,
    /// Time from the last success before this outage to the end of the first interval that reached 90 % of
    /// the earlier rate, in seconds; absent if no interval did.
    pub until_90_percent_s: Option<f64>,
}

/// Outcomes of transactions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcomes {
    /// Sum of the other three.
    pub attempted: u64,
    /// Transactions that succeeded.
    pub succeeded: u64,
    /// Transactions that failed.
    pub failed: u64,
    /// Transactions whose outcome is unknown.
    pub unknown: u64,
}

/// Outcomes that the database showed after the run for transactions whose outcome was unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UnknownOutcomes {
    /// Transactions that were committed.
    pub applied: u64,
    /// Transactions that were not committed.
    pub not_applied: u64,
    /// Transactions whose outcome remains unknown.
    pub unresolved: u64,
}

/// Transactions that ended after the measurement. They are not included in any other figure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct DrainedRecord {
    /// Number of these transactions.
    pub transactions: u64,
    /// Their maximum service time, in microseconds; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_us: Option<f64>,
    /// Other transactions in flight at the end of the measurement: failed, never ended, or with an unknown
    /// outcome.
    #[serde(default)]
    pub lost: u64,
}

/// Transactions of the warm-up that were in flight when the measurement started. They do not count, but their
/// sessions started their first counted transaction later.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct WarmupRecord {
    /// Number of these transactions.
    pub transactions: u64,
    /// Time that they occupied their sessions within the measurement, in seconds, summed over all of them.
    pub occupied_s: f64,
}

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
    /// Maximum service time, in microseconds; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_us: Option<f64>,
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

impl Fairness {
    /// Returns the statistics of the transactions of each session.
    pub fn from_transactions(transactions: &[u64]) -> Self {
        let (mean, stdev) = mean_stdev(transactions.iter().map(|&count| count as f64));
        let min = transactions.iter().copied().min().unwrap_or(0);
        Self { min, mean, max: transactions.iter().copied().max().unwrap_or(0), stdev }
    }
}

/// Mean and standard deviation of a population.
fn mean_stdev(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let count = values.clone().count().max(1) as f64;
    let mean = values.clone().sum::<f64>() / count;
    let variance = values.map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    (mean, variance.sqrt())
}

/// Time per session spent in transactions, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Execution {
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation.
    pub stdev: f64,
}

impl Execution {
    /// Returns the statistics of the seconds of each session.
    pub fn from_seconds(seconds: impl Iterator<Item = f64> + Clone) -> Self {
        let (mean, stdev) = mean_stdev(seconds);
        Self { mean, stdev }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fairness_is_min_mean_max_and_stdev_over_the_sessions() {
        let fairness = Fairness::from_transactions(&[10, 20, 30]);
        assert_eq!((fairness.min, fairness.max), (10, 30));
        assert!((fairness.mean - 20.0).abs() < 1e-9 && (fairness.stdev - 8.165).abs() < 1e-3);
    }
}
