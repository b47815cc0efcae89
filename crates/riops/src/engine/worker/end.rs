//! Outcomes of transactions and connections.
//!
//! A transaction succeeds, is retried, fails, or has an unknown outcome. A session whose connection is lost
//! requests a new one.

use rand::RngExt;

use super::super::findings::merge;
use super::super::in_flight::InFlight;
use super::super::log_entry::{LogEntry, LoggedOutcome};
use super::super::opening::{ConnectRequest, Reopened};
use super::super::session::{Activity, SessionError};
use super::postponed::Postponed;
use super::report::ENDED_MAX;
use super::{Clock, Worker, cpu};
use crate::metrics::{Counter, EventSource, Failure, Measured};
use crate::plan::OnError;
use crate::record::EndedSessionRecord;
use crate::server::ConnectionError;
use crate::units::{Nanos, Span};
use crate::workload::effects::TransactionEffects;
use crate::workload::unknown::{TransactionId, UNKNOWN_MAX, Unknown};
use riops_wire::backend::ServerError;
use riops_wire::sqlstate::SqlState;

/// Backoff before the first retry of a transaction; doubles with each further one.
const BACKOFF_MIN: Nanos = Nanos(1_000_000);
/// Maximum backoff.
const BACKOFF_MAX: Nanos = Nanos(100_000_000);

impl<C: Clock> Worker<C> {
    /// Counts a transaction that the server acknowledged.
    pub(super) fn count_success(&mut self, number: usize, flight: Box<InFlight>, now: Nanos) {
        if now >= self.interval_end {
            self.note_time(now);
        }
        let Some(session) = self.sessions.get_mut(number) else {
            return;
        };
        let (operation, outcome) = (flight.tx.operation(), &flight.outcome);
        if let Some(acknowledged) = self.report.acknowledged.get_mut(operation) {
            acknowledged.transactions += 1;
            acknowledged.rows += outcome.rows;
            acknowledged.effects.add(&outcome.effects);
        }
        self.report.wrong_replies += u64::from(outcome.wrong);
        let service = now.since(flight.started);
        // A reply with too few rows counts as complete. Otherwise a run that stops after a number of rows
        // might never end.
        let rows =
            if outcome.wrong { outcome.rows.max(flight.tx.expected_rows()) } else { outcome.rows };
        if self.limit.counts(flight.claimed, now, rows) {
            if let Some(tally) = session.tallies.get_mut(operation) {
                tally.transactions += 1;
                tally.rows += outcome.rows;
                tally.longest = tally.longest.max(service);
                tally.busy = tally.busy.after(service);
            }
            self.report.last_end = self.report.last_end.max(now);
            if self.ending {
                self.cpu_at_end_s = Some(cpu::thread_seconds());
            }
            let response = now.since(flight.intended);
            let measured = Measured {
                operation,
                node: session.node,
                service,
                response,
                attempt: now.since(flight.attempt_started),
                rows: outcome.rows,
                statements: flight.tx.statements(),
                queries: flight.queries,
                late: response > self.rules.late_after,
                retried: flight.retries > 0,
                now,
            };
            self.report.recorder.transaction(measured);
            if let Some(log) = &mut self.log {
                let session = self.share.number(number as u64);
                let outcome = LoggedOutcome::Succeeded(response);
                log.add(number, LogEntry::of(&flight, session, outcome, now));
            }
            if let Some(samples) = &mut self.report.recorder.samples {
                // Without a rate, response time equals service time.
                let session = self.share.number(number as u64);
                samples.record(u32::try_from(session).unwrap_or(u32::MAX), now, response);
            }
        } else {
            if now >= self.limit.end() {
                self.report.drained += 1;
                self.report.drained_max = self.report.drained_max.max(service);
            }
            // From the start of the measurement on, a run by count starts only transactions that count.
            let start = self.limit.measure_start();
            if self.limit.stops_by_count() && now > start && now < self.limit.window_end() {
                let warmup = &mut self.report.warmup_in_flight;
                warmup.transactions += 1;
                warmup.occupied = warmup.occupied.after(now.min(self.limit.end()).since(start));
            }
        }
        session.recycle(flight);
    }

    /// Retries a transaction that the server answered with an error, or counts it as failed.
    pub(super) fn transaction_failed(
        &mut self,
        number: usize,
        mut flight: Box<InFlight>,
        error: Box<ServerError>,
        now: Nanos,
    ) {
        let retryable = error.is_retryable()
            || self.rules.retried.contains(&error.sqlstate)
            || self.is_failed_request(number, &error);
        // Retrying a change that may have been committed could apply it twice.
        let unknown = self.is_outcome_unknown(number, &flight, &error);
        // After the end of the measurement, only a transaction that counts toward it is repeated.
        let may_repeat = flight.claimed || now < self.limit.end();
        let is_left = flight.retries < self.rules.errors.max_retries;
        let retry = retryable && !unknown && is_left && may_repeat;
        let may_stop = may_repeat || !retryable;
        // An unknown outcome that is no other error ends the run no more than a lost connection does.
        let stop = if retryable && unknown {
            self.rules.exact
        } else {
            !retry && may_stop && self.rules.errors.on_error == OnError::Stop
        };
        // A retried insert whose rows exist already would fail again, so the statement is skipped.
        if flight.tx.is_autocommit() && self.rules.retried.contains(&error.sqlstate) {
            return self.skip_statement(number, flight, &error, now);
        }
        if let Some(session) = self.sessions.get_mut(number) {
            session.note_error(&flight, &error, retry);
        }
        // An error that stops the run counts even during the warm-up. Errors during its drain do not count.
        if (stop || self.limit.is_measured(now)) && !self.limit.has_failed() {
            let attempt = now.since(flight.attempt_started);
            self.report.recorder.failed_attempt(attempt);
            if flight.tx.is_interactive() {
                self.report.recorder.commands.failed(flight.tx.command(), error.sqlstate, retry);
            }
            self.note_error(number, (error.sqlstate, &error.to_string()), retry, attempt, now);
        }
        if retry {
            self.report.unsuccessful += 1;
            flight.retries += 1;
            return self.postpone(number, flight, now);
        }
        self.count_lost(number, &flight, unknown, now);
        // As in pgbench, the log has no line for the transaction in which a client is aborted.
        let is_aborted = !retryable && self.rules.errors.on_error != OnError::Continue;
        if self.limit.is_measured(now) && !is_aborted {
            self.log_failure(number, &flight, error.sqlstate, now);
        }
        let operation = flight.tx.operation();
        let command = flight.tx.is_interactive().then(|| flight.tx.command());
        if let Some(session) = self.sessions.get_mut(number) {
            session.recycle(flight);
        }
        if stop {
            self.fail(number, SessionError::Server(error), now);
        } else if self.rules.errors.on_error == OnError::EndSession && !retryable {
            self.end_session(number, operation, command, &error, now);
        } else {
            self.advance(number, now);
        }
    }

    /// Ends a session after an error, but not the measurement.
    fn end_session(
        &mut self,
        number: usize,
        operation: usize,
        command: Option<usize>,
        error: &ServerError,
        now: Nanos,
    ) {
        if self.report.ended.len() < ENDED_MAX {
            let session = self.share.number(number as u64);
            let message = error.to_string();
            // Errors of a script have no severity.
            let lines = (!error.severity.is_empty()).then(|| error.in_lines());
            let script = operation + 1;
            let ended = EndedSessionRecord { session, script, command, message, lines };
            self.report.ended.push(ended);
        }
        self.lose_in_flight(number, now);
        self.note_finished(number);
        if let Some(session) = self.sessions.get_mut(number) {
            session.end();
        }
        self.active -= 1;
        self.drop_postponed(number, now);
    }

    /// Returns whether a failed transaction may have been committed: the server does not know the outcome
    /// itself, and neither the position of the failed step nor a rollback proves that nothing was changed.
    fn is_outcome_unknown(&self, number: usize, flight: &InFlight, error: &ServerError) -> bool {
        let changes = self.changes.get(flight.tx.operation()) == Some(&true);
        let in_doubt = error.leaves_outcome_unknown() || self.is_failed_request(number, error);
        changes && flight.may_be_committed() && in_doubt
    }

    fn is_failed_request(&self, number: usize, error: &ServerError) -> bool {
        self.sessions.get(number).is_some_and(|session| session.dialect.is_failed_request(error))
    }

    /// Continues after the failed statement of a transaction whose statements commit separately.
    fn skip_statement(
        &mut self,
        number: usize,
        mut flight: Box<InFlight>,
        error: &ServerError,
        now: Nanos,
    ) {
        if self.limit.is_measured(now) {
            self.note_error(number, (error.sqlstate, &error.to_string()), false, Nanos(0), now);
        }
        if !flight.skip_step() {
            self.count_success(number, flight, now);
            return self.advance(number, now);
        }
        let queued = self.sessions.get_mut(number).map(|session| session.queue(flight, now));
        if let Some(Err(error)) = queued {
            self.connection_lost(number, error);
        }
    }

    /// Handles an error of an EXPLAIN. Skips the check if the error is retryable or `--on-error continue` is
    /// set, otherwise ends the run. A check without an expected access path is only noted.
    pub(super) fn plan_check_failed(
        &mut self,
        number: usize,
        check: usize,
        error: Box<ServerError>,
        now: Nanos,
    ) {
        let executed = self.sessions.get_mut(number).and_then(|session| session.executed(check));
        let is_observed = executed.is_some();
        // Not prepared on this connection, deallocated by the script, or known to a pooler under another name.
        if let Some(executed) = executed
            && error.sqlstate == SqlState::INVALID_STATEMENT_NAME
            && executed.forget_name()
        {
            return self.check(number, check, now);
        }
        self.note_unchecked(number, check, format!("EXPLAIN failed: {error}"));
        if is_observed {
            return self.check(number, check + 1, now);
        }
        self.note_error(number, (error.sqlstate, &error.to_string()), false, Nanos(0), now);
        let retryable = error.is_retryable() || self.is_failed_request(number, &error);
        if retryable || self.rules.errors.on_error == OnError::Continue {
            self.check(number, check + 1, now);
        } else {
            let statement = self.checked(number, check).map(|(statement, _)| statement);
            let statement = statement.unwrap_or_default();
            self.fail(number, SessionError::Explain { statement, error }, now);
        }
    }

    /// Counts an error on the session's node.
    fn note_error(
        &mut self,
        number: usize,
        (sqlstate, message): (SqlState, &str),
        retried: bool,
        attempt: Nanos,
        now: Nanos,
    ) {
        let node = self.sessions.get(number).map_or(0, |session| session.node);
        let failure = Failure { sqlstate, message, retried, attempt, node, now };
        self.report.recorder.error(&failure);
    }

    fn postpone(&mut self, number: usize, flight: Box<InFlight>, now: Nanos) {
        let doubled = BACKOFF_MIN.0.saturating_mul(1 << flight.retries.min(20)) / 2;
        let backoff = doubled.min(BACKOFF_MAX.0);
        // Jitter: transactions that conflicted must not be retried at the same time.
        let due = now.after(Nanos(self.rng.random_range(backoff / 2..=backoff + backoff / 2)));
        if let Some(session) = self.sessions.get_mut(number) {
            session.postponed += 1;
            self.postponed.push(Postponed { due, number, flight: Some(flight) });
        }
        self.advance(number, now);
    }

    /// Resends the transactions whose backoff has expired.
    pub(super) fn resend_due(&mut self, now: Nanos) {
        while self.postponed.peek().is_some_and(|postponed| postponed.due <= now) {
            let Some(Postponed { number, flight, .. }) = self.postponed.pop() else {
                return;
            };
            let Some(flight) = flight else {
                self.wake(number, now, None);
                continue;
            };
            let Some(session) = self.sessions.get_mut(number) else {
                continue;
            };
            match session.activity {
                // Checked again later: the session has no connection yet.
                Activity::Connect => {
                    let due = now.after(BACKOFF_MAX);
                    self.postponed.push(Postponed { due, number, flight: Some(flight) });
                }
                Activity::Ended => self.count_lost(number, &flight, false, now),
                Activity::Work | Activity::Check(_) => {
                    session.postponed -= 1;
                    if flight.tx.is_interactive() {
                        let repeated = session.repeat(flight, now);
                        self.continued(number, repeated, now);
                        self.flush_session(number);
                        continue;
                    }
                    match session.queue(flight, now) {
                        Ok(()) => self.flush_session(number),
                        Err(error) => self.connection_lost(number, error),
                    }
                }
            }
        }
    }

    /// Counts a transaction that failed or, with `unknown`, may still have been committed.
    pub(super) fn count_lost(
        &mut self,
        number: usize,
        flight: &InFlight,
        unknown: bool,
        now: Nanos,
    ) {
        self.report.unsuccessful += 1;
        let operation = flight.tx.operation();
        let unknown = unknown && flight.may_be_committed();
        let mut done = TransactionEffects::default();
        if flight.tx.is_autocommit() {
            done = flight.completed_effects();
        }
        let node = self.sessions.get(number).map_or(0, |session| session.node);
        if let Some(acknowledged) = self.report.acknowledged.get_mut(operation) {
            acknowledged.effects.add(&done);
            if unknown {
                acknowledged.rows_unknown += flight.tx.expected_rows();
                acknowledged.transactions_unknown += 1;
                acknowledged.effects_unknown.add(&flight.effects_in_doubt());
            }
        }
        if unknown {
            self.note_unknown(number, flight);
        }
        let lost = if unknown { Counter::Unknown } else { Counter::Failed };
        if let Some(totals) = self.report.recorder.nodes.get_mut(node)
            && (unknown || self.limit.is_measured(now))
        {
            totals.counters.add([(lost, 1)]);
        }
        // Failed transactions count toward a number of rows too. Otherwise a run in which every
        // transaction fails would never end.
        if self.limit.counts(flight.claimed, now, flight.tx.expected_rows()) {
            let origin = EventSource::operation(operation);
            let retried = u64::from(flight.retries > 0);
            self.report.recorder.count(origin, [(lost, 1), (Counter::Retried, retried)]);
            self.report.recorder.count(origin, flight.queries.counts());
            self.report.last_end = self.report.last_end.max(now);
            if self.ending {
                self.cpu_at_end_s = Some(cpu::thread_seconds());
            }
        } else if now >= self.limit.end() {
            self.report.drained_lost += 1;
        }
    }

    /// Stores a transaction with an unknown outcome, for the verification after the run.
    fn note_unknown(&mut self, number: usize, flight: &InFlight) {
        if self.report.unknown.len() >= UNKNOWN_MAX {
            return;
        }
        let step = flight.tx.is_autocommit().then_some(flight.step);
        let in_doubt = |of: usize| step.is_none_or(|step| step == of);
        let marks = flight.tx.marks().iter().filter(|(of, _)| in_doubt(*of));
        let session = self.share.number(number as u64);
        self.report.unknown.push(Unknown {
            origin: TransactionId { stage: 0, session, number: flight.number, step },
            operation: flight.tx.operation(),
            rows: flight.tx.expected_rows(),
            effects: flight.effects_in_doubt(),
            has_exact_effects: flight.tx.has_exact_effects(),
            marks: marks.map(|(_, mark)| *mark).collect(),
        });
    }

    /// Counts the transactions in flight on a lost connection and requests a new connection.
    pub(super) fn connection_lost(&mut self, number: usize, error: SessionError) {
        let now = self.clock.now();
        let Some(session) = self.sessions.get(number) else {
            return;
        };
        if matches!(session.activity, Activity::Ended | Activity::Connect) {
            return;
        }
        let stop = matches!(error, SessionError::Protocol(_))
            && self.rules.errors.on_error == OnError::Stop;
        if stop || (self.rules.exact && !session.is_idle()) {
            return self.fail(number, error, now);
        }
        if self.limit.is_measured(now) {
            let error = (error.sqlstate(), error.to_string());
            self.note_error(number, (error.0, &error.1), false, Nanos(0), now);
        }
        self.lose_in_flight(number, now);
        if now >= self.limit.end() {
            return self.give_up_connecting(number, now);
        }
        if let Err(error) = self.request_connection(number, false) {
            self.fail(number, SessionError::client("cannot reconnect", &error), now);
        }
    }

    fn lose_in_flight(&mut self, number: usize, now: Nanos) {
        self.plan_check_done(number);
        self.detach_from_ring(number);
        let Some(session) = self.sessions.get_mut(number) else {
            return;
        };
        // The server has already rejected the first one, so its outcome is known.
        let rejected = session.take_rejected();
        let lost = session.detach();
        let paused = session.take_paused();
        if let Some(error) = &rejected
            && self.limit.is_measured(now)
        {
            self.note_error(number, (error.sqlstate, &error.to_string()), false, Nanos(0), now);
        }
        for (position, flight) in lost.into_iter().enumerate() {
            let answered = position == 0 && rejected.is_some();
            let unknown = !answered && self.changes.get(flight.tx.operation()) == Some(&true);
            self.count_lost(number, &flight, unknown, now);
            if let Some(session) = self.sessions.get_mut(number) {
                session.recycle(flight);
            }
        }
        // Everything that it has sent is answered.
        if let Some(flight) = paused {
            self.postponed.retain(|each| each.number != number || each.flight.is_some());
            self.count_lost(number, &flight, false, now);
            if let Some(session) = self.sessions.get_mut(number) {
                session.recycle(flight);
            }
        }
    }

    /// Requests a new connection from the connectors.
    pub(super) fn request_connection(
        &mut self,
        number: usize,
        planned: bool,
    ) -> std::io::Result<()> {
        let Some(session) = self.sessions.get(number) else {
            return Ok(());
        };
        let timeout = Span::of_seconds(self.rules.errors.reconnect_timeout_s).0;
        self.reconnect.connectors.request(ConnectRequest {
            number,
            session: self.share.number(number as u64),
            left: session.node,
            recipe: std::sync::Arc::clone(&session.recipe),
            // An EXPLAIN costs more than the few transactions of a short-lived connection.
            check_plans: !planned,
            planned,
            timeout,
            requested_at: std::time::Instant::now(),
            reply: self.reconnect.reply.clone(),
            waker: std::sync::Arc::clone(&self.reconnect.waker),
        })
    }

    /// Attaches the connections that the connectors have opened to their sessions.
    pub(super) fn attach_reopened(&mut self, now: Nanos) {
        while let Ok(Reopened { number, planned, result }) = self.reconnect.reopened.try_recv() {
            let Some(session) = self.sessions.get_mut(number) else {
                continue;
            };
            // The session has ended in the meantime.
            if session.activity != Activity::Connect {
                continue;
            }
            match result {
                Ok(mut opened) => {
                    merge(&mut self.report.findings, std::mem::take(&mut opened.findings));
                    if self.limit.is_measured(now) {
                        if !planned {
                            let origin = EventSource::node(opened.node);
                            self.report.recorder.count(origin, [(Counter::Reconnects, 1)]);
                        }
                        self.report.recorder.connects.record(opened.took);
                    }
                    session.attach(opened);
                    // The home node may have come back while the session was connecting.
                    session.moving_home = self.rules.rebalance
                        && self.nodes.should_move(self.share.number(number as u64), session.node);
                    match self.register(number) {
                        Ok(()) => self.resume(number, now),
                        Err(error) => {
                            let error = SessionError::client("cannot wait for replies", &error);
                            self.fail(number, error, now);
                        }
                    }
                }
                Err(error) => self.reconnect_failed(number, &error, now),
            }
        }
    }

    fn reconnect_failed(&mut self, number: usize, error: &ConnectionError, now: Nanos) {
        if now >= self.limit.end() {
            return self.give_up_connecting(number, now);
        }
        let error =
            SessionError::Reconnect { sqlstate: error.sqlstate(), message: error.to_string() };
        self.fail(number, error, now);
    }

    /// Ends a session that has no connection after the end of the measurement.
    pub(super) fn give_up_connecting(&mut self, number: usize, now: Nanos) {
        self.note_finished(number);
        let Some(session) = self.sessions.get_mut(number) else {
            return;
        };
        session.end();
        self.active -= 1;
        self.drop_postponed(number, now);
    }

    fn drop_postponed(&mut self, number: usize, now: Nanos) {
        if self.postponed.is_empty() {
            return;
        }
        let all = std::mem::take(&mut self.postponed);
        let (dropped, kept): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|postponed| postponed.number == number);
        self.postponed = kept.into();
        for flight in dropped.into_iter().filter_map(|postponed| postponed.flight) {
            self.count_lost(number, &flight, false, now);
        }
    }

    /// Ends a session with an error, and with it the measurement.
    pub(super) fn fail(&mut self, number: usize, error: SessionError, now: Nanos) {
        let Some(session) = self.sessions.get(number) else {
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
            let error = (error.sqlstate(), error.to_string());
            self.note_error(number, (error.0, &error.1), false, Nanos(0), now);
        }
        self.lose_in_flight(number, now);
        self.note_finished(number);
        if let Some(session) = self.sessions.get_mut(number) {
            session.end();
        }
        self.active -= 1;
        self.drop_postponed(number, now);
        self.report.failure.get_or_insert(error);
        self.limit.fail(now);
    }

    pub(super) fn fail_all(&mut self, error: &SessionError) {
        let now = self.clock.now();
        for number in 0..self.sessions.len() {
            self.fail(number, error.clone(), now);
        }
    }
}
