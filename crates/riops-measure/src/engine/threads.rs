//! The worker threads: they open their sessions, run their loops and send their reports.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::Builder;

use super::clock::Clock;
use super::error::EngineError;
use super::findings::{self, AccessFinding};
use super::log::{Log, LogColumns};
use super::opening;
use super::schedule::Share;
use super::session::Session;
use super::shared::{Inbox, Shared, Signal, StartSignal, WorkerHandle};
use super::worker::{
    Counts, Intervals, Reconnects, Retries, Rules, Shell, StartQueue, Transport, WAKE, Worker,
    WorkerEvent, WorkerReport,
};
use crate::metrics::{Commands, Recorder, Samples, Steps};
use crate::server::ConnectionError;
use crate::workload::keys::{Purpose, stream};
use crate::workload::{SessionPlan, Work};
use riops_model::plan::{Driver, Plan, Schedule};
use riops_model::record::HistogramError;
use riops_model::units::{Nanos, Span};
use riops_ring::Ring;

/// Starts the workers. Sessions are assigned to them round-robin.
pub(super) fn start_workers(
    sessions: Vec<SessionPlan>,
    workers: usize,
    shared: &Arc<Shared>,
) -> Result<Vec<WorkerHandle>, EngineError> {
    let as_u32 = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
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
            let share = Share { worker: as_u32(worker), workers: as_u32(workers) };
            let builder = Builder::new().name(format!("riops-worker-{worker}"));
            let signal = Signal::Wake(Arc::clone(&waker));
            start_thread(builder, worker, signal, shared, move |inbox, shared| {
                work(share, sessions, poll, waker, inbox, shared)
            })
        })
        .collect()
}

/// Starts a thread with a part of the sessions. It sends its report or its error to the main thread.
pub(super) fn start_thread(
    builder: Builder,
    worker: usize,
    signal: Signal,
    shared: &Arc<Shared>,
    body: impl FnOnce(Inbox, &Shared) -> Result<Option<WorkerReport>, EngineError> + Send + 'static,
) -> Result<WorkerHandle, EngineError> {
    let (start_signal, start_received) = sync_channel(1);
    let (spares, spares_received) = sync_channel(4);
    let inbox = Inbox { start_signal: start_received, spares: spares_received };
    let shared = Arc::clone(shared);
    let thread = builder.spawn(move || {
        let mut last = LastEvent { worker, shared: &shared, event: Some(WorkerEvent::Lost) };
        last.event = match body(inbox, &shared) {
            Ok(report) => report.map(|report| WorkerEvent::Ended(Box::new(report))),
            Err(error) => Some(WorkerEvent::Ready(Err(error))),
        };
    })?;
    Ok(WorkerHandle { signal, start_signal, spares, thread })
}

/// Runs the sessions of a worker. Returns `None` if the stage has failed before its start.
fn work(
    share: Share,
    sessions: Vec<SessionPlan>,
    poll: mio::Poll,
    waker: Arc<mio::Waker>,
    inbox: Inbox,
    shared: &Shared,
) -> Result<Option<WorkerReport>, EngineError> {
    let worker = share.worker as usize;
    let (mut sessions, findings) = open_sessions(sessions, share, shared)?;
    let mut recorder = recorder(shared)?;
    let ring = ring(shared.driver, sessions.len())?;
    let log = open_log(shared, worker).map_err(EngineError::Log)?;
    // Fails only if the stage has failed.
    let _ = shared.events.send((worker, WorkerEvent::Ready(Ok(findings))));
    let Ok(StartSignal { start, window, unclaimed }) = inbox.start_signal.recv() else {
        sessions.iter_mut().for_each(Session::end);
        return Ok(None);
    };
    let keeps_samples = shared.plan.keep_samples;
    recorder.samples =
        keeps_samples.then(|| Samples::new(share.workers as usize, window.measure_start()));
    // All workers start at the same time, no matter when each received the signal.
    std::thread::sleep(start.since(shared.clock.now()).into());
    let (plan, measure_start) = (&shared.plan, window.measure_start());
    let rules = Rules::new(plan, shared.exact, shared.retried.clone());
    let (length, events) = (shared.interval, shared.events.clone());
    let intervals = Intervals::new(worker, &window, length, events, inbox.spares);
    let worker = Worker {
        clock: shared.clock,
        transport: Transport::new(poll, ring, sessions.len()),
        starts: StartQueue::new(unclaimed, worker == 0, sessions.len()),
        retries: Retries::new(
            stream(plan.seed, Purpose::Backoff, worker as u64),
            plan.errors.redraw,
        ),
        deferred: VecDeque::new(),
        shell: Shell::new(Arc::clone(&waker)),
        reconnects: Reconnects::new(
            shared.connectors.clone(),
            shared.nodes.clone(),
            waker,
            plan.rebalance,
        ),
        checking: None,
        counts: Counts::new(
            Arc::clone(&window),
            WorkerReport::new(recorder, shared.changes.len(), measure_start),
            shared.changes.clone(),
            rules.late_after,
            intervals,
            log,
        ),
        active: sessions.len(),
        unfinished: sessions.len(),
        sessions,
        window,
        rules,
    };
    Ok(Some(worker.run()))
}

/// Opens the sessions of a worker and collects the findings of their plan checks. An error includes the
/// number of the session that failed.
fn open_sessions(
    sessions: Vec<SessionPlan>,
    share: Share,
    shared: &Shared,
) -> Result<(Vec<Session>, Vec<AccessFinding>), EngineError> {
    let (mut findings, mut known) = (Vec::new(), None);
    let mut open = |plan: SessionPlan, id: u64| {
        let SessionPlan { settings, statements, watched, work } = plan;
        let Work::Client(generator) = work else {
            let mixed = "a stage cannot mix client-side and server-side loops".to_owned();
            return Err(ConnectionError::Protocol(mixed));
        };
        let setup = Arc::new(shared.setup(settings, statements, watched, &mut known));
        let mut opened = shared.retry_until_init_timeout(|| {
            opening::open_on_any_node(&setup, id, true, &shared.nodes, &shared.interrupt)
        })?;
        findings::merge(&mut findings, std::mem::take(&mut opened.findings));
        let depth = shared.plan.pipeline as usize;
        let mut session = Session::new(id, setup, generator, depth, shared.operations, opened);
        session.most = shared.plan.transactions_of(id).unwrap_or(u64::MAX);
        Ok(session)
    };
    let opened = (0..).zip(sessions).map(|(position, plan)| {
        let id = share.session_id(position);
        open(plan, id).map_err(|error| EngineError::connect(id, shared.total_sessions, error))
    });
    let opened = opened.collect::<Result<_, _>>()?;
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
fn open_log(shared: &Shared, worker: usize) -> std::io::Result<Option<Box<Log>>> {
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
    Log::create(log, columns, worker, seed, now).map(|log| Some(Box::new(log)))
}

/// Creates the counters of a worker and allocates all their memory.
fn recorder(shared: &Shared) -> Result<Recorder, HistogramError> {
    let open_loop = shared.plan.schedule != Schedule::Closed;
    let mut recorder = Recorder::new(shared.operations, open_loop)?;
    recorder.count_nodes(shared.nodes.max_nodes())?;
    recorder.steps = Steps::new(step_ends(&shared.plan))?;
    recorder.commands = Commands::new(shared.commands);
    Ok(recorder)
}

/// Returns when the steps of the profile of the rate end, since the start of the measurement.
fn step_ends(plan: &Plan) -> Vec<Nanos> {
    let steps = plan.schedule.steps();
    let ends_s = steps.iter().scan(0.0, |end_s, step| {
        *end_s += step.seconds;
        Some(*end_s)
    });
    ends_s.map(|end_s| Span::of_seconds(end_s).0.into()).collect()
}

/// The last event of a thread, sent even after a panic: otherwise the main thread would wait forever.
struct LastEvent<'a> {
    worker: usize,
    shared: &'a Shared,
    event: Option<WorkerEvent>,
}

impl Drop for LastEvent<'_> {
    fn drop(&mut self) {
        if let Some(event) = self.event.take() {
            let _ = self.shared.events.send((self.worker, event));
        }
    }
}
