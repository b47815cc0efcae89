//! Handles the outcomes of transactions, plan checks and connections.
//!
//! A transaction succeeds, is retried, fails, or has an unknown outcome. A session whose connection is lost
//! requests a new one.

use super::super::error::SessionError;
use super::super::in_flight::InFlight;
use super::super::session::Activity;
use super::{Clock, Worker};
use riops_model::plan::OnError;
use riops_model::units::Nanos;
use riops_wire::backend::ServerError;
use riops_wire::sqlstate::SqlState;

impl<C: Clock> Worker<C> {
    /// Counts a transaction that the server acknowledged.
    pub(super) fn count_success(&mut self, index: usize, flight: Box<InFlight>, now: Nanos) {
        if self.counts.is_interval_over(now) {
            self.note_time(now);
        }
        if let Some(session) = self.sessions.get_mut(index) {
            self.counts.count_success(session, &flight, now);
            session.recycle(flight);
        }
    }

    /// Counts a transaction that failed or, with `unknown`, may still have been committed.
    pub(super) fn lose(&mut self, index: usize, flight: Box<InFlight>, unknown: bool, now: Nanos) {
        if let Some(session) = self.sessions.get_mut(index) {
            self.counts.count_lost(session, &flight, unknown, now);
            session.recycle(flight);
        }
    }

    /// Retries a transaction that the server answered with an error, or counts it as failed.
    pub(super) fn handle_failure(
        &mut self,
        index: usize,
        mut flight: Box<InFlight>,
        mut error: Box<ServerError>,
        now: Nanos,
    ) {
        let Some(session) = self.sessions.get_mut(index) else {
            return;
        };
        let is_listed = self.rules.retried.contains(&error.sqlstate);
        let is_failed_request = session.dialect.is_failed_request(&error);
        let retryable = error.is_retryable() || is_listed || is_failed_request;
        // The server does not know the outcome itself, and neither the position of the failed step nor a rollback
        // proves that nothing was changed. Retrying a change that may have been committed could apply it twice.
        let unknown = self.counts.changes_rows(&flight)
            && flight.may_be_committed()
            && (error.leaves_outcome_unknown() || is_failed_request);
        // After the end of the measurement, only a transaction that counts toward it is repeated.
        let may_repeat = self.window.is_open(flight.claimed, now);
        let is_left = flight.retries < self.rules.errors.max_retries;
        let retry = retryable && !unknown && is_left && may_repeat;
        let may_stop = may_repeat || !retryable;
        let on_error = self.rules.errors.on_error;
        // An unknown outcome that is no other error ends the run no more than a lost connection does.
        let stop = if retryable && unknown {
            self.rules.exact
        } else {
            !retry && may_stop && on_error == OnError::Stop
        };
        // A retried insert whose rows exist already would fail again, so the statement is skipped.
        if flight.tx.is_autocommit() && is_listed {
            return self.skip_statement(index, flight, &error, now);
        }
        session.note_error(&flight, &error, retry);
        // An error that stops the run counts even during the warm-up. Errors during its drain do not count.
        let is_measured = self.window.is_measured(now) && may_repeat;
        if (stop || is_measured) && !self.window.has_failed() {
            self.counts.failed_attempt(session, &flight, &error, retry, now);
        }
        if retry {
            self.counts.report.unsuccessful += 1;
            flight.retries += 1;
            if self.rules.errors.redraw {
                self.counts.count_redrawn(&flight);
            }
            self.retries.postpone(index, session, flight, now);
            return self.advance(index, now);
        }
        // As in pgbench, the log has no line for the transaction in which a client is aborted.
        let is_aborted = !retryable && on_error != OnError::Continue;
        if is_measured && !is_aborted {
            self.counts.log_failure(session, &flight, error.sqlstate, now);
        }
        if !stop && !retryable && on_error == OnError::EndSession {
            self.counts.note_ended_session(session, &flight, &error);
            self.lose(index, flight, unknown, now);
            self.lose_in_flight(index, now);
            return self.end(index, now);
        }
        if stop {
            session.add_place(&flight, &mut error);
        }
        self.lose(index, flight, unknown, now);
        if stop {
            self.fail(index, SessionError::Server(error), now);
        } else {
            self.advance(index, now);
        }
    }

    /// Continues after the failed statement of a transaction whose statements commit separately.
    fn skip_statement(
        &mut self,
        index: usize,
        mut flight: Box<InFlight>,
        error: &ServerError,
        now: Nanos,
    ) {
        let Some(session) = self.sessions.get_mut(index) else {
            return;
        };
        if self.window.is_measured(now) {
            self.counts.error(session, error.sqlstate, error, now);
        }
        if !flight.skip_step() {
            self.count_success(index, flight, now);
            return self.advance(index, now);
        }
        if let Err(error) = session.queue(flight, now) {
            self.handle_lost_connection(index, error);
        }
    }

    /// Resends the transactions whose backoff has expired, and continues those that have slept.
    pub(super) fn resend_due(&mut self, now: Nanos) {
        while let Some((index, transaction)) = self.retries.pop_due(now) {
            let Some(session) = self.sessions.get_mut(index) else {
                continue;
            };
            if session.paused.as_ref().is_some_and(|flight| flight.id == transaction) {
                self.wake(index, now, None);
            } else if session.activity == Activity::Connect {
                self.retries.postpone_again(index, transaction, now);
            } else if let Some(flight) = session.take_postponed(transaction) {
                if flight.tx.is_interactive() {
                    let repeated = session.repeat(flight, now);
                    self.handle_continuation(index, repeated, now);
                } else if let Err(error) = session.resend(flight, self.rules.errors.redraw, now) {
                    self.handle_lost_connection(index, error);
                    continue;
                }
                self.flush(index);
            }
        }
    }

    /// Handles an error of an EXPLAIN. Skips the check if the error is retryable or `--on-error continue` is
    /// set, otherwise ends the run. A check without an expected access path is only noted.
    pub(super) fn handle_failed_check(
        &mut self,
        index: usize,
        check: usize,
        error: Box<ServerError>,
        now: Nanos,
    ) {
        let Some(session) = self.sessions.get_mut(index) else {
            return;
        };
        let executed = session.executed(check);
        let is_observed = executed.is_some();
        // Not prepared on this connection, deallocated by the script, or known to a pooler under another name.
        if let Some(executed) = executed
            && error.sqlstate == SqlState::INVALID_STATEMENT_NAME
            && executed.forget_name()
        {
            return self.check(index, check, now);
        }
        self.counts.note_check(session, check, Err(format!("EXPLAIN failed: {error}")));
        if !is_observed {
            self.counts.error(session, error.sqlstate, &error, now);
            let retryable = error.is_retryable() || session.dialect.is_failed_request(&error);
            if !retryable && self.rules.errors.on_error != OnError::Continue {
                let statement = session.checked_statement(check).unwrap_or_default();
                return self.fail(index, SessionError::Explain { statement, error }, now);
            }
        }
        self.check(index, check + 1, now);
    }

    /// Counts the transactions in flight on a lost connection and requests a new connection. An error of the client ends
    /// the run.
    pub(super) fn handle_lost_connection(&mut self, index: usize, error: SessionError) {
        let now = self.clock.now();
        let Some(session) = self.sessions.get(index).filter(|session| session.is_connected())
        else {
            return;
        };
        let stop = match error {
            SessionError::Client { .. } => true,
            SessionError::Protocol(_) => self.rules.errors.on_error == OnError::Stop,
            _ => false,
        };
        if stop || (self.rules.exact && !session.is_idle()) {
            return self.fail(index, error, now);
        }
        if self.window.is_measured(now) {
            self.counts.error(session, error.sqlstate(), &error, now);
        }
        self.lose_in_flight(index, now);
        if now >= self.window.end() {
            self.end(index, now);
        } else {
            self.replace_connection(index, false, now);
        }
    }

    fn lose_in_flight(&mut self, index: usize, now: Nanos) {
        self.checking.take_if(|checking| *checking == index);
        let Some(session) = self.sessions.get_mut(index) else {
            return;
        };
        self.transport.detach(index, session);
        // The server has already rejected the first one, so its outcome is known.
        let rejected = session.take_rejected();
        let lost = session.detach();
        let paused = session.paused.take();
        if let Some(error) = &rejected
            && self.window.is_measured(now)
        {
            self.counts.error(session, error.sqlstate, error, now);
        }
        for (position, flight) in lost.into_iter().enumerate() {
            let answered = position == 0 && rejected.is_some();
            let unknown = !answered && self.counts.changes_rows(&flight);
            self.lose(index, flight, unknown, now);
        }
        // Everything that it has sent is answered.
        if let Some(flight) = paused {
            self.lose(index, flight, false, now);
        }
    }

    /// Ends a session for good.
    pub(super) fn end(&mut self, index: usize, now: Nanos) {
        self.note_finished(index);
        let Some(session) = self.sessions.get_mut(index) else {
            return;
        };
        self.transport.detach(index, session);
        session.end();
        self.active -= 1;
        for flight in std::mem::take(&mut session.postponed) {
            self.lose(index, flight, false, now);
        }
    }

    /// Ends a session with an error, and with it the measurement.
    pub(super) fn fail(&mut self, index: usize, error: SessionError, now: Nanos) {
        let Some(session) = self.sessions.get(index) else {
            return;
        };
        if session.activity == Activity::Ended {
            return;
        }
        // An error returned by a statement has been counted already, and one of the client is not an error
        // of the server.
        let is_uncounted = matches!(
            error,
            SessionError::Server(_) | SessionError::Explain { .. } | SessionError::Client { .. }
        );
        if !is_uncounted {
            self.counts.error(session, error.sqlstate(), &error, now);
        }
        self.lose_in_flight(index, now);
        self.end(index, now);
        self.counts.report.failure.get_or_insert(error);
        self.window.fail(now);
    }

    pub(super) fn fail_all(&mut self, error: &SessionError) {
        let now = self.clock.now();
        for index in 0..self.sessions.len() {
            self.fail(index, error.clone(), now);
        }
    }
}
