//! Database counters over a stage, the statements that the server executed, and the state of the caches before it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Preparation of the caches before a stage, as text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CacheState {
    /// Requested state: `cold` or `warm`.
    pub wanted: String,
    /// Result for shared buffers.
    pub shared_buffers: String,
    /// Result for the page cache of the operating system.
    pub page_cache: String,
    /// Whether both caches reached the requested state.
    pub reached: bool,
}

impl CacheState {
    /// Returns the results of both caches.
    pub fn text(&self) -> String {
        format!("shared buffers: {}; page cache: {}", self.shared_buffers, self.page_cache)
    }
}

/// Block accesses in the tables of the dataset.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are from pg_statio_user_tables")]
pub struct TableBlocks {
    pub heap_blks_hit: u64,
    pub heap_blks_read: u64,
    pub idx_blks_hit: u64,
    pub idx_blks_read: u64,
}

impl TableBlocks {
    /// Returns the number of all accesses, to tables and indexes.
    pub fn accesses(self) -> u64 {
        self.heap_blks_hit + self.heap_blks_read + self.idx_blks_hit + self.idx_blks_read
    }
}

impl TableBlocks {
    /// Returns the number of accesses to blocks that were not in shared buffers.
    pub fn reads(self) -> u64 {
        self.heap_blks_read + self.idx_blks_read
    }
}

/// The row of `pg_stat_database` for the measured database.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are from pg_stat_database")]
pub struct DatabaseCounters {
    pub blks_hit: u64,
    pub blks_read: u64,
    pub tup_returned: u64,
    pub tup_fetched: u64,
    pub tup_updated: u64,
    pub xact_commit: u64,
    pub xact_rollback: u64,
    pub deadlocks: u64,
    #[serde(default)]
    pub temp_files: u64,
    #[serde(default)]
    pub temp_bytes: u64,
}

/// I/O of all client backends of the server and their parallel workers, from `pg_stat_io`. Before
/// PostgreSQL 18 each operation is one block.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are from pg_stat_io")]
pub struct ClientIo {
    pub hits: u64,
    pub reads: u64,
    pub writes: u64,
    pub extends: u64,
    pub evictions: u64,
    #[serde(default)]
    pub read_bytes: u64,
    #[serde(default)]
    pub write_bytes: u64,
    #[serde(default)]
    pub extend_bytes: u64,
}

/// Write-ahead log of the whole server, from `pg_stat_wal`; the bytes from WAL positions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names are from pg_stat_wal")]
pub struct Wal {
    pub records: u64,
    pub full_page_images: u64,
    pub bytes: u64,
    /// Bytes of the full-page images; PostgreSQL 19 or later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_page_bytes: Option<u64>,
}

/// Locks of the whole server, from `pg_stat_lock`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockUse {
    /// Waits that took longer than `deadlock_timeout` and ended with the lock.
    pub long_waits: u64,
    /// Their time in milliseconds.
    pub long_waits_ms: u64,
    /// Locks of tables that did not fit into the fast path of a session.
    pub beyond_fast_path: u64,
}

/// Checkpoints of the whole server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoints {
    /// Scheduled checkpoints.
    pub timed: u64,
    /// Requested checkpoints.
    pub requested: u64,
    /// Buffers that checkpoints wrote.
    pub buffers_written: u64,
}

/// Row versions in the tables of the dataset.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowVersions {
    /// Rows updated during the stage.
    pub updated: u64,
    /// Heap-only (HOT) updates among them, which change no index.
    pub hot_updated: u64,
    /// Dead row versions at the end, as estimated by the server.
    pub dead: u64,
    /// Vacuums during the stage.
    pub vacuums: u64,
    /// Runs of ANALYZE during the stage.
    #[serde(default)]
    pub analyzes: u64,
}

/// Sizes of the dataset.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sizes {
    /// Tables, in bytes.
    pub table_bytes: u64,
    /// Indexes, in bytes.
    pub index_bytes: u64,
}

/// Database counters over a stage. Values are absent if they were not counted or are not visible to the
/// role.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DatabaseUse {
    /// Block accesses from before the first session connected until after the last one ended. Exact.
    pub blocks: Option<TableBlocks>,
    /// Block accesses from the start to the end of the measurement. The server may publish both readings up
    /// to a second late.
    pub blocks_measured: Option<TableBlocks>,
    /// `pg_stat_database` before the sessions connected.
    pub before: Option<DatabaseCounters>,
    /// `pg_stat_database` after the sessions disconnected.
    pub after: Option<DatabaseCounters>,
    /// I/O of all client backends of the server; PostgreSQL 16 or later.
    pub client_io: Option<ClientIo>,
    /// Locks; PostgreSQL 19 or later.
    pub locks: Option<LockUse>,
    /// Write-ahead log; PostgreSQL 14 or later.
    pub wal: Option<Wal>,
    /// Write-ahead log in bytes per second of the measurement, from WAL positions.
    pub wal_bytes_per_s: Option<f64>,
    /// Synchronizations of WAL files per second of the measurement; PostgreSQL 14 or later.
    pub wal_syncs_per_s: Option<f64>,
    /// Checkpoints.
    pub checkpoints: Option<Checkpoints>,
    /// Row versions.
    pub row_versions: Option<RowVersions>,
    /// Sizes of the dataset before the stage.
    pub sizes_before: Option<Sizes>,
    /// Sizes of the dataset after the stage.
    pub sizes_after: Option<Sizes>,
    /// The oldest snapshot after the stage, which keeps row versions.
    pub oldest_snapshot: Option<OldestSnapshot>,
    /// Blocks accessed by one read transaction, measured after the stage.
    pub blocks_per_read: Option<f64>,
    /// Scans of tables by all sessions of the server, the most scanned table first; only of scripts, whose plans are
    /// compared with them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scans: Vec<TableScans>,
    /// The tables that all sessions of the server read or changed, with what defines them: at most 20.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub relations: Vec<RelationRecord>,
    /// Statements that the server executed: first the statements of the run, then others, each with the longest
    /// first; with `pg_stat_statements`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub statements: Vec<StatementUse>,
}

/// The oldest snapshot of a server: VACUUM removes no row version that it may see.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OldestSnapshot {
    /// Number of transactions that have started since.
    pub transactions: u64,
    /// Number of transactions that have started during the stage.
    pub of_stage: u64,
    /// Who holds it: the application with its state, a replication slot, a prepared transaction.
    pub holder: String,
}

/// Scans of a table during a stage.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableScans {
    /// Name of the table, without its schema.
    pub table: String,
    /// Number of sequential scans.
    pub sequential: u64,
    /// Number of index scans.
    pub index: u64,
}

/// A table, as it was after the stage.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RelationRecord {
    /// Name with the schema.
    pub name: String,
    /// Size of the table with its TOAST table, in bytes.
    pub bytes: u64,
    /// Size of its indexes, in bytes.
    pub index_bytes: u64,
    /// Size of its TOAST table, in bytes; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub toast_bytes: Option<u64>,
    /// Columns, indexes, constraints, triggers and options, each with its definition.
    pub parts: BTreeMap<String, String>,
    /// Its scans and changes during the stage; absent in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activity: Option<RelationActivity>,
    /// Its indexes, by name; none if the server does not count their scans.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub indexes: Vec<IndexUse>,
}

/// Scans and changes of a table by all sessions of the server during a stage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RelationActivity {
    /// Sequential scans.
    pub sequential_scans: u64,
    /// Rows that they read.
    pub rows_scanned: u64,
    /// Index scans.
    pub index_scans: u64,
    /// Rows inserted.
    pub inserted: u64,
    /// Rows updated.
    pub updated: u64,
    /// HOT updates among them; absent without a heap, as in `YugabyteDB`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hot_updated: Option<u64>,
    /// Rows deleted.
    pub deleted: u64,
    /// Runs of VACUUM and autovacuum; absent without a heap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vacuums: Option<u64>,
    /// Dead row versions after the stage, as the server estimates them; absent without a heap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead_rows: Option<u64>,
}

/// An index during a stage.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexUse {
    /// Name, without its schema.
    pub name: String,
    /// Size in bytes.
    pub bytes: u64,
    /// Number of scans.
    pub scans: u64,
}

/// Sessions that waited for locks, sampled from `pg_stat_activity`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockWaits {
    /// Number of samples.
    pub samples: u64,
    /// Sessions that waited for a lock, summed over all samples.
    pub waiting: u64,
}

/// A statement during a stage, from `pg_stat_statements`. Only executions that ended and did not fail are counted.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StatementUse {
    /// Normalized text, with parameters instead of constants.
    pub query: String,
    /// Whether it is a statement of the run; otherwise other sessions executed it, or a function.
    pub is_own: bool,
    /// Number of executions.
    pub calls: u64,
    /// Rows returned or changed.
    pub rows: u64,
    /// Time in the executor, in microseconds.
    pub exec_us: f64,
    /// Time in the planner; 0 without `pg_stat_statements.track_planning`.
    #[serde(skip_serializing_if = "crate::units::is_default")]
    pub plan_us: f64,
    /// Time in just-in-time compilation.
    #[serde(skip_serializing_if = "crate::units::is_default")]
    pub jit_us: f64,
    /// Accesses to blocks in shared buffers.
    pub blocks_hit: u64,
    /// Accesses to other blocks.
    pub blocks_read: u64,
    /// Blocks that it changed first.
    pub blocks_dirtied: u64,
    /// Blocks that it wrote to make room.
    pub blocks_written: u64,
    /// Blocks of temporary files, read and written.
    #[serde(skip_serializing_if = "crate::units::is_default")]
    pub temporary_blocks: u64,
    /// Bytes of write-ahead log; PostgreSQL 13 or later.
    pub wal_bytes: Option<u64>,
    /// Full-page images in it.
    pub wal_full_page_images: Option<u64>,
    /// Executions with a generic plan, which does not depend on the parameters; PostgreSQL 19 or later.
    pub generic_plan_calls: Option<u64>,
    /// Executions with a plan for their parameters.
    pub custom_plan_calls: Option<u64>,
}

impl StatementUse {
    /// Adds the executions by another role.
    pub fn add(&mut self, other: &Self) {
        let sum = |one: Option<u64>, other: Option<u64>| {
            one.zip(other).map(|(one, other)| one + other).or(one).or(other)
        };
        self.calls += other.calls;
        self.rows += other.rows;
        self.exec_us += other.exec_us;
        self.plan_us += other.plan_us;
        self.jit_us += other.jit_us;
        self.blocks_hit += other.blocks_hit;
        self.blocks_read += other.blocks_read;
        self.blocks_dirtied += other.blocks_dirtied;
        self.blocks_written += other.blocks_written;
        self.temporary_blocks += other.temporary_blocks;
        self.wal_bytes = sum(self.wal_bytes, other.wal_bytes);
        self.wal_full_page_images = sum(self.wal_full_page_images, other.wal_full_page_images);
        self.generic_plan_calls = sum(self.generic_plan_calls, other.generic_plan_calls);
        self.custom_plan_calls = sum(self.custom_plan_calls, other.custom_plan_calls);
    }
}
