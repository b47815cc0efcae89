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
    pub(super) fn end_turn(&mut self, index: usize, flight: Box<InFlight>, now: Nanos) {
        self.counts.command(&flight, now.since(flight.turn_started), now);
        self.proceed(index, flight, now, None);
    }

    fn proceed(
        &mut self,
        index: usize,
        flight: Box<InFlight>,
        now: Nanos,
        output: Option<&ShellOutput>,
    ) {
        if let Some(session) = self.sessions.get_mut(index) {
            let continued = session.proceed(flight, now, output);
            self.handle_continuation(index, continued, now);
        }
    }

    /// Handles what an interactive transaction does after a turn, a pause or a failed attempt.
    pub(super) fn handle_continuation(
        &mut self,
        index: usize,
        continued: Result<Continued, SessionError>,
        now: Nanos,
    ) {
        match continued {
            Ok(Continued::Ended(flight)) => {
                self.count_success(index, flight, now);
                self.advance(index, now);
            }
            Ok(Continued::Failed(flight, error)) => {
                self.handle_failure(index, flight, error, now);
            }
            Ok(waiting) => self.pause(index, waiting, now),
            Err(error) => self.fail(index, error, now),
        }
    }

    /// Handles what an interactive transaction does at its beginning. Without a statement, it has ended already.
    pub(super) fn handle_beginning(&mut self, index: usize, continued: Continued, now: Nanos) {
        match continued {
            Continued::Ended(flight) => {
                self.count_success(index, flight, self.clock.now());
                self.deferred.push_back(Deferred::Next(index));
            }
            Continued::Failed(flight, error) => {
                self.deferred.push_back(Deferred::Failed(index, flight, error));
            }
            waiting => self.pause(index, waiting, now),
        }
    }

    fn pause(&mut self, index: usize, waiting: Continued, now: Nanos) {
        match waiting {
            Continued::Sleeping(time) => {
                let paused = self.sessions.get(index).and_then(|session| session.paused.as_ref());
                if let Some(flight) = paused {
                    self.retries.wake_at(now.after(time), index, flight.id);
                }
            }
            Continued::InShell(transaction, command) => {
                if let Err(error) = self.shell.start(index, transaction, *command) {
                    let error = SessionError::client("cannot start a thread", &error);
                    self.fail(index, error, now);
                }
            }
            Continued::Sent | Continued::Ended(_) | Continued::Failed(..) => {}
        }
    }

    /// Continues a paused transaction, unless its connection was lost. `output` is the result of a command of the
    /// shell.
    pub(super) fn wake(&mut self, index: usize, now: Nanos, output: Option<&ShellOutput>) {
        let session = self.sessions.get_mut(index);
        let Some(mut flight) = session.and_then(|session| session.paused.take()) else {
            return;
        };
        let paused = now.since(flight.turn_started);
        if output.is_some() {
            flight.exclude(paused);
        }
        self.counts.command(&flight, paused, now);
        self.proceed(index, flight, now, output);
        self.flush(index);
    }

    /// Handles the transactions that had sent nothing before this turn.
    pub(super) fn serve_deferred(&mut self, now: Nanos) {
        for _ in 0..self.deferred.len() {
            match self.deferred.pop_front() {
                Some(Deferred::Next(index)) => self.resume(index, now),
                Some(Deferred::Failed(index, flight, error)) => {
                    let activity = self.sessions.get(index).map(|session| session.activity);
                    if activity == Some(Activity::Work) {
                        self.handle_failure(index, flight, error, now);
                        self.flush(index);
                    } else {
                        // Its connection is being replaced.
                        self.lose(index, flight, false, now);
                    }
                }
                None => return,
            }
        }
    }

    /// Continues the transactions whose command has ended.
    pub(super) fn serve_shell(&mut self, now: Nanos) {
        while let Some(Done { index, transaction, output }) = self.shell.take_done() {
            let paused = self.sessions.get(index).and_then(|session| session.paused.as_ref());
            if paused.is_some_and(|flight| flight.id == transaction) {
                self.wake(index, now, Some(&output));
            }
        }
    }
}
