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
mod once;
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
pub use once::{OnceResult, run_once};
pub use result::StageResult;
pub use session::{SessionError, SessionTally, Tally};
pub use worker::{Acknowledged, Starts};

use crate::host::Interrupt;
use crate::metrics::{HistogramError, IntervalPart, Point, Recorder, Samples};
use crate::plan::{RunPlan, Schedule};
use crate::probe::Probe;
use crate::server::{Connection, ConnectionError, Nodes};
use crate::units::Nanos;
use crate::workload::access::Access;
use crate::workload::keys::{Purpose, stream};
use crate::workload::transaction::Statements;
use crate::workload::{SessionPlan, Stage, Statement, Work};
use call::CallAssignment;
use limit::Limit;
use opening::{Connectors, Recipe};
use riops_wire::sqlstate::SqlState;
use schedule::{Arrivals, Share};
use session::Session;
use stage::StageRun;
use worker::{IntervalLink, ReconnectLink, Rules, WAKE, Worker, WorkerEvent, WorkerSetup};

/// Between "all are connected" and the first transaction: time for every worker to hear of it.
const HEAD_START: Duration = Duration::from_millis(5);
/// Between two attempts to open a session within `--thread-init-timeout`.
const CONNECT_AGAIN: Duration = Duration::from_millis(100);
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
    nodes: Nodes,
    accesses: Vec<Access>,
    changes: Vec<bool>,
    operations: usize,
    total_sessions: usize,
    plan: RunPlan,
    /// Whether EXPLAIN may name a prepared statement.
    explain_by_name: bool,
    /// Whether a transaction that is lost ends the stage.
    exact: bool,
    /// Errors, beside those that every workload retries, after which a transaction is sent again.
    retried: Vec<SqlState>,
    interval: Nanos,
    clock: MonotonicClock,
    interrupt: Interrupt,
    connectors: Connectors,
    events: SyncSender<(usize, WorkerEvent)>,
}

/// Runs a stage of a plan on the nodes of a target. The measurement is bracketed by `probe`.
///
/// # Errors
/// [`EngineError`] where it did not come to a measurement.
pub fn run_stage(
    stage: Stage,
    accesses: Vec<Access>,
    plan: &RunPlan,
    nodes: &Nodes,
    interrupt: &Interrupt,
    probe: &mut Probe<'_>,
    observer: &mut dyn Observer,
) -> Result<StageResult, EngineError> {
    let Stage { name, operations, changes, sessions, explain_by_name, exact, retried } = stage;
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
    if let Some(broken) = before.iter().find(|found| !found.finding.held) {
        let promised = shared.accesses.iter().find(|access| access.statement == broken.statement);
        return Err(EngineError::AccessPath {
            statement: broken.statement.clone(),
            expected: promised.map(|access| access.expected.to_string()).unwrap_or_default(),
            found: broken.finding.outline.clone(),
        });
    }
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
        let SessionPlan { settings, statements, work: Work::Server(server_loop), .. } = session
        else {
            continue;
        };
        let (go, go_received) = sync_channel(1);
        let (spares, spares_received) = sync_channel(4);
        let end_early = Interrupt::new();
        let assignment = CallAssignment {
            number,
            recipe: recipe(settings, statements, 0..usize::MAX, shared),
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
            let number = share.number(position);
            open_session(session, number, shared, &mut findings).map_err(|error| (number, error))
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
    if recorder.count_nodes(shared.nodes.most()).is_err() {
        return;
    }
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
        rules: Rules::of(&shared.plan, shared.exact, shared.retried.clone()),
        nodes: shared.nodes.clone(),
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
    number: u64,
    shared: &Shared,
    findings: &mut Vec<AccessFinding>,
) -> Result<Session, ConnectionError> {
    let SessionPlan { settings, statements, watched, work } = plan;
    let Work::Client(generator) = work else {
        let mixed = "a stage has sessions of two kinds".to_owned();
        return Err(ConnectionError::Protocol(mixed));
    };
    let recipe = Arc::new(recipe(settings, statements, watched, shared));
    let mut opened = open_in_time(&recipe, number, shared)?;
    findings::merge(findings, std::mem::take(&mut opened.findings));
    Ok(Session::new(recipe, generator, shared.plan.pipeline as usize, shared.operations, opened))
}

/// Opens a session for the first time; with a time for all of them it is tried again until then.
fn open_in_time(
    recipe: &Recipe,
    number: u64,
    shared: &Shared,
) -> Result<opening::Opened, ConnectionError> {
    in_time(shared, || {
        opening::open_somewhere(recipe, number, true, &shared.nodes, &shared.interrupt)
    })
}

/// Tries what may pass again, as long as all sessions together may take.
fn in_time<T>(
    shared: &Shared,
    mut attempt: impl FnMut() -> Result<T, ConnectionError>,
) -> Result<T, ConnectionError> {
    let patience = shared.plan.connect_within_s.unwrap_or(0.0);
    let deadline =
        shared.clock.started() + Duration::try_from_secs_f64(patience).unwrap_or_default();
    loop {
        match attempt() {
            Err(error) if !error.is_final() && std::time::Instant::now() < deadline => {
                std::thread::sleep(CONNECT_AGAIN);
            }
            other => return other,
        }
    }
}

/// How a session with these statements is made ready. It looks at the plans of those that are
/// `watched`.
fn recipe(
    settings: Vec<String>,
    statements: Vec<Statement>,
    watched: std::ops::Range<usize>,
    shared: &Shared,
) -> Recipe {
    let names: Vec<&String> = (0..)
        .zip(&statements)
        .filter(|(position, _)| watched.contains(position))
        .map(|(_, statement)| &statement.name)
        .collect();
    let checks = shared
        .accesses
        .iter()
        .filter(|access| names.contains(&&access.statement))
        .map(|access| (access.clone(), access.explain_sql(shared.explain_by_name)))
        .collect();
    let statements = Arc::new(Statements::new(shared.plan.protocol, statements));
    Recipe { settings, statements, checks }
}

#[cfg(test)]
mod tests;
