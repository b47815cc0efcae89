//! Interactive transactions: what happens between their turns.

use super::super::error::SessionError;
use super::super::in_flight::{Continued, Deferred, InFlight};
use super::super::session::Activity;
use super::shell::Done;
use super::{Clock, Worker};
use crate::workload::turn::ShellOutput;
use riops_model::units::Nanos;

impl<C: Clock> Worker<C> {
    /// Counts a turn of an interactive transaction, then continues it.
    pub(super) fn turn_ended(&mut self, number: usize, flight: Box<InFlight>, now: Nanos) {
        self.counts.command(&flight, now.since(flight.turn_started), now);
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
                self.succeeded(number, flight, now);
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
                self.succeeded(number, flight, self.clock.now());
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
                let paused = self.sessions.get(number).and_then(|session| session.paused.as_ref());
                if let Some(flight) = paused {
                    self.retries.wake_at(now.after(time), number, flight.number);
                }
            }
            Continued::InShell(transaction, command) => {
                if let Err(error) = self.shell.start(number, transaction, *command) {
                    let error = SessionError::client("cannot start a thread", &error);
                    self.fail(number, error, now);
                }
            }
            Continued::Sent | Continued::Ended(_) | Continued::Failed(..) => {}
        }
    }

    /// Continues a paused transaction, unless its connection was lost. `output` is the result of a command of the
    /// shell.
    pub(super) fn wake(&mut self, number: usize, now: Nanos, output: Option<&ShellOutput>) {
        let session = self.sessions.get_mut(number);
        let Some(mut flight) = session.and_then(|session| session.paused.take()) else {
            return;
        };
        let paused = now.since(flight.turn_started);
        if output.is_some() {
            flight.exclude(paused);
        }
        self.counts.command(&flight, paused, now);
        self.proceed(number, flight, now, output);
        self.flush(number);
    }

    /// Handles the transactions that had sent nothing before this turn.
    pub(super) fn serve_deferred(&mut self, now: Nanos) {
        for _ in 0..self.deferred.len() {
            match self.deferred.pop_front() {
                Some(Deferred::Next(number)) => self.resume(number, now),
                Some(Deferred::Failed(number, flight, error)) => {
                    let activity = self.sessions.get(number).map(|session| session.activity);
                    if activity == Some(Activity::Work) {
                        self.transaction_failed(number, flight, error, now);
                        self.flush(number);
                    } else {
                        // Its connection is being replaced.
                        self.lose(number, flight, false, now);
                    }
                }
                None => return,
            }
        }
    }

    /// Continues the transactions whose command has ended.
    pub(super) fn serve_shell(&mut self, now: Nanos) {
        while let Some(Done { number, transaction, output }) = self.shell.take_done() {
            let paused = self.sessions.get(number).and_then(|session| session.paused.as_ref());
            if paused.is_some_and(|flight| flight.number == transaction) {
                self.wake(number, now, Some(&output));
            }
        }
    }
}
