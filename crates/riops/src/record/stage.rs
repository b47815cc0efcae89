//! One stage: a part of a run with one result.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::activity::ActivityRecord;
use super::client::ClientCpu;
use super::cost::CostRecord;
use super::database::{CacheState, DatabaseUse};
use super::io::IoRecord;
use super::machine::{Memory, NetworkUse, Pressure, ReadBytes};
use super::neighbors::Neighbors;
use super::observed::ObservedRecord;
use super::probes::Sampled;
use super::profile::ProfileRecord;
use super::query_series::QuerySeries;
use super::session_loop::LoopRecord;
use super::statement::StatementRecord;

/// Rates over the measurement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Throughput {
    /// Transactions per second.
    pub transactions_per_s: f64,
    /// Rows per second.
    pub rows_per_s: f64,
    /// Statements per second.
    pub statements_per_s: f64,
}

/// Counters of a time that differs from the measurement by more than this share do not describe it.
const COUNTERS_DIFFER_SHARE: f64 = 0.1;

/// Returns whether counters read over `counters_s` describe a measurement of `seconds`.
#[must_use]
pub fn counters_cover(counters_s: f64, seconds: f64) -> bool {
    (counters_s - seconds).abs() <= COUNTERS_DIFFER_SHARE * seconds
}

/// The result of a session loop, or of a statement that ran once.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StageRecord {
    /// Name of the stage.
    pub name: String,
    /// `loop`: sessions repeat transactions; `server_loop`: the same, with the loop in the server;
    /// `statement`: one statement that ran once; `observed`: the load of others.
    pub kind: String,
    /// The statement, if it ran once.
    pub statement: Option<StatementRecord>,
    /// What riops observed without generating it.
    pub observed: Option<ObservedRecord>,
    /// The sum of all service times over all sessions, in seconds.
    pub database_s: Option<f64>,
    /// Preparation of the caches before the stage.
    pub caches: Option<CacheState>,
    /// Start of the measurement by the client's clock, for comparison with other logs.
    pub started_at: Option<Timestamp>,
    /// Length of the measurement, in seconds.
    pub seconds: f64,
    /// Time between the two readings of the counters of CPU, device and database, in seconds. Their rates refer
    /// to this time. It differs from `seconds` if the start or the end of the measurement was noticed late.
    pub counters_s: Option<f64>,
    /// Number of sessions.
    pub sessions: u32,
    /// Transactions that ended within the measurement.
    pub transactions: u64,
    /// Rows of these transactions, counted from the replies.
    pub rows: u64,
    /// Statements of these transactions.
    pub statements: u64,
    /// Rates of transactions, rows and statements.
    pub throughput: Throughput,
    /// Results that exist only for a session loop.
    // Not an Option: serde reads a flattened Option with a damaged field as None, and the loop would be lost
    // without an error.
    #[serde(flatten)]
    pub session_loop: LoopRecord,
    /// What a transaction cost.
    pub cost: Option<CostRecord>,
    /// Logical and physical I/O.
    pub io: Option<IoRecord>,
    /// Counters of the database.
    pub database: Option<DatabaseUse>,
    /// Memory of the server's machine at the end, if the server is on this machine.
    pub memory: Option<Memory>,
    /// Pressure on the server's machine, if the server is on this machine.
    pub pressure: Option<Pressure>,
    /// CPU use of riops itself.
    pub client_cpu: Option<ClientCpu>,
    /// CPU seconds of all processes of the server, if it is on the client's machine.
    pub server_cpu_s: Option<f64>,
    /// Seconds in which they were runnable, but had no processor.
    pub server_run_queue_s: Option<f64>,
    /// Share of the periods of the CPU quota in which the cgroup of the server had to wait, 0 to 1; absent without a quota.
    pub server_throttled_share: Option<f64>,
    /// Load that neither riops nor the server caused.
    pub neighbors: Option<Neighbors>,
    /// Traffic of the client's network.
    pub network: Option<NetworkUse>,
    /// Busy share of all processors of the client's machine, 0 to 1.
    pub machine_busy_share: Option<f64>,
    /// Context switches of the client's machine between the readings of the counters.
    pub context_switches: Option<u64>,
    /// Bytes read and written by the server processes of the sessions, if they can be observed.
    pub process_io: Option<ReadBytes>,
    /// Bytes read and written by the I/O workers of the server, from PostgreSQL 18 on. They include the work
    /// for other sessions.
    pub io_worker_io: Option<ReadBytes>,
    /// Counters over time, and the wait events of the server process.
    pub probes: Option<Sampled>,
    /// Values of the queries of the user over time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub query_series: Vec<QuerySeries>,
    /// The active session history of the nodes of `YugabyteDB`, by node, the most active events first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub activity: Vec<ActivityRecord>,
    /// CPU profile of the server.
    pub profile: Option<ProfileRecord>,
}

impl StageRecord {
    /// Returns whether its duration is the result: of a statement that ran once, or of a command whose work was not counted.
    #[must_use]
    pub fn is_timed(&self) -> bool {
        let is_uncounted = |observed: &ObservedRecord| observed.counts.is_empty();
        self.statement.is_some() || self.observed.as_ref().is_some_and(is_uncounted)
    }

    /// Returns the share of the session time spent waiting for locks, 0 to 1, if it was sampled.
    #[must_use]
    pub fn lock_share(&self) -> Option<f64> {
        let waits = self.session_loop.lock_waits?;
        let samples = waits.samples as f64 * f64::from(self.sessions);
        (samples > 0.0).then(|| waits.waiting as f64 / samples)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(loop_fields: &str) -> serde_json::Result<StageRecord> {
        serde_json::from_str(&format!(
            r#"{{"name": "rows", "kind": "loop", "seconds": 1.0, "sessions": 1, "transactions": 0,
                 "rows": 0, "statements": 0, "throughput": {{"transactions_per_s": 0.0,
                 "rows_per_s": 0.0, "statements_per_s": 0.0}}{loop_fields}}}"#
        ))
    }

    #[test]
    fn loop_fields_are_optional_but_must_have_the_right_type() {
        assert_eq!(open("").unwrap().session_loop, LoopRecord::default());
        assert_eq!(open(r#", "retries": 3"#).unwrap().session_loop.retries, 3);
        assert!(open(r#", "retries": "three""#).is_err());
    }

    #[test]
    fn counters_cover_a_measurement_of_almost_the_same_length() {
        assert!(counters_cover(10.9, 10.0) && counters_cover(9.1, 10.0));
        assert!(!counters_cover(11.1, 10.0) && !counters_cover(0.000_2, 0.018));
    }

    #[test]
    fn loop_fields_are_flattened_into_the_stage() {
        let json = serde_json::to_value(StageRecord::default()).unwrap();
        for field in ["retries", "operations", "errors", "drained", "sessions_fairness", "series"] {
            assert!(json.get(field).is_some(), "{field}: {json}");
        }
        assert_eq!(json.get("session_loop"), None);
    }
}
