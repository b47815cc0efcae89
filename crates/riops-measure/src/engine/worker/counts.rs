//! Counts the transactions of a worker: in its report, its intervals, and its part of the log.

use std::fmt::Display;
use std::sync::Arc;

use riops_wire::backend::ServerError;
use riops_wire::sqlstate::SqlState;

use super::super::clock::Clock;
use super::super::error::SessionError;
use super::super::in_flight::InFlight;
use super::super::log::{Log, LogEntry, LoggedOutcome};
use super::super::session::Session;
use super::super::window::Window;
use super::report::{ENDED_MAX, Intervals, WorkerReport};
use super::starts::StartQueue;
use crate::metrics::{Counter, EventSource, Failure, Fate, Measured, Unsuccessful, counts_of};
use crate::probe::cpu;
use crate::workload::access::Finding;
use crate::workload::unknown::{TransactionId, UNKNOWN_MAX, Unknown};
use riops_model::record::EndedSessionRecord;
use riops_model::units::Nanos;

pub(in crate::engine) struct Counts {
    window: Arc<Window>,
    /// Whether each operation changes rows.
    changes: Vec<bool>,
    /// Response time from which a transaction is late.
    late_after: Nanos,
    intervals: Intervals,
    /// The log of single transactions, if there is one.
    log: Option<Box<Log>>,
    cpu_at_start_s: Option<f64>,
    cpu_at_end_s: Option<f64>,
    /// Number of sessions with a transaction in flight at the end of the measurement.
    busy_at_end: u64,
    /// Whether the drain has begun.
    pub(super) is_draining: bool,
    pub(super) report: WorkerReport,
}

impl Counts {
    pub(in crate::engine) fn new(
        window: Arc<Window>,
        report: WorkerReport,
        changes: Vec<bool>,
        late_after: Nanos,
        intervals: Intervals,
        log: Option<Box<Log>>,
    ) -> Self {
        Self {
            window,
            changes,
            late_after,
            intervals,
            log,
            cpu_at_start_s: None,
            cpu_at_end_s: None,
            busy_at_end: 0,
            is_draining: false,
            report,
        }
    }

    /// Returns whether the current interval must end before a transaction that ended now is counted.
    pub(super) fn is_interval_over(&self, now: Nanos) -> bool {
        now >= self.intervals.end
    }

    /// Reads the CPU time at the start and the end of the measurement, and ends completed intervals.
    #[inline]
    pub(super) fn note_time(
        &mut self,
        now: Nanos,
        starts: &mut StartQueue,
        busy: impl Fn() -> u64,
    ) {
        let start = self.window.measure_start();
        if self.cpu_at_start_s.is_none() && now >= start {
            self.cpu_at_start_s = Some(cpu::thread_seconds());
            starts.begin_measurement(start);
        }
        if self.cpu_at_end_s.is_none() && now >= self.window.planned_end() {
            self.cpu_at_end_s = Some(cpu::thread_seconds());
            self.busy_at_end = busy();
        }
        while self.is_interval_over(now) && self.intervals.end < self.window.planned_end() {
            let backlog = starts.backlog(self.intervals.end);
            if let Some(backlog) = backlog {
                self.report.recorder.set_backlog(backlog, busy());
            }
            if !self.intervals.next(&mut self.report.recorder, backlog.is_some()) {
                return;
            }
        }
    }

    /// The drain has begun.
    pub(super) fn begin_drain(&mut self) {
        self.is_draining = true;
        if self.window.counts_in_flight() {
            self.cpu_at_end_s = Some(cpu::thread_seconds());
        }
    }

    /// Counts how long a turn of the loop took. After the end, only the turns with a counted transaction
    /// belong to it.
    pub(super) fn turn(&mut self, begin: Nanos, clock: &impl Clock) {
        if self.window.is_measured(begin) && (!self.is_draining || self.report.last_end >= begin) {
            self.report.recorder.poll_stalls.record(clock.now().since(begin));
        }
    }

    /// Counts a transaction that the server acknowledged.
    pub(super) fn count_success(&mut self, session: &mut Session, flight: &InFlight, now: Nanos) {
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
        let response = now.since(flight.intended);
        if !self.window.counts(flight.claimed, now, rows) {
            if now >= self.window.planned_end() {
                let fate = Fate::Drained;
                let transaction = Unsuccessful { fate, operation, service, response, now };
                self.report.recorder.unsuccessful(&transaction);
            }
            return self.count_outside_measurement(service, now);
        }
        if let Some(tally) = session.tallies.get_mut(operation) {
            tally.transactions += 1;
            tally.rows += outcome.rows;
            tally.longest = tally.longest.max(service);
            tally.busy = tally.busy.after(service);
        }
        self.note_counted_end(now);
        let measured = Measured {
            operation,
            node: session.node,
            service,
            response,
            attempt: now.since(flight.attempt_started),
            rows: outcome.rows,
            statements: flight.tx.statements(),
            queries: flight.queries,
            late: response > self.late_after,
            retried: flight.retries > 0,
            now,
        };
        self.report.recorder.transaction(measured);
        self.log(session, Some(flight), operation, LoggedOutcome::Succeeded(response), now);
        if let Some(samples) = &mut self.report.recorder.samples {
            // Without a rate, response time equals service time.
            samples.record(u32::try_from(session.id).unwrap_or(u32::MAX), now, response);
        }
    }

    /// Counts a transaction that succeeded outside of the measurement.
    fn count_outside_measurement(&mut self, service: Nanos, now: Nanos) {
        if now >= self.window.end() {
            self.report.drained += 1;
            self.report.drained_max = self.report.drained_max.max(service);
        }
        // From the start of the measurement on, a run by count starts only transactions that count.
        let start = self.window.measure_start();
        if self.window.stops_by_count() && now > start && now < self.window.planned_end() {
            let warmup = &mut self.report.warmup_in_flight;
            warmup.transactions += 1;
            warmup.occupied = warmup.occupied.after(now.min(self.window.end()).since(start));
        }
    }

    /// Notes that a transaction that counts has ended.
    fn note_counted_end(&mut self, now: Nanos) {
        self.report.last_end = self.report.last_end.max(now);
        if self.is_draining {
            self.cpu_at_end_s = Some(cpu::thread_seconds());
        }
    }

    /// Counts a turn or a pause of an interactive transaction.
    pub(super) fn command(&mut self, flight: &InFlight, took: Nanos, now: Nanos) {
        if self.window.is_measured(now) {
            self.report.recorder.commands.record(flight.tx.command(), took);
        }
    }

    /// Counts an attempt that the server answered with an error.
    pub(super) fn failed_attempt(
        &mut self,
        session: &Session,
        flight: &InFlight,
        error: &ServerError,
        retried: bool,
        now: Nanos,
    ) {
        let attempt = now.since(flight.attempt_started);
        let (sqlstate, message, node) = (error.sqlstate, &error.to_string(), session.node);
        let recorder = &mut self.report.recorder;
        recorder.failed_attempt(attempt);
        if flight.tx.is_interactive() {
            recorder.commands.count_failure(flight.tx.command(), sqlstate, retried);
        }
        recorder.error(&Failure { sqlstate, message, retried, attempt, node, now });
    }

    /// Counts an error that does not belong to an attempt of a transaction.
    pub(super) fn error(
        &mut self,
        session: &Session,
        sqlstate: SqlState,
        error: &dyn Display,
        now: Nanos,
    ) {
        let (message, attempt, node) = (&error.to_string(), Nanos(0), session.node);
        let failure = Failure { sqlstate, message, retried: false, attempt, node, now };
        self.report.recorder.error(&failure);
    }

    /// Returns whether a transaction changes rows.
    pub(super) fn changes_rows(&self, flight: &InFlight) -> bool {
        self.changes.get(flight.tx.operation()) == Some(&true)
    }

    /// Counts a transaction that failed or, with `unknown`, may still have been committed.
    pub(super) fn count_lost(
        &mut self,
        session: &Session,
        flight: &InFlight,
        unknown: bool,
        now: Nanos,
    ) {
        self.report.unsuccessful += 1;
        let operation = flight.tx.operation();
        let unknown = unknown && flight.may_be_committed();
        if let Some(acknowledged) = self.report.acknowledged.get_mut(operation) {
            if flight.tx.is_autocommit() {
                acknowledged.effects.add(&flight.completed_effects());
            }
            if unknown {
                acknowledged.rows_unknown += flight.tx.expected_rows();
                acknowledged.transactions_unknown += 1;
                acknowledged.effects_unknown.add(&flight.effects_in_doubt());
            }
        }
        if unknown {
            self.note_unknown(session, flight);
        }
        let lost = if unknown { Counter::Unknown } else { Counter::Failed };
        if let Some(totals) = self.report.recorder.nodes.get_mut(session.node)
            && (unknown || self.window.is_measured(now))
        {
            totals.counters.add([(lost, 1)]);
        }
        // Failed transactions count toward a number of rows too. Otherwise a run in which every
        // transaction fails would never end.
        let in_time = self.window.is_open(flight.claimed, now);
        let counts = in_time && self.window.counts(flight.claimed, now, flight.tx.expected_rows());
        let is_late = !in_time && !self.window.stops_by_count();
        if counts || is_late || now >= self.window.planned_end() {
            self.report.recorder.unsuccessful(&Unsuccessful {
                fate: if counts { Fate::Failed } else { Fate::Lost },
                operation,
                service: now.since(flight.started),
                response: now.since(flight.intended),
                now,
            });
        }
        if counts {
            let origin = EventSource::operation(operation);
            let retried = u64::from(flight.retries > 0);
            self.report.recorder.count(origin, [(lost, 1), (Counter::Retried, retried)]);
            self.report.recorder.count(origin, counts_of(flight.queries));
            self.note_counted_end(now);
        } else if now >= self.window.end() {
            self.report.drained_lost += 1;
        }
    }

    /// Counts the changes of the statements that a transaction has committed separately before it is drawn again.
    pub(super) fn count_redrawn(&mut self, flight: &InFlight) {
        if let Some(acknowledged) = self.report.acknowledged.get_mut(flight.tx.operation())
            && flight.tx.is_autocommit()
        {
            acknowledged.effects.add(&flight.completed_effects());
        }
    }

    /// Stores a transaction with an unknown outcome, for the verification after the run.
    fn note_unknown(&mut self, session: &Session, flight: &InFlight) {
        if self.report.unknown.len() >= UNKNOWN_MAX {
            return;
        }
        let step = flight.tx.is_autocommit().then_some(flight.step);
        let in_doubt = |marked: usize| step.is_none_or(|step| step == marked);
        let marks = flight.tx.marks().iter().filter(|(marked, _)| in_doubt(*marked));
        self.report.unknown.push(Unknown {
            origin: TransactionId { stage: 0, session: session.id, position: flight.id, step },
            operation: flight.tx.operation(),
            rows: flight.tx.expected_rows(),
            effects: flight.effects_in_doubt(),
            has_exact_effects: flight.tx.has_exact_effects(),
            marks: marks.map(|(_, mark)| *mark).collect(),
        });
    }

    /// Counts a start of the measurement that was skipped.
    pub(super) fn count_skipped(
        &mut self,
        session: &mut Session,
        operation: Option<usize>,
        now: Nanos,
    ) {
        let origin = EventSource { operation, node: None };
        self.report.recorder.count(origin, [(Counter::Skipped, 1)]);
        self.log(session, None, operation.unwrap_or(0), LoggedOutcome::Skipped, now);
    }

    /// Logs a transaction that failed, if there is a log.
    pub(super) fn log_failure(
        &mut self,
        session: &mut Session,
        flight: &InFlight,
        sqlstate: SqlState,
        now: Nanos,
    ) {
        let outcome = match sqlstate {
            SqlState::SERIALIZATION_FAILURE => LoggedOutcome::SerializationFailure,
            SqlState::DEADLOCK_DETECTED => LoggedOutcome::Deadlock,
            _ => LoggedOutcome::Failed,
        };
        self.log(session, Some(flight), flight.tx.operation(), outcome, now);
    }

    fn log(
        &mut self,
        session: &mut Session,
        flight: Option<&InFlight>,
        operation: usize,
        outcome: LoggedOutcome,
        end: Nanos,
    ) {
        if let Some(log) = &mut self.log {
            session.logged += 1;
            let (session, transaction) = (session.id, session.logged);
            let lag = flight.map_or(Nanos(0), |flight| flight.started.since(flight.intended));
            let retries = flight.map_or(0, |flight| flight.retries);
            log.add(LogEntry { session, transaction, operation, outcome, lag, retries, end });
        }
    }

    /// Stores a session that an error of this transaction has ended.
    pub(super) fn note_ended_session(
        &mut self,
        session: &Session,
        flight: &InFlight,
        error: &ServerError,
    ) {
        if self.report.ended_sessions.len() < ENDED_MAX {
            self.report.ended_sessions.push(EndedSessionRecord {
                session: session.id,
                script: flight.tx.operation() + 1,
                command: flight.tx.is_interactive().then(|| flight.tx.command()),
                message: error.to_string(),
                // Errors of a script have no severity.
                lines: (!error.severity.is_empty()).then(|| error.in_lines()),
            });
        }
    }

    /// Counts a new connection, which replaces a lost one unless that was `planned`.
    pub(super) fn count_reconnect(&mut self, node: usize, took: Nanos, planned: bool, now: Nanos) {
        if self.window.is_measured(now) {
            if !planned {
                self.report.recorder.count(EventSource::node(node), [(Counter::Reconnects, 1)]);
            }
            self.report.recorder.connects.record(took);
        }
    }

    /// Records the finding of a plan check of a session, or why it has no verdict.
    pub(super) fn note_check(
        &mut self,
        session: &mut Session,
        check: usize,
        finding: Result<Finding, String>,
    ) {
        if let (Some(statement), Some(moment)) =
            (session.checked_statement(check), session.next_check)
        {
            self.report.note_check(statement, moment, finding);
        }
    }

    /// Notifies the main thread that the last transaction of the worker has ended.
    pub(super) fn finish_worker(&self) {
        self.intervals.finish_worker(&self.window);
    }

    /// Returns the report, except for the sessions, after the last [`Self::note_time`].
    pub(super) fn finish(mut self, starts: &mut StartQueue) -> WorkerReport {
        if let Some(log) = self.log.take()
            && let Err(error) = log.close()
        {
            let error = SessionError::client("cannot write the log", &error);
            self.report.failure.get_or_insert(error);
        }
        let mut report = self.report;
        report.recorder.finish();
        report.unsent = self.intervals.unsent;
        let cpu_end_s = self.cpu_at_end_s.unwrap_or_else(cpu::thread_seconds);
        report.worker_cpu_s.push(cpu_end_s - self.cpu_at_start_s.unwrap_or(cpu_end_s));
        // After the maximum duration of a count, nothing starts.
        let by_count = self.window.has_ended_by_count();
        let end = if by_count { report.last_end } else { self.window.end() };
        if let Some(backlog) = starts.backlog(end) {
            // The last interval ends with the measurement.
            report.recorder.set_backlog(backlog, self.busy_at_end);
        }
        report.starts = starts.report(&self.window, end, &mut report.recorder);
        report
    }
}
