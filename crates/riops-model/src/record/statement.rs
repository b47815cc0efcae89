//! A statement that ran once, and load that riops observed without generating it.

use serde::{Deserialize, Serialize};

/// Blocks that a statement accessed, including its parallel workers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are from EXPLAIN")]
pub struct StatementBuffers {
    pub shared_hit: u64,
    pub shared_read: u64,
    pub shared_dirtied: u64,
    pub shared_written: u64,
    pub temp_read: u64,
    pub temp_written: u64,
}

impl StatementBuffers {
    /// Returns the share of the accessed blocks that were not in shared buffers, 0 to 1.
    pub fn uncached_share(self) -> Option<f64> {
        let all = self.shared_hit + self.shared_read;
        (all > 0).then(|| self.shared_read as f64 / all as f64)
    }
}

/// Result of EXPLAIN (ANALYZE, BUFFERS).
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StatementPlan {
    /// The plan, one node per line.
    pub outline: String,
    /// Execution time as measured by the server, in milliseconds.
    pub execution_ms: Option<f64>,
    /// Block accesses.
    pub buffers: StatementBuffers,
    /// Rows that the scan of the table returned.
    pub rows_found: f64,
    /// Rows that the filter of this scan removed.
    pub rows_left_out: f64,
    /// Loops of the scan: 1, or one per process of a parallel scan.
    pub scans: f64,
}

impl StatementPlan {
    /// Returns the number of rows read by the scan of the table.
    pub fn rows_scanned(&self) -> u64 {
        // EXPLAIN reports the counts as averages per process.
        crate::units::format::nearest_integer((self.rows_found + self.rows_left_out).round())
    }
}

/// The rates reported by VACUUM VERBOSE, in MiB (2^20 bytes) per second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct VacuumRates {
    /// Read rate: blocks that were not in shared buffers.
    pub read_mib_s: f64,
    /// Write rate: blocks that VACUUM dirtied.
    pub write_mib_s: f64,
}

/// A statement that ran once.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StatementRecord {
    /// The statement.
    pub sql: String,
    /// Command tag, for example `SELECT 1`.
    pub tag: String,
    /// Plan and buffers, if it is a SELECT.
    pub plan: Option<StatementPlan>,
    /// The rates that the server reports, if it is a VACUUM.
    pub vacuum: Option<VacuumRates>,
    /// CPU use of the server process that ran it, as a share of one processor, 0 to 1.
    pub process_cpu_share: Option<f64>,
}

/// A command that riops ran and observed, or a time in which it observed a server.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ObservedRecord {
    /// Exit code of the command; absent without a command, or if a signal ended it.
    pub exit_code: Option<i32>,
    /// Signal that ended the command.
    pub signal: Option<i32>,
    /// CPU time of the command and its children that ended, in seconds.
    pub command_cpu_s: Option<f64>,
    /// Counts of the queries, in the order of the queries; the first count is the transactions of the stage.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub counts: Vec<CountRecord>,
}

/// Count of a query.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CountRecord {
    /// Name.
    pub name: String,
    /// Difference of the values at the end and at the start.
    pub count: f64,
    /// The difference per second between the two readings.
    pub per_s: f64,
}

impl ObservedRecord {
    /// Returns the exit code that a shell would show for the command; `None` without one.
    pub fn shell_code(&self) -> Option<i32> {
        self.exit_code.or(self.signal.map(|signal| 128 + signal))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_uncached_share_is_none_without_block_accesses() {
        let buffers =
            StatementBuffers { shared_hit: 4, shared_read: 12, ..StatementBuffers::default() };
        assert_eq!(buffers.uncached_share(), Some(0.75));
        assert_eq!(StatementBuffers::default().uncached_share(), None);
    }
}
