//! Work on parallel connections.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::error::Result;
use crate::host::Interrupt;
use crate::server::{ConnInfo, Connection, ConnectionError};
use crate::workload::tables::Table;

/// Runs `work` once for each number below the count, on at most this number of parallel connections with these settings. The
/// first error stops all of them.
pub(super) fn in_parallel(
    target: &ConnInfo,
    interrupt: &Interrupt,
    count: u64,
    connections: u32,
    settings: &[String],
    work: impl Fn(&mut Connection, u64) -> Result<(), ConnectionError> + Sync,
) -> Result<()> {
    let next = AtomicU64::new(0);
    let failure = Mutex::new(None);
    let connections = u64::from(connections).min(count).max(1);
    let one = || -> Result<(), ConnectionError> {
        let mut connection = Connection::open(target, interrupt)?;
        for setting in settings {
            connection.execute(setting)?;
        }
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                return Ok(());
            }
            if interrupt.is_requested() {
                return Err(ConnectionError::Interrupted);
            }
            work(&mut connection, index)?;
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..connections {
            scope.spawn(|| {
                if let Err(error) = one() {
                    // Assign no further jobs.
                    next.store(count, Ordering::Relaxed);
                    if let Ok(mut failure) = failure.lock() {
                        failure.get_or_insert(error);
                    }
                }
            });
        }
    });
    match failure.into_inner() {
        Ok(Some(error)) => Err(error.into()),
        _ => Ok(()),
    }
}

/// Returns the table of a job that is numbered over all tables, and the number of the job within that table.
pub(super) fn nth_job(tables: &[Table], mut index: u64) -> Option<(&Table, u64)> {
    for table in tables {
        if index < table.jobs {
            return Some((table, index));
        }
        index -= table.jobs;
    }
    None
}
