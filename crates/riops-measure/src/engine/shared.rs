//! Data that the main thread and the workers of a stage share.

use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use riops_wire::sqlstate::SqlState;

use super::clock::MonotonicClock;
use super::opening::{AccessCheck, Connectors, SessionSetup};
use super::schedule::Unclaimed;
use super::window::Window;
use super::worker::WorkerEvent;
use crate::host::Interrupt;
use crate::metrics::IntervalPart;
use crate::server::{ConnectionError, Nodes};
use crate::workload::Statement;
use crate::workload::access::Access;
use crate::workload::transaction::Statements;
use riops_model::plan::{Driver, Plan};
use riops_model::units::{Nanos, Span};

/// Pause between two attempts to open a session within `--thread-init-timeout`.
const CONNECT_RETRY_PAUSE: Duration = Duration::from_millis(100);

/// The main thread's side of one worker.
pub(super) struct WorkerHandle {
    pub(super) signal: Signal,
    pub(super) start_signal: SyncSender<StartSignal>,
    pub(super) spares: SyncSender<Box<IntervalPart>>,
    pub(super) thread: JoinHandle<()>,
}

/// The worker's side: what it receives from the main thread.
pub(super) struct Inbox {
    pub(super) start_signal: Receiver<StartSignal>,
    pub(super) spares: Receiver<Box<IntervalPart>>,
}

/// How the main thread interrupts a worker's wait.
pub(super) enum Signal {
    /// Wakes a worker that waits in its poll.
    Wake(Arc<mio::Waker>),
    /// Cancels a server-side loop, which cannot be interrupted in any other way.
    Cancel(Interrupt),
}

/// The start signal to a worker.
pub(super) struct StartSignal {
    pub(super) start: Nanos,
    pub(super) window: Arc<Window>,
    /// The intended starts; `None` in the closed loop.
    pub(super) unclaimed: Option<Arc<Unclaimed>>,
}

/// Data that all workers of a stage share.
pub(super) struct Shared {
    pub(super) nodes: Nodes,
    pub(super) accesses: Vec<Access>,
    pub(super) changes: Vec<bool>,
    pub(super) operations: usize,
    /// Number of commands of scripts.
    pub(super) commands: usize,
    /// Seeds of pgbench's random numbers for each worker, if they are used.
    pub(super) streams: Vec<[u64; 2]>,
    pub(super) total_sessions: usize,
    pub(super) plan: Plan,
    /// How the workers wait for their sockets.
    pub(super) driver: Driver,
    /// Whether EXPLAIN may refer to a prepared statement by name.
    pub(super) explain_by_name: bool,
    /// Whether the stage fails when a connection with transactions in flight is lost.
    pub(super) exact: bool,
    /// SQLSTATEs that are retried in addition to those retried for every workload.
    pub(super) retried: Vec<SqlState>,
    pub(super) interval: Nanos,
    pub(super) clock: MonotonicClock,
    pub(super) interrupt: Interrupt,
    pub(super) connectors: Connectors,
    pub(super) events: SyncSender<(usize, WorkerEvent)>,
}

impl Shared {
    /// Repeats an attempt after transient errors until `--thread-init-timeout` has passed. The timeout
    /// applies to all sessions together.
    pub(super) fn retry_until_init_timeout<T>(
        &self,
        mut attempt: impl FnMut() -> Result<T, ConnectionError>,
    ) -> Result<T, ConnectionError> {
        let timeout_s = self.plan.connect_within_s.unwrap_or(0.0);
        let deadline = self.clock.started() + Span::of_seconds(timeout_s).0;
        loop {
            match attempt() {
                Err(error) if !error.is_final() && Instant::now() < deadline => {
                    std::thread::sleep(CONNECT_RETRY_PAUSE);
                }
                other => return other,
            }
        }
    }

    /// Builds the setup of a session. `watched` are the positions of the statements whose plans it checks. The sessions
    /// of a worker share equal statements through `known`, so that these remain in the caches.
    pub(super) fn setup(
        &self,
        settings: Vec<String>,
        statements: Vec<Statement>,
        watched: Range<usize>,
        known: &mut Option<Arc<Statements>>,
    ) -> SessionSetup {
        let is_watched = |access: &&Access| {
            let mut own = statements.iter().skip(watched.start).take(watched.len());
            own.any(|statement| statement.name == access.statement)
        };
        let checks = self.accesses.iter().filter(is_watched);
        let checks = checks
            .map(|access| AccessCheck {
                access: access.clone(),
                explain: access.explain_sql(self.explain_by_name),
            })
            .collect();
        let statements = match known {
            Some(known) if known.iter().eq(&statements) => Arc::clone(known),
            _ => {
                let new = Arc::new(Statements::new(self.plan.protocol, statements));
                Arc::clone(known.insert(new))
            }
        };
        let identifies_backend = self.plan.work.traits().terminates_sessions;
        SessionSetup { settings, statements, identifies_backend, checks }
    }
}
