//! Runs, stages and experiments as lines of a list.

mod column;
mod list;
mod sort;
mod stage_columns;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Serialize;

use crate::plan::WorkPlan;
use crate::record::{ExperimentId, Note, Record, StageKind, Validity};
use column::columns;
pub use column::{Column, ColumnError, Reader, Row};
pub use list::{RunLine, run_lines, stages_by_run};
pub use sort::{SORT_COLUMNS, Sort, UnknownColumn};
pub use stage_columns::{ColumnType, STAGE_COLUMNS, StageColumn, StageRow};

/// The id of a run, and the name of its workload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunKey {
    /// The full id.
    pub id: String,
    /// Name of the workload: `oltp`.
    pub workload: String,
}

impl RunKey {
    /// Returns the key of a record.
    pub fn from_record(record: &Record) -> Self {
        Self { id: record.id.to_string(), workload: record.workload.clone() }
    }

    /// Returns whether riops measured the run, and did not import it.
    pub fn is_measured(&self) -> bool {
        is_measured(&self.workload)
    }
}

fn is_measured(workload: &str) -> bool {
    WorkPlan::default_of(workload).is_none_or(|work| !work.traits().is_imported)
}

columns! {
    /// One run, without its record. The figures are from the stage that repeats transactions and has the most rows
    /// per second; `stage` is its name.
    #[derive(Debug, Clone, Default, PartialEq, Serialize)]
    #[expect(
        missing_docs,
        reason = "columns of the table `runs`, documented in docs/reference/store.md"
    )]
    pub struct RunSummary {
        pub id: String,
        /// RFC 3339, UTC.
        pub started_at: String as time,
        /// Name of the workload: `oltp`.
        pub workload: String,
        /// The workload and, for a single operation, its name: `oltp, point-select`.
        pub title: String,
        pub label: Option<String>,
        pub tags: BTreeMap<String, String>,
        pub status: String,
        pub valid: bool,
        /// Marks that the list shows beside the validity, separated by commas: `breached, disturbed`.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub marks: Option<String>,
        /// First line of the newest note.
        #[serde(skip_serializing_if = "Option::is_none")]
        pub note: Option<String>,
        pub flavor: Option<String>,
        pub server_version: Option<String>,
        /// Flavor and version.
        pub server: String,
        pub client_host: Option<String>,
        pub riops_version: Option<String>,
        /// Absent for an imported run whose sessions are unknown.
        pub sessions: Option<u32>,
        /// Transactions per second that were requested; absent for a closed loop.
        pub rate_per_s: Option<f64>,
        /// Percentage of rows or transactions that are updates, if the workload has this parameter.
        pub update_percent: Option<f64>,
        pub distribution: Option<String>,
        /// Number of stages.
        pub stages: u32,
        /// Length of the measurements of all stages, in seconds.
        pub seconds: Option<f64>,
        pub stage: Option<String>,
        pub batch: Option<u64>,
        pub method: Option<String>,
        pub rows_per_s: Option<f64>,
        pub transactions_per_s: Option<f64>,
        pub statements_per_s: Option<f64>,
        pub service_p50_us: Option<f64>,
        pub service_p99_us: Option<f64>,
        /// Only with a rate.
        pub response_p50_us: Option<f64>,
        /// Only with a rate.
        pub response_p99_us: Option<f64>,
        /// Lowest percentile of the service times that is a lower bound.
        pub service_lower_bound_from: Option<f64>,
        /// The same of the response times.
        pub response_lower_bound_from: Option<f64>,
        /// Response time with a rate, otherwise service time.
        pub p99_us: Option<f64>,
        /// Highest rate of the device in a statement that ran once, reads and writes; of those that took at least
        /// 1 s, if there are any, otherwise of the longest one.
        pub device_mb_s: Option<f64>,
        pub errors: Option<u64>,
        pub retries: Option<u64>,
    }
}

impl RunSummary {
    /// Returns whether riops can rely on the result. Use this instead of `valid`, which is false for imported
    /// runs.
    pub fn validity(&self) -> Validity {
        match (is_measured(&self.workload), self.valid) {
            (false, _) => Validity::NotVerified,
            (true, true) => Validity::Valid,
            (true, false) => Validity::Invalid,
        }
    }
}

columns! {
    /// One stage of a run, without its record.
    #[derive(Debug, Clone, Default, PartialEq, Serialize)]
    #[expect(
        missing_docs,
        reason = "columns of the table `stages`, documented in docs/reference/store.md"
    )]
    pub struct StageSummary {
        pub run_id: String,
        /// Position in the run, from 1.
        pub position: u32,
        pub name: String,
        pub kind: String,
        pub started_at: Option<String> as time,
        pub seconds: f64,
        pub sessions: Option<u32>,
        pub batch: Option<u64>,
        pub update_batch: Option<u64>,
        pub method: Option<String>,
        pub transactions: u64,
        pub rows: Option<u64>,
        pub statements: Option<u64>,
        pub transactions_per_s: f64,
        pub rows_per_s: Option<f64>,
        pub statements_per_s: Option<f64>,
        pub service_mean_us: Option<f64>,
        pub service_p50_us: Option<f64>,
        pub service_p95_us: Option<f64>,
        pub service_p99_us: Option<f64>,
        pub service_p999_us: Option<f64>,
        pub service_p9999_us: Option<f64>,
        pub service_max_us: Option<f64>,
        pub service_lower_bound_from: Option<f64>,
        pub response_mean_us: Option<f64>,
        pub response_p50_us: Option<f64>,
        pub response_p95_us: Option<f64>,
        pub response_p99_us: Option<f64>,
        pub response_p999_us: Option<f64>,
        pub response_p9999_us: Option<f64>,
        pub response_max_us: Option<f64>,
        pub response_lower_bound_from: Option<f64>,
        pub errors: Option<u64>,
        pub retries: Option<u64>,
        /// Share of updates that was executed, in percent; only with a mix.
        pub update_percent: Option<f64>,
        /// Share of the blocks found in shared buffers, 0 to 1.
        pub buffers_share: Option<f64>,
        pub page_cache_share: Option<f64>,
        pub device_share: Option<f64>,
        /// Rate of the device in a statement that ran once, reads and writes.
        pub device_mb_s: Option<f64>,
        /// Whether the client may have been the bottleneck.
        pub client_limited: Option<bool>,
    }
}

impl StageSummary {
    /// Returns a figure by its key, or by the name of its column; `None` for a column of the run, and for a figure that
    /// was not measured. A latency without its kind is the response time if there is one, otherwise the service time.
    pub fn figure(&self, key: &str) -> Option<f64> {
        // In a run, `update_percent` is the requested share.
        if key == "update_percent" {
            return None;
        }
        let with_kind = |kind: &str| self.numeric_value(&format!("{kind}_{key}"));
        // A statement without rows and a command without a count have no rate.
        let is_single = StageKind::parse(&self.kind).is_some_and(|kind| !kind.is_loop());
        let value = self.numeric_value(key).filter(|value| *value != 0.0 || !is_single);
        value.or_else(|| with_kind("response")).or_else(|| with_kind("service"))
    }
}

columns! {
    /// One experiment in a list.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize)]
    pub struct ExperimentSummary {
        /// Id.
        pub id: ExperimentId,
        /// Name.
        pub name: String,
        /// Kind of its goal.
        pub kind: String,
        /// When it was defined.
        pub created_at: Timestamp,
        /// When its last run ended; absent: it is unfinished.
        pub finished_at: Option<Timestamp>,
        /// Number of its stored runs.
        pub runs: u64,
        /// Notes of users.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub notes: Vec<Note>,
    }
}
