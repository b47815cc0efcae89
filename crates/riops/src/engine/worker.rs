//! A worker: a thread with a poller, its sessions and its own counters. Workers share only the
//! limit of the stage.
//!
//! In steady state a transaction costs one write, one read, its share of one poll, one look at the
//! clock, and no allocation.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender};
use std::time::Duration;

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};

use super::clock::Clock;
use super::limit::{Limit, Permission};
use super::session::{Activity, Ended, Moment, Session, SessionError};
use crate::metrics::{IntervalPart, Measured, Recorder};
use crate::probe::cpu;
use crate::target::ConnectionError;
use crate::units::Nanos;
use crate::workload::Outcome;
use crate::workload::access::Finding;

/// The token of the main thread's wake-up call; sessions have the numbers from 0.
pub(super) const WAKE: Token = Token(usize::MAX);
/// Replies that one poll returns at most.
const EVENTS: usize = 1024;

/// Everything that the database acknowledged, in all phases.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Acknowledged {
    /// Transactions.
    pub transactions: u64,
    /// Rows.
    pub rows: u64,
    /// Rows of transactions whose outcome is unknown, at most.
    pub rows_unknown: u64,
    /// Transactions whose outcome is unknown.
    pub transactions_unknown: u64,
}

/// A look at one plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessFinding {
    /// Name of the prepared statement.
    pub statement: String,
    /// When.
    pub moment: Moment,
    /// What was seen.
    pub finding: Finding,
    /// In how many sessions.
    pub sessions: u32,
}

/// What a worker has to say at its end.
#[derive(Debug)]
pub(super) struct WorkerReport {
    pub(super) recorder: Recorder,
    pub(super) acknowledged: Vec<Acknowledged>,
    pub(super) wrong_replies: u64,
    pub(super) findings: Vec<AccessFinding>,
    pub(super) session_transactions: Vec<u64>,
    pub(super) drained: u64,
    pub(super) drained_max: Nanos,
    pub(super) last_end: Nanos,
    pub(super) cpu_s: f64,
    pub(super) failure: Option<SessionError>,
}

/// What a worker tells the main thread.
#[derive(Debug)]
pub(super) enum WorkerEvent {
    /// Its sessions are connected, and these are their plans; or which one is not, and why.
    Ready(Result<Vec<AccessFinding>, (usize, ConnectionError)>),
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

/// What a worker is made of.
pub(super) struct WorkerSetup<C> {
    pub(super) clock: C,
    pub(super) limit: Arc<Limit>,
    pub(super) poll: Poll,
    pub(super) sessions: Vec<Session>,
    pub(super) recorder: Recorder,
    pub(super) changes: Vec<bool>,
    pub(super) link: IntervalLink,
}

pub(super) struct Worker<C> {
    clock: C,
    limit: Arc<Limit>,
    poll: Poll,
    sessions: Vec<Session>,
    changes: Vec<bool>,
    link: IntervalLink,
    interval: usize,
    interval_end: Nanos,
    /// Sessions that wait for their next intended start.
    waiting: BinaryHeap<Reverse<(Nanos, usize)>>,
    active: usize,
    cpu_at_start_s: Option<f64>,
    cpu_at_end_s: Option<f64>,
    report: WorkerReport,
}

impl<C: Clock> Worker<C> {
    pub(super) fn new(setup: WorkerSetup<C>) -> Self {
        let WorkerSetup { clock, limit, poll, sessions, recorder, changes, link } = setup;
        Self {
            interval_end: limit.measure_start().after(link.length),
            waiting: BinaryHeap::with_capacity(sessions.len()),
            active: sessions.len(),
            report: WorkerReport {
                recorder,
                acknowledged: vec![Acknowledged::default(); changes.len()],
                wrong_replies: 0,
                findings: Vec::new(),
                session_transactions: Vec::new(),
                drained: 0,
                drained_max: Nanos(0),
                last_end: limit.measure_start(),
                cpu_s: 0.0,
                failure: None,
            },
            clock,
            limit,
            poll,
            sessions,
            changes,
            link,
            interval: 0,
            cpu_at_start_s: None,
            cpu_at_end_s: None,
        }
    }

    /// Runs all sessions to the end of the stage.
    pub(super) fn run(mut self) -> WorkerReport {
        let mut events = Events::with_capacity(EVENTS);
        if let Err(error) = self.register_all() {
            self.fail_all(&SessionError::Io(error.to_string()));
        }
        for number in 0..self.sessions.len() {
            self.advance(number, self.clock.now());
        }
        while self.active > 0 {
            let timeout = self.timeout();
            match self.poll.poll(&mut events, timeout) {
                Err(error) if error.kind() != std::io::ErrorKind::Interrupted => {
                    self.fail_all(&SessionError::Io(error.to_string()));
                }
                _ => {}
            }
            let now = self.clock.now();
            self.note_time(now);
            self.start_waiting(now);
            for event in &events {
                match event.token() {
                    WAKE => {}
                    Token(number) => {
                        self.serve(number, event.is_writable(), event.is_read_closed());
                    }
                }
            }
            if self.limit.is_aborted() {
                self.fail_all(&SessionError::Drain(self.limit.patience().as_secs()));
            }
        }
        self.finish()
    }

    fn register_all(&mut self) -> std::io::Result<()> {
        for (number, session) in self.sessions.iter().enumerate() {
            let descriptor = session.stream().as_raw_fd();
            self.poll.registry().register(
                &mut SourceFd(&descriptor),
                Token(number),
                Interest::READABLE,
            )?;
        }
        Ok(())
    }

    /// How long the poll may wait: for the next intended start, or as long as it takes, since the
    /// main thread calls when the time for something has come.
    fn timeout(&self) -> Option<Duration> {
        let Reverse((start, _)) = self.waiting.peek()?;
        Some(start.since(self.clock.now()).into())
    }

    /// Takes the CPU time at the borders of the measurement, and ends the intervals that are over.
    fn note_time(&mut self, now: Nanos) {
        if self.cpu_at_start_s.is_none() && now >= self.limit.measure_start() {
            self.cpu_at_start_s = Some(cpu::thread_seconds());
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
        let spare =
            self.link.spares.try_recv().ok().or_else(|| IntervalPart::new().ok().map(Box::new));
        let Some(spare) = spare else {
            return;
        };
        self.interval += 1;
        self.interval_end = self.interval_end.after(self.link.length);
        let part = self.report.recorder.next_interval(spare, self.interval);
        let _ = self.link.events.send((self.link.worker, WorkerEvent::Interval(part)));
    }

    fn start_waiting(&mut self, now: Nanos) {
        // After the end nobody waits for a start that will not come.
        let ended = now >= self.limit.end();
        while let Some(&Reverse((start, number))) = self.waiting.peek() {
            if start > now && !ended {
                return;
            }
            self.waiting.pop();
            if ended {
                self.advance(number, now);
            } else {
                self.begin(number, start, now);
            }
        }
    }

    /// Reads what came for a session, and sends what is next.
    fn serve(&mut self, number: usize, writable: bool, closed: bool) {
        let Some(session) = self.sessions.get_mut(number) else {
            return;
        };
        if session.activity == Activity::Ended {
            return;
        }
        if writable {
            match session.send() {
                Ok(true) => self.want_writable(number, false),
                Ok(false) => {}
                Err(error) => return self.fail(number, error),
            }
        }
        loop {
            let Some(session) = self.sessions.get_mut(number) else {
                return;
            };
            let filled = match session.fill() {
                Ok(filled) => filled,
                Err(error) => return self.fail(number, error),
            };
            loop {
                let Some(session) = self.sessions.get_mut(number) else {
                    return;
                };
                match session.take_end() {
                    Ok(Some(ended)) => self.ended(number, ended),
                    Ok(None) => break,
                    Err(error) => return self.fail(number, error),
                }
            }
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
            Ended::Transaction(outcome) => {
                self.book(number, outcome, now);
                self.advance(number, now);
            }
            Ended::Check(check, finding) => {
                self.note_finding(number, check, finding);
                self.check(number, check + 1, now);
            }
            Ended::Failed(error) => self.fail(number, SessionError::Server(error)),
        }
    }

    fn book(&mut self, number: usize, outcome: Outcome, now: Nanos) {
        if now >= self.interval_end {
            self.note_time(now);
        }
        let Some(session) = self.sessions.get_mut(number) else {
            return;
        };
        let operation = session.tx.operation();
        if let Some(acknowledged) = self.report.acknowledged.get_mut(operation) {
            acknowledged.transactions += 1;
            acknowledged.rows += outcome.rows;
        }
        self.report.wrong_replies += u64::from(outcome.wrong);
        let service = now.since(session.started);
        if self.limit.counts(session.claimed, now, outcome.rows) {
            session.transactions += 1;
            self.report.last_end = now;
            let measured = Measured {
                service,
                response: now.since(session.intended),
                rows: outcome.rows,
                statements: session.tx.statements(),
            };
            self.report.recorder.transaction(operation, measured);
        } else if now >= self.limit.end() {
            self.report.drained += 1;
            self.report.drained_max = self.report.drained_max.max(service);
        }
    }

    /// Decides what an idle session does next. The end of one transaction is the start of the
    /// next: one look at the clock serves both.
    fn advance(&mut self, number: usize, now: Nanos) {
        let Some(session) = self.sessions.get_mut(number) else {
            return;
        };
        if session.next_check == Some(Moment::Middle)
            && self.limit.half_is_over(now)
            && now < self.limit.end()
        {
            return self.check(number, 0, now);
        }
        match self.limit.permit(now) {
            Permission::Start { claimed } => {
                session.claimed = claimed;
                let start = session.pace.next(now);
                if start > now {
                    self.waiting.push(Reverse((start, number)));
                } else {
                    self.begin(number, start, now);
                }
            }
            Permission::End if session.next_check.is_some() => {
                session.next_check = Some(Moment::After);
                self.check(number, 0, now);
            }
            Permission::End => {
                session.end();
                self.active -= 1;
            }
        }
    }

    fn begin(&mut self, number: usize, intended: Nanos, now: Nanos) {
        let Some(session) = self.sessions.get_mut(number) else {
            return;
        };
        session.intended = intended;
        session.started = now;
        let started = session.start_transaction();
        self.sent(number, started);
    }

    /// Looks at the session's plans from the given one on, then goes on with its work.
    fn check(&mut self, number: usize, check: usize, now: Nanos) {
        let Some(session) = self.sessions.get_mut(number) else {
            return;
        };
        if check < session.accesses.len() {
            let started = session.start_check(check);
            return self.sent(number, started);
        }
        session.next_check = match session.next_check {
            Some(Moment::Middle) => Some(Moment::After),
            _ => None,
        };
        self.advance(number, now);
    }

    fn note_finding(&mut self, number: usize, check: usize, finding: Finding) {
        let Some(session) = self.sessions.get(number) else {
            return;
        };
        let Some((access, moment)) = session.accesses.get(check).zip(session.next_check) else {
            return;
        };
        note(&mut self.report.findings, &access.statement, moment, finding, 1);
    }

    fn sent(&mut self, number: usize, sent: Result<bool, SessionError>) {
        match sent {
            Ok(true) => {}
            Ok(false) => self.want_writable(number, true),
            Err(error) => self.fail(number, error),
        }
    }

    fn want_writable(&mut self, number: usize, wanted: bool) {
        let Some(session) = self.sessions.get(number) else {
            return;
        };
        let descriptor = session.stream().as_raw_fd();
        let interest =
            if wanted { Interest::READABLE | Interest::WRITABLE } else { Interest::READABLE };
        let registered =
            self.poll.registry().reregister(&mut SourceFd(&descriptor), Token(number), interest);
        if let Err(error) = registered {
            self.fail(number, SessionError::Io(error.to_string()));
        }
    }

    /// A session is over for good, and with it the measurement.
    fn fail(&mut self, number: usize, error: SessionError) {
        let Some(session) = self.sessions.get_mut(number) else {
            return;
        };
        if session.activity == Activity::Ended {
            return;
        }
        let broken = !matches!(error, SessionError::Server(_));
        let operation = session.tx.operation();
        if broken
            && session.activity == Activity::Transaction
            && self.changes.get(operation) == Some(&true)
            && let Some(acknowledged) = self.report.acknowledged.get_mut(operation)
        {
            acknowledged.rows_unknown += session.tx.rows_asked();
            acknowledged.transactions_unknown += 1;
        }
        session.end();
        self.active -= 1;
        self.report.recorder.error(error.sqlstate(), &error.to_string());
        self.report.failure.get_or_insert(error);
        self.limit.fail(self.clock.now());
    }

    fn fail_all(&mut self, error: &SessionError) {
        for number in 0..self.sessions.len() {
            self.fail(number, error.clone());
        }
    }

    fn finish(mut self) -> WorkerReport {
        self.note_time(self.clock.now());
        let end_s = self.cpu_at_end_s.unwrap_or_else(cpu::thread_seconds);
        self.report.cpu_s = end_s - self.cpu_at_start_s.unwrap_or(end_s);
        self.report.session_transactions =
            self.sessions.iter().map(|session| session.transactions).collect();
        self.report
    }
}

/// Adds a finding to those that are equal to it, or as a new one.
pub(super) fn note(
    findings: &mut Vec<AccessFinding>,
    statement: &str,
    moment: Moment,
    finding: Finding,
    sessions: u32,
) {
    let same = findings.iter_mut().find(|known| {
        known.statement == statement && known.moment == moment && known.finding == finding
    });
    match same {
        Some(known) => known.sessions += sessions,
        None => findings.push(AccessFinding {
            statement: statement.to_owned(),
            moment,
            finding,
            sessions,
        }),
    }
}
