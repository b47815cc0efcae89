//! A worker: a thread that drives many sessions with one poller and has its own counters.
//!
//! This file is its control flow: the loop, and what a session does next. `outcomes` has what follows from errors, and
//! `turns` what interactive transactions do between their turns. The state is in parts with methods of their own.
//!
//! Workers must not share mutable state, except for the window of the stage. In steady state a transaction
//! costs one write, one read, its share of one poll, one clock read and no allocation.

mod counts;
mod outcomes;
mod report;
mod retries;
mod shell;
mod starts;
mod transport;
mod turns;

use std::collections::VecDeque;
use std::sync::Arc;

use mio::{Events, Token};
use riops_ring::Event;
use riops_wire::frame::READ_BYTES_MAX;

use super::clock::Clock;
use super::error::SessionError;
use super::findings::{Moment, merge};
use super::in_flight::{Begun, Deferred};
use super::opening::Reopened;
use super::session::{Activity, Ended, Flushed, Session};
use super::window::Window;
use crate::metrics::Fate;
pub(super) use counts::Counts;
pub use report::{Acknowledged, Starts, WarmupInFlight, WorkerReport};
pub(super) use report::{Intervals, WorkerEvent};
pub(super) use retries::{Reconnects, Retries};
use riops_model::units::Nanos;
pub(super) use shell::Shell;
use starts::Next;
pub(super) use starts::{Rules, StartQueue, add_unclaimed};
use transport::ALARM;
pub(super) use transport::Transport;

/// Token of a wake-up by another thread. Sessions have the tokens from 0.
pub(super) const WAKE: Token = Token(usize::MAX);
/// Maximum number of events returned by one poll.
const EVENTS: usize = 1024;

/// Number of bytes that a session reads in one turn before the other sessions have theirs: two reads of the
/// largest size, some 50 µs of copying and decoding.
pub(super) const TURN_BYTES: usize = 2 * READ_BYTES_MAX;

pub(super) struct Worker<C> {
    pub(super) clock: C,
    pub(super) window: Arc<Window>,
    pub(super) rules: Rules,
    /// The sessions, by their positions at the worker.
    pub(super) sessions: Vec<Session>,
    /// Number of sessions that have not ended.
    pub(super) active: usize,
    /// Number of sessions whose last transaction has not ended.
    pub(super) unfinished: usize,
    pub(super) transport: Transport,
    pub(super) starts: StartQueue,
    pub(super) retries: Retries,
    /// Interactive transactions that are handled in the next turn of the loop.
    pub(super) deferred: VecDeque<Deferred>,
    pub(super) shell: Shell,
    pub(super) reconnects: Reconnects,
    /// The session that is checking its plans during the measurement. Only one session per worker does so at a time, to
    /// avoid a burst of EXPLAIN statements.
    pub(super) checking: Option<usize>,
    pub(super) counts: Counts,
}

impl<C: Clock> Worker<C> {
    /// Runs all sessions to the end of the stage.
    pub(super) fn run(mut self) -> WorkerReport {
        let mut events = Events::with_capacity(EVENTS);
        if let Err(error) = self.transport.start(&mut self.sessions) {
            self.fail_all(&SessionError::client("cannot wait for replies", &error));
            return self.finish();
        }
        self.counts.report.recorder.begin(self.window.measure_start());
        for index in 0..self.sessions.len() {
            self.resume(index, self.clock.now());
        }
        while self.active > 0 {
            let until = self.next_wake_up();
            match self.transport.wait(until, &self.clock, &mut events) {
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
        self.serve_deferred(now);
        self.start_due(now);
        let unread = self.transport.unread.len();
        for event in events {
            match event.token() {
                WAKE | ALARM => {}
                Token(index) => self.serve(index, event.is_writable(), event.is_read_closed()),
            }
        }
        self.serve_ring();
        self.serve_unread(unread);
        if now >= self.window.end() && !self.counts.is_draining {
            self.counts.begin_drain();
            self.begin_drain(now);
        }
        if let Some(seconds) = self.window.aborted_after_s() {
            self.fail_all(&SessionError::Drain(seconds));
        }
        self.counts.turn(now, &self.clock);
    }

    fn finish(mut self) -> WorkerReport {
        self.note_time(self.clock.now());
        let mut report = self.counts.finish(&mut self.starts);
        report.sessions = self.sessions.into_iter().map(Session::into_tally).collect();
        report
    }

    fn note_time(&mut self, now: Nanos) {
        let is_busy = |session: &&Session| !session.is_idle();
        let busy = || self.sessions.iter().filter(is_busy).count() as u64;
        self.counts.note_time(now, &mut self.starts, busy);
    }

    /// Returns until when the next poll may wait: zero if there is more to do without any event. The main thread wakes
    /// the worker for everything that is not its own.
    fn next_wake_up(&self) -> Option<Nanos> {
        if !self.transport.unread.is_empty() || !self.deferred.is_empty() {
            return Some(Nanos(0));
        }
        let start = self.starts.awaited().filter(|_| !self.counts.is_draining);
        let start = start.filter(|&start| start < self.window.end());
        start.into_iter().chain(self.retries.due()).min()
    }

    /// Reads the replies of a session, up to its share of the turn, and sends its next messages.
    fn serve(&mut self, index: usize, writable: bool, closed: bool) {
        if writable && let Some(session) = self.sessions.get(index) {
            if let Err(error) = self.transport.watch_writable(index, session, false) {
                self.handle_lost_connection(index, *error);
            }
            self.flush(index);
        }
        let mut share = TURN_BYTES;
        loop {
            let Some(session) = self.sessions.get_mut(index) else {
                return;
            };
            let closed = session.is_read_closed(closed);
            if session.unread {
                return session.note_readable();
            }
            if !session.is_connected() {
                return;
            }
            let mut buffer = std::mem::take(&mut self.transport.buffer);
            let filled = session.fill(&mut buffer);
            let handled = match &filled {
                Ok(filled) => {
                    self.receive(index, buffer.get(..filled.in_buffer).unwrap_or_default())
                }
                Err(_) => Ok(()),
            };
            self.transport.buffer = buffer;
            let filled = match (filled, handled) {
                (Ok(filled), Ok(())) => filled,
                (Err(error), _) | (_, Err(error)) => {
                    return self.handle_lost_connection(index, *error);
                }
            };
            self.flush(index);
            // After a close no event follows, so the end of the stream must be read now.
            if !filled.more && !closed {
                return;
            }
            share = share.saturating_sub(filled.bytes);
            if share == 0 {
                if let Some(session) = self.sessions.get_mut(index) {
                    self.transport.read_later(index, session);
                }
                return;
            }
        }
    }

    /// Serves the first `count` of the sessions that had more to read than their share of the last turn.
    fn serve_unread(&mut self, count: usize) {
        for _ in 0..count {
            let Some(index) = self.transport.unread.pop_front() else {
                return;
            };
            // A session that has lost its connection since then has nothing to read.
            if let Some(session) = self.sessions.get_mut(index)
                && std::mem::take(&mut session.unread)
            {
                self.serve(index, false, false);
            }
        }
    }

    /// Handles the events of the ring.
    fn serve_ring(&mut self) {
        loop {
            match self.transport.next_event() {
                Ok(Some(event)) => self.ring_event(event),
                Ok(None) => return,
                Err(error) => {
                    return self.fail_all(&SessionError::client("cannot wait for replies", &error));
                }
            }
        }
    }

    fn ring_event(&mut self, event: Event) {
        let (index, handled) = match event {
            Event::Received(slot, received) => {
                let index = slot as usize;
                let length = self.transport.copy_received(received);
                let buffer = std::mem::take(&mut self.transport.buffer);
                let is_open = self.sessions.get(index).is_some_and(Session::is_connected);
                let handled = match buffer.get(..length) {
                    Some(data) if is_open => self.receive(index, data),
                    _ => Ok(()),
                };
                self.transport.buffer = buffer;
                (index, handled)
            }
            Event::Sent(slot) => (slot as usize, Ok(())),
            Event::Closed(slot) => {
                let session = self.sessions.get_mut(slot as usize);
                (slot as usize, session.map_or(Ok(()), |session| Err(session.closed().into())))
            }
            Event::Failed(slot, error) => {
                let session = self.sessions.get_mut(slot as usize);
                let failed = |session: &mut Session| Err(session.read_failed(&error).into());
                (slot as usize, session.map_or(Ok(()), failed))
            }
            Event::Readable => return,
        };
        match handled {
            Ok(()) => self.flush(index),
            Err(error) => self.handle_lost_connection(index, *error),
        }
    }

    /// Handles the replies of a session that were received before and in `data`.
    fn receive(&mut self, index: usize, mut data: &[u8]) -> Result<(), Box<SessionError>> {
        while let Some(session) = self.sessions.get_mut(index)
            && let Some(ended) = session.take_end(&mut data)?
        {
            self.handle_end(index, ended);
        }
        Ok(())
    }

    /// Counts a completed transaction or plan check of a session, then resumes the session.
    fn handle_end(&mut self, index: usize, ended: Ended) {
        let now = self.clock.now();
        match ended {
            Ended::Transaction(flight) => {
                self.count_success(index, flight, now);
                self.advance(index, now);
            }
            Ended::Turn(flight) => self.end_turn(index, flight, now),
            Ended::Failed(flight, error) => self.handle_failure(index, flight, error, now),
            Ended::CheckFailed(check, error) => self.handle_failed_check(index, check, error, now),
            Ended::Check(check, finding) => {
                if let Some(session) = self.sessions.get_mut(index) {
                    self.counts.note_check(session, check, finding.map(|finding| *finding));
                }
                self.check(index, check + 1, now);
            }
        }
    }

    /// Writes the pending bytes of a session to its socket.
    fn flush(&mut self, index: usize) {
        let Some(session) = self.sessions.get_mut(index) else {
            return;
        };
        match self.transport.flush(index, session) {
            Ok(Flushed::All | Flushed::Blocked) => {}
            // The replies and the error that the server sent before it closed the connection still count.
            Ok(Flushed::PeerClosed) => self.serve(index, false, true),
            Err(error) => self.handle_lost_connection(index, *error),
        }
    }

    /// Resumes a session and sends its next messages.
    fn resume(&mut self, index: usize, now: Nanos) {
        self.advance(index, now);
        self.flush(index);
    }

    /// Chooses and starts the next activity of a session. `now` is both the end of one transaction and the
    /// start of the next, so one clock read is enough.
    fn advance(&mut self, index: usize, now: Nanos) {
        loop {
            let Some(session) = self.sessions.get_mut(index) else {
                return;
            };
            if session.activity != Activity::Work {
                return;
            }
            let ended = now >= self.window.end();
            if !ended
                && session.is_check_due(&self.window, now)
                && *self.checking.get_or_insert(index) == index
            {
                // Transactions in flight must finish first.
                if session.is_idle() {
                    self.check(index, 0, now);
                }
                return;
            }
            let connection_expired =
                self.rules.reconnect_every.is_some_and(|every| session.since_connect >= every);
            if (connection_expired || session.moving_home) && !ended {
                if session.is_idle() {
                    self.replace_connection(index, true, now);
                }
                return;
            }
            if !ended && !session.has_free_slot() {
                return;
            }
            if !session.has_next() {
                return self.finish_when_idle(index, now);
            }
            match self.starts.next(session, &self.window, &self.rules, now) {
                Next::Start { intended, claimed } => match session.begin(intended, now, claimed) {
                    Ok(Begun::Sent) => {}
                    Ok(Begun::NoMore) => return self.finish_when_idle(index, now),
                    Ok(Begun::Interactive(continued)) => {
                        return self.handle_beginning(index, continued, now);
                    }
                    Err(error) => self.fail(index, error, now),
                },
                Next::Skip { is_measured, waited } => {
                    let operation = session.skip();
                    if is_measured {
                        self.counts.report.recorder.record_unstarted(Fate::Skipped, waited, now);
                        self.counts.count_skipped(session, operation, now);
                    }
                }
                Next::Wait { until } => return self.starts.park(index, session, until),
                Next::Parked => return,
                Next::End => return self.finish_when_idle(index, now),
            }
        }
    }

    /// Assigns the due starts to the waiting sessions.
    fn start_due(&mut self, now: Nanos) {
        while let Some((index, due)) = self.starts.pop_due(now) {
            // Read the clock again: the previous session's send took time.
            let now = self.clock.now();
            if let Some(session) = self.sessions.get_mut(index) {
                session.parked = false;
                self.resume(index, now);
            }
            if self.starts.is_begun()
                && self.window.is_measured(now)
                && let Some(lag) = &mut self.counts.report.recorder.start_lag
            {
                lag.record(now.since(due));
            }
        }
    }

    /// Checks the session's plans, beginning with number `check`, then resumes its work.
    fn check(&mut self, index: usize, check: usize, now: Nanos) {
        let Some(session) = self.sessions.get_mut(index) else {
            return;
        };
        if check < session.checks() {
            if let Err(error) = session.start_check(check) {
                self.fail(index, error, now);
            }
            return;
        }
        session.next_check = match session.next_check {
            Some(Moment::First) => Some(Moment::During),
            Some(Moment::During) => Some(Moment::After),
            _ => None,
        };
        self.checking.take_if(|checking| *checking == index);
        self.advance(index, now);
    }

    /// Ends a session that starts no more transactions, after all replies and the last plan check.
    fn finish_when_idle(&mut self, index: usize, now: Nanos) {
        let Some(session) = self.sessions.get_mut(index).filter(|session| session.is_idle()) else {
            return;
        };
        if session.next_check.is_none() {
            return self.end(index, now);
        }
        session.next_check = Some(Moment::After);
        self.note_finished(index);
        self.check(index, 0, now);
    }

    /// Records that the last transaction of a session has ended, and notifies the main thread if it was the
    /// last one of the worker.
    fn note_finished(&mut self, index: usize) {
        if let Some(session) = self.sessions.get_mut(index)
            && !std::mem::replace(&mut session.finished, true)
        {
            self.unfinished -= 1;
            if self.unfinished == 0 {
                self.counts.finish_worker();
            }
        }
    }

    /// Ends the sessions that wait for a start or a connection, after the end of the measurement.
    fn begin_drain(&mut self, now: Nanos) {
        for index in 0..self.sessions.len() {
            let Some(session) = self.sessions.get_mut(index) else {
                continue;
            };
            session.parked = false;
            match session.activity {
                Activity::Work => self.resume(index, now),
                Activity::Connect => self.end(index, now),
                _ => {}
            }
        }
    }

    /// Moves sessions back to home nodes that are available again, if rebalancing is enabled.
    fn rebalance_sessions(&mut self, now: Nanos) {
        if !self.reconnects.have_nodes_changed() || self.counts.is_draining {
            return;
        }
        for index in 0..self.sessions.len() {
            if let Some(session) = self.sessions.get_mut(index)
                && session.is_connected()
                && self.reconnects.should_move(session)
            {
                session.moving_home = true;
                // Transactions in flight must finish first.
                if session.is_idle() {
                    self.resume(index, now);
                }
            }
        }
    }

    /// Closes the connection of a session and requests a new one: `planned`, after the configured number of transactions
    /// or to move to the home node, or because it was lost.
    fn replace_connection(&mut self, index: usize, planned: bool, now: Nanos) {
        let Some(session) = self.sessions.get_mut(index) else {
            return;
        };
        self.transport.detach(index, session);
        session.detach();
        if let Err(error) = self.reconnects.request(index, session, planned) {
            self.fail(index, SessionError::client("cannot reconnect", &error), now);
        }
    }

    /// Attaches the connections that the connectors have opened to their sessions.
    fn attach_reopened(&mut self, now: Nanos) {
        while let Ok(Reopened { index, planned, result }) = self.reconnects.reopened.try_recv() {
            let Some(session) = self.sessions.get_mut(index) else {
                continue;
            };
            // The session has ended in the meantime.
            if session.activity != Activity::Connect {
                continue;
            }
            let mut opened = match result {
                Ok(opened) => opened,
                Err(_) if now >= self.window.end() => {
                    self.end(index, now);
                    continue;
                }
                Err(error) => {
                    let (sqlstate, message) = (error.sqlstate(), error.to_string());
                    self.fail(index, SessionError::Reconnect { sqlstate, message }, now);
                    continue;
                }
            };
            merge(&mut self.counts.report.findings, std::mem::take(&mut opened.findings));
            self.counts.count_reconnect(opened.node, opened.took, planned, now);
            session.attach(opened);
            // The home node may have come back while the session was connecting.
            session.moving_home = self.reconnects.should_move(session);
            match self.transport.register(index, session) {
                Ok(()) => self.resume(index, now),
                Err(error) => {
                    let error = SessionError::client("cannot wait for replies", &error);
                    self.fail(index, error, now);
                }
            }
        }
    }
}
