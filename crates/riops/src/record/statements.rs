//! What the server executed, by statement.

use serde::{Deserialize, Serialize};

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
}
