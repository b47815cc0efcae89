//! How many of a run's sessions wait for a lock of another one, sampled while it runs.
//!
//! One question every quarter of a second over a connection of its own. Nothing else is known of what
//! happens in between.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::host::Interrupt;
use crate::server::{ConnInfo, Connection};

/// Between two looks.
const PERIOD: Duration = Duration::from_millis(250);
/// A server that does not answer for so long is not waited for at the end either.
const PATIENCE: Duration = Duration::from_secs(2);
/// The run's sessions are known by their program's name, which is the sampler's too.
const SQL: &str = include_str!("../../../../sql/probe/lock_waits.sql");

/// What was seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LockWaits {
    /// Looks.
    pub samples: u64,
    /// Sessions that waited for a lock, over all looks.
    pub waiting: u64,
}

/// Looks until it is stopped.
#[derive(Debug)]
pub struct LockSampler {
    conninfo: ConnInfo,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<LockWaits>>,
    seen: Option<LockWaits>,
}

impl LockSampler {
    /// Not looking yet.
    #[must_use]
    pub fn new(conninfo: &ConnInfo) -> Self {
        Self { conninfo: conninfo.clone(), stop: Arc::default(), thread: None, seen: None }
    }

    pub(super) fn start(&mut self) {
        let (conninfo, stop) = (self.conninfo.clone(), Arc::clone(&self.stop));
        let thread = std::thread::Builder::new().name("riops-locks".to_owned());
        self.thread = thread.spawn(move || sample(&conninfo, &stop)).ok();
    }

    /// Ends at once, and does not wait for the answer to a question that was asked already.
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
    /// Whatever ended the stage.
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
        connection.set_deadline(Some(Instant::now() + PATIENCE));
        let Ok(answer) = connection.query_value(SQL) else {
            return seen;
        };
        // An answer that comes after the end is of another time.
        if !stop.load(Ordering::Relaxed) {
            seen.samples += 1;
            seen.waiting += answer.and_then(|text| text.parse().ok()).unwrap_or(0);
        }
        std::thread::sleep(PERIOD);
    }
    seen
}
