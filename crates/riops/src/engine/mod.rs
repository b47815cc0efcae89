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
mod schedule;
mod session;
mod worker;

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::time::Duration;

pub use calibrate::{Calibration, calibrate};
pub use clock::{Clock, MonotonicClock};
pub use findings::{AccessFinding, Moment};
pub use null_server::NullServer;
pub use session::SessionError;
pub use worker::{Acknowledged, Starts};

use crate::metrics::{Figures, HistogramError, IntervalPart, Point, Recorder, Timeline, outage};
use crate::plan::{RunPlan, Schedule, Threshold};
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
use worker::{
    IntervalLink, ReconnectLink, Rules, WAKE, Worker, WorkerEvent, WorkerReport, WorkerSetup,
};

/// How often the main thread looks at the user's wishes.
const LOOK: Duration = Duration::from_millis(50);
/// A drain that takes longer is told of.
const DRAIN_TOLD: Duration = Duration::from_secs(1);
/// Between "all are connected" and the first transaction: time for every worker to hear of it.
const HEAD_START: Duration = Duration::from_millis(5);

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

/// What was measured of a stage.
#[derive(Debug)]
pub struct StageResult {
    /// The stage's name.
    pub name: String,
    /// Names of the operations, in the order of the recorder's.
    pub operations: Vec<&'static str>,
    /// Length of the measurement.
    pub seconds: f64,
    /// Counts and histograms of all workers.
    pub recorder: Recorder,
    /// What the database acknowledged in all phases, by operation.
    pub acknowledged: Vec<Acknowledged>,
    /// Replies that were not what was asked for, in all phases.
    pub wrong_replies: u64,
    /// What the plans showed, before, in the middle and after.
    pub findings: Vec<AccessFinding>,
    /// Counted transactions of each session.
    pub session_transactions: Vec<u64>,
    /// Transactions that ended after the measurement.
    pub drained: u64,
    /// The longest of them.
    pub drained_max: Nanos,
    /// Transactions that were under way at its end, and failed or are unknown.
    pub drained_lost: u64,
    /// CPU seconds of each worker during the measurement.
    pub worker_cpu_s: Vec<f64>,
    /// What became of the starts that a rate intended; only where one is set.
    pub starts: Option<Starts>,
    /// The threshold that ended it early, where one did.
    pub breached: Option<Threshold>,
    /// The time series.
    pub series: Vec<Point>,
    /// Why it ended early, where it did.
    pub failure: Option<SessionError>,
    /// Whether the user ended it.
    pub interrupted: bool,
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

/// A stage whose workers have been started.
struct StageRun<'a> {
    plan: &'a RunPlan,
    shared: &'a Shared,
    handles: Vec<WorkerHandle>,
    received: Receiver<(usize, WorkerEvent)>,
    interrupt: &'a Interrupt,
}

impl StageRun<'_> {
    /// Waits until every session of every worker is ready; the first failure ends all.
    fn await_connected(&self) -> Result<Vec<AccessFinding>, EngineError> {
        let mut findings = Vec::new();
        for _ in &self.handles {
            match self.received.recv() {
                Ok((_, WorkerEvent::Ready(Ok(found)))) => findings::merge(&mut findings, found),
                Ok((_, WorkerEvent::Ready(Err((number, source))))) => {
                    return Err(EngineError::Connect {
                        session: usize::try_from(number).unwrap_or(usize::MAX).saturating_add(1),
                        sessions: self.shared.total_sessions,
                        source,
                    });
                }
                _ => return Err(EngineError::WorkerLost),
            }
        }
        Ok(findings)
    }

    fn measure(
        self,
        name: String,
        operations: Vec<&'static str>,
        before: Vec<AccessFinding>,
        probe: &mut Probe,
        observer: &mut dyn Observer,
    ) -> Result<StageResult, EngineError> {
        let start = self.shared.clock.now().after(HEAD_START.into());
        let measure_start = start.after(self.plan.warmup().into());
        let limit = Arc::new(Limit::new(self.plan.stop, measure_start));
        for handle in &self.handles {
            handle
                .go
                .send(Go { start, limit: Arc::clone(&limit) })
                .map_err(|_| EngineError::WorkerLost)?;
        }
        let mut timeline = Timeline::new(self.handles.len(), self.plan.interval_s);
        if self.plan.abort_on_threshold {
            timeline.sum_up(self.plan.schedule != Schedule::Closed)?;
        }
        let (reports, breached) = self.watch(&limit, &mut timeline, probe, observer)?;
        for handle in self.handles {
            handle.thread.join().map_err(|_| EngineError::WorkerLost)?;
        }
        let interrupted = self.interrupt.requested();
        for report in &reports {
            timeline.add_last(report.recorder.interval())?;
        }
        let mut result = merge_reports(reports, &limit)?;
        result.name = name;
        result.operations = operations;
        result.interrupted = interrupted;
        let (series, closed) = timeline.finish(result.seconds);
        for point in series.iter().rev().take(closed).rev() {
            observer.point(point);
        }
        result.series = series;
        result.breached = breached;
        note_outages(&mut result, limit.measure_start());
        let mut findings = before;
        findings::merge(&mut findings, result.findings);
        findings.sort_by(|a, b| (&a.statement, a.moment).cmp(&(&b.statement, b.moment)));
        result.findings = findings;
        Ok(result)
    }

    /// Calls the workers when the time for something has come, and collects what they say, until
    /// all have ended.
    fn watch(
        &self,
        limit: &Limit,
        timeline: &mut Timeline,
        probe: &mut Probe,
        observer: &mut dyn Observer,
    ) -> Result<(Vec<WorkerReport>, Option<Threshold>), EngineError> {
        let clock = self.shared.clock;
        let mut reports = Vec::new();
        let mut breached = None;
        let mut next_call = limit.measure_start();
        let (mut measuring, mut ended, mut told, mut wish_is_old) = (false, false, false, false);
        while reports.len() < self.handles.len() {
            let now = clock.now();
            let next = next_call.min(if ended { Nanos::MAX } else { limit.end() });
            let wait = Duration::from(next.since(now)).min(LOOK);
            match self.received.recv_timeout(wait) {
                Ok((worker, WorkerEvent::Interval(part))) => {
                    for point in timeline.add(&part)? {
                        observer.point(&point);
                    }
                    if breached.is_none() {
                        breached = self.breached(timeline);
                    }
                    if let Some(handle) = self.handles.get(worker) {
                        let _ = handle.spares.try_send(part);
                    }
                }
                Ok((_, WorkerEvent::Ended(report))) => reports.push(*report),
                Ok((_, WorkerEvent::Ready(_))) | Err(RecvTimeoutError::Timeout) => {}
                Ok((_, WorkerEvent::Lost)) | Err(RecvTimeoutError::Disconnected) => {
                    return Err(EngineError::WorkerLost);
                }
            }
            let now = clock.now();
            if self.interrupt.requested() || breached.is_some() {
                limit.end_now(now);
            }
            if !measuring && now >= limit.measure_start() {
                measuring = true;
                probe.start();
                observer.measuring();
            }
            if !ended && now >= limit.end() {
                ended = true;
                wish_is_old = self.interrupt.requested();
                if !limit.is_by_number() {
                    probe.end();
                }
                self.call_workers()?;
            }
            if now >= next_call {
                next_call = next_call.after(self.shared.interval);
                self.call_workers()?;
            }
            let waited: Duration = now.since(limit.end()).into();
            if ended && !told && waited >= DRAIN_TOLD {
                told = true;
                observer.draining();
            }
            // Who asks for the end once more while nothing but the drain is left does not want it.
            let unwanted = told && self.interrupt.requested() && !wish_is_old;
            if ended && (waited >= limit.patience() || unwanted) {
                limit.abort(waited);
                self.call_workers()?;
            }
        }
        if !ended || limit.is_by_number() {
            probe.end();
        }
        Ok((reports, breached))
    }

    /// The threshold that the measurement has breached so far, where that ends it.
    fn breached(&self, timeline: &Timeline) -> Option<Threshold> {
        let (total, seconds) = timeline.total()?;
        let figures = Figures::so_far(total, seconds);
        let breaks = |threshold: &&Threshold| {
            figures.get(threshold.metric).is_some_and(|found| threshold.is_clearly_breached(found))
        };
        self.plan.thresholds.iter().find(breaks).cloned()
    }

    fn call_workers(&self) -> Result<(), EngineError> {
        self.handles.iter().try_for_each(|handle| handle.waker.wake()).map_err(EngineError::from)
    }
}

fn merge_reports(reports: Vec<WorkerReport>, limit: &Limit) -> Result<StageResult, EngineError> {
    let last_end = reports.iter().map(|report| report.last_end).max().unwrap_or_default();
    let end = if limit.is_by_number() { last_end } else { limit.end() };
    // A worker that has had no success for a while has had none until the common end.
    let mut reports = reports.into_iter().map(|mut report| {
        report.recorder.gaps.success(end);
        report
    });
    let first = reports.next().ok_or(EngineError::WorkerLost)?;
    let mut result = StageResult {
        name: String::new(),
        operations: Vec::new(),
        seconds: end.since(limit.measure_start()).as_seconds(),
        recorder: first.recorder,
        acknowledged: first.acknowledged,
        wrong_replies: first.wrong_replies,
        findings: first.findings,
        session_transactions: first.session_transactions,
        drained: first.drained,
        drained_max: first.drained_max,
        drained_lost: first.drained_lost,
        worker_cpu_s: vec![first.cpu_s],
        starts: first.starts,
        breached: None,
        series: Vec::new(),
        failure: first.failure,
        interrupted: false,
    };
    for report in reports {
        result.recorder.merge(&report.recorder)?;
        for (mine, theirs) in result.acknowledged.iter_mut().zip(report.acknowledged) {
            mine.transactions += theirs.transactions;
            mine.rows += theirs.rows;
            mine.rows_unknown += theirs.rows_unknown;
            mine.transactions_unknown += theirs.transactions_unknown;
        }
        result.wrong_replies += report.wrong_replies;
        findings::merge(&mut result.findings, report.findings);
        result.session_transactions.extend(report.session_transactions);
        result.drained += report.drained;
        result.drained_lost += report.drained_lost;
        result.drained_max = result.drained_max.max(report.drained_max);
        result.worker_cpu_s.push(report.cpu_s);
        if let (Some(mine), Some(theirs)) = (&mut result.starts, report.starts) {
            mine.intended += theirs.intended;
            mine.waiting += theirs.waiting;
            mine.oldest_wait = mine.oldest_wait.max(theirs.oldest_wait);
        }
        result.failure = result.failure.or(report.failure);
    }
    Ok(result)
}

/// Adds to each kind of error how long nothing succeeded around it.
fn note_outages(result: &mut StageResult, start: Nanos) {
    let recorder = &mut result.recorder;
    let (times, gaps) = (recorder.error_times.clone(), recorder.gaps.clone());
    for entry in recorder.errors_mut().entries_mut() {
        if let Some(found) = outage(&entry.sqlstate, &times, &gaps, &result.series, start) {
            entry.without_success_s = Some(found.without_success_s);
            entry.until_90_percent_s = found.until_90_percent_s;
        }
    }
}

#[cfg(test)]
mod tests;
