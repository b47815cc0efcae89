//! Findings of `riops doctor` about a server and this client.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

use super::{Flavor, LatencySummary, MachineFacts};

/// Severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// The results would be misleading.
    Warning,
    /// For information.
    Note,
}

/// An unusual condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Severity.
    pub level: Level,
    /// Subject: the name of a setting, `clock`, `disk`, …
    pub about: String,
    /// Description and effect on the results.
    pub text: String,
}

/// Result of a diagnosis.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Diagnosis {
    /// Facts about the server.
    pub server: ServerFacts,
    /// Address of the server.
    pub address: String,
    /// Database name.
    pub database: String,
    /// TLS version and cipher suite; absent for an unencrypted connection.
    pub encryption: Option<String>,
    /// Connection pooler between riops and the server.
    pub pooler: Option<Pooler>,
    /// Settings that affect the results, with their units.
    pub settings: BTreeMap<String, String>,
    /// Minimum time of `select 1`, in microseconds.
    pub round_trip_min_us: f64,
    /// Median time of `select 1`, in microseconds.
    pub round_trip_median_us: f64,
    /// Server clock minus client clock, in seconds.
    pub clock_offset_s: f64,
    /// Free space on the file system of the data directory, in bytes, if it is on this machine.
    pub disk_free_bytes: Option<u64>,
    /// Size of the dataset in relation to the caches, if a dataset exists.
    pub dataset: Option<DatasetFit>,
    /// Facts about the client machine.
    pub client: MachineFacts,
    /// Limits on the number of connections of this client.
    pub limits: ClientLimits,
    /// Unusual conditions, warnings first.
    pub findings: Vec<Finding>,
}

/// Limits on the number of connections of this client.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClientLimits {
    /// Limit on open files, one for each connection; absent if unlimited.
    pub files: Option<u64>,
    /// Number of local ports for connections to one address.
    pub ports: Option<u64>,
    /// Clock source of the kernel.
    pub clock_source: Option<String>,
}

/// Facts about a server, as reported by the server.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServerFacts {
    /// Flavor of the server.
    #[serde(rename = "flavour")]
    pub flavor: Flavor,
    /// `server_version`, as sent at connect.
    pub version: String,
    /// Result of `version()`, with compiler and platform.
    pub version_text: String,
    /// Compiler flags, if the role has the privilege to read them.
    pub compiler_flags: Option<String>,
    /// Settings that differ from the built-in defaults, and settings that affect every benchmark;
    /// with their units.
    pub settings: BTreeMap<String, String>,
    /// The defaults of these settings, as far as they have no unit.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub setting_defaults: BTreeMap<String, String>,
    /// Data directory, if the role has the privilege to read it.
    pub data_directory: Option<PathBuf>,
}

/// A connection pooler between riops and the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Pooler {
    /// Transaction mode: the transactions of one session may run on different backends. Settings and
    /// locks of a session are unreliable, and would remain on the backend.
    pub by_transaction: bool,
    /// Statement mode: as transaction mode, without transaction blocks.
    pub by_statement: bool,
    /// Whether the pooler supports prepared statements in transaction mode.
    pub prepared_statements: bool,
}

impl std::fmt::Display for Pooler {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let prepared = if self.prepared_statements { "with" } else { "without" };
        formatter.write_str("a connection pooler in ")?;
        match (self.by_statement, self.by_transaction) {
            (true, _) => formatter
                .write_str("statement mode, which permits no transactions of several statements"),
            (false, false) => formatter.write_str("session mode"),
            (false, true) => {
                write!(formatter, "transaction mode, {prepared} support for prepared statements")
            }
        }
    }
}

/// Sizes of a dataset and of the caches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct DatasetFit {
    /// Size of tables and indexes, in bytes.
    pub bytes: u64,
    /// `shared_buffers`, in bytes.
    pub shared_buffers_bytes: u64,
    /// Memory of the server machine, in bytes, if it is this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
}

impl fmt::Display for DatasetFit {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let megabytes = |bytes: u64| format!("{} MB", bytes.div_ceil(1 << 20));
        let buffers = megabytes(self.shared_buffers_bytes);
        write!(formatter, "{} in tables and indexes: ", megabytes(self.bytes))?;
        match self.memory_bytes {
            _ if self.bytes <= self.shared_buffers_bytes => {
                write!(formatter, "fits in shared_buffers ({buffers}): measures CPU and memory")
            }
            Some(memory) if self.bytes <= memory => write!(
                formatter,
                "fits in memory, but not in shared_buffers ({buffers}): measures the page cache, with --cold the device"
            ),
            Some(_) => write!(
                formatter,
                "fits neither in shared_buffers ({buffers}) nor in memory: measures the device"
            ),
            None => write!(
                formatter,
                "does not fit in shared_buffers ({buffers}); the memory size of the server machine is unknown"
            ),
        }
    }
}

/// Performance of the client against the null server on this machine.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Calibration {
    /// Number of connections.
    pub sessions: u32,
    /// Number of worker threads.
    pub workers: u32,
    /// Length of the measurement, in seconds.
    pub seconds: f64,
    /// Throughput of the client and the null server together on this machine, in transactions per second.
    pub transactions_per_s: f64,
    /// CPU time of the workers per transaction, in microseconds, without the null server.
    pub cpu_us_per_transaction: f64,
    /// Throughput that one CPU could drive, in transactions per second.
    pub transactions_per_s_and_cpu: f64,
    /// Service times, in microseconds: the lower bound of every measured latency.
    pub service_us: Option<LatencySummary>,
    /// Poll-loop stalls: periods in which a worker did not poll its sockets, in microseconds.
    pub away_us: Option<LatencySummary>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_smallest_cache_that_the_dataset_fits_in() {
        let text = |bytes, memory_bytes| {
            DatasetFit { bytes, shared_buffers_bytes: 128 << 20, memory_bytes }.to_string()
        };
        assert!(text(128 << 20, Some(1 << 30)).contains("fits in shared_buffers (128 MB)"));
        assert!(
            text(129 << 20, Some(1 << 30)).contains("fits in memory, but not in shared_buffers")
        );
        assert!(text(2 << 30, Some(1 << 30)).contains("fits neither"));
        assert!(text(2 << 30, None).contains("is unknown"));
    }
}
