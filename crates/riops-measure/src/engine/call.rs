//! Sessions with a server-side loop: one CALL per session, whose reports are counted as they arrive.
//!
//! Each session has its own thread, which blocks in a read and wakes up only once per interval.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread::Builder;
use std::time::{Duration, Instant};

use riops_wire::sqlstate::SqlState;
use uuid::Uuid;

use super::clock::{Clock, ServerClock, larger_step_s};
use super::error::{EngineError, SessionError};
use super::findings::{Moment, merge};
use super::opening::{AccessCheck, Prepared, SessionSetup, prepare_on_any_node};
use super::shared::{Inbox, Shared, Signal, StartSignal, WorkerHandle};
use super::tally::{Backend, SessionTally, Tally};
use super::threads::start_thread;
use super::window::Window;
use super::worker::{Intervals, WorkerEvent, WorkerReport};
use crate::host::Interrupt;
use crate::metrics::{Counter, EventSource, Failure, Recorder};
use crate::probe::cpu;
use crate::server::connection::{Answer, Notice};
use crate::server::{Connection, ConnectionError};
use crate::workload::check::ROWS_UNBOUNDED;
use crate::workload::{Call, LoopReport, ServerLoop, SessionPlan, Work};
use riops_model::plan::{OnError, Stop};
use riops_model::units::{Nanos, Span};

/// Message of an error that was handled within the server-side loop. Its original text is unknown.
const RETRIED_IN_SERVER: &str = "retried by the server-side loop";
/// Maximum wait for a call to end after the cancel request. A server whose postmaster was killed cancels nothing.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum wait for the server to terminate the backend of such a loop.
const TERMINATE_TIMEOUT: Duration = Duration::from_secs(5);
/// Pause before a call is repeated and between two connection attempts.
const PAUSE: Duration = Duration::from_millis(100);
/// Stack size of a call's thread. There may be thousands of them, and each does little but read reports.
const CALL_STACK_BYTES: usize = 512 * 1024;

/// Starts a thread for each session with a server-side loop.
pub(super) fn start_calls(
    sessions: Vec<SessionPlan>,
    shared: &Arc<Shared>,
) -> Result<Vec<WorkerHandle>, EngineError> {
    let mut handles = Vec::with_capacity(sessions.len());
    for (position, session) in sessions.into_iter().enumerate() {
        let SessionPlan { settings, statements, work: Work::Server(server_loop), .. } = session
        else {
            continue;
        };
        let setup = shared.setup(settings, statements, 0..usize::MAX, &mut None);
        let end_early = Interrupt::new();
        let signal = Signal::Cancel(end_early.clone());
        let builder =
            Builder::new().name(format!("riops-call-{position}")).stack_size(CALL_STACK_BYTES);
        handles.push(start_thread(builder, position, signal, shared, move |inbox, shared| {
            work(position, &setup, &*server_loop, end_early, inbox, shared)
        })?);
    }
    Ok(handles)
}

/// Opens the session with this number in the stage and runs its loop, which the main thread may `end_early`. Returns `None`
/// if the stage has failed before its start.
fn work(
    worker: usize,
    setup: &SessionSetup,
    server_loop: &dyn ServerLoop,
    end_early: Interrupt,
    inbox: Inbox,
    shared: &Shared,
) -> Result<Option<WorkerReport>, EngineError> {
    let (id, sessions) = (worker as u64, shared.total_sessions);
    let opened = shared.retry_until_init_timeout(|| {
        prepare_on_any_node(setup, id, &shared.nodes, &shared.interrupt)
    });
    let Prepared { mut connection, findings, node } =
        opened.map_err(|error| EngineError::connect(id, sessions, error))?;
    // Each node has its own clock.
    let server_clock = ServerClock::read(&mut connection, &shared.clock)
        .map_err(|error| EngineError::clock(id, sessions, error))?;
    connection.set_interrupt(&end_early);
    let recorder = Recorder::new(shared.operations, false)?;
    // Fails only if the stage has failed.
    let _ = shared.events.send((worker, WorkerEvent::Ready(Ok(findings))));
    let Ok(StartSignal { start, window, .. }) = inbox.start_signal.recv() else {
        return Ok(None);
    };
    // Without it, a backend that continues after its connection was lost cannot be terminated.
    let backend = Backend::read(&mut connection).ok().flatten();
    let (length, events) = (shared.interval, shared.events.clone());
    let intervals = Intervals::new(worker, &window, length, events, inbox.spares);
    let tally = SessionTally {
        id,
        node,
        process: connection.session_info().process,
        backend,
        started: 0,
        operations: vec![Tally::default(); shared.operations],
    };
    let mut session = CallSession {
        tally,
        setup,
        server_loop,
        shared,
        end_early,
        start,
        window: &window,
        server_clock,
        intervals,
        has_finished: false,
        counted: LoopReport::default(),
        before_this_call: 0,
        report: WorkerReport::new(recorder, shared.operations, window.measure_start()),
    };
    session.report.recorder.gaps.begin(window.measure_start());
    let cpu_start_s = cpu::thread_seconds();
    session.run(connection);
    session.report.worker_cpu_s.push(cpu::thread_seconds() - cpu_start_s);
    Ok(Some(session.finish()))
}

struct CallSession<'a> {
    /// Its work; the backend is `None` if the server does not show it.
    tally: SessionTally,
    setup: &'a SessionSetup,
    server_loop: &'a dyn ServerLoop,
    shared: &'a Shared,
    end_early: Interrupt,
    start: Nanos,
    window: &'a Arc<Window>,
    server_clock: ServerClock,
    intervals: Intervals,
    /// Whether the last transaction has ended.
    has_finished: bool,
    /// The part of the current call that has been counted.
    counted: LoopReport,
    /// Transactions or rows that earlier calls of the session have completed.
    before_this_call: u64,
    report: WorkerReport,
}

/// How a call ended.
enum CallEnd {
    /// As planned.
    Done,
    /// Canceled by the main thread, and confirmed by the server: all reports have been read.
    Canceled,
    /// Canceled by the main thread without confirmation: the loop may have continued.
    Abandoned,
    /// The server returned an error. The connection is still usable.
    Failed(Box<riops_wire::backend::ServerError>),
    /// The connection was lost.
    ConnectionLost(ConnectionError),
}

impl CallSession<'_> {
    /// Repeats the call until the duration or the count is reached.
    fn run(&mut self, connection: Connection) {
        let mut connection = connection;
        // Consecutive calls without progress.
        let mut stalled_calls = 0;
        while let Some((transactions, rows)) = self.remaining() {
            let ended = self.call(&mut connection, transactions, rows);
            stalled_calls =
                if self.counted == LoopReport::default() { stalled_calls + 1 } else { 0 };
            let error = match ended {
                CallEnd::Done => {
                    self.note_finished();
                    self.check_clock(&mut connection);
                    return self.check_plans_after_run(&mut connection);
                }
                CallEnd::Canceled | CallEnd::Abandoned => {
                    self.count_unknown();
                    if matches!(ended, CallEnd::Abandoned) {
                        self.remove_upper_bound();
                    }
                    if let Some(seconds) = self.window.aborted_after_s() {
                        self.fail(SessionError::Drain(seconds));
                    }
                    return;
                }
                CallEnd::Failed(error) => {
                    let policy = self.shared.plan.errors;
                    let retries_left = stalled_calls <= policy.max_retries;
                    let failed_request = connection.dialect().is_failed_request(&error);
                    let retry = (error.is_retryable() || failed_request) && retries_left;
                    let now = self.shared.clock.now();
                    self.note_error(error.sqlstate, &error.to_string(), retry, now);
                    self.count_unknown();
                    if !retry && (policy.on_error == OnError::Stop || !retries_left) {
                        return self.fail(SessionError::Server(error));
                    }
                    std::thread::sleep(PAUSE);
                    continue;
                }
                CallEnd::ConnectionLost(error) => error,
            };
            let now = self.shared.clock.now();
            self.note_error(error.sqlstate(), &error.to_string(), false, now);
            self.count_unknown();
            let reopened = if stalled_calls > self.shared.plan.errors.max_retries {
                Err(error)
            } else {
                self.reconnect()
            };
            match reopened {
                Ok(Some(reopened)) => connection = reopened,
                Ok(None) => return,
                Err(error) => {
                    let (sqlstate, message) = (error.sqlstate(), error.to_string());
                    return self.fail(SessionError::Reconnect { sqlstate, message });
                }
            }
        }
    }

    /// Returns the remaining transactions or rows of a run that stops by count; both are `None` if it stops
    /// after a duration. Returns `None` if nothing remains to be done.
    fn remaining(&self) -> Option<(Option<u64>, Option<u64>)> {
        let now = self.shared.clock.now();
        if self.end_early.is_requested() || now >= self.window.end() {
            return None;
        }
        let sessions = self.shared.total_sessions as u64;
        let share = |count: u64| count / sessions + u64::from(self.tally.id < count % sessions);
        let done = self.before_this_call;
        let left = |count: u64| Some(share(count).saturating_sub(done)).filter(|&left| left > 0);
        match self.shared.plan.stop {
            Stop::DurationS(_) => Some((None, None)),
            Stop::Transactions(count) => left(count).map(|left| (Some(left), None)),
            Stop::Rows(count) => left(count).map(|left| (None, Some(left))),
        }
    }

    fn call(
        &mut self,
        connection: &mut Connection,
        transactions: Option<u64>,
        rows: Option<u64>,
    ) -> CallEnd {
        self.counted = LoopReport::default();
        let on_server = |at: Nanos| self.server_clock.at(at);
        let explains: Vec<String> =
            self.setup.checks.iter().map(|check| check.explain.clone()).collect();
        let call = Call {
            id: Uuid::now_v7().to_string(),
            start_s: on_server(self.start),
            measure_s: on_server(self.window.measure_start()),
            until_s: (!self.window.stops_by_count()).then(|| on_server(self.window.end())),
            transactions,
            rows,
            report_s: self.intervals.length.as_seconds(),
            explain_statements: &explains,
        };
        let sql = self.server_loop.call_sql(&call);
        let server_loop = self.server_loop;
        let mut on_notice = |notice: Notice<'_>| {
            if let Some(report) = notice.detail.and_then(|report| server_loop.read(report)) {
                self.count_report(report);
            }
        };
        let mut answer = connection.query_with_notices(&sql, &mut on_notice);
        if matches!(answer, Err(ConnectionError::Interrupted)) {
            answer = connection.await_canceled(CANCEL_TIMEOUT, &mut on_notice);
        }
        match answer {
            Ok(Answer { rows, .. }) => match rows
                .first()
                .and_then(|row| row.first()?.as_deref())
                .and_then(|last| server_loop.read(last))
            {
                Some(report) => {
                    self.count_last_report(report);
                    CallEnd::Done
                }
                None => CallEnd::ConnectionLost(ConnectionError::Protocol(
                    "the server-side loop returned no report".to_owned(),
                )),
            },
            Err(ConnectionError::Server(_)) if self.end_early.is_requested() => CallEnd::Canceled,
            Err(_) if self.end_early.is_requested() => CallEnd::Abandoned,
            Err(ConnectionError::Server(error)) => CallEnd::Failed(error),
            Err(error) => CallEnd::ConnectionLost(error),
        }
    }

    /// Counts the difference between a report and the previous one. Reports are cumulative.
    fn count_report(&mut self, report: LoopReport) {
        let previous = std::mem::take(&mut self.counted);
        let nothing = crate::workload::LoopCounts::default();
        for (operation, counts) in report.measured.iter().enumerate() {
            let before = previous.measured.get(operation).unwrap_or(&nothing);
            let counted: BTreeMap<Nanos, u64> = before.latencies.iter().copied().collect();
            let more: Vec<(Nanos, u64)> = counts
                .latencies
                .iter()
                .map(|&(latency, count)| {
                    // The middle of a bucket may exceed `longest`, which is exact.
                    let more = count.saturating_sub(counted.get(&latency).copied().unwrap_or(0));
                    (latency.min(counts.longest), more)
                })
                .collect();
            let rows = counts.rows.saturating_sub(before.rows);
            self.report.recorder.transactions(operation, rows, &more);
            if let Some(tally) = self.tally.operations.get_mut(operation) {
                tally.transactions += more.iter().map(|(_, count)| count).sum::<u64>();
                tally.rows += rows;
                tally.longest = tally.longest.max(counts.longest);
            }
        }
        let now = self.shared.clock.now();
        for (sqlstate, count, before) in [
            (SqlState::SERIALIZATION_FAILURE, report.conflicts, previous.conflicts),
            (SqlState::DEADLOCK_DETECTED, report.deadlocks, previous.deadlocks),
        ] {
            for _ in before..count {
                self.note_error(sqlstate, RETRIED_IN_SERVER, true, now);
            }
        }
        let at = self.window.measure_start().after(Nanos::from(Span::of_seconds(report.ended_s).0));
        let sent_s = self.window.measure_start().as_seconds() + report.ended_s;
        let step_s = self.server_clock.step_at_arrival(sent_s, now);
        self.report.clock_step_s = larger_step_s(self.report.clock_step_s, step_s);
        self.report.recorder.gaps.success(at);
        self.report.last_end = self.report.last_end.max(at);
        // The last interval is part of the final report.
        let end = self.window.planned_end();
        while self.intervals.completed < report.intervals && self.intervals.end < end {
            if !self.intervals.next(&mut self.report.recorder, false) {
                break;
            }
        }
        self.counted = report;
    }

    /// Counts the report that a call returns at its end. No outcome is unknown after it, unless the server
    /// ran the call twice.
    fn count_last_report(&mut self, mut report: LoopReport) {
        for (AccessCheck { access, .. }, json) in self.setup.checks.iter().zip(&report.plans) {
            let finding = Ok(access.judge(json));
            self.report.note_check(access.statement.clone(), Moment::During, finding);
        }
        let transactions = std::mem::take(&mut report.transactions_unknown);
        if let Some(drained) = report.drained {
            self.report.drained += 1;
            self.report.drained_max = self.report.drained_max.max(drained);
        }
        self.count_report(report);
        // Nonzero only if the server ran the call twice.
        let rows = std::mem::take(&mut self.counted.rows_unknown);
        self.close(transactions, rows);
    }

    /// Counts the work since the last report of an incomplete call as unknown.
    fn count_unknown(&mut self) {
        let (transactions, rows) = if self.counted == LoopReport::default() {
            self.server_loop.before_first_report()
        } else {
            (self.counted.transactions_unknown, self.counted.rows_unknown)
        };
        self.close(transactions, rows);
    }

    /// Adds the acknowledged and the unknown work of a finished call to the report.
    fn close(&mut self, transactions_unknown: u64, rows_unknown: u64) {
        let counted = std::mem::take(&mut self.counted);
        for (operation, (acknowledged, (transactions, rows))) in
            self.report.acknowledged.iter_mut().zip(&counted.committed).enumerate()
        {
            acknowledged.transactions += transactions;
            acknowledged.rows += rows;
            acknowledged.effects.add(&self.server_loop.effects(operation, *rows));
        }
        self.report.wrong_replies += counted.wrong_replies;
        let by_rows = matches!(self.shared.plan.stop, Stop::Rows(_));
        let done = counted
            .measured
            .iter()
            .map(|count| if by_rows { count.rows } else { count.transactions });
        self.before_this_call += done.sum::<u64>();
        let writing = self.shared.changes.iter().position(|&changes| changes);
        if let (Some(operation), true) = (writing, rows_unknown > 0) {
            let unknown = [(Counter::Unknown, transactions_unknown)];
            self.report.recorder.count(EventSource::operation(operation), unknown);
            if let Some(acknowledged) = self.report.acknowledged.get_mut(operation) {
                acknowledged.transactions_unknown += transactions_unknown;
                acknowledged.rows_unknown += rows_unknown;
                let in_doubt = self.server_loop.effects(operation, rows_unknown);
                acknowledged.effects_unknown.add(&in_doubt);
            }
        }
    }

    /// Notifies the main thread that the last transaction has ended.
    fn note_finished(&mut self) {
        if !self.has_finished {
            self.has_finished = true;
            self.intervals.finish_worker(self.window);
        }
    }

    /// Compares the server's clock with its reading before the call.
    fn check_clock(&mut self, connection: &mut Connection) {
        if let Ok(later) = ServerClock::read(connection, &self.shared.clock) {
            let step_s = self.server_clock.step_until(&later);
            self.report.clock_step_s = larger_step_s(self.report.clock_step_s, step_s);
        }
    }

    fn check_plans_after_run(&mut self, connection: &mut Connection) {
        for check in &self.setup.checks {
            let finding = check.run(connection).map_err(|error| {
                // The measurement is complete, but the path was not checked after it.
                let now = self.shared.clock.now();
                self.note_error(error.sqlstate(), &error.to_string(), false, now);
                format!("EXPLAIN failed: {error}")
            });
            self.report.note_check(check.access.statement.clone(), Moment::After, finding);
        }
    }

    /// Replaces a lost connection; returns `None` if the run is complete.
    fn reconnect(&mut self) -> Result<Option<Connection>, ConnectionError> {
        let start = Instant::now();
        let timeout = Span::of_seconds(self.shared.plan.errors.reconnect_timeout_s).0;
        self.shared.nodes.session_closed(self.tally.node);
        loop {
            if self.remaining().is_none() {
                return Ok(None);
            }
            let (id, nodes) = (self.tally.id, &self.shared.nodes);
            match prepare_on_any_node(self.setup, id, nodes, &self.end_early) {
                Ok(Prepared { mut connection, findings, node }) => {
                    self.tally.node = node;
                    connection.set_interrupt(&self.end_early);
                    self.terminate_old_backend(&mut connection)?;
                    self.server_clock = ServerClock::read(&mut connection, &self.shared.clock)?;
                    self.tally.process = connection.session_info().process;
                    self.tally.backend = Backend::read(&mut connection)?;
                    merge(&mut self.report.findings, findings);
                    let origin = EventSource::node(self.tally.node);
                    self.report.recorder.count(origin, [(Counter::Reconnects, 1)]);
                    self.report.recorder.connects.record(start.elapsed().into());
                    return Ok(Some(connection));
                }
                Err(_) if self.end_early.is_requested() => return Ok(None),
                Err(error) if error.is_final() || start.elapsed() >= timeout => return Err(error),
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
    }

    /// Terminates the backend of the lost connection if it is still alive. Its loop may have continued, so
    /// there is no upper bound on the rows with an unknown outcome.
    fn terminate_old_backend(
        &mut self,
        connection: &mut Connection,
    ) -> Result<(), ConnectionError> {
        let Some(old) = self.tally.backend.take() else {
            // Whether it continued is not known.
            self.remove_upper_bound();
            return Ok(());
        };
        if !old.terminate(connection)? {
            return Ok(());
        }
        self.remove_upper_bound();
        let still_there = format!("select 1 from pg_stat_activity where {}", old.condition());
        let deadline = Instant::now() + TERMINATE_TIMEOUT;
        while connection.query_value(&still_there)?.is_some() && Instant::now() < deadline {
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Records that a loop with rows of unknown outcome may have continued.
    fn remove_upper_bound(&mut self) {
        let writing = self.shared.changes.iter().position(|&changes| changes);
        if let Some(operation) = writing
            && let Some(acknowledged) = self.report.acknowledged.get_mut(operation)
            && acknowledged.rows_unknown > 0
        {
            acknowledged.rows_unknown = ROWS_UNBOUNDED;
            let unbounded = self.server_loop.effects(operation, ROWS_UNBOUNDED);
            acknowledged.effects_unknown.add(&unbounded);
        }
    }

    fn note_error(&mut self, sqlstate: SqlState, message: &str, retried: bool, now: Nanos) {
        let (attempt, node) = (Nanos(0), self.tally.node);
        self.report.recorder.error(&Failure { sqlstate, message, retried, attempt, node, now });
    }

    fn fail(&mut self, error: SessionError) {
        self.report.failure.get_or_insert(error);
        self.window.fail(self.shared.clock.now());
    }

    fn finish(mut self) -> WorkerReport {
        self.note_finished();
        self.report.unsent = self.intervals.unsent;
        for (operation, tally) in self.tally.operations.iter().enumerate() {
            self.report.recorder.set_exact_max_service(operation, tally.longest);
        }
        self.report.sessions = vec![self.tally];
        self.report
    }
}
