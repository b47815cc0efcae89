//! Asynchronous I/O of PostgreSQL 18 and later: who reads the blocks of a scan.
//!
//! Source: PostgreSQL 18, `src/backend/storage/aio`. With `io_method = worker`, I/O workers read the blocks
//! of sequential scans, bitmap heap scans and VACUUM, and the kernel accounts the bytes to them. With
//! `io_uring`, no system call reads the blocks: `rchar` of /proc/PID/io remains 0 (seen with Linux 6.18),
//! so that the share of the page cache cannot be computed. Index scans call `ReadBuffer`, which reads in the
//! process of the session (`READ_BUFFERS_SYNCHRONOUSLY`).

use super::reading::column;
use crate::server::{Connection, ConnectionError};

/// The last version whose index scans are known to read synchronously.
const SYNCHRONOUS_INDEX_SCANS_MAX: u32 = 18;
const METHOD: &str = "select current_setting('io_method', true)";
const WORKERS: &str =
    "select pid from pg_stat_activity where backend_type = 'io worker' order by pid";

/// How the server reads blocks asynchronously.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AsyncIo {
    /// Whether I/O workers read the blocks; otherwise the kernel does, with `io_uring`.
    pub by_workers: bool,
    /// Whether index scans may read asynchronously too.
    pub in_index_scans: bool,
}

impl AsyncIo {
    /// Returns the method of the server; `None` if the sessions read all blocks themselves: before
    /// PostgreSQL 18, or with `io_method = sync`.
    ///
    /// # Errors
    /// Returns [`ConnectionError`] if the query fails.
    pub(super) fn read(connection: &mut Connection) -> Result<Option<Self>, ConnectionError> {
        let method = connection.query_value(METHOD)?;
        Ok(method.and_then(|method| Self::for_method(&method, connection.dialect().version)))
    }

    fn for_method(method: &str, version: u32) -> Option<Self> {
        (method != "sync").then_some(Self {
            by_workers: method == "worker",
            in_index_scans: version / 10_000 > SYNCHRONOUS_INDEX_SCANS_MAX,
        })
    }
}

/// Returns the processes of the I/O workers; empty if they are not visible to the role.
pub(super) fn workers(connection: &mut Connection) -> Vec<i32> {
    column(connection.query(WORKERS).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn index_scans_are_synchronous_in_version_18_only() {
        let expected = |by_workers, in_index_scans| Some(AsyncIo { by_workers, in_index_scans });
        assert_eq!(AsyncIo::for_method("worker", 180_006), expected(true, false));
        assert_eq!(AsyncIo::for_method("io_uring", 180_000), expected(false, false));
        assert_eq!(AsyncIo::for_method("worker", 190_001), expected(true, true));
        assert_eq!(AsyncIo::for_method("sync", 190_001), None);
    }
}
