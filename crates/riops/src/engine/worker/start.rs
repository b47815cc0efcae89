//! Scheduling of idle sessions: the next transaction, a plan check, a new connection, or the end.

use super::super::continued::Begun;
use super::super::findings::Moment;
use super::super::limit::Permission;
use super::super::session::{Activity, Session, SessionError};
use super::{Clock, Worker, WorkerEvent};
use crate::metrics::{Counter, EventSource};
use crate::units::Nanos;

/// Permission to start a transaction.
enum Next {
    Start {
        intended: Nanos,
        claimed: bool,
    },
    /// The next start is not due yet.
    Wait,
    /// No more transactions may start.
    End,
}

/// Number of transactions of a session before the first check of the plans of what it has executed.
const FIRST_TRANSACTIONS: u64 = 4;

impl<C: Clock> Worker<C> {
    /// Resumes a session and sends its next messages.
    pub(super) fn resume(&mut self, number: usize, now: Nanos) {
        self.advance(number, now);
        self.flush_session(number);
    }

    /// Chooses and starts the next activity of a session. `now` is both the end of one transaction and the
    /// start of the next, so one clock read is enough.
    pub(super) fn advance(&mut self, number: usize, now: Nanos) {
        loop {
            let Some(session) = self.sessions.get_mut(number) else {
                return;
            };
            if session.activity != Activity::Work {
                return;
            }
            let ended = now >= self.limit.end();
            let may_check = self.checking.is_none_or(|checking| checking == number);
            let is_due = match session.next_check {
                Some(Moment::During) => self.limit.is_past_half(now),
                Some(Moment::First) => session.started >= FIRST_TRANSACTIONS,
                _ => false,
            };
            if is_due && may_check && !ended {
                self.checking = Some(number);
                // Transactions in flight must finish first.
                if session.is_idle() {
                    self.check(number, 0, now);
                }
                return;
            }
            let connection_expired =
                self.rules.reconnect_every.is_some_and(|every| session.since_connect >= every);
            if (connection_expired || session.moving_home) && !ended {
                if session.is_idle() {
                    self.replace_connection(number, now);
                }
                return;
            }
            if !ended && !session.has_free_slot() {
                return;
            }
            if !session.has_next() {
                return self.finish_when_idle(number, now);
            }
            match self.next_start(number, now) {
                Next::Start { intended, claimed } => {
                    let Some(session) = self.sessions.get_mut(number) else {
                        return;
                    };
                    match session.begin(intended, now, claimed) {
                        Ok(Begun::Sent) => {}
                        Ok(Begun::NoMore) => return self.finish_when_idle(number, now),
                        Ok(Begun::Interactive(continued)) => {
                            return self.begun(number, continued, now);
                        }
                        Err(error) => self.fail(number, error, now),
                    }
                }
                Next::Wait => return self.park(number),
                Next::End => return self.finish_when_idle(number, now),
            }
        }
    }

    fn park(&mut self, number: usize) {
        if let Some(session) = self.sessions.get_mut(number)
            && !session.parked
        {
            session.parked = true;
            self.parked.push_back(number);
        }
    }

    /// Returns the next start: immediately in the closed loop, otherwise when the next arrival is due.
    fn next_start(&mut self, number: usize, now: Nanos) -> Next {
        loop {
            let intended = match &self.arrivals {
                None => now,
                Some(_) if now >= self.limit.end() => return Next::End,
                Some(arrivals) => arrivals.next(),
            };
            if intended > now {
                return Next::Wait;
            }
            let measured = intended >= self.limit.measure_start();
            if let Some(arrivals) = &mut self.arrivals
                && self.rules.skip_late
                && now.since(intended) > self.rules.late_after
            {
                arrivals.take();
                let mut measured = measured;
                if self.limit.stops_by_count() {
                    // A skipped start is one of the transactions of its session.
                    let Permission::Start { claimed } = self.limit.permit(now) else {
                        return Next::End;
                    };
                    measured = self.limit.counts(claimed, now, 0);
                }
                let operation = self.sessions.get_mut(number).and_then(Session::skip);
                self.report.starts_taken += u64::from(measured);
                if measured {
                    let origin = EventSource { operation, node: None };
                    self.report.recorder.count(origin, [(Counter::Skipped, 1)]);
                    self.log_skipped(number, operation, now);
                }
                if !self.sessions.get(number).is_some_and(Session::has_next) {
                    return Next::End;
                }
                continue;
            }
            let Permission::Start { claimed } = self.limit.permit(now) else {
                return Next::End;
            };
            if let Some(arrivals) = &mut self.arrivals {
                arrivals.take();
                // A run that stops by count has one intended start per counted transaction.
                let counted = if self.limit.stops_by_count() { claimed } else { measured };
                self.report.starts_taken += u64::from(counted);
            }
            return Next::Start { intended, claimed };
        }
    }

    /// Assigns the due starts to the waiting sessions.
    pub(super) fn start_due(&mut self, now: Nanos) {
        while let Some(&number) = self.parked.front() {
            let Some(due) = self.arrivals.as_ref().map(super::Arrivals::next) else {
                return;
            };
            if due > now {
                return;
            }
            self.parked.pop_front();
            let Some(session) = self.sessions.get_mut(number) else {
                continue;
            };
            session.parked = false;
            // Read the clock again: the previous session's send took time.
            let now = self.clock.now();
            self.resume(number, now);
            let taken = self.arrivals.as_ref().is_some_and(|arrivals| arrivals.next() != due);
            if taken
                && self.limit.is_measured(now)
                && let Some(lag) = &mut self.report.recorder.start_lag
            {
                lag.record(now.since(due));
            }
        }
    }

    /// Returns when the worker's timer must fire. The main thread wakes the worker for everything else.
    pub(super) fn next_alarm(&self) -> Option<Nanos> {
        let start = self
            .arrivals
            .as_ref()
            .filter(|_| !self.parked.is_empty() && !self.ending)
            .map(super::Arrivals::next)
            .filter(|&start| start < self.limit.end());
        let retry = self.postponed.peek().map(|postponed| postponed.due);
        start.into_iter().chain(retry).min()
    }

    /// Checks the session's plans, beginning with number `check`, then resumes its work.
    pub(super) fn check(&mut self, number: usize, check: usize, now: Nanos) {
        let Some(session) = self.sessions.get_mut(number) else {
            return;
        };
        if check < session.checks() {
            if let Err(error) = session.start_check(check) {
                self.fail(number, error, now);
            }
            return;
        }
        session.next_check = match session.next_check {
            Some(Moment::First) => Some(Moment::During),
            Some(Moment::During) => Some(Moment::After),
            _ => None,
        };
        self.plan_check_done(number);
        self.advance(number, now);
    }

    /// Allows another session to check its plans.
    pub(super) fn plan_check_done(&mut self, number: usize) {
        if self.checking == Some(number) {
            self.checking = None;
        }
    }

    /// Ends a session that starts no more transactions, after all replies and the last plan check.
    fn finish_when_idle(&mut self, number: usize, now: Nanos) {
        let Some(session) = self.sessions.get_mut(number) else {
            return;
        };
        if !session.is_idle() {
            return;
        }
        self.note_finished(number);
        let Some(session) = self.sessions.get_mut(number) else {
            return;
        };
        if session.next_check.is_some() {
            session.next_check = Some(Moment::After);
            return self.check(number, 0, now);
        }
        self.detach_from_ring(number);
        if let Some(session) = self.sessions.get_mut(number) {
            session.end();
        }
        self.active -= 1;
    }

    /// Records that the last transaction of a session has ended, and notifies the main thread if it was the
    /// last one of the worker.
    pub(super) fn note_finished(&mut self, number: usize) {
        let Some(session) = self.sessions.get_mut(number).filter(|session| !session.finished)
        else {
            return;
        };
        session.finished = true;
        self.unfinished -= 1;
        if self.unfinished == 0 {
            self.limit.finish_worker();
            // If the channel is full, the main thread is awake anyway.
            let _ = self.link.events.try_send((self.link.worker, WorkerEvent::Finished));
        }
    }

    /// Ends the sessions that wait for a start or a connection, after the end of the measurement.
    pub(super) fn begin_drain(&mut self, now: Nanos) {
        self.parked.clear();
        for number in 0..self.sessions.len() {
            match self.sessions.get(number).map(|session| session.activity) {
                Some(Activity::Work) => self.resume(number, now),
                Some(Activity::Connect) => self.give_up_connecting(number, now),
                _ => {}
            }
        }
    }

    /// Moves sessions back to home nodes that are available again, if rebalancing is enabled.
    pub(super) fn rebalance_sessions(&mut self, now: Nanos) {
        let changes = self.nodes.changes();
        if changes == self.nodes_seen {
            return;
        }
        self.nodes_seen = changes;
        if !self.rules.rebalance || self.ending {
            return;
        }
        for number in 0..self.sessions.len() {
            let stage_number = self.share.number(number as u64);
            let Some(session) = self.sessions.get_mut(number) else {
                return;
            };
            let connected = matches!(session.activity, Activity::Work | Activity::Check(_));
            if connected && self.nodes.should_move(stage_number, session.node) {
                session.moving_home = true;
                // Transactions in flight must finish first.
                if session.is_idle() {
                    self.resume(number, now);
                }
            }
        }
    }

    /// Replaces the connection after the configured number of transactions, or to move to the home node.
    fn replace_connection(&mut self, number: usize, now: Nanos) {
        self.detach_from_ring(number);
        if let Some(session) = self.sessions.get_mut(number) {
            session.detach();
        }
        if let Err(error) = self.request_connection(number, true) {
            self.fail(number, SessionError::client("cannot reconnect", &error), now);
        }
    }
}
