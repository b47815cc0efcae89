//! What becomes of a transaction: booked, sent again, counted as failed or as unknown; and what
//! becomes of a session whose connection broke.

use rand::RngExt;

use super::super::findings::merge;
use super::super::opening::{Order, Reopened};
use super::super::session::{Activity, Flight, SessionError};
use super::postponed::Postponed;
use super::{Clock, Worker};
use crate::metrics::{Counter, Failure, Measured, Origin};
use crate::plan::OnError;
use crate::server::ConnectionError;
use crate::units::Nanos;
use crate::workload::transaction::Effects;
use riops_wire::backend::ServerError;
use riops_wire::sqlstate::SqlState;

/// The pause before a transaction is sent again for the first time; it doubles with each attempt.
const PAUSE_FIRST: Nanos = Nanos(1_000_000);
/// The longest pause.
const PAUSE_MAX: Nanos = Nanos(100_000_000);

impl<C: Clock> Worker<C> {
    /// Counts a transaction that was acknowledged.
    pub(super) fn book(&mut self, number: usize, flight: Flight, now: Nanos) {
        if now >= self.interval_end {
            self.note_time(now);
        }
        let Some(session) = self.sessions.get_mut(number) else {
            return;
        };
        let (operation, outcome) = (flight.tx.operation(), flight.outcome);
        if let Some(acknowledged) = self.report.acknowledged.get_mut(operation) {
            acknowledged.transactions += 1;
            acknowledged.rows += outcome.rows;
            acknowledged.effects = acknowledged.effects.and(outcome.effects);
        }
        self.report.wrong_replies += u64::from(outcome.wrong);
        let service = now.since(flight.started);
        // A reply without the rows that were asked for counts as if it had them: a run that stops after
        // a number of rows would not end.
        let rows =
            if outcome.wrong { outcome.rows.max(flight.tx.rows_asked()) } else { outcome.rows };
        if self.limit.counts(flight.claimed, now, rows) {
            if let Some(tally) = session.tallies.get_mut(operation) {
                tally.transactions += 1;
                tally.rows += outcome.rows;
                tally.longest = tally.longest.max(service);
                tally.busy = tally.busy.after(service);
            }
            self.report.last_end = self.report.last_end.max(now);
            let response = now.since(flight.intended);
            let measured = Measured {
                operation,
                node: session.node,
                service,
                response,
                rows: outcome.rows,
                statements: flight.tx.statements(),
                queries: flight.queries,
                late: response > self.rules.late_after,
                now,
            };
            self.report.recorder.transaction(measured);
            if let Some(samples) = &mut self.report.recorder.samples {
                // Without a rate the two are the same.
                let session = self.share.number(number as u64);
                samples.record(u32::try_from(session).unwrap_or(u32::MAX), now, response);
            }
            self.report.recorder.attempts.record(now.since(flight.attempt_started));
        } else if now >= self.limit.end() {
            self.report.drained += 1;
            self.report.drained_max = self.report.drained_max.max(service);
        }
        session.recycle(flight);
    }

    /// A transaction was answered with an error.
    pub(super) fn failed(
        &mut self,
        number: usize,
        mut flight: Flight,
        error: Box<ServerError>,
        now: Nanos,
    ) {
        let passes = error.is_retryable() || self.rules.retried.contains(&error.sqlstate);
        let retry = passes && flight.retries < self.rules.errors.max_retries;
        let stop = !retry && self.rules.errors.on_error == OnError::Stop;
        // What was to be inserted again is there already, and would be the next time: it is left.
        if flight.tx.is_autocommit() && self.rules.retried.contains(&error.sqlstate) {
            return self.leave_out(number, flight, &error, now);
        }
        // The first one that ends the run counts even in the warm-up; those in its drain do not.
        if (stop || self.limit.is_measured(now)) && !self.limit.has_failed() {
            let attempt = now.since(flight.attempt_started);
            self.report.recorder.attempts.record(attempt);
            self.note_error(number, (error.sqlstate, &error.to_string()), retry, attempt, now);
        }
        if retry {
            flight.retries += 1;
            return self.postpone(number, flight, now);
        }
        // Some servers say with an error that they do not know.
        let changes = self.changes.get(flight.tx.operation()) == Some(&true);
        self.lose(number, &flight, changes && error.leaves_outcome_unknown(), now);
        if let Some(session) = self.sessions.get_mut(number) {
            session.recycle(flight);
        }
        if stop {
            self.fail(number, SessionError::Server(error), now);
        } else {
            self.advance(number, now);
        }
    }

    /// Goes on with the statement behind the one that failed, where each is committed by itself.
    fn leave_out(&mut self, number: usize, mut flight: Flight, error: &ServerError, now: Nanos) {
        if self.limit.is_measured(now) {
            self.note_error(number, (error.sqlstate, &error.to_string()), false, Nanos(0), now);
        }
        if !flight.skip_step() {
            self.book(number, flight, now);
            return self.advance(number, now);
        }
        let queued = self.sessions.get_mut(number).map(|session| session.queue(flight, now));
        if let Some(Err(error)) = queued {
            self.broken(number, error);
        }
    }

    /// A look at a plan was answered with an error. One that may pass, or that the user wants to be
    /// counted, leaves the look out; any other ends the run.
    pub(super) fn not_seen(
        &mut self,
        number: usize,
        check: usize,
        error: Box<ServerError>,
        now: Nanos,
    ) {
        self.note_error(number, (error.sqlstate, &error.to_string()), false, Nanos(0), now);
        if error.is_retryable() || self.rules.errors.on_error == OnError::Continue {
            self.check(number, check + 1, now);
        } else {
            let statement = self
                .sessions
                .get(number)
                .and_then(|session| session.recipe.checks.get(check))
                .map_or_else(String::new, |(access, _)| access.statement.clone());
            self.fail(number, SessionError::Look { statement, error }, now);
        }
    }

    /// Counts an error, on the node of its session.
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

    fn postpone(&mut self, number: usize, flight: Flight, now: Nanos) {
        let doubled = PAUSE_FIRST.0.saturating_mul(1 << flight.retries.min(20)) / 2;
        let pause = doubled.min(PAUSE_MAX.0);
        // Transactions that got in each other's way shall not meet again at once.
        let due = now.after(Nanos(self.rng.random_range(pause / 2..=pause + pause / 2)));
        if let Some(session) = self.sessions.get_mut(number) {
            session.postponed += 1;
            self.postponed.push(Postponed { due, number, flight });
        }
        self.advance(number, now);
    }

    /// Sends the transactions again whose pause is over.
    pub(super) fn send_again(&mut self, now: Nanos) {
        while self.postponed.peek().is_some_and(|postponed| postponed.due <= now) {
            let Some(Postponed { number, flight, .. }) = self.postponed.pop() else {
                return;
            };
            let Some(session) = self.sessions.get_mut(number) else {
                continue;
            };
            match session.activity {
                // It goes out when the connection is there.
                Activity::Connect => {
                    let due = now.after(PAUSE_MAX);
                    self.postponed.push(Postponed { due, number, flight });
                }
                Activity::Ended => self.lose(number, &flight, false, now),
                Activity::Work | Activity::Check(_) => {
                    session.postponed -= 1;
                    match session.queue(flight, now) {
                        Ok(()) => self.push_out(number),
                        Err(error) => self.broken(number, error),
                    }
                }
            }
        }
    }

    /// Counts a transaction that failed or, with `unknown`, may have changed rows all the same.
    fn lose(&mut self, number: usize, flight: &Flight, unknown: bool, now: Nanos) {
        let operation = flight.tx.operation();
        let unknown = unknown && flight.may_be_committed();
        let mut done = Effects::default();
        if flight.tx.is_autocommit() {
            done = flight.outcome.effects;
        }
        let node = self.sessions.get(number).map_or(0, |session| session.node);
        if let Some(acknowledged) = self.report.acknowledged.get_mut(operation) {
            acknowledged.effects = acknowledged.effects.and(done);
            if unknown {
                acknowledged.rows_unknown += flight.tx.rows_asked();
                acknowledged.transactions_unknown += 1;
                let asked = if flight.tx.is_autocommit() {
                    // Those before are acknowledged, those behind were not sent.
                    flight.tx.step_effects(flight.step).unwrap_or_default()
                } else {
                    flight.tx.effects_asked()
                };
                acknowledged.effects_unknown = acknowledged.effects_unknown.and(asked);
            }
        }
        let lost = if unknown { Counter::Unknown } else { Counter::Failed };
        if let Some(totals) = self.report.recorder.nodes.get_mut(node)
            && (unknown || self.limit.is_measured(now))
        {
            totals.counters.add([(lost, 1)]);
        }
        // What fails counts towards a number of rows too, or a run that only fails would not end.
        if self.limit.counts(flight.claimed, now, flight.tx.rows_asked()) {
            let origin = Origin::operation(operation);
            self.report.recorder.count(origin, [(lost, 1)]);
            self.report.recorder.count(origin, flight.queries.counts());
            self.report.last_end = self.report.last_end.max(now);
        } else if now >= self.limit.end() {
            self.report.drained_lost += 1;
        }
    }

    /// A connection broke: what was under way on it is lost, and another one is ordered.
    pub(super) fn broken(&mut self, number: usize, error: SessionError) {
        let now = self.clock.now();
        let Some(session) = self.sessions.get(number) else {
            return;
        };
        if matches!(session.activity, Activity::Ended | Activity::Connect) {
            return;
        }
        let untrustworthy = matches!(error, SessionError::Protocol(_))
            && self.rules.errors.on_error == OnError::Stop;
        if untrustworthy || (self.rules.exact && !session.is_quiet()) {
            return self.fail(number, error, now);
        }
        if self.limit.is_measured(now) {
            let error = (error.sqlstate(), error.to_string());
            self.note_error(number, (error.0, &error.1), false, Nanos(0), now);
        }
        self.lose_all_under_way(number, now);
        if now >= self.limit.end() {
            return self.give_up_connecting(number, now);
        }
        if let Err(error) = self.order_connection(number, false) {
            self.fail(number, SessionError::Io(error.to_string()), now);
        }
    }

    fn lose_all_under_way(&mut self, number: usize, now: Nanos) {
        self.look_is_over(number);
        let Some(session) = self.sessions.get_mut(number) else {
            return;
        };
        // The server had refused the first of them already: it is not unknown.
        let refused = session.take_refused();
        let lost: Vec<Flight> = session.detach().collect();
        if let Some(error) = &refused
            && self.limit.is_measured(now)
        {
            self.note_error(number, (error.sqlstate, &error.to_string()), false, Nanos(0), now);
        }
        for (position, flight) in lost.into_iter().enumerate() {
            let answered = position == 0 && refused.is_some();
            let unknown = !answered && self.changes.get(flight.tx.operation()) == Some(&true);
            self.lose(number, &flight, unknown, now);
            if let Some(session) = self.sessions.get_mut(number) {
                session.recycle(flight);
            }
        }
    }

    /// Asks the connectors for a new connection.
    pub(super) fn order_connection(&mut self, number: usize, planned: bool) -> std::io::Result<()> {
        let Some(session) = self.sessions.get(number) else {
            return Ok(());
        };
        let patience = std::time::Duration::from_secs_f64(self.rules.errors.reconnect_timeout_s);
        self.reconnect.connectors.order(Order {
            number,
            session: self.share.number(number as u64),
            left: session.node,
            recipe: std::sync::Arc::clone(&session.recipe),
            // A look costs more than the transactions that a short-lived connection serves.
            look: !planned,
            planned,
            patience,
            ordered: std::time::Instant::now(),
            reply: self.reconnect.reply.clone(),
            waker: std::sync::Arc::clone(&self.reconnect.waker),
        })
    }

    /// Puts the connections that have come in their places.
    pub(super) fn take_reopened(&mut self, now: Nanos) {
        while let Ok(Reopened { number, planned, result }) = self.reconnect.reopened.try_recv() {
            let Some(session) = self.sessions.get_mut(number) else {
                continue;
            };
            // It came too late to be of use.
            if session.activity != Activity::Connect {
                continue;
            }
            match result {
                Ok(mut opened) => {
                    merge(&mut self.report.findings, std::mem::take(&mut opened.findings));
                    if self.limit.is_measured(now) {
                        if !planned {
                            let origin = Origin::node(opened.node);
                            self.report.recorder.count(origin, [(Counter::Reconnects, 1)]);
                        }
                        self.report.recorder.connects.record(opened.took);
                    }
                    session.attach(opened);
                    // Its home may have come back while it was on its way.
                    session.moves = self.rules.rebalance
                        && self.nodes.should_move(self.share.number(number as u64), session.node);
                    match self.register(number) {
                        Ok(()) => self.go_on(number, now),
                        Err(error) => {
                            self.fail(number, SessionError::Io(error.to_string()), now);
                        }
                    }
                }
                Err(error) => self.not_reopened(number, &error, now),
            }
        }
    }

    fn not_reopened(&mut self, number: usize, error: &ConnectionError, now: Nanos) {
        if now >= self.limit.end() {
            return self.give_up_connecting(number, now);
        }
        let error =
            SessionError::Reconnect { sqlstate: error.sqlstate(), message: error.to_string() };
        self.fail(number, error, now);
    }

    /// A session without a connection, after the end of the measurement: it is over.
    pub(super) fn give_up_connecting(&mut self, number: usize, now: Nanos) {
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
        let (gone, left): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|postponed| postponed.number == number);
        self.postponed = left.into();
        for postponed in gone {
            self.lose(number, &postponed.flight, false, now);
        }
    }

    /// A session is over for good, and with it the measurement.
    pub(super) fn fail(&mut self, number: usize, error: SessionError, now: Nanos) {
        let Some(session) = self.sessions.get(number) else {
            return;
        };
        if session.activity == Activity::Ended {
            return;
        }
        // A refused statement was counted when it was refused.
        if !matches!(error, SessionError::Server(_) | SessionError::Look { .. }) {
            let error = (error.sqlstate(), error.to_string());
            self.note_error(number, (error.0, &error.1), false, Nanos(0), now);
        }
        self.lose_all_under_way(number, now);
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
