//! A worker: a thread that drives many sessions with one poller and has its own counters.
//!
//! Workers must not share mutable state, except for the limit of the stage. In steady state a transaction
//! costs one write, one read, its share of one poll, one clock read and no allocation.

mod deferred;
mod end;
mod finish;
mod logged;
mod postponed;
mod report;
mod ring;
mod shell;
mod start;
mod turns;
mod unread;

use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError};

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use rand_xoshiro::Xoshiro256PlusPlus;
use riops_ring::Ring;

use super::alarm::Alarm;
use super::clock::Clock;
use super::error::StartError;
use super::findings::{AccessFinding, Moment, UncheckedPlan, note, note_unchecked};
use super::limit::Limit;
use super::link::{Outlet, slot};
use super::log::Log;
use super::opening::{Connectors, Reopened};
use super::schedule::{Arrivals, Share};
use super::session::{Activity, Ended, Flushed, Session, SessionError};
use crate::metrics::{IntervalPart, Recorder};
use crate::plan::{ErrorPolicy, LatencyLimit, Plan};
use crate::probe::cpu;
use crate::server::Nodes;
use crate::units::Nanos;
use deferred::Deferred;
use postponed::Postponed;
pub(super) use report::WorkerReport;
pub use report::{Acknowledged, Starts, WarmupInFlight};
use riops_wire::frame::READ_BYTES_MAX;
use riops_wire::sqlstate::SqlState;
use shell::Shell;

/// Token of a wake-up by another thread. Sessions have the tokens from 0.
pub(super) const WAKE: Token = Token(usize::MAX);
/// Token of the worker's timer.
const ALARM: Token = Token(usize::MAX - 1);
/// Maximum number of events returned by one poll.
const EVENTS: usize = 1024;

/// Number of bytes that a session reads in one turn before the other sessions have theirs: two reads of the
/// largest size, some 50 µs of copying and decoding.
pub(super) const TURN_BYTES: usize = 2 * READ_BYTES_MAX;

/// An event that a worker sends to the main thread.
#[derive(Debug)]
pub(super) enum WorkerEvent {
    /// All sessions are connected, with the findings of their plan checks; or the first of them failed.
    Ready(Result<Vec<AccessFinding>, StartError>),
    /// The last transaction has ended. Sent only to wake the main thread; [`Limit`] has the count.
    Finished,
    /// The worker exited without a report.
    Lost,
    /// Counters of a completed interval.
    Interval(Box<IntervalPart>),
    /// The final report.
    Ended(Box<WorkerReport>),
}

/// Channels through which a worker sends its intervals and gets their memory back.
#[derive(Debug)]
pub(super) struct IntervalLink {
    pub(super) worker: usize,
    pub(super) length: Nanos,
    pub(super) events: SyncSender<(usize, WorkerEvent)>,
    pub(super) spares: Receiver<Box<IntervalPart>>,
    /// Intervals that are still to be sent because the channel was full, oldest first.
    pub(super) unsent: VecDeque<Box<IntervalPart>>,
}

impl IntervalLink {
    /// Sends a completed interval after those that are still to be sent. Never blocks: the time would be
    /// counted as service time. How many intervals wait is limited by the deadlines of everything that the
    /// supervising thread does.
    pub(super) fn submit(&mut self, part: Box<IntervalPart>) {
        self.unsent.push_back(part);
        while let Some(part) = self.unsent.pop_front() {
            match self.events.try_send((self.worker, WorkerEvent::Interval(part))) {
                Ok(()) => {}
                Err(TrySendError::Full((_, WorkerEvent::Interval(part)))) => {
                    return self.unsent.push_front(part);
                }
                Err(_) => return,
            }
        }
    }
}

/// Channels through which a worker gets new connections for its sessions.
pub(super) struct ReconnectLink {
    pub(super) connectors: Connectors,
    pub(super) reply: Sender<Reopened>,
    pub(super) reopened: Receiver<Reopened>,
    pub(super) waker: Arc<mio::Waker>,
}

/// Settings of a plan that apply to the transaction loop.
#[derive(Debug, Clone)]
pub(super) struct Rules {
    pub(super) errors: ErrorPolicy,
    pub(super) reconnect_every: Option<u64>,
    /// Whether the stage fails when a connection with transactions in flight is lost.
    exact: bool,
    /// SQLSTATEs that are retried in addition to those retried for every workload.
    retried: Vec<SqlState>,
    /// Whether sessions return to their home nodes when these are available again.
    rebalance: bool,
    late_after: Nanos,
    skip_late: bool,
}

impl Rules {
    pub(super) fn of(plan: &Plan, exact: bool, retried: Vec<SqlState>) -> Self {
        let (late_after, skip_late) = match plan.latency_limit {
            None => (Nanos::MAX, false),
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a limit above 0 and at most an hour"
            )]
            Some(LatencyLimit { limit_s, skip }) => (Nanos((limit_s * 1e9) as u64), skip),
        };
        Self {
            errors: plan.errors,
            reconnect_every: plan.reconnect_every,
            exact,
            retried,
            rebalance: plan.rebalance,
            late_after,
            skip_late,
        }
    }
}

/// Parts of a new worker.
pub(super) struct WorkerSetup<C> {
    pub(super) clock: C,
    pub(super) limit: Arc<Limit>,
    pub(super) poll: Poll,
    /// The ring, if the driver is `io_uring`.
    pub(super) ring: Option<Box<Ring>>,
    pub(super) sessions: Vec<Session>,
    pub(super) share: Share,
    pub(super) arrivals: Option<Arrivals>,
    pub(super) rules: Rules,
    pub(super) nodes: Nodes,
    pub(super) recorder: Recorder,
    pub(super) changes: Vec<bool>,
    pub(super) link: IntervalLink,
    pub(super) reconnect: ReconnectLink,
    pub(super) rng: Xoshiro256PlusPlus,
    pub(super) log: Option<Box<Log>>,
}

pub(super) struct Worker<C> {
    clock: C,
    limit: Arc<Limit>,
    poll: Poll,
    ring: Option<Box<Ring>>,
    /// Whether the ring has reported that the poller has events.
    poll_is_ready: bool,
    sessions: Vec<Session>,
    share: Share,
    arrivals: Option<Arrivals>,
    rules: Rules,
    nodes: Nodes,
    /// Node change counter at the last rebalancing.
    nodes_seen: u64,
    changes: Vec<bool>,
    link: IntervalLink,
    reconnect: ReconnectLink,
    rng: Xoshiro256PlusPlus,
    interval: usize,
    interval_end: Nanos,
    /// Sessions that wait for the next start, longest wait first.
    parked: VecDeque<usize>,
    /// Sessions that had unread bytes at the end of their turn. The poller does not report them again.
    unread: VecDeque<usize>,
    /// Memory that the sessions read into. Replies are decoded in it, so that it remains in the cache.
    buffer: Vec<u8>,
    /// What interactive transactions have put off to the next turn of the loop.
    deferred: VecDeque<Deferred>,
    shell: Shell,
    /// Transactions that wait for their retry or sleep.
    postponed: BinaryHeap<Postponed>,
    active: usize,
    /// Number of sessions whose last transaction has not ended.
    unfinished: usize,
    /// The session that is checking its plans during the measurement. Only one session per worker does so at
    /// a time, to avoid a burst of EXPLAIN statements.
    checking: Option<usize>,
    /// Whether the drain has begun.
    ending: bool,
    cpu_at_start_s: Option<f64>,
    cpu_at_end_s: Option<f64>,
    /// Number of sessions with a transaction in flight at the end of the measurement.
    busy_at_end: u64,
    /// Starts that were due before the measurement.
    due_before: u64,
    /// Those of them that were waiting for a free session when the measurement started.
    backlog_before: u64,
    /// The log of single transactions, if there is one.
    log: Option<Box<Log>>,
    report: WorkerReport,
}

impl<C: Clock> Worker<C> {
    pub(super) fn new(setup: WorkerSetup<C>) -> Self {
        let WorkerSetup {
            clock,
            limit,
            poll,
            ring,
            sessions,
            share,
            arrivals,
            rules,
            nodes,
            recorder,
            changes,
            link,
            reconnect,
            rng,
            log,
        } = setup;
        Self {
            interval_end: limit.measure_start().after(link.length),
            parked: VecDeque::with_capacity(sessions.len()),
            unread: VecDeque::with_capacity(sessions.len()),
            buffer: vec![0; READ_BYTES_MAX],
            deferred: VecDeque::new(),
            shell: Shell::new(Arc::clone(&reconnect.waker)),
            postponed: BinaryHeap::new(),
            active: sessions.len(),
            unfinished: sessions.len(),
            report: WorkerReport::new(recorder, changes.len(), limit.measure_start()),
            clock,
            limit,
            poll,
            // The poller is watched from the first wait on.
            poll_is_ready: ring.is_some(),
            ring,
            sessions,
            share,
            arrivals,
            rules,
            nodes_seen: nodes.changes(),
            nodes,
            changes,
            link,
            reconnect,
            rng,
            interval: 0,
            checking: None,
            ending: false,
            cpu_at_start_s: None,
            cpu_at_end_s: None,
            busy_at_end: 0,
            due_before: 0,
            backlog_before: 0,
            log,
        }
    }

    /// Runs all sessions to the end of the stage.
    pub(super) fn run(mut self) -> WorkerReport {
        let mut events = Events::with_capacity(EVENTS);
        let prepared = Alarm::new(self.poll.registry(), ALARM)
            .and_then(|alarm| self.register_all().map(|()| alarm));
        let mut alarm = match prepared {
            Ok(alarm) => alarm,
            Err(error) => {
                self.fail_all(&SessionError::client("cannot wait for replies", &error));
                return self.finish();
            }
        };
        self.report.recorder.begin(self.limit.measure_start());
        for number in 0..self.sessions.len() {
            self.resume(number, self.clock.now());
        }
        while self.active > 0 {
            match self.wait(&mut alarm, &mut events) {
                Err(error) if error.kind() != std::io::ErrorKind::Interrupted => {
                    self.fail_all(&SessionError::client("cannot wait for replies", &error));
                }
                _ => {}
            }
            self.turn(&events);
        }
        self.finish()
    }

    /// Handles everything that is due after one poll.
    fn turn(&mut self, events: &Events) {
        let now = self.clock.now();
        self.note_time(now);
        self.attach_reopened(now);
        self.rebalance_sessions(now);
        self.resend_due(now);
        self.serve_shell(now);
        self.serve_deferred(self.deferred.len(), now);
        self.start_due(now);
        let unread = self.unread.len();
        for event in events {
            match event.token() {
                WAKE | ALARM => {}
                Token(number) => self.serve(number, event.is_writable(), event.is_read_closed()),
            }
        }
        self.serve_ring();
        self.serve_unread(unread);
        if now >= self.limit.end() && !self.ending {
            self.ending = true;
            if self.limit.stops_by_count() {
                self.cpu_at_end_s = Some(cpu::thread_seconds());
            }
            self.begin_drain(now);
        }
        if let Some(seconds) = self.limit.aborted_after_s() {
            self.fail_all(&SessionError::Drain(seconds));
        }
        // After the end of a run by count, only the turns with a counted transaction belong to it.
        if self.limit.is_measured(now) && (!self.ending || self.report.last_end >= now) {
            self.report.recorder.poll_stalls.record(self.clock.now().since(now));
        }
    }

    fn register_all(&mut self) -> std::io::Result<()> {
        (0..self.sessions.len()).try_for_each(|number| self.register(number))
    }

    fn register(&mut self, number: usize) -> std::io::Result<()> {
        if self.attach_to_ring(number)? {
            return Ok(());
        }
        match self.sessions.get(number).and_then(Session::descriptor) {
            Some(descriptor) => self.poll.registry().register(
                &mut SourceFd(&descriptor),
                Token(number),
                Interest::READABLE,
            ),
            None => Ok(()),
        }
    }

    /// Reads the CPU time at the start and the end of the measurement, and ends completed intervals.
    fn note_time(&mut self, now: Nanos) {
        let start = self.limit.measure_start();
        if self.cpu_at_start_s.is_none() && now >= start {
            self.cpu_at_start_s = Some(cpu::thread_seconds());
            let before = Nanos(start.0.saturating_sub(1));
            if let Some(arrivals) = &mut self.arrivals {
                self.due_before = arrivals.due(before);
                self.backlog_before = arrivals.backlog(before);
            }
        }
        if self.cpu_at_end_s.is_none() && now >= self.limit.window_end() {
            self.cpu_at_end_s = Some(cpu::thread_seconds());
            self.busy_at_end = self.busy();
        }
        while now >= self.interval_end && self.interval_end < self.limit.window_end() {
            self.end_interval();
        }
    }

    /// Returns the number of sessions with a transaction in flight.
    fn busy(&self) -> u64 {
        self.sessions.iter().filter(|session| !session.is_idle()).count() as u64
    }

    fn end_interval(&mut self) {
        // The main thread returns the memory of merged intervals. An allocation is needed only if it is far
        // behind.
        let open_loop = self.arrivals.is_some();
        let spare = self
            .link
            .spares
            .try_recv()
            .ok()
            .or_else(|| IntervalPart::new(open_loop).ok().map(Box::new));
        let Some(spare) = spare else {
            return;
        };
        let busy = if open_loop { self.busy() } else { 0 };
        if let Some(arrivals) = &mut self.arrivals {
            // A start exactly at the end belongs to the next interval.
            let backlog = arrivals.backlog(Nanos(self.interval_end.0.saturating_sub(1)));
            self.report.recorder.set_backlog(backlog, busy);
        }
        self.interval += 1;
        self.interval_end = self.interval_end.after(self.link.length);
        let part = self.report.recorder.next_interval(spare, self.interval);
        self.link.submit(part);
    }

    /// Reads the replies of a session, up to its share of the turn, and sends its next messages.
    fn serve(&mut self, number: usize, writable: bool, closed: bool) {
        if writable {
            self.set_write_interest(number, false);
            self.flush_session(number);
        }
        let mut share = TURN_BYTES;
        loop {
            let Some(session) = self.sessions.get_mut(number) else {
                return;
            };
            let closed = session.is_read_closed(closed);
            if session.unread || matches!(session.activity, Activity::Ended | Activity::Connect) {
                return;
            }
            let mut buffer = std::mem::take(&mut self.buffer);
            let filled = session.fill(&mut buffer);
            let handled = match &filled {
                Ok(filled) => {
                    self.receive(number, buffer.get(..filled.in_buffer).unwrap_or_default())
                }
                Err(_) => Ok(()),
            };
            self.buffer = buffer;
            let filled = match (filled, handled) {
                (Ok(filled), Ok(())) => filled,
                (Err(error), _) | (_, Err(error)) => return self.connection_lost(number, *error),
            };
            self.flush_session(number);
            // After a close no event follows, so the end of the stream must be read now.
            if !filled.more && !closed {
                return;
            }
            share = share.saturating_sub(filled.bytes);
            if share == 0 {
                return self.read_later(number);
            }
        }
    }

    /// Handles the replies of a session that were received before and in `data`.
    fn receive(&mut self, number: usize, mut data: &[u8]) -> Result<(), Box<SessionError>> {
        while let Some(session) = self.sessions.get_mut(number)
            && let Some(ended) = session.take_end(&mut data)?
        {
            self.ended(number, ended);
        }
        Ok(())
    }

    /// Counts a completed transaction or plan check of a session, then resumes the session.
    fn ended(&mut self, number: usize, ended: Ended) {
        let now = self.clock.now();
        match ended {
            Ended::Transaction(flight) => {
                self.count_success(number, flight, now);
                self.advance(number, now);
            }
            Ended::Turn(flight) => self.turn_ended(number, flight, now),
            Ended::Check(check, finding) => {
                self.note_finding(number, check, *finding);
                self.check(number, check + 1, now);
            }
            Ended::Failed(flight, error) => self.transaction_failed(number, flight, error, now),
            Ended::CheckFailed(check, error) => self.plan_check_failed(number, check, error, now),
            Ended::Unchecked(check, reason) => {
                self.note_unchecked(number, check, reason);
                self.check(number, check + 1, now);
            }
        }
    }

    /// Writes the pending bytes of a session to its socket.
    fn flush_session(&mut self, number: usize) {
        let Some(session) = self.sessions.get_mut(number) else {
            return;
        };
        let is_on_ring = session.is_on_ring;
        let outlet = match &mut self.ring {
            Some(ring) if is_on_ring => Outlet::Ring(ring, slot(number)),
            _ => Outlet::Socket,
        };
        match session.flush(outlet) {
            Ok(Flushed::All) => {}
            // The ring reports when it accepts more.
            Ok(Flushed::Blocked) if is_on_ring => {}
            Ok(Flushed::Blocked) => self.set_write_interest(number, true),
            // The replies and the error that the server sent before it closed the connection still count.
            Ok(Flushed::PeerClosed) => self.serve(number, false, true),
            Err(error) => self.connection_lost(number, *error),
        }
    }

    fn set_write_interest(&mut self, number: usize, enabled: bool) {
        let Some(descriptor) = self.sessions.get(number).and_then(Session::descriptor) else {
            return;
        };
        let interest =
            if enabled { Interest::READABLE | Interest::WRITABLE } else { Interest::READABLE };
        let registered =
            self.poll.registry().reregister(&mut SourceFd(&descriptor), Token(number), interest);
        if let Err(error) = registered {
            let error = SessionError::client("cannot wait for a free send buffer", &error);
            self.fail(number, error, self.clock.now());
        }
    }

    fn note_finding(
        &mut self,
        number: usize,
        check: usize,
        finding: crate::workload::access::Finding,
    ) {
        if let Some((statement, moment)) = self.checked(number, check) {
            note(&mut self.report.findings, &statement, moment, finding, 1);
        }
    }

    /// Returns the statement and the moment of a plan check.
    fn checked(&mut self, number: usize, check: usize) -> Option<(String, Moment)> {
        let session = self.sessions.get_mut(number)?;
        session.checked_statement(check).zip(session.next_check)
    }

    /// Records a plan check without a verdict.
    fn note_unchecked(&mut self, number: usize, check: usize, reason: String) {
        if let Some((statement, moment)) = self.checked(number, check) {
            let unchecked = UncheckedPlan { statement, moment, reason, sessions: 1 };
            note_unchecked(&mut self.report.unchecked, unchecked);
        }
    }
}
