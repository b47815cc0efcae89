//! Work on parallel connections.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::error::DatasetError;
use crate::host::Interrupt;
use crate::server::{ConnInfo, Connection, ConnectionError};

/// Where and how often work is done.
pub(super) struct Parallel<'a> {
    pub(super) target: &'a ConnInfo,
    pub(super) interrupt: &'a Interrupt,
    /// Number of jobs.
    pub(super) count: u64,
    /// Maximum number of connections.
    pub(super) connections: u32,
    /// Statements for each connection.
    pub(super) settings: &'a [String],
}

/// Runs `work` once for each number below the count, on parallel connections. The first error stops all of them.
pub(super) fn in_parallel(
    parallel: &Parallel<'_>,
    work: impl Fn(&mut Connection, u64) -> Result<(), ConnectionError> + Sync,
) -> Result<(), DatasetError> {
    let Parallel { target, interrupt, count, connections, settings } = *parallel;
    let next = AtomicU64::new(0);
    let failure = Mutex::new(None);
    let connections = u64::from(connections).min(count).max(1);
    let one = || -> Result<(), ConnectionError> {
        let mut connection = Connection::open(target, interrupt)?;
        for setting in settings {
            connection.execute(setting)?;
        }
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                return Ok(());
            }
            if interrupt.requested() {
                return Err(ConnectionError::Interrupted);
            }
            work(&mut connection, number)?;
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
