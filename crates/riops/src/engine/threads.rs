//! The worker threads: they open their sessions, run their loops and send their reports.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel, sync_channel};

use riops_ring::Ring;
use riops_script::random::Random;

use super::clock::Clock;
use super::error::{EngineError, StartError};
use super::findings::{self, AccessFinding};
use super::log::Log;
use super::log_entry::LogColumns;
use super::opening;
use super::schedule::{Arrivals, Gaps, Share};
use super::session::Session;
use super::shared::{Go, Shared, Signal, WorkerHandle};
use super::worker::{IntervalLink, ReconnectLink, Rules, WAKE, Worker, WorkerEvent, WorkerSetup};
use crate::metrics::{Commands, IntervalPart, Recorder, Samples};
use crate::plan::{Driver, Schedule};
use crate::record::HistogramError;
use crate::server::ConnectionError;
use crate::workload::keys::{Purpose, stream};
use crate::workload::transaction::Statements;
use crate::workload::{SessionPlan, Work};

/// Input of a worker thread.
struct Assignment {
    worker: usize,
    share: Share,
    sessions: Vec<SessionPlan>,
    poll: mio::Poll,
    waker: Arc<mio::Waker>,
    go: Receiver<Go>,
    spares: Receiver<Box<IntervalPart>>,
}

/// Starts the workers. Sessions are assigned to them round-robin.
pub(super) fn start_workers(
    sessions: Vec<SessionPlan>,
    workers: usize,
    shared: &Arc<Shared>,
) -> Result<Vec<WorkerHandle>, EngineError> {
    let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    let total = number(sessions.len());
    let mut assigned: Vec<Vec<SessionPlan>> = (0..workers).map(|_| Vec::new()).collect();
    for (position, session) in sessions.into_iter().enumerate() {
        if let Some(own) = assigned.get_mut(position % workers) {
            own.push(session);
        }
    }
    assigned
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
            Ok(WorkerHandle { signal: Signal::Wake(waker), go, spares, thread })
        })
        .collect()
}

/// Body of a worker thread. Its events go through the channel, which is closed only if the stage has failed.
fn work(assignment: Assignment, shared: &Shared) {
    let worker = assignment.worker;
    let mut guard = LostGuard { worker, shared, reported: false };
    let send = |event| {
        let _ = shared.events.send((worker, event));
    };
    let Assignment { share, sessions, poll, waker, go, spares, .. } = assignment;
    let (mut sessions, findings) = match open_sessions(sessions, share, shared) {
        Ok(opened) => opened,
        Err(error) => {
            guard.reported = true;
            return send(WorkerEvent::Ready(Err(error)));
        }
    };
    let Ok(mut recorder) = recorder(shared) else {
        return;
    };
    let log = open_log(shared, worker, sessions.len()).map_err(StartError::Log);
    let ring = ring(shared.driver, sessions.len()).map_err(StartError::Ring);
    let (ring, log) = match ring.and_then(|ring| Ok((ring, log?))) {
        Ok(opened) => opened,
        Err(error) => {
            guard.reported = true;
            return send(WorkerEvent::Ready(Err(error)));
        }
    };
    send(WorkerEvent::Ready(Ok(findings)));
    let Ok(Go { start, limit }) = go.recv() else {
        guard.reported = true;
        return sessions.iter_mut().for_each(Session::end);
    };
    let keeps_samples = shared.plan.keep_samples;
    recorder.samples =
        keeps_samples.then(|| Samples::new(share.workers as usize, limit.measure_start()));
    // All workers start at the same time, no matter when each received the signal.
    std::thread::sleep(start.since(shared.clock.now()).into());
    let (reply, reopened) = channel();
    let setup = WorkerSetup {
        share,
        clock: shared.clock,
        arrivals: Arrivals::new(
            shared.plan.schedule,
            share,
            start,
            limit.measure_start(),
            gaps(shared, worker),
        ),
        limit,
        poll,
        ring,
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
            unsent: VecDeque::new(),
        },
        reconnect: ReconnectLink { connectors: shared.connectors.clone(), reply, reopened, waker },
        rng: stream(shared.plan.seed, Purpose::Backoff, worker as u64),
        log,
    };
    let report = Worker::new(setup).run();
    guard.reported = true;
    send(WorkerEvent::Ended(Box::new(report)));
}

/// Returns the random stream of the times between the starts of a worker.
fn gaps(shared: &Shared, worker: usize) -> Gaps {
    match shared.streams.get(worker) {
        Some([starts, _]) => Gaps::Pgbench(Random::new(*starts)),
        None => Gaps::Own(stream(shared.plan.seed, Purpose::Arrivals, worker as u64)),
    }
}

/// Opens the sessions of a worker and collects the findings of their plan checks. An error includes the
/// number of the session that failed.
fn open_sessions(
    sessions: Vec<SessionPlan>,
    share: Share,
    shared: &Shared,
) -> Result<(Vec<Session>, Vec<AccessFinding>), StartError> {
    let mut findings = Vec::new();
    let mut known = None;
    let mut opened = Vec::with_capacity(sessions.len());
    for (position, session) in (0..).zip(sessions) {
        let number = share.number(position);
        let session = open_session(session, number, shared, (&mut known, &mut findings))
            .map_err(|error| StartError::Connect(number, error))?;
        opened.push(session);
    }
    Ok((opened, findings))
}

/// Creates the ring of a worker, on its thread.
fn ring(driver: Driver, sessions: usize) -> std::io::Result<Option<Box<Ring>>> {
    if driver != Driver::IoUring {
        return Ok(None);
    }
    Ring::new(u32::try_from(sessions).unwrap_or(u32::MAX)).map(|ring| Some(Box::new(ring)))
}

/// Creates the log of a worker, if the plan has one.
fn open_log(shared: &Shared, worker: usize, sessions: usize) -> std::io::Result<Option<Box<Log>>> {
    let traits = shared.plan.work.traits();
    let Some(log) = &traits.transaction_log else {
        return Ok(None);
    };
    let columns = LogColumns {
        lag: shared.plan.schedule != Schedule::Closed,
        retries: shared.plan.errors.max_retries > 0,
        skipped: shared.plan.latency_limit.is_some_and(|limit| limit.skip),
        failures: traits.logs_failure_types,
    };
    let seed = shared.streams.get(worker).map(|[_, log]| *log);
    let now = shared.clock.now();
    Log::create(log, columns, (worker, sessions), seed, now).map(|log| Some(Box::new(log)))
}

/// Creates the counters of a worker and allocates all their memory.
fn recorder(shared: &Shared) -> Result<Recorder, HistogramError> {
    let open_loop = shared.plan.schedule != Schedule::Closed;
    let mut recorder = Recorder::new(shared.operations, open_loop)?;
    recorder.count_nodes(shared.nodes.max_nodes())?;
    recorder.commands = Commands::new(shared.commands);
    Ok(recorder)
}

/// Notifies the main thread when a worker exits without a report, for example after a panic. Otherwise the
/// main thread would wait forever.
pub(super) struct LostGuard<'a> {
    pub(super) worker: usize,
    pub(super) shared: &'a Shared,
    pub(super) reported: bool,
}

impl Drop for LostGuard<'_> {
    fn drop(&mut self) {
        if !self.reported {
            let _ = self.shared.events.send((self.worker, WorkerEvent::Lost));
        }
    }
}

/// Opens a session and makes the first check of its plans.
fn open_session(
    plan: SessionPlan,
    number: u64,
    shared: &Shared,
    (known, findings): (&mut Option<Arc<Statements>>, &mut Vec<AccessFinding>),
) -> Result<Session, ConnectionError> {
    let SessionPlan { settings, statements, watched, work } = plan;
    let Work::Client(generator) = work else {
        let mixed = "a stage cannot mix client-side and server-side loops".to_owned();
        return Err(ConnectionError::Protocol(mixed));
    };
    let recipe = Arc::new(shared.recipe(settings, statements, watched, known));
    let mut opened = shared.retry_until_init_timeout(|| {
        opening::open_on_any_node(&recipe, number, true, &shared.nodes, &shared.interrupt)
    })?;
    findings::merge(findings, std::mem::take(&mut opened.findings));
    Ok(Session::new(recipe, generator, shared.plan.pipeline as usize, shared.operations, opened))
}
