//! The engine: drives the sessions of a stage, from connecting to the last reply.
//!
//! Names no workload. The loop itself is in `worker`; this is what happens around it: connect all
//! and wait for all, warm up, measure, drain, merge.

mod alarm;
mod calibrate;
mod call;
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
use std::time::Duration;

pub use calibrate::{Calibration, calibrate};
pub use clock::{Clock, MonotonicClock};
pub use findings::{AccessFinding, Moment};
pub use null_server::NullServer;
pub use result::StageResult;
pub use session::{SessionError, SessionTally, Tally};
pub use worker::{Acknowledged, Starts};

use crate::metrics::{HistogramError, IntervalPart, Point, Recorder, Samples};
use crate::plan::{RunPlan, Schedule};
use crate::probe::Probe;
use crate::target::{ConnInfo, Connection, ConnectionError, Interrupt};
use crate::units::Nanos;
use crate::workload::access::Access;
use crate::workload::keys::{Purpose, stream};
use crate::workload::transaction::Statements;
use crate::workload::{SessionPlan, Stage, Statement, Work};
use call::CallAssignment;
use limit::Limit;
use opening::{Connectors, Recipe};
use schedule::{Arrivals, Share};
use session::Session;
use stage::StageRun;
use worker::{IntervalLink, ReconnectLink, Rules, WAKE, Worker, WorkerEvent, WorkerSetup};

/// Between "all are connected" and the first transaction: time for every worker to hear of it.
const HEAD_START: Duration = Duration::from_millis(5);
/// The same for calls, each of which the server has to make ready before its loop can start.
const CALL_HEAD_START: Duration = Duration::from_millis(100);
const CALL_HEAD_START_EACH: Duration = Duration::from_millis(5);
/// A call's thread reads reports and little else; there may be thousands.
const CALL_STACK_BYTES: usize = 512 * 1024;
/// How often the server is asked for its time.
const CLOCK_QUESTIONS: usize = 5;

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
    caller: Caller,
    go: SyncSender<Go>,
    spares: SyncSender<Box<IntervalPart>>,
    thread: std::thread::JoinHandle<()>,
}

/// How the main thread gets a worker's attention.
enum Caller {
    /// It waits in its poll.
    Poll(Arc<mio::Waker>),
    /// It waits for the end of a call, which can only be given up.
    Call(Interrupt),
}

/// The word to start, and when.
struct Go {
    start: Nanos,
    limit: Arc<Limit>,
    /// The server's clock, in seconds since 1970, at the zero of ours; only where it matters.
    server_epoch_s: f64,
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
    /// Whether a transaction that is lost ends the stage.
    exact: bool,
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
    probe: &mut Probe<'_>,
    observer: &mut dyn Observer,
) -> Result<StageResult, EngineError> {
    let Stage { name, operations, changes, sessions, explain_by_name, exact } = stage;
    let total_sessions = sessions.len();
    let in_server = sessions.iter().any(|session| matches!(session.work, Work::Server(_)));
    let workers = match usize::try_from(plan.workers) {
        // One thread for each call.
        _ if in_server => total_sessions,
        workers => workers.unwrap_or(1).clamp(1, total_sessions.max(1)),
    };
    let (events, received) = sync_channel(workers * 4 + 16);
    // Connections that are still being made at the end are given up with it.
    let over = Interrupt::new();
    let _at_the_end = AtTheEnd(over.clone());
    let shared = Arc::new(Shared {
        connectors: Connectors::new(target, &over, plan.seed),
        explain_by_name,
        exact,
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
    if let Some(broken) = before.iter().find(|found| !found.finding.held) {
        let promised = shared.accesses.iter().find(|access| access.statement == broken.statement);
        return Err(EngineError::AccessPath {
            statement: broken.statement.clone(),
            expected: promised.map(|access| access.expected.to_string()).unwrap_or_default(),
            found: broken.finding.outline.clone(),
        });
    }
    observer.connected(total_sessions);
    let result = run.measure(name, operations, before, probe, observer)?;
    let processes: Vec<i32> = result.sessions.iter().map(|session| session.process).collect();
    probe.close(&processes);
    Ok(result)
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
            Ok(WorkerHandle { caller: Caller::Poll(waker), go, spares, thread })
        })
        .collect()
}

/// Starts a thread for each session whose loop runs in the server.
fn start_calls(
    sessions: Vec<SessionPlan>,
    shared: &Arc<Shared>,
) -> Result<Vec<WorkerHandle>, EngineError> {
    let mut handles = Vec::with_capacity(sessions.len());
    for (number, session) in sessions.into_iter().enumerate() {
        let SessionPlan { settings, statements, work: Work::Server(server_loop) } = session else {
            continue;
        };
        let (go, go_received) = sync_channel(1);
        let (spares, spares_received) = sync_channel(4);
        let end_early = Interrupt::new();
        let assignment = CallAssignment {
            number,
            recipe: recipe(settings, statements, shared),
            server_loop,
            end_early: end_early.clone(),
            go: go_received,
            spares: spares_received,
        };
        let shared = Arc::clone(shared);
        let thread = std::thread::Builder::new()
            .name(format!("riops-call-{number}"))
            .stack_size(CALL_STACK_BYTES)
            .spawn(move || call::work(assignment, &shared))?;
        handles.push(WorkerHandle { caller: Caller::Call(end_early), go, spares, thread });
    }
    Ok(handles)
}

/// The server's clock at the zero of ours: the question that was answered fastest tells it best.
fn server_epoch_s(shared: &Shared) -> Result<f64, EngineError> {
    let ask = || -> Result<f64, ConnectionError> {
        let mut connection = Connection::open(&shared.target, &shared.interrupt)?;
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
    let Ok(mut recorder) = Recorder::new(shared.operations, open_loop) else {
        return;
    };
    send(WorkerEvent::Ready(Ok(findings)));
    let Ok(Go { start, limit, .. }) = go.recv() else {
        bye.said = true;
        return sessions.iter_mut().for_each(Session::end);
    };
    recorder.samples = shared
        .plan
        .keep_samples
        .then(|| Samples::new(share.workers as usize, limit.measure_start()));
    // All workers start at the same moment, however long each took to hear of it.
    std::thread::sleep(start.since(shared.clock.now()).into());
    let (reply, reopened) = channel();
    let random = |purpose| stream(shared.plan.seed, purpose, worker as u64);
    let setup = WorkerSetup {
        share,
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
        rules: Rules::of(&shared.plan, shared.exact),
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
    let SessionPlan { settings, statements, work } = plan;
    let Work::Client(generator) = work else {
        let mixed = "a stage has sessions of two kinds".to_owned();
        return Err(ConnectionError::Protocol(mixed));
    };
    let recipe = Arc::new(recipe(settings, statements, shared));
    let mut opened = opening::open(&recipe, true, &shared.target, &shared.interrupt)?;
    findings::merge(findings, std::mem::take(&mut opened.findings));
    Ok(Session::new(recipe, generator, shared.plan.pipeline as usize, shared.operations, opened))
}

/// How a session with these statements is made ready.
fn recipe(settings: Vec<String>, statements: Vec<Statement>, shared: &Shared) -> Recipe {
    let checks = shared
        .accesses
        .iter()
        .filter(|access| statements.iter().any(|statement| statement.name == access.statement))
        .map(|access| (access.clone(), access.explain_sql(shared.explain_by_name)))
        .collect();
    let statements = Arc::new(Statements::new(shared.plan.protocol, statements));
    Recipe { settings, statements, checks }
}

#[cfg(test)]
mod tests;
