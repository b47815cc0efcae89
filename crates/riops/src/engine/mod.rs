//! The engine: drives the sessions of a stage, from connecting to the last reply.
//!
//! Names no workload. The loop itself is in `worker`; this is what happens around it: connect all
//! and wait for all, warm up, measure, drain, merge.

mod alarm;
mod calibrate;
mod clock;
mod findings;
mod limit;
mod null_server;
mod opening;
mod result;
mod schedule;
mod session;
mod stage;
mod worker;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};

pub use calibrate::{Calibration, calibrate};
pub use clock::{Clock, MonotonicClock};
pub use findings::{AccessFinding, Moment};
pub use null_server::NullServer;
pub use result::StageResult;
pub use session::SessionError;
pub use worker::{Acknowledged, Starts};

use crate::metrics::{HistogramError, IntervalPart, Point, Recorder};
use crate::plan::{RunPlan, Schedule};
use crate::probe::Probe;
use crate::target::{ConnInfo, ConnectionError, Interrupt};
use crate::units::Nanos;
use crate::workload::access::Access;
use crate::workload::keys::{Purpose, stream};
use crate::workload::transaction::Statements;
use crate::workload::{SessionPlan, Stage};
use limit::Limit;
use opening::{Connectors, Recipe};
use schedule::{Arrivals, Share};
use session::Session;
use stage::StageRun;
use worker::{IntervalLink, ReconnectLink, Rules, WAKE, Worker, WorkerEvent, WorkerSetup};

/// Why a stage gave no result at all. What ends it later is part of the result.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A session could not be opened or made ready.
    #[error("session {session} of {sessions} could not be opened: {source}")]
    Connect {
        /// Which, from 1.
        session: usize,
        /// Of how many.
        sessions: usize,
        /// Why.
        source: ConnectionError,
    },
    /// The operating system refused a thread or a poller.
    #[error("a worker could not be started: {0}")]
    Worker(#[from] std::io::Error),
    /// Memory for the histograms.
    #[error(transparent)]
    Histogram(#[from] HistogramError),
    /// A statement does not take the access path that it promises, before anything was measured.
    #[error(
        "the access path of {statement} is not kept: promised {expected}; the server would do this instead, so nothing was measured:\n{found}"
    )]
    AccessPath {
        /// Name of the prepared statement.
        statement: String,
        /// The promise.
        expected: String,
        /// The plan, one node a line.
        found: String,
    },
    /// A worker ended without its report.
    #[error("a worker ended unexpectedly")]
    WorkerLost,
}

/// Sees a stage while it runs.
pub trait Observer {
    /// All sessions are connected.
    fn connected(&mut self, sessions: usize);
    /// The warm-up is over, or there was none.
    fn measuring(&mut self);
    /// An interval is over.
    fn point(&mut self, point: &Point);
    /// The measurement is over, and some transactions are still under way.
    fn draining(&mut self) {}
}

/// The main thread's side of one worker.
struct WorkerHandle {
    waker: Arc<mio::Waker>,
    go: SyncSender<Go>,
    spares: SyncSender<Box<IntervalPart>>,
    thread: std::thread::JoinHandle<()>,
}

/// The word to start, and when.
struct Go {
    start: Nanos,
    limit: Arc<Limit>,
}

/// What a worker thread is started with.
struct Assignment {
    worker: usize,
    share: Share,
    sessions: Vec<SessionPlan>,
    poll: mio::Poll,
    waker: Arc<mio::Waker>,
    go: Receiver<Go>,
    spares: Receiver<Box<IntervalPart>>,
}

/// What all workers of a stage have in common.
struct Shared {
    target: ConnInfo,
    accesses: Vec<Access>,
    changes: Vec<bool>,
    operations: usize,
    total_sessions: usize,
    plan: RunPlan,
    /// Whether EXPLAIN may name a prepared statement.
    explain_by_name: bool,
    interval: Nanos,
    clock: MonotonicClock,
    interrupt: Interrupt,
    connectors: Connectors,
    events: SyncSender<(usize, WorkerEvent)>,
}

/// Runs a stage of a plan against a target. The measurement is bracketed by `probe`.
///
/// # Errors
/// [`EngineError`] where it did not come to a measurement.
pub fn run_stage(
    stage: Stage,
    accesses: Vec<Access>,
    plan: &RunPlan,
    target: &ConnInfo,
    interrupt: &Interrupt,
    probe: &mut Probe,
    observer: &mut dyn Observer,
) -> Result<StageResult, EngineError> {
    let Stage { name, operations, changes, sessions, explain_by_name } = stage;
    let total_sessions = sessions.len();
    let workers = usize::try_from(plan.workers).unwrap_or(1).clamp(1, total_sessions.max(1));
    let (events, received) = sync_channel(workers * 4 + 16);
    // Connections that are still being made at the end are given up with it.
    let over = Interrupt::new();
    let _at_the_end = AtTheEnd(over.clone());
    let shared = Arc::new(Shared {
        connectors: Connectors::new(target, &over, plan.seed),
        explain_by_name,
        target: target.clone(),
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
    let handles = start_workers(sessions, workers, &shared)?;
    let run = StageRun { plan, shared: &shared, handles, received, interrupt };
    let before = run.await_connected()?;
    if let Some(broken) = before.iter().find(|found| !found.finding.held) {
        let promised = shared.accesses.iter().find(|access| access.statement == broken.statement);
        return Err(EngineError::AccessPath {
            statement: broken.statement.clone(),
            expected: promised.map(|access| access.expected.to_string()).unwrap_or_default(),
            found: broken.finding.outline.clone(),
        });
    }
    observer.connected(total_sessions);
    run.measure(name, operations, before, probe, observer)
}

/// Says that the stage is over, whatever ends it.
struct AtTheEnd(Interrupt);

impl Drop for AtTheEnd {
    fn drop(&mut self) {
        self.0.request();
    }
}

fn start_workers(
    sessions: Vec<SessionPlan>,
    workers: usize,
    shared: &Arc<Shared>,
) -> Result<Vec<WorkerHandle>, EngineError> {
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let total = number(sessions.len());
    let mut dealt: Vec<Vec<SessionPlan>> = (0..workers).map(|_| Vec::new()).collect();
    for (position, session) in sessions.into_iter().enumerate() {
        if let Some(own) = dealt.get_mut(position % workers) {
            own.push(session);
        }
    }
    dealt
        .into_iter()
        .enumerate()
        .map(|(worker, sessions)| {
            let poll = mio::Poll::new()?;
            let waker = Arc::new(mio::Waker::new(poll.registry(), WAKE)?);
            let (go, go_received) = sync_channel(1);
            let (spares, spares_received) = sync_channel(4);
            let assignment = Assignment {
                worker,
                share: Share { worker: number(worker), workers: number(workers), sessions: total },
                waker: Arc::clone(&waker),
                sessions,
                poll,
                go: go_received,
                spares: spares_received,
            };
            let shared = Arc::clone(shared);
            let thread = std::thread::Builder::new()
                .name(format!("riops-worker-{worker}"))
                .spawn(move || work(assignment, &shared))?;
            Ok(WorkerHandle { waker, go, spares, thread })
        })
        .collect()
}

/// The body of a worker thread. What it has to say goes through the channel; where nobody listens
/// any more, nobody needs it.
fn work(assignment: Assignment, shared: &Shared) {
    let worker = assignment.worker;
    let mut bye = Bye { worker, shared, said: false };
    let send = |event| {
        let _ = shared.events.send((worker, event));
    };
    let Assignment { share, sessions, poll, waker, go, spares, .. } = assignment;
    let mut findings = Vec::new();
    let opened: Result<Vec<Session>, (u64, ConnectionError)> = (0..)
        .zip(sessions)
        .map(|(position, session)| {
            open_session(session, shared, &mut findings)
                .map_err(|error| (share.number(position), error))
        })
        .collect();
    let mut sessions = match opened {
        Ok(sessions) => sessions,
        Err(error) => {
            bye.said = true;
            return send(WorkerEvent::Ready(Err(error)));
        }
    };
    let open_loop = shared.plan.schedule != Schedule::Closed;
    let Ok(recorder) = Recorder::new(shared.operations, open_loop) else {
        return;
    };
    send(WorkerEvent::Ready(Ok(findings)));
    let Ok(Go { start, limit }) = go.recv() else {
        bye.said = true;
        return sessions.iter_mut().for_each(Session::end);
    };
    // All workers start at the same moment, however long each took to hear of it.
    std::thread::sleep(start.since(shared.clock.now()).into());
    let (reply, reopened) = channel();
    let random = |purpose| stream(shared.plan.seed, purpose, worker as u64);
    let setup = WorkerSetup {
        clock: shared.clock,
        arrivals: Arrivals::new(
            shared.plan.schedule,
            share,
            start,
            limit.measure_start(),
            random(Purpose::Arrivals),
        ),
        limit,
        poll,
        sessions,
        rules: Rules::of(&shared.plan),
        recorder,
        changes: shared.changes.clone(),
        link: IntervalLink {
            worker,
            length: shared.interval,
            events: shared.events.clone(),
            spares,
        },
        reconnect: ReconnectLink { connectors: shared.connectors.clone(), reply, reopened, waker },
        rng: random(Purpose::Backoff),
    };
    let report = Worker::new(setup).run();
    bye.said = true;
    send(WorkerEvent::Ended(Box::new(report)));
}

/// Tells the main thread of a worker that ends without its report, by a panic for example: it would
/// wait for ever.
struct Bye<'a> {
    worker: usize,
    shared: &'a Shared,
    said: bool,
}

impl Drop for Bye<'_> {
    fn drop(&mut self) {
        if !self.said {
            let _ = self.shared.events.send((self.worker, WorkerEvent::Lost));
        }
    }
}

/// Connects a session, makes it ready, and looks at its plans for the first time.
fn open_session(
    plan: SessionPlan,
    shared: &Shared,
    findings: &mut Vec<AccessFinding>,
) -> Result<Session, ConnectionError> {
    let SessionPlan { settings, statements, generator } = plan;
    let checks = shared
        .accesses
        .iter()
        .filter(|access| statements.iter().any(|statement| statement.name == access.statement))
        .map(|access| (access.clone(), access.explain_sql(shared.explain_by_name)))
        .collect();
    let statements = Arc::new(Statements::new(shared.plan.protocol, statements));
    let recipe = Arc::new(Recipe { settings, statements, checks });
    let mut opened = opening::open(&recipe, true, &shared.target, &shared.interrupt)?;
    findings::merge(findings, std::mem::take(&mut opened.findings));
    Ok(Session::new(recipe, generator, shared.plan.pipeline as usize, opened))
}

#[cfg(test)]
mod tests;
