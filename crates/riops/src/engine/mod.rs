//! The engine: drives the sessions of a stage, from connecting to the last reply.
//!
//! Names no workload. The loop itself is in `worker`; this is what happens around it: connect all
//! and wait for all, warm up, measure, drain, merge.

mod alarm;
mod calibrate;
mod call;
mod clock;
mod error;
mod findings;
mod limit;
mod null_server;
mod observer;
mod once;
mod opening;
mod result;
mod schedule;
mod session;
mod shared;
mod stage;
mod threads;
mod worker;

use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

pub use calibrate::{Calibration, calibrate};
pub use clock::{Clock, MonotonicClock};
pub use error::EngineError;
pub use findings::{AccessFinding, Moment};
pub use null_server::NullServer;
pub use observer::Observer;
pub use once::{OnceResult, run_once};
pub use result::StageResult;
pub use session::{SessionError, SessionTally, Tally};
pub use worker::{Acknowledged, Starts};

use crate::host::Interrupt;
use crate::plan::Plan;
use crate::probe::Probe;
use crate::server::{Connection, ConnectionError, Nodes};
use crate::units::Nanos;
use crate::workload::access::Access;
use crate::workload::{Stage, Work};
use call::start_calls;
use opening::Connectors;
use shared::{Caller, Shared, WorkerHandle};
use stage::StageRun;
use threads::start_workers;

/// Between "all are connected" and the first transaction: time for every worker to hear of it.
const HEAD_START: Duration = Duration::from_millis(5);
/// The same for calls, each of which the server has to make ready before its loop can start.
const CALL_HEAD_START: Duration = Duration::from_millis(100);
const CALL_HEAD_START_EACH: Duration = Duration::from_millis(5);
/// How often the server is asked for its time.
const CLOCK_QUESTIONS: usize = 5;

/// Runs a stage of a plan on the nodes of a target. The measurement is bracketed by `probe`.
///
/// # Errors
/// [`EngineError`] where it did not come to a measurement.
pub fn run_stage(
    stage: Stage,
    accesses: Vec<Access>,
    plan: &Plan,
    nodes: &Nodes,
    interrupt: &Interrupt,
    probe: &mut Probe<'_>,
    observer: &mut dyn Observer,
) -> Result<StageResult, EngineError> {
    let Stage { name, operations, changes, sessions, explain_by_name, exact, retried } = stage;
    let total_sessions = sessions.len();
    let in_server = sessions.iter().any(|session| matches!(session.work, Work::Server(_)));
    // One thread for each call.
    let workers = if in_server { total_sessions } else { worker_count(plan, total_sessions) };
    let (events, received) = sync_channel(workers * 4 + 16);
    // Connections that are still being made at the end are given up with it.
    let over = Interrupt::new();
    let _at_the_end = AtTheEnd(over.clone());
    let shared = Arc::new(Shared {
        connectors: Connectors::new(nodes, &over, plan.seed),
        explain_by_name,
        exact,
        retried,
        nodes: nodes.clone(),
        accesses,
        changes,
        operations: operations.len(),
        total_sessions,
        plan: plan.clone(),
        interval: plan.interval().into(),
        clock: MonotonicClock::start(),
        interrupt: interrupt.clone(),
        events,
    });
    nodes.begin_stage();
    probe.open();
    let handles = if in_server {
        start_calls(sessions, &shared)?
    } else {
        start_workers(sessions, workers, &shared)?
    };
    let mut run = StageRun {
        plan,
        shared: &shared,
        handles,
        received,
        interrupt,
        head_start: HEAD_START,
        server_epoch_s: 0.0,
    };
    let before = run.await_connected()?;
    if in_server {
        run.head_start = CALL_HEAD_START + CALL_HEAD_START_EACH * shared.plan.sessions;
        run.server_epoch_s = server_epoch_s(&shared)?;
    }
    require_access_paths(&before, &shared.accesses)?;
    observer.connected(total_sessions);
    let keeper = keep_nodes(nodes, &run.handles, &over)?;
    let result = run.measure(name, operations, before, probe, observer)?;
    over.request();
    if let Some(keeper) = keeper {
        keeper.join().map_err(|_| EngineError::WorkerLost)?;
    }
    let processes: Vec<i32> = result.sessions.iter().map(|session| session.process).collect();
    probe.close(&processes);
    Ok(result)
}

/// The workers of a plan: at least one, at most one per session.
fn worker_count(plan: &Plan, sessions: usize) -> usize {
    usize::try_from(plan.workers).unwrap_or(1).clamp(1, sessions.max(1))
}

/// Every statement has to take the promised access path before anything is measured.
fn require_access_paths(found: &[AccessFinding], accesses: &[Access]) -> Result<(), EngineError> {
    let Some(broken) = found.iter().find(|found| !found.finding.held) else {
        return Ok(());
    };
    let promised = accesses.iter().find(|access| access.statement == broken.statement);
    Err(EngineError::AccessPath {
        statement: broken.statement.clone(),
        expected: promised.map(|access| access.expected.to_string()).unwrap_or_default(),
        found: broken.finding.outline.clone(),
    })
}

/// Starts the thread that keeps up with a cluster's nodes, where there is anything to keep up with. The
/// workers hear of it when one has come.
fn keep_nodes(
    nodes: &Nodes,
    handles: &[WorkerHandle],
    over: &Interrupt,
) -> Result<Option<std::thread::JoinHandle<()>>, EngineError> {
    if !nodes.need_a_keeper() {
        return Ok(None);
    }
    let wakers: Vec<_> = handles
        .iter()
        .filter_map(|handle| match &handle.caller {
            Caller::Poll(waker) => Some(Arc::clone(waker)),
            Caller::Call(_) => None,
        })
        .collect();
    let (nodes, over) = (nodes.clone(), over.clone());
    let keep = move || {
        nodes.keep(&over, &|| {
            for waker in &wakers {
                // A worker that has ended needs no call.
                let _ = waker.wake();
            }
        });
    };
    let thread = std::thread::Builder::new().name("riops-nodes".to_owned()).spawn(keep)?;
    Ok(Some(thread))
}

/// Says that the stage is over, whatever ends it.
struct AtTheEnd(Interrupt);

impl Drop for AtTheEnd {
    fn drop(&mut self) {
        self.0.request();
    }
}

/// The server's clock at the zero of ours: the question that was answered fastest tells it best.
fn server_epoch_s(shared: &Shared) -> Result<f64, EngineError> {
    let ask = || -> Result<f64, ConnectionError> {
        let choice = shared.nodes.choose(0);
        shared.nodes.left(choice.node);
        let mut connection = Connection::open(&choice.conninfo, &shared.interrupt)?;
        let mut best = (Nanos::MAX, 0.0);
        for _ in 0..CLOCK_QUESTIONS {
            let asked = shared.clock.now();
            let answer = connection.query_value("select date_part('epoch', clock_timestamp())")?;
            let took = shared.clock.now().since(asked);
            let server_s: f64 = answer
                .and_then(|text| text.parse().ok())
                .ok_or_else(|| ConnectionError::Protocol("a clock that is no number".to_owned()))?;
            let zero_s = server_s - asked.as_seconds() - took.as_seconds() / 2.0;
            if took < best.0 {
                best = (took, zero_s);
            }
        }
        Ok(best.1)
    };
    let sessions = shared.total_sessions;
    ask().map_err(|source| EngineError::Connect { session: sessions, sessions, source })
}

#[cfg(test)]
mod tests;
