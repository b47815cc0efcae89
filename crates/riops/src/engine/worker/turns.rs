//! Interactive transactions: what happens between their turns.

use super::super::continued::Continued;
use super::super::in_flight::InFlight;
use super::super::session::{Activity, Session, SessionError};
use super::deferred::Deferred;
use super::postponed::Postponed;
use super::shell::Done;
use super::{Clock, Worker};
use crate::units::Nanos;
use crate::workload::turn::ShellOutput;

impl<C: Clock> Worker<C> {
    /// Counts a turn of an interactive transaction, then continues it.
    pub(super) fn turn_ended(&mut self, number: usize, flight: Box<InFlight>, now: Nanos) {
        if self.limit.is_measured(now) {
            let took = now.since(flight.turn_started);
            self.report.recorder.commands.record(flight.tx.command(), took);
        }
        self.proceed(number, flight, now, None);
    }

    fn proceed(
        &mut self,
        number: usize,
        flight: Box<InFlight>,
        now: Nanos,
        output: Option<&ShellOutput>,
    ) {
        if let Some(session) = self.sessions.get_mut(number) {
            let continued = session.proceed(flight, now, output);
            self.continued(number, continued, now);
        }
    }

    /// Handles what an interactive transaction does after a turn, a pause or a failed attempt.
    pub(super) fn continued(
        &mut self,
        number: usize,
        continued: Result<Continued, SessionError>,
        now: Nanos,
    ) {
        match continued {
            Ok(Continued::Ended(flight)) => {
                self.count_success(number, flight, now);
                self.advance(number, now);
            }
            Ok(Continued::Failed(flight, error)) => {
                self.transaction_failed(number, flight, error, now);
            }
            Ok(waiting) => self.pause(number, waiting, now),
            Err(error) => self.fail(number, error, now),
        }
    }

    /// Handles what an interactive transaction does at its beginning. Without a statement, it has ended already.
    pub(super) fn begun(&mut self, number: usize, continued: Continued, now: Nanos) {
        match continued {
            Continued::Ended(flight) => {
                self.count_success(number, flight, self.clock.now());
                self.deferred.push_back(Deferred::Next(number));
            }
            Continued::Failed(flight, error) => {
                self.deferred.push_back(Deferred::Failed(number, flight, error));
            }
            waiting => self.pause(number, waiting, now),
        }
    }

    fn pause(&mut self, number: usize, waiting: Continued, now: Nanos) {
        match waiting {
            Continued::Sleeping(time) => {
                let due = now.after(time);
                self.postponed.push(Postponed { due, number, flight: None });
            }
            Continued::InShell(transaction, command) => {
                if let Err(error) = self.shell.start((number, transaction), *command) {
                    let error = SessionError::client("cannot start a thread", &error);
                    self.fail(number, error, now);
                }
            }
            Continued::Sent | Continued::Ended(_) | Continued::Failed(..) => {}
        }
    }

    /// Returns the number of the transaction that a session has paused.
    pub(super) fn paused_transaction(&self, number: usize) -> Option<u64> {
        self.sessions.get(number)?.paused_transaction()
    }

    /// Continues a paused transaction, unless its connection was lost. The output is that of a command of the shell.
    pub(super) fn wake(&mut self, number: usize, now: Nanos, output: Option<&ShellOutput>) {
        let Some(mut flight) = self.sessions.get_mut(number).and_then(Session::take_paused) else {
            return;
        };
        let paused = now.since(flight.turn_started);
        if output.is_some() {
            flight.exclude(paused);
        }
        if self.limit.is_measured(now) {
            self.report.recorder.commands.record(flight.tx.command(), paused);
        }
        self.proceed(number, flight, now, output);
        self.flush_session(number);
    }

    /// Handles the first `count` transactions that have sent nothing.
    pub(super) fn serve_deferred(&mut self, count: usize, now: Nanos) {
        for _ in 0..count {
            match self.deferred.pop_front() {
                Some(Deferred::Next(number)) => self.resume(number, now),
                Some(Deferred::Failed(number, flight, error)) => {
                    let activity = self.sessions.get(number).map(|session| session.activity);
                    if activity == Some(Activity::Work) {
                        self.transaction_failed(number, flight, error, now);
                        self.flush_session(number);
                    } else {
                        // Its connection is being replaced.
                        self.count_lost(number, &flight, false, now);
                        if let Some(session) = self.sessions.get_mut(number) {
                            session.recycle(flight);
                        }
                    }
                }
                None => return,
            }
        }
    }

    /// Continues the transactions whose command has ended.
    pub(super) fn serve_shell(&mut self, now: Nanos) {
        while let Some(Done { number, transaction, output }) = self.shell.take_done() {
            if self.paused_transaction(number) == Some(transaction) {
                self.wake(number, now, Some(&output));
            }
        }
    }
}
