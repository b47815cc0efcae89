//! A worker: a thread with a poller, its sessions and its own counters. Workers share only the
//! limit of the stage.
//!
//! In steady state a transaction costs one write, one read, its share of one poll, one look at the
//! clock, and no allocation.

mod end;
mod finish;
mod postponed;
mod report;
mod start;

use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender};

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::alarm::Alarm;
use super::clock::Clock;
use super::findings::{AccessFinding, note};
use super::limit::Limit;
use super::opening::{Connectors, Reopened};
use super::schedule::{Arrivals, Share};
use super::session::{Activity, Ended, Flushed, Session, SessionError};
use crate::metrics::{IntervalPart, Recorder};
use crate::plan::{ErrorPolicy, LatencyLimit, Plan};
use crate::probe::cpu;
use crate::server::{ConnectionError, Nodes};
use crate::units::Nanos;
use postponed::Postponed;
pub(super) use report::WorkerReport;
pub use report::{Acknowledged, Starts};
use riops_wire::sqlstate::SqlState;

/// The token of the main thread's wake-up call; sessions have the numbers from 0.
pub(super) const WAKE: Token = Token(usize::MAX);
/// The token of the worker's own timer.
const ALARM: Token = Token(usize::MAX - 1);
/// Replies that one poll returns at most.
const EVENTS: usize = 1024;

/// What a worker tells the main thread.
#[derive(Debug)]
pub(super) enum WorkerEvent {
    /// Its sessions are connected, and these are their plans; or which one is not, and why.
    Ready(Result<Vec<AccessFinding>, (u64, ConnectionError)>),
    /// It is gone without a word.
    Lost,
    /// One of its intervals is over.
    Interval(Box<IntervalPart>),
    /// It has ended.
    Ended(Box<WorkerReport>),
}

/// How a worker hands in its intervals and gets memory back.
#[derive(Debug)]
pub(super) struct IntervalLink {
    pub(super) worker: usize,
    pub(super) length: Nanos,
    pub(super) events: SyncSender<(usize, WorkerEvent)>,
    pub(super) spares: Receiver<Box<IntervalPart>>,
}

/// How a worker gets new connections for its sessions.
pub(super) struct ReconnectLink {
    pub(super) connectors: Connectors,
    pub(super) reply: Sender<Reopened>,
    pub(super) reopened: Receiver<Reopened>,
    pub(super) waker: Arc<mio::Waker>,
}

/// What of a plan the loop obeys.
#[derive(Debug, Clone)]
pub(super) struct Rules {
    pub(super) errors: ErrorPolicy,
    pub(super) reconnect_every: Option<u64>,
    /// Whether a transaction that is lost ends the stage.
    exact: bool,
    /// Errors after which a transaction is sent again, beside those of every workload.
    retried: Vec<SqlState>,
    /// Whether sessions go home when they can.
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

/// What a worker is made of.
pub(super) struct WorkerSetup<C> {
    pub(super) clock: C,
    pub(super) limit: Arc<Limit>,
    pub(super) poll: Poll,
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
}

pub(super) struct Worker<C> {
    clock: C,
    limit: Arc<Limit>,
    poll: Poll,
    sessions: Vec<Session>,
    share: Share,
    arrivals: Option<Arrivals>,
    rules: Rules,
    nodes: Nodes,
    /// The changes of the nodes that the sessions have heard of.
    nodes_seen: u64,
    changes: Vec<bool>,
    link: IntervalLink,
    reconnect: ReconnectLink,
    rng: Xoshiro256PlusPlus,
    interval: usize,
    interval_end: Nanos,
    /// Sessions that wait for the next start, the one that waits longest first.
    parked: VecDeque<usize>,
    /// Transactions that wait to be sent again.
    postponed: BinaryHeap<Postponed>,
    active: usize,
    /// The session that looks at its plans in the middle of the measurement: one at a time, so that
    /// the looks are no burst of their own.
    looking: Option<usize>,
    /// Whether all sessions have heard that the measurement is over.
    ending: bool,
    cpu_at_start_s: Option<f64>,
    cpu_at_end_s: Option<f64>,
    /// Starts that were due before the measurement.
    due_before: u64,
    report: WorkerReport,
}

impl<C: Clock> Worker<C> {
    pub(super) fn new(setup: WorkerSetup<C>) -> Self {
        let WorkerSetup {
            clock,
            limit,
            poll,
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
        } = setup;
        Self {
            interval_end: limit.measure_start().after(link.length),
            parked: VecDeque::with_capacity(sessions.len()),
            postponed: BinaryHeap::new(),
            active: sessions.len(),
            report: WorkerReport::new(recorder, changes.len(), limit.measure_start()),
            clock,
            limit,
            poll,
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
            looking: None,
            ending: false,
            cpu_at_start_s: None,
            cpu_at_end_s: None,
            due_before: 0,
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
                self.fail_all(&SessionError::Io(error.to_string()));
                return self.finish();
            }
        };
        self.report.recorder.begin(self.limit.measure_start());
        for number in 0..self.sessions.len() {
            self.go_on(number, self.clock.now());
        }
        while self.active > 0 {
            let polled = self
                .next_alarm()
                .map_or(Ok(()), |at| alarm.set(at, self.clock.now()))
                .and_then(|()| self.poll.poll(&mut events, None));
            match polled {
                Err(error) if error.kind() != std::io::ErrorKind::Interrupted => {
                    self.fail_all(&SessionError::Io(error.to_string()));
                }
                _ => {}
            }
            self.turn(&events);
        }
        self.finish()
    }

    /// Does all that is due after one poll.
    fn turn(&mut self, events: &Events) {
        let now = self.clock.now();
        self.note_time(now);
        self.take_reopened(now);
        self.follow_nodes(now);
        self.send_again(now);
        self.start_due(now);
        for event in events {
            match event.token() {
                WAKE | ALARM => {}
                Token(number) => self.serve(number, event.is_writable(), event.is_read_closed()),
            }
        }
        if now >= self.limit.end() && !self.ending {
            self.ending = true;
            self.wind_up_all(now);
        }
        if let Some(seconds) = self.limit.aborted_after_s() {
            self.fail_all(&SessionError::Drain(seconds));
        }
        if self.limit.is_measured(now) {
            self.report.recorder.away.record(self.clock.now().since(now));
        }
    }

    fn register_all(&self) -> std::io::Result<()> {
        (0..self.sessions.len()).try_for_each(|number| self.register(number))
    }

    fn register(&self, number: usize) -> std::io::Result<()> {
        match self.sessions.get(number).and_then(Session::descriptor) {
            Some(descriptor) => self.poll.registry().register(
                &mut SourceFd(&descriptor),
                Token(number),
                Interest::READABLE,
            ),
            None => Ok(()),
        }
    }

    /// Takes the CPU time at the borders of the measurement, and ends the intervals that are over.
    fn note_time(&mut self, now: Nanos) {
        let start = self.limit.measure_start();
        if self.cpu_at_start_s.is_none() && now >= start {
            self.cpu_at_start_s = Some(cpu::thread_seconds());
            let before = Nanos(start.0.saturating_sub(1));
            self.due_before = self.arrivals.as_mut().map_or(0, |arrivals| arrivals.due(before));
        }
        if self.cpu_at_end_s.is_none() && now >= self.limit.window_end() {
            self.cpu_at_end_s = Some(cpu::thread_seconds());
        }
        while now >= self.interval_end && self.interval_end < self.limit.window_end() {
            self.end_interval();
        }
    }

    fn end_interval(&mut self) {
        // The main thread gives back what it has merged; only when it is far behind is new
        // memory needed.
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
        if let Some(arrivals) = &mut self.arrivals {
            // A start that falls on the border belongs to the next interval.
            let backlog = arrivals.backlog(Nanos(self.interval_end.0.saturating_sub(1)));
            self.report.recorder.note_backlog(backlog);
        }
        self.interval += 1;
        self.interval_end = self.interval_end.after(self.link.length);
        let part = self.report.recorder.next_interval(spare, self.interval);
        let _ = self.link.events.send((self.link.worker, WorkerEvent::Interval(part)));
    }

    /// Reads what came for a session, and sends what is next.
    fn serve(&mut self, number: usize, writable: bool, closed: bool) {
        if writable {
            self.want_writable(number, false);
            self.push_out(number);
        }
        loop {
            let Some(session) = self.sessions.get_mut(number) else {
                return;
            };
            if matches!(session.activity, Activity::Ended | Activity::Connect) {
                return;
            }
            let filled = match session.fill() {
                Ok(filled) => filled,
                Err(error) => return self.broken(number, error),
            };
            loop {
                let Some(session) = self.sessions.get_mut(number) else {
                    return;
                };
                match session.take_end() {
                    Ok(Some(ended)) => self.ended(number, ended),
                    Ok(None) => break,
                    Err(error) => return self.broken(number, error),
                }
            }
            self.push_out(number);
            // The poller tells of an end only once, together with the last bytes: then the end has
            // to be read too.
            if !filled && !closed {
                return;
            }
        }
    }

    /// Books what has ended on a session and lets it go on.
    fn ended(&mut self, number: usize, ended: Ended) {
        let now = self.clock.now();
        match ended {
            Ended::Transaction(flight) => {
                self.book(number, flight, now);
                self.advance(number, now);
            }
            Ended::Check(check, finding) => {
                self.note_finding(number, check, finding);
                self.check(number, check + 1, now);
            }
            Ended::Failed(flight, error) => self.failed(number, flight, error, now),
            Ended::CheckFailed(check, error) => self.not_seen(number, check, error, now),
        }
    }

    /// Sends what a session has to send.
    fn push_out(&mut self, number: usize) {
        let Some(session) = self.sessions.get_mut(number) else {
            return;
        };
        match session.flush() {
            Ok(Flushed::All) => {}
            Ok(Flushed::Blocked) => self.want_writable(number, true),
            // Replies that came before the end count, and so does the server's reason.
            Ok(Flushed::PeerGone) => self.serve(number, false, true),
            Err(error) => self.broken(number, error),
        }
    }

    fn want_writable(&mut self, number: usize, wanted: bool) {
        let Some(descriptor) = self.sessions.get(number).and_then(Session::descriptor) else {
            return;
        };
        let interest =
            if wanted { Interest::READABLE | Interest::WRITABLE } else { Interest::READABLE };
        let registered =
            self.poll.registry().reregister(&mut SourceFd(&descriptor), Token(number), interest);
        if let Err(error) = registered {
            self.broken(number, SessionError::Io(error.to_string()));
        }
    }

    fn note_finding(
        &mut self,
        number: usize,
        check: usize,
        finding: crate::workload::access::Finding,
    ) {
        let Some(session) = self.sessions.get(number) else {
            return;
        };
        let access = session.recipe.checks.get(check).map(|(access, _)| access);
        let Some((access, moment)) = access.zip(session.next_check) else {
            return;
        };
        note(&mut self.report.findings, &access.statement, moment, finding, 1);
    }
}
