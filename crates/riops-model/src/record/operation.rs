//! Results of one kind of transaction, of one command of a script, and the share of a kind.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::censored::StoredTimes;
use super::histogram::StoredHistogram;
use super::latency::LatencySummary;
use crate::plan::LatencyKind;

/// Totals of changes, which can be verified in the database.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Effects {
    /// Inserted rows.
    pub inserted: u64,
    /// Rows of the initial load that were deleted and inserted again.
    pub reinserted: u64,
    /// Deleted rows.
    pub deleted: u64,
    /// Growth of the sum of a column, from increments and from inserted rows.
    pub added: u64,
}

impl Effects {
    /// Returns whether nothing changed.
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl Effects {
    /// Returns the effects multiplied by `count`.
    #[inline]
    pub fn times(self, count: u64) -> Self {
        self.combined(self, |own, _| own * count)
    }

    /// Returns the sum of both effects.
    #[inline]
    pub fn and(self, other: Self) -> Self {
        self.combined(other, |one, other| one + other)
    }

    /// Returns the effects less the effects of `other`.
    #[inline]
    pub fn without(self, other: Self) -> Self {
        self.combined(other, u64::saturating_sub)
    }

    #[inline]
    fn combined(self, other: Self, combine: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            inserted: combine(self.inserted, other.inserted),
            reinserted: combine(self.reinserted, other.reinserted),
            deleted: combine(self.deleted, other.deleted),
            added: combine(self.added, other.added),
        }
    }
}

/// Changes of one table, which can be verified in the database.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TableEffects {
    /// Number of the table, from 1.
    pub table: u32,
    /// The changes.
    #[serde(flatten)]
    pub effects: Effects,
}

/// The transactions of one kind.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct OperationRecord {
    /// Number of the kind among all of its stage, from 1; 0 in earlier records.
    #[serde(default)]
    pub number: usize,
    /// Name of the kind.
    pub name: String,
    /// Transactions that ended within the measurement.
    pub transactions: u64,
    /// Rows of these transactions.
    pub rows: u64,
    /// Transactions that were acknowledged in all phases.
    pub acknowledged_transactions: u64,
    /// Rows that were acknowledged in all phases. The database must contain them.
    pub acknowledged_rows: u64,
    /// Rows of transactions whose connection broke before their outcome was known.
    #[serde(default)]
    pub unknown_rows: u64,
    /// Totals of the acknowledged changes, for workloads that count them.
    #[serde(default, skip_serializing_if = "Effects::is_none")]
    pub effects: Effects,
    /// Upper bounds of the changes with an unknown outcome.
    #[serde(default, skip_serializing_if = "Effects::is_none")]
    pub unknown_effects: Effects,
    /// The same acknowledged changes by table.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<TableEffects>,
    /// The same upper bounds by table.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown_tables: Vec<TableEffects>,
    /// Block accesses per transaction, in tables and indexes.
    pub blocks_per_transaction: Option<f64>,
    /// Transactions that failed within the measurement.
    #[serde(default)]
    pub failed: u64,
    /// Transactions with at least one retry, regardless of their outcome.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub retried: u64,
    /// Transactions within the measurement whose outcome is unknown.
    #[serde(default)]
    pub unknown: u64,
    /// Starts that were skipped, if the kind of a transaction is chosen before its start.
    #[serde(default, skip_serializing_if = "crate::units::is_default")]
    pub skipped: u64,
    /// Response times in microseconds; only with a rate.
    pub response_us: Option<LatencySummary>,
    /// Service times in microseconds.
    pub service_us: Option<LatencySummary>,
    /// Histogram of the service times.
    pub histogram: Option<StoredHistogram>,
    /// Histogram of the response times, if its stage has several kinds.
    pub response_histogram: Option<StoredHistogram>,
    /// Lower bounds of the latencies of the transactions that did not succeed in the measurement, as in its stage.
    pub unfinished_histogram: Option<StoredHistogram>,
    /// The same lower bounds of the service times; only with a rate.
    pub unfinished_service_histogram: Option<StoredHistogram>,
}

impl OperationRecord {
    /// Returns the times of a kind; without one, the response times with a rate and the service times otherwise.
    pub fn times(&self, kind: Option<LatencyKind>) -> StoredTimes<'_> {
        let summaries = [&self.service_us, &self.response_us];
        let histograms = [&self.histogram, &self.response_histogram];
        let unfinished = [&self.unfinished_service_histogram, &self.unfinished_histogram];
        StoredTimes::for_kind(kind, summaries, histograms, unfinished)
    }

    /// Returns their latency: response times with a rate, otherwise service times.
    pub fn latency_us(&self) -> Option<&LatencySummary> {
        self.response_us.as_ref().or(self.service_us.as_ref())
    }
}

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

/// Deviations up to this are accepted: the percentage of a plan is an integer.
const DEVIATION_POINTS: f64 = 1.0;

/// The requested and the executed share of an operation in a stage with several kinds of transactions.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct MixRecord {
    /// Name of the operation.
    pub operation: String,
    /// Unit of the shares: `rows` or `transactions`.
    pub unit: String,
    /// Requested share, in percent.
    pub asked_percent: f64,
    /// Share within the measurement, in percent.
    pub executed_percent: f64,
    /// Deviation that the number of transactions explains, in percentage points: four binomial standard errors of
    /// the requested share, or one transaction more or less in each session.
    pub chance_points: f64,
}

impl MixRecord {
    /// Returns whether the executed share is the requested one, to one percentage point.
    pub fn is_kept(&self) -> bool {
        self.deviation_points() <= DEVIATION_POINTS
    }

    /// Returns whether the executed share differs by more than the number of transactions explains.
    pub fn is_missed(&self) -> bool {
        !self.is_kept() && self.deviation_points() > self.chance_points
    }

    fn deviation_points(&self) -> f64 {
        (self.executed_percent - self.asked_percent).abs()
    }
}
