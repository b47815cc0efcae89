//! One stage: a part of a run with one result, what its transactions cost, and whether the server was available.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::client::{ClientCpu, Memory, Neighbors, NetworkUse, Pressure, ReadBytes};
use super::counts::ErrorEntry;
use super::database::{CacheState, DatabaseUse};
use super::device::IoRecord;
use super::probes::{ActivityRecord, QuerySeries, Sampled};
use super::profile::ProfileRecord;
use super::session_loop::LoopRecord;
use super::statement::{ObservedRecord, StatementRecord};
use crate::units::texts;

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

impl Throughput {
    /// Returns the rates over `seconds`.
    pub fn over(seconds: f64, transactions: u64, rows: u64, statements: u64) -> Self {
        let per_s = |count: u64| if seconds > 0.0 { count as f64 / seconds } else { 0.0 };
        Self {
            transactions_per_s: per_s(transactions),
            rows_per_s: per_s(rows),
            statements_per_s: per_s(statements),
        }
    }
}

/// Counters of a time that differs from the measurement by more than this share do not describe it.
const COUNTERS_DIFFER_SHARE: f64 = 0.1;

/// Returns whether counters read over `counters_s` describe a measurement of `seconds`.
pub fn counters_cover(counters_s: f64, seconds: f64) -> bool {
    (counters_s - seconds).abs() <= COUNTERS_DIFFER_SHARE * seconds
}

/// Minimum time without success at the end that counts as an outage, in seconds: a shorter time may be one slow transaction.
const OUTAGE_S_MIN: f64 = 1.0;
/// Minimum share of the measurement: from this share on, a time without success changes the result by as much as other
/// differences that matter.
const PAUSE_SHARE: f64 = 0.01;
/// Minimum time without success, in seconds: a shorter time may be one time slice of another process.
const PAUSE_S_MIN: f64 = 0.1;
/// Minimum ratio of a time without success to the usual time, and to the median service time: shorter times occur by chance.
const PAUSE_FACTOR: f64 = 10.0;
/// Tolerance for a sum of interval lengths, in seconds: far below the shortest interval.
const ROUNDING_S: f64 = 1e-6;

/// Kind of a stage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StageKind {
    /// Sessions repeat transactions.
    #[default]
    Loop,
    /// The same, with the loop in the server.
    ServerLoop,
    /// One statement that ran once.
    Statement,
    /// Load that riops observed without generating it.
    Observed,
}

texts!(
    /// Returns the spelling in JSON and in the store.
    StageKind::as_str {
        Loop: "loop",
        ServerLoop: "server_loop",
        Statement: "statement",
        Observed: "observed",
    }
);

impl StageKind {
    /// Returns the kind with this spelling.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }

    /// Returns whether its sessions repeat transactions.
    pub fn is_loop(self) -> bool {
        matches!(self, Self::Loop | Self::ServerLoop)
    }
}

/// The result of a session loop, or of a statement that ran once.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StageRecord {
    /// Name of the stage.
    pub name: String,
    /// Kind of the stage.
    pub kind: StageKind,
    /// The statement, if it ran once.
    pub statement: Option<StatementRecord>,
    /// Observations of a load that riops did not generate.
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
    /// Costs of a transaction.
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
    /// Instructions that they executed in user mode, per second.
    pub server_instructions_per_s: Option<f64>,
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
    pub fn is_timed(&self) -> bool {
        let is_uncounted = |observed: &ObservedRecord| observed.counts.is_empty();
        self.statement.is_some() || self.observed.as_ref().is_some_and(is_uncounted)
    }

    /// Returns the share of the session time spent waiting for locks, 0 to 1, if it was sampled.
    pub fn lock_share(&self) -> Option<f64> {
        let waits = self.session_loop.lock_waits?;
        let samples = waits.samples as f64 * f64::from(self.sessions);
        (samples > 0.0).then(|| waits.waiting as f64 / samples)
    }

    /// Returns the longest time without a successful transaction, in seconds, if it is far longer than usual and a
    /// relevant part of the measurement, whether there was an error or not.
    pub fn long_pause_s(&self) -> Option<f64> {
        let longest = self.session_loop.longest_pause_s;
        let seconds = longest.into_iter().chain(self.longest_outage_s()).max_by(f64::total_cmp)?;
        let between_s = self.seconds / self.transactions.max(1) as f64;
        let service_s = self.session_loop.service_us.as_ref().map_or(0.0, |us| us.p50 / 1e6);
        let is_long = seconds >= PAUSE_S_MIN.max(PAUSE_FACTOR * between_s.max(service_s));
        // With a rate, a transaction that was due in the first half waits for at least half of it.
        let waited_us =
            self.session_loop.response_us.as_ref().map_or(f64::INFINITY, |latency| latency.max);
        let is_long = is_long && waited_us >= seconds * 1e6 / 2.0;
        Some(seconds).filter(|_| is_long && seconds >= PAUSE_SHARE * self.seconds)
    }

    /// Returns the longest time without a successful transaction after an error, in seconds.
    pub fn longest_outage_s(&self) -> Option<f64> {
        let outages = self.session_loop.errors.iter().filter_map(|error| error.without_success_s);
        outages.max_by(f64::total_cmp)
    }

    /// Returns whether the longest pause began with an error or a lost connection: an outage; otherwise a stall. The pause begins
    /// earlier than the outage: with the last success, and not with the error.
    pub fn has_outage(&self) -> bool {
        let is_after_errors = || {
            self.longest_outage_s()
                .zip(self.long_pause_s())
                .is_some_and(|(outage, pause)| outage >= 0.9 * pause)
        };
        self.has_lost_connections() || is_after_errors()
    }

    /// Returns whether connections were lost: broken (SQLSTATE class 08), or ended by a server that stopped (57P01 to 57P03).
    pub fn has_lost_connections(&self) -> bool {
        let is_lost = |sqlstate: &str| sqlstate.starts_with("08") || sqlstate.starts_with("57P0");
        self.session_loop.errors.iter().any(|error| is_lost(&error.sqlstate))
    }

    /// Returns whether the measurement ended in an outage: a connection was lost or refused, there was an error, and from its
    /// interval on, no transaction succeeded for at least one second. An earlier outage from which the server recovered does not
    /// count, nor does a slow transaction at the end.
    pub fn ended_in_an_outage(&self) -> bool {
        let series = &self.session_loop.series;
        let empty = series.iter().rev().take_while(|point| point.transactions == 0).count();
        let (before, trailing) = series.split_at(series.len() - empty);
        // `fold` from 0.0: the sum of an empty iterator is a negative zero.
        let without_success_s = trailing.iter().fold(0.0, |sum, point| sum + point.seconds);
        let has_failed = before.last().into_iter().chain(trailing).any(|point| point.errors > 0);
        let is_lost = |error: &ErrorEntry| {
            let sqlstate = error.sqlstate.as_str();
            sqlstate.starts_with("08") || sqlstate.starts_with("57P") || sqlstate == "53300"
        };
        let was_lost = self.session_loop.errors.iter().any(is_lost);
        was_lost && has_failed && without_success_s + ROUNDING_S >= OUTAGE_S_MIN
    }
}

/// Average cost of a successful transaction of a stage: everything that server and client counted, also for other sessions
/// and for transactions that failed. A value that was not counted is absent.
///
/// CPU, context switches, devices and network are counted during the measurement. The counters of the database arrive
/// up to a second late. They are counted from before the first session connected until after the last one ended, and
/// divided by all acknowledged transactions, including the warm-up.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CostRecord {
    /// Rows per transaction.
    pub rows: f64,
    /// CPU time of all processes of the server, in microseconds.
    pub server_cpu_us: Option<f64>,
    /// Time in which processes of the server waited for a processor, in microseconds.
    pub server_run_queue_us: Option<f64>,
    /// Instructions that they executed in user mode.
    pub server_instructions: Option<f64>,
    /// CPU time of riops, in microseconds.
    pub client_cpu_us: Option<f64>,
    /// Context switches of the client's machine.
    pub context_switches: Option<f64>,
    /// Accesses to blocks that were in shared buffers: of the tables of the dataset, otherwise of the database.
    pub blocks_hit: Option<f64>,
    /// Accesses to blocks that were not.
    pub blocks_read: Option<f64>,
    /// Blocks that the statements of the run changed first, from `pg_stat_statements`.
    pub blocks_dirtied: Option<f64>,
    /// Blocks that sessions and checkpoints wrote, or added to a table.
    pub blocks_written: Option<f64>,
    /// Bytes of write-ahead log.
    pub wal_bytes: Option<f64>,
    /// Records of write-ahead log.
    pub wal_records: Option<f64>,
    /// Full-page images in it.
    pub wal_full_page_images: Option<f64>,
    /// Their bytes; PostgreSQL 19 or later.
    pub wal_full_page_bytes: Option<f64>,
    /// Locks of tables that did not fit into the fast path of a session; PostgreSQL 19 or later.
    pub locks_beyond_fast_path: Option<f64>,
    /// Bytes of temporary files.
    pub temporary_bytes: Option<f64>,
    /// Reads of all disks of the server.
    pub device_reads: Option<f64>,
    /// Bytes read.
    pub device_read_bytes: Option<f64>,
    /// Writes of all disks of the server.
    pub device_writes: Option<f64>,
    /// Bytes written.
    pub device_written_bytes: Option<f64>,
    /// Bytes that the client's machine received.
    pub received_bytes: Option<f64>,
    /// Bytes that it sent.
    pub sent_bytes: Option<f64>,
    /// Growth of the tables of the dataset, in bytes; negative if they became smaller.
    pub table_bytes: Option<f64>,
    /// Growth of their indexes.
    pub index_bytes: Option<f64>,
    /// Each disk of the server.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<DiskCost>,
    /// Why the values are only about right: what else the counters of the server include.
    pub includes: Option<String>,
}

/// Costs of a transaction on one disk.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DiskCost {
    /// Name of the disk.
    pub name: String,
    /// Files that the server stores on it.
    pub roles: Vec<String>,
    /// Reads.
    pub reads: f64,
    /// Bytes read.
    pub read_bytes: f64,
    /// Writes.
    pub writes: f64,
    /// Bytes written.
    pub written_bytes: f64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Point;

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
        for field in ["retries", "operations", "errors", "drained", "series"] {
            assert!(json.get(field).is_some(), "{field}: {json}");
        }
        assert_eq!(json.get("session_loop"), None);
    }

    /// A stage with an outage of 2.5 s somewhere, and points of a length, transactions and errors.
    fn stage(points: &[(f64, u64, u64)]) -> StageRecord {
        let mut stage = StageRecord::default();
        stage.session_loop.errors =
            vec![ErrorEntry { without_success_s: Some(2.5), ..entry("08006") }];
        let points = points.iter().map(|&(seconds, transactions, errors)| Point {
            seconds,
            transactions,
            errors,
            ..Point::default()
        });
        stage.session_loop.series = points.collect();
        stage
    }

    #[test]
    fn empty_intervals_of_a_second_after_an_error_at_the_end_are_an_outage() {
        let ended = |points: &[(f64, u64, u64)]| stage(points).ended_in_an_outage();
        assert!(ended(&[(1.0, 50, 0), (1.0, 20, 2), (1.0, 0, 0)]));
        assert!(ended(&[(1.0, 50, 0), (1.0, 0, 2)]));
        // Ten intervals of 0.1 s add up to less than 1 s in floating-point arithmetic.
        let mut short = vec![(0.1, 5, 1)];
        short.extend([(0.1, 0, 0); 10]);
        assert!(ended(&short));
        assert!(!ended(&short[..10]));
    }

    fn entry(sqlstate: &str) -> ErrorEntry {
        ErrorEntry { sqlstate: sqlstate.to_owned(), ..ErrorEntry::default() }
    }

    #[test]
    fn waits_for_locks_after_a_deadlock_are_no_outage() {
        let mut waiting = stage(&[(1.0, 50, 1), (1.0, 0, 0), (1.0, 0, 0)]);
        assert!(waiting.ended_in_an_outage());
        for sqlstate in ["40P01", "22012", "55P03", "57014"] {
            waiting.session_loop.errors = vec![entry(sqlstate)];
            assert!(!waiting.ended_in_an_outage(), "{sqlstate}");
        }
        for sqlstate in ["57P01", "53300", "08001"] {
            waiting.session_loop.errors = vec![entry("40P01"), entry(sqlstate)];
            assert!(waiting.ended_in_an_outage(), "{sqlstate}");
        }
    }

    #[test]
    fn a_recovered_outage_and_a_short_last_interval_are_not_an_outage_at_the_end() {
        let recovered = [(1.0, 50, 0), (1.0, 20, 2), (1.0, 0, 0), (1.0, 0, 0), (1.0, 40, 0)];
        let mut points = recovered.to_vec();
        points.push((0.02, 0, 0));
        assert!(!stage(&points).ended_in_an_outage());
        // Without an error since the last success, the transactions are slow.
        points.push((2.0, 0, 0));
        assert!(!stage(&points).ended_in_an_outage());
        assert_eq!(stage(&points).longest_outage_s(), Some(2.5));
        assert!(!StageRecord::default().ended_in_an_outage());
    }
}
