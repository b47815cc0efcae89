//! The engine: drives the sessions of a stage, from connecting to the last reply.
//!
//! It must not depend on any particular workload. The transaction loop is in `worker`; this module does
//! everything around it: connect all sessions, warm up, measure, drain, merge the reports.
//!
//! # Design
//!
//! **The hot loop.** A worker waits in one poll for all its sessions (edge-triggered epoll). For each session
//! with an event, it reads once, decodes the messages, reads the clock once, counts the
//! transaction that ended, and sends the next one. The end of one transaction is the start of the next, so one
//! clock reading serves both. A read that does not fill the buffer has emptied the socket, so it is not repeated.
//! In steady state, a transaction is one `send`, one `recv`, and a share of one `epoll_wait`. A test in
//! `engine/tests/virtual_time.rs` proves that it allocates no memory.
//!
//! **Memory.** Between two transactions of a session, the processes of the server use the same caches, so each cache line
//! that a transaction touches costs a miss; most of the client's CPU time outside of the kernel is that. Therefore, the
//! sessions read into one buffer of their worker, and only the beginning of an incomplete message is kept; a message is
//! sent from the buffer of its transaction; the fields that every transaction uses lie together (`repr(C)` in `Session`,
//! `Link`, `InFlight`, `Transaction` and `TransactionOutcome`); the sessions of a worker share equal statements; and transactions are
//! added to the counters and histograms 64 at a time.
//!
//! **Drivers.** With `io_uring`, the sockets without TLS belong to a ring (`riops-ring`): a receive request per connection
//! stays in force, sends are submitted together with the wait, and the timeout of the wait replaces the alarm. The poller
//! remains for TLS and for wake-ups by other threads: the ring watches its descriptor. Everything above a message is the
//! same, and the tests of the engine run with both. The start of a transaction is read from the clock before its message
//! is submitted, at most 32 messages earlier.
//!
//! The supervisor is a thread outside the loop. It wakes the workers at the end of an interval and of the
//! measurement, merges the intervals that they submit, and reads the counters of the machine at both ends of the
//! measurement. It never calls the receiver of the events: the main thread does, so that a stuck terminal delays nothing. A
//! worker never waits for the supervisor. If its channel is full, it keeps its intervals and sends them with the
//! next one, or with its report. All queries during a stage have deadlines; a counter that does not arrive in
//! time is absent.
//!
//! **Starts.** With a rate, all workers share the intended starts: a session that becomes idle claims the next start
//! and waits for it. A due start therefore waits only if no session of the stage is idle, and the oldest start is
//! served first: with a queue for each worker, starts would wait behind the sessions of one worker while sessions of
//! another worker are idle. In the closed loop, the intended start of the next transaction is always the current time.
//!
//! **Streams.** A COPY is a transaction whose encoded bytes are only its statement. Its data are generated piece
//! by piece into the send buffer, whenever the socket has accepted the previous piece. Nothing is stored, and a
//! retry generates the same pieces again, because each text is a function of seed, key and column. If the server
//! refuses the COPY, the message in progress is sent completely and the stream stops; the server discards it.
//!
//! **Finished generators.** If a generator has no more transactions, its session finishes while others continue.
//! The batches of a load are taken from one counter, which is the only state that its sessions share. A stage
//! that is `exact` ends with the first lost transaction, because a load with missing rows is not a valid load.
//!
//! **Steps.** A transaction can have several steps. Each step is sent after the reply to the previous one, and
//! all steps are encoded before the first is sent. A failed transaction is rolled back before anything else is
//! sent, and starts again. If each step is committed separately, the transaction resumes with the failed step; the
//! rows and effects of a step count only at its `ReadyForQuery`, because its commit can still fail after its
//! `CommandComplete`. A broken connection leaves the outcome of the transaction unknown only if the last step was in flight.
//!
//! **Interactive transactions.** The next statement of a script can depend on replies (`\gset`, `\if`). Such a
//! transaction has the steps of one turn at a time: a statement, or a whole pipeline. After the last reply of a turn,
//! the engine asks the generator for the next action (`Generator::proceed`): another turn, a wait, a command of the
//! shell, the end, or a failure without the server. For a retry, the generator returns to the state at the beginning of
//! the transaction. The generator states for each turn whether it may commit: only then does a lost connection leave
//! the outcome unknown. A transaction that ends without a statement lets the other sessions of its worker go first.
//!
//! **Nodes.** A session has a home node, which is its number modulo the number of nodes. It uses another node
//! only if its home node does not respond. `server::nodes` is consulted when a connection is opened, and never
//! for a transaction. A thread outside the stage retries failed nodes and reads the list again. The workers are
//! notified of changes through their wakers, and move sessions back to their home nodes between two transactions.
//! With several nodes, each worker counts each node separately.
//!
//! **Lost connections.** A broken connection loses what is in flight on it. Such a transaction has failed, or its
//! outcome is unknown if it changes rows. A new connection is requested from the connectors, which block on
//! separate threads; the worker is notified through its waker. A retry waits in a heap with its bytes and is sent
//! on the same session. Each transaction that was started ends in exactly one of the states succeeded, failed and
//! unknown. `engine::tests::cuts` proves this by breaking the connection at every byte of a short run.
//!
//! **Loops in the server.** Such a session is a thread that waits in one call. The procedure reports in the
//! details of its notices, once per interval and before it changes more rows than it has announced. Each report
//! contains all counts up to that point, and `call` counts the difference from the previous report. If a call
//! ends without its last report, the rows that were announced and not reported have an unknown outcome, and the
//! call is repeated for the remaining time. For the supervisor it is a worker like any other: it submits
//! intervals, and then a report. The loop measures by the wall clock of its server, which is read before and after
//! the call: a step of that clock in between makes the run invalid.
//!
//! **Sources of the rows.** The counters of a session reach the statistics of the server with a delay, and
//! completely only when the session ends. `probe/database` therefore reads them four times: before the sessions
//! connect and after they have disconnected (exact: blocks per row), and at both ends of the measurement (equally
//! delayed: the hit ratio).
//!
//! **Statements that run once.** `once` runs a statement between the two ends of a probe, on a connection that
//! stays open. The sampler watches its process over another connection, and takes its first sample before the
//! statement is sent. The server's counters are read after the statement has ended.
//!
//! **Samples.** For a graph, each worker stores every n-th transaction and, for each time slot, the longest ones
//! and the shortest one. n and the slots double when the memory is full. The memory is allocated before the first
//! transaction.
//!
//! **Transactions that count.** With a duration, the transactions that *end* in the window count, for rate and latency
//! alike. Transactions in flight at the end are drained, acknowledged (the ledger needs them) and reported separately
//! (`drained`). No other figure includes them. With `--transactions` or `--total-rows`, the transactions that claimed
//! one of the places count, and the window ends with the last of them. Each worker notes when its last transaction has
//! ended; after the last worker, the counters are read. Percentiles are always computed from merged histograms.
//!
//! **Plans.** Each session runs `EXPLAIN EXECUTE` on its own prepared statements: before its first transaction, at the
//! first boundary between transactions in the second half of the run, and after its last transaction. The server
//! returns the plan that this session would use at that time, custom or generic. `access` judges the plan. If the
//! access path is not as expected before the first transaction, the run ends before anything is measured. An EXPLAIN
//! that fails, or whose result cannot be judged, is not a finding: it is recorded as a check without a verdict. Scripts
//! have no expected access path. The `Generator` of the first session notes the values of its first executions
//! (`access::Executed`); the session explains these executions after its first transactions, and again at the other two
//! moments. If such a check fails, the run continues without an error, and nothing is prepared for it.

mod alarm;
mod calibrate;
mod call;
mod clock;
mod driver;
mod error;
mod findings;
mod hooks;
mod in_flight;
mod link;
mod log;
mod null_server;
mod once;
mod opening;
mod queue;
mod result;
mod schedule;
mod session;
mod shared;
mod stage;
mod supervisor;
mod tally;
mod threads;
mod window;
mod worker;

use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use crate::host::Interrupt;
use crate::probe::Probe;
use crate::server::Nodes;
use crate::workload::access::Access;
use crate::workload::{Stage, Work};
pub use calibrate::calibrate;
use call::start_calls;
pub use clock::{Clock, MonotonicClock};
pub use driver::{ChosenDriver, choose_driver};
pub use error::{EngineError, SessionError};
pub use findings::{AccessFinding, Moment, UncheckedPlan};
pub use hooks::{Agreement, Breach, Coordination, History, Hooks, NoHistory};
pub use null_server::NullServer;
pub use once::{OnceResult, run_once};
use opening::Connectors;
pub use result::StageResult;
use riops_model::plan::Plan;
use riops_model::record::RunEvent;
use shared::{Shared, Signal, WorkerHandle};
use stage::StageRun;
pub use tally::{Backend, SessionTally, Tally};
use threads::start_workers;
pub use worker::{Acknowledged, Starts, WarmupInFlight, WorkerReport};

/// Delay between the last session's connect and the first transaction; gives every worker time to receive
/// the start signal, and time to wake up.
const HEAD_START: Duration = Duration::from_millis(5);
const HEAD_START_OF_ONE: Duration = Duration::from_millis(1);
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
    hooks: &mut Hooks<'_>,
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
        connectors: Connectors::new(nodes, &shutdown, plan),
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
    // Before PostgreSQL 15, the first reading of the counters waits for the counters of earlier sessions.
    let connecting_from = shared.clock.now();
    let handles = if in_server {
        start_calls(sessions, &shared)?
    } else {
        start_workers(sessions, workers, &shared)?
    };
    let head_start = if workers == 1 { HEAD_START_OF_ONE } else { HEAD_START };
    let mut run = StageRun { shared: &shared, handles, received, head_start, agreed: None };
    let before = run.await_connected()?;
    let connecting = shared.clock.now().since(connecting_from);
    if in_server {
        run.head_start = CALL_HEAD_START + CALL_HEAD_START_EACH * shared.plan.own_sessions();
    }
    require_access_paths(&before, &shared.accesses)?;
    hooks.events.send(&RunEvent::Connected { sessions: total_sessions as u64 });
    run.agreed = agree_on_start(hooks, interrupt)?;
    let monitor = start_node_monitor(nodes, &run.handles, &shutdown)?;
    let mut result = run.measure(before, probe, &hooks.events)?;
    (result.name, result.operations, result.connecting) =
        (stage.name, stage.operations, connecting);
    result.name_commands(stage.commands);
    shutdown.request();
    if let Some(monitor) = monitor {
        monitor.join().map_err(|_| EngineError::WorkerLost)?;
    }
    let processes = result.workers.sessions.iter().map(|session| session.process);
    probe.close(&processes.collect::<Vec<_>>());
    Ok(result)
}

/// Returns what several clients have agreed on.
fn agree_on_start(
    hooks: &mut Hooks<'_>,
    interrupt: &Interrupt,
) -> Result<Option<Agreement>, EngineError> {
    hooks.agree_start().map_err(|error| {
        if interrupt.is_requested() {
            EngineError::Interrupted
        } else {
            EngineError::NoStart(error)
        }
    })
}

/// Returns the number of workers: at least one, at most one per session.
fn worker_count(plan: &Plan, sessions: usize) -> usize {
    usize::try_from(plan.workers).unwrap_or(1).clamp(1, sessions.max(1))
}

/// Fails unless every statement uses its expected access path. Called before anything is measured.
fn require_access_paths(
    findings: &[AccessFinding],
    accesses: &[Access],
) -> Result<(), EngineError> {
    let Some(unexpected) = findings.iter().find(|check| !check.finding.is_expected) else {
        return Ok(());
    };
    let access = accesses.iter().find(|access| access.statement == unexpected.statement);
    Err(EngineError::AccessPath {
        statement: unexpected.statement.clone(),
        expected: access.map(|access| access.expected.to_string()).unwrap_or_default(),
        plan: unexpected.finding.outline.clone(),
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
