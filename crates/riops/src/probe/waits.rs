//! Samples how many of a run's sessions wait for a lock.
//!
//! One query every 250 ms over a dedicated connection. Waits between two samples are not visible.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::host::Interrupt;
use crate::server::{ConnInfo, Connection};

/// Interval between two samples.
const PERIOD: Duration = Duration::from_millis(250);
/// Query timeout; also limits the wait for the last reply.
const QUERY_TIMEOUT: Duration = Duration::from_secs(2);
/// The run's sessions are identified by `application_name`, which the sampler shares.
const SQL: &str = include_str!("../../../../sql/probe/lock_waits.sql");

/// Result of sampling.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LockWaits {
    /// Number of samples.
    pub samples: u64,
    /// Number of sessions that waited for a lock, summed over all samples.
    pub waiting: u64,
}

/// Samples lock waits until it is stopped.
#[derive(Debug)]
pub struct LockSampler {
    conninfo: ConnInfo,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<LockWaits>>,
    seen: Option<LockWaits>,
}

impl LockSampler {
    /// Creates a sampler that is not started.
    #[must_use]
    pub fn new(conninfo: &ConnInfo) -> Self {
        Self { conninfo: conninfo.clone(), stop: Arc::default(), thread: None, seen: None }
    }

    pub(super) fn start(&mut self) {
        let (conninfo, stop) = (self.conninfo.clone(), Arc::clone(&self.stop));
        let thread = std::thread::Builder::new().name("riops-locks".to_owned());
        self.thread = thread.spawn(move || sample(&conninfo, &stop)).ok();
    }

    /// Stops at once, without waiting for the reply to a pending query.
    pub(super) fn end(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    pub(super) fn close(&mut self) {
        self.end();
        self.seen = self.thread.take().and_then(|thread| thread.join().ok());
    }

    pub(super) fn seen(&self) -> Option<LockWaits> {
        self.seen.filter(|seen| seen.samples > 0)
    }
}

impl Drop for LockSampler {
    /// Stops the thread, however the stage ended.
    fn drop(&mut self) {
        self.end();
    }
}

fn sample(conninfo: &ConnInfo, stop: &AtomicBool) -> LockWaits {
    let mut seen = LockWaits::default();
    let Ok(mut connection) = Connection::open(conninfo, &Interrupt::new()) else {
        return seen;
    };
    while !stop.load(Ordering::Relaxed) {
        connection.set_deadline(Some(Instant::now() + QUERY_TIMEOUT));
        let Ok(reply) = connection.query_value(SQL) else {
            return seen;
        };
        // A reply after the end belongs to a later time.
        if !stop.load(Ordering::Relaxed) {
            seen.samples += 1;
            seen.waiting += reply.and_then(|text| text.parse().ok()).unwrap_or(0);
        }
        std::thread::sleep(PERIOD);
    }
    seen
}
