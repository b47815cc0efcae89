//! What the main thread and the workers of a stage have in common.

use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use riops_wire::sqlstate::SqlState;

use super::clock::MonotonicClock;
use super::limit::Limit;
use super::opening::{Connectors, Recipe};
use super::worker::WorkerEvent;
use crate::host::Interrupt;
use crate::metrics::IntervalPart;
use crate::plan::Plan;
use crate::server::{ConnectionError, Nodes};
use crate::units::Nanos;
use crate::workload::Statement;
use crate::workload::access::Access;
use crate::workload::transaction::Statements;

/// Between two attempts to open a session within `--thread-init-timeout`.
const CONNECT_AGAIN: Duration = Duration::from_millis(100);

/// The main thread's side of one worker.
pub(super) struct WorkerHandle {
    pub(super) caller: Caller,
    pub(super) go: SyncSender<Go>,
    pub(super) spares: SyncSender<Box<IntervalPart>>,
    pub(super) thread: JoinHandle<()>,
}

/// How the main thread gets a worker's attention.
pub(super) enum Caller {
    /// It waits in its poll.
    Poll(Arc<mio::Waker>),
    /// It waits for the end of a call, which can only be given up.
    Call(Interrupt),
}

/// The word to start, and when.
pub(super) struct Go {
    pub(super) start: Nanos,
    pub(super) limit: Arc<Limit>,
    /// The server's clock, in seconds since 1970, at the zero of ours; only where it matters.
    pub(super) server_epoch_s: f64,
}

/// What all workers of a stage have in common.
pub(super) struct Shared {
    pub(super) nodes: Nodes,
    pub(super) accesses: Vec<Access>,
    pub(super) changes: Vec<bool>,
    pub(super) operations: usize,
    pub(super) total_sessions: usize,
    pub(super) plan: Plan,
    /// Whether EXPLAIN may name a prepared statement.
    pub(super) explain_by_name: bool,
    /// Whether a transaction that is lost ends the stage.
    pub(super) exact: bool,
    /// Errors, beside those that every workload retries, after which a transaction is sent again.
    pub(super) retried: Vec<SqlState>,
    pub(super) interval: Nanos,
    pub(super) clock: MonotonicClock,
    pub(super) interrupt: Interrupt,
    pub(super) connectors: Connectors,
    pub(super) events: SyncSender<(usize, WorkerEvent)>,
}

impl Shared {
    /// Tries what may pass again, as long as all sessions together may take.
    pub(super) fn in_time<T>(
        &self,
        mut attempt: impl FnMut() -> Result<T, ConnectionError>,
    ) -> Result<T, ConnectionError> {
        let patience = self.plan.connect_within_s.unwrap_or(0.0);
        let deadline =
            self.clock.started() + Duration::try_from_secs_f64(patience).unwrap_or_default();
        loop {
            match attempt() {
                Err(error) if !error.is_final() && Instant::now() < deadline => {
                    std::thread::sleep(CONNECT_AGAIN);
                }
                other => return other,
            }
        }
    }

    /// How a session with these statements is made ready. It looks at the plans of those that are
    /// `watched`.
    pub(super) fn recipe(
        &self,
        settings: Vec<String>,
        statements: Vec<Statement>,
        watched: Range<usize>,
    ) -> Recipe {
        let names: Vec<&String> = (0..)
            .zip(&statements)
            .filter(|(position, _)| watched.contains(position))
            .map(|(_, statement)| &statement.name)
            .collect();
        let checks = self
            .accesses
            .iter()
            .filter(|access| names.contains(&&access.statement))
            .map(|access| (access.clone(), access.explain_sql(self.explain_by_name)))
            .collect();
        let statements = Arc::new(Statements::new(self.plan.protocol, statements));
        Recipe { settings, statements, checks }
    }
}
