//! The engine: drives the sessions of a stage, from connecting to the last reply.
//!
//! It must not depend on any particular workload. The transaction loop is in `worker`; this module does
//! everything around it: connect all sessions, warm up, measure, drain, merge the reports.

mod alarm;
mod backend;
mod calibrate;
mod call;
mod clock;
mod continued;
mod driver;
mod error;
mod findings;
mod in_flight;
mod limit;
mod link;
mod log;
mod log_entry;
mod log_sums;
mod null_server;
mod observer;
mod once;
mod opening;
mod queue;
mod result;
mod schedule;
mod server_clock;
mod session;
mod session_error;
mod shared;
mod stage;
mod supervisor;
mod tally;
mod threads;
mod worker;

use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

pub use backend::Backend;
pub use calibrate::{Calibration, calibrate};
pub use clock::{Clock, MonotonicClock};
pub use driver::{ChosenDriver, choose_driver};
pub use error::EngineError;
pub use findings::{AccessFinding, Moment, UncheckedPlan};
pub use null_server::NullServer;
pub use observer::Observer;
pub use once::{OnceResult, run_once};
pub use result::StageResult;
pub use session::SessionError;
pub use tally::{SessionTally, Tally};
pub use worker::{Acknowledged, EndedSession, Starts, WarmupInFlight};

use crate::host::Interrupt;
use crate::plan::Plan;
use crate::probe::Probe;
use crate::server::Nodes;
use crate::workload::access::Access;
use crate::workload::{Stage, Work};
use call::start_calls;
use opening::Connectors;
use shared::{Shared, Signal, WorkerHandle};
use stage::StageRun;
use threads::start_workers;

/// Delay between the last session's connect and the first transaction; gives every worker time to receive
/// the start signal.
const HEAD_START: Duration = Duration::from_millis(5);
/// The same for server-side loops. The server has to set up each call before its loop can start.
const CALL_HEAD_START: Duration = Duration::from_millis(100);
const CALL_HEAD_START_EACH: Duration = Duration::from_millis(5);

/// Runs a stage of a plan on the nodes of a server. `probe` samples before and after the measurement.
///
/// # Errors
/// Returns [`EngineError`] if the stage failed before it produced a result.
pub fn run_stage(
    mut stage: Stage,
    accesses: Vec<Access>,
    plan: &Plan,
    nodes: &Nodes,
    interrupt: &Interrupt,
    probe: &mut Probe<'_>,
    observer: &mut dyn Observer,
) -> Result<StageResult, EngineError> {
    let sessions = std::mem::take(&mut stage.sessions);
    let total_sessions = sessions.len();
    let in_server = sessions.iter().any(|session| matches!(session.work, Work::Server(_)));
    // One thread for each call.
    let workers = if in_server { total_sessions } else { worker_count(plan, total_sessions) };
    let (events, received) = sync_channel(workers * 4 + 16);
    // Cancels connection attempts that are still in progress when the stage ends.
    let shutdown = Interrupt::new();
    let _shutdown_guard = RequestOnDrop(shutdown.clone());
    let driver = choose_driver(plan.driver, total_sessions, workers)?.driver;
    let shared = Arc::new(Shared {
        driver,
        connectors: Connectors::new(nodes, &shutdown, plan.seed),
        explain_by_name: stage.explain_by_name,
        exact: stage.exact,
        retried: stage.retried,
        nodes: nodes.clone(),
        accesses,
        changes: stage.changes,
        operations: stage.operations.len(),
        commands: stage.commands.len(),
        streams: stage.streams,
        total_sessions,
        plan: plan.clone(),
        interval: plan.interval().into(),
        clock: MonotonicClock::start(),
        interrupt: interrupt.clone(),
        events,
    });
    nodes.begin_stage();
    probe.open();
    // Before PostgreSQL 15, the first reading of the counters waits for those of earlier sessions.
    let connecting_from = shared.clock.now();
    let handles = if in_server {
        start_calls(sessions, &shared)?
    } else {
        start_workers(sessions, workers, &shared)?
    };
    let mut run =
        StageRun { plan, shared: &shared, handles, received, interrupt, head_start: HEAD_START };
    let before = run.await_connected()?;
    let connecting = shared.clock.now().since(connecting_from);
    if in_server {
        run.head_start = CALL_HEAD_START + CALL_HEAD_START_EACH * shared.plan.sessions;
    }
    require_access_paths(&before, &shared.accesses)?;
    observer.connected(total_sessions);
    let monitor = start_node_monitor(nodes, &run.handles, &shutdown)?;
    let names = (stage.operations, stage.commands);
    let mut result = run.measure(stage.name, names, before, probe, observer)?;
    result.connecting = connecting;
    shutdown.request();
    if let Some(monitor) = monitor {
        monitor.join().map_err(|_| EngineError::WorkerLost)?;
    }
    let processes: Vec<i32> = result.sessions.iter().map(|session| session.process).collect();
    probe.close(&processes);
    Ok(result)
}

/// Returns the number of workers: at least one, at most one per session.
fn worker_count(plan: &Plan, sessions: usize) -> usize {
    usize::try_from(plan.workers).unwrap_or(1).clamp(1, sessions.max(1))
}

/// Fails unless every statement uses its expected access path. Called before anything is measured.
fn require_access_paths(found: &[AccessFinding], accesses: &[Access]) -> Result<(), EngineError> {
    let Some(unexpected) = found.iter().find(|found| !found.finding.held) else {
        return Ok(());
    };
    let access = accesses.iter().find(|access| access.statement == unexpected.statement);
    Err(EngineError::AccessPath {
        statement: unexpected.statement.clone(),
        expected: access.map(|access| access.expected.to_string()).unwrap_or_default(),
        found: unexpected.finding.outline.clone(),
    })
}

/// Starts the thread that monitors the nodes of a cluster; returns `None` if monitoring is not needed. The
/// thread wakes the workers when a node has joined or come back.
fn start_node_monitor(
    nodes: &Nodes,
    handles: &[WorkerHandle],
    shutdown: &Interrupt,
) -> Result<Option<std::thread::JoinHandle<()>>, EngineError> {
    if !nodes.needs_monitoring() {
        return Ok(None);
    }
    let wakers: Vec<_> = handles
        .iter()
        .filter_map(|handle| match &handle.signal {
            Signal::Wake(waker) => Some(Arc::clone(waker)),
            Signal::Cancel(_) => None,
        })
        .collect();
    let (nodes, shutdown) = (nodes.clone(), shutdown.clone());
    let monitor = move || {
        nodes.monitor(&shutdown, &|| {
            for waker in &wakers {
                // Fails only for a worker that has exited.
                let _ = waker.wake();
            }
        });
    };
    let thread = std::thread::Builder::new().name("riops-nodes".to_owned()).spawn(monitor)?;
    Ok(Some(thread))
}

/// Requests the shutdown on every return path of a stage, including errors.
struct RequestOnDrop(Interrupt);

impl Drop for RequestOnDrop {
    fn drop(&mut self) {
        self.0.request();
    }
}

#[cfg(test)]
mod tests;

/// The same with the other driver.
#[cfg(test)]
#[expect(clippy::duplicate_mod, reason = "the tests choose the driver by the name of the module")]
#[path = "tests/mod.rs"]
mod tests_on_epoll;
