//! A session whose loop runs in the server: one call, whose reports are booked as they come.
//!
//! A thread for each session, which sleeps in a read: it has nothing to do but once an interval.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, Instant};

use riops_wire::sqlstate::SqlState;
use uuid::Uuid;

use super::clock::Clock;
use super::error::EngineError;
use super::findings::{Moment, merge, note};
use super::limit::Limit;
use super::opening::{Recipe, look_at_plans, make_ready_somewhere};
use super::session::{SessionError, SessionTally, Tally};
use super::shared::{Caller, Go, Shared, WorkerHandle};
use super::worker::{IntervalLink, WorkerEvent, WorkerReport};
use crate::host::Interrupt;
use crate::metrics::{Counter, Failure, IntervalPart, Origin, Recorder};
use crate::plan::{OnError, Stop};
use crate::probe::cpu;
use crate::server::connection::{Answer, Notice};
use crate::server::{Connection, ConnectionError};
use crate::units::Nanos;
use crate::workload::{Call, LoopReport, ServerLoop, SessionPlan, Work};

/// What stands for the message of an error that only the loop in the server has seen.
const RUN_AGAIN: &str = "run again by the loop in the server";
/// Rows beyond every bound, where a loop went on after its connection had broken.
const ROWS_UNBOUNDED: u64 = 1_000_000_000_000_000;
/// How long the server may take to end such a session.
const END_PATIENCE: Duration = Duration::from_secs(5);
/// The pause between two attempts to connect.
const PAUSE: Duration = Duration::from_millis(100);
/// A call's thread reads reports and little else; there may be thousands.
const CALL_STACK_BYTES: usize = 512 * 1024;

/// What the thread of a session is started with.
struct CallAssignment {
    /// The session's number in the stage, from 0.
    number: usize,
    recipe: Recipe,
    server_loop: Box<dyn ServerLoop>,
    /// The main thread's wish that the call ends before its time.
    end_early: Interrupt,
    go: Receiver<Go>,
    spares: Receiver<Box<IntervalPart>>,
}

/// Starts a thread for each session whose loop runs in the server.
pub(super) fn start_calls(
    sessions: Vec<SessionPlan>,
    shared: &Arc<Shared>,
) -> Result<Vec<WorkerHandle>, EngineError> {
    let mut handles = Vec::with_capacity(sessions.len());
    for (number, session) in sessions.into_iter().enumerate() {
        let SessionPlan { settings, statements, work: Work::Server(server_loop), .. } = session
        else {
            continue;
        };
        let (go, go_received) = sync_channel(1);
        let (spares, spares_received) = sync_channel(4);
        let end_early = Interrupt::new();
        let assignment = CallAssignment {
            number,
            recipe: shared.recipe(settings, statements, 0..usize::MAX),
            server_loop,
            end_early: end_early.clone(),
            go: go_received,
            spares: spares_received,
        };
        let shared = Arc::clone(shared);
        let thread = std::thread::Builder::new()
            .name(format!("riops-call-{number}"))
            .stack_size(CALL_STACK_BYTES)
            .spawn(move || work(assignment, &shared))?;
        handles.push(WorkerHandle { caller: Caller::Call(end_early), go, spares, thread });
    }
    Ok(handles)
}

/// The body of the thread.
fn work(assignment: CallAssignment, shared: &Shared) {
    let CallAssignment { number, recipe, server_loop, end_early, go, spares } = assignment;
    let send = |event| {
        let _ = shared.events.send((number, event));
    };
    let mut node = 0;
    let opened = shared.in_time(|| {
        let place = (number as u64, &mut node);
        make_ready_somewhere(&recipe, &shared.nodes, place, &shared.interrupt)
    });
    let (mut connection, findings) = match opened {
        Ok(opened) => opened,
        Err(error) => return send(WorkerEvent::Ready(Err((number as u64, error)))),
    };
    connection.set_interrupt(&end_early);
    let Ok(recorder) = Recorder::new(shared.operations, false) else {
        return send(WorkerEvent::Lost);
    };
    send(WorkerEvent::Ready(Ok(findings)));
    let Ok(Go { start, limit, server_epoch_s }) = go.recv() else {
        return;
    };
    let link = IntervalLink {
        worker: number,
        length: shared.interval,
        events: shared.events.clone(),
        spares,
    };
    let mut session = CallSession {
        number: number as u64,
        node,
        recipe: &recipe,
        server_loop: &*server_loop,
        shared,
        end_early,
        start,
        limit: &limit,
        server_epoch_s,
        link,
        interval: 0,
        booked: LoopReport::default(),
        before_this_call: 0,
        process: connection.greeting().process,
        tallies: vec![Tally::default(); shared.operations],
        report: WorkerReport::new(recorder, shared.operations, limit.measure_start()),
    };
    session.report.recorder.gaps.begin(limit.measure_start());
    let cpu_start_s = cpu::thread_seconds();
    session.run(connection);
    session.report.cpu_s = cpu::thread_seconds() - cpu_start_s;
    send(WorkerEvent::Ended(Box::new(session.finish())));
}

struct CallSession<'a> {
    number: u64,
    /// The node that it is connected to.
    node: usize,
    recipe: &'a Recipe,
    server_loop: &'a dyn ServerLoop,
    shared: &'a Shared,
    end_early: Interrupt,
    start: Nanos,
    limit: &'a Arc<Limit>,
    /// The server's clock at the zero of ours.
    server_epoch_s: f64,
    link: IntervalLink,
    interval: usize,
    /// What of the current call is counted already.
    booked: LoopReport,
    /// Transactions, or rows, that earlier calls of the session have measured.
    before_this_call: u64,
    process: i32,
    tallies: Vec<Tally>,
    report: WorkerReport,
}

/// How a call ended.
enum CallEnd {
    /// As planned.
    Done,
    /// Before its time, since somebody wanted that.
    GivenUp,
    /// The server refused something; the connection is as good as before.
    Failed(Box<riops_wire::backend::ServerError>),
    /// The connection is gone.
    Broken(ConnectionError),
}

impl CallSession<'_> {
    /// Calls until the time or the number is reached.
    fn run(&mut self, connection: Connection) {
        let mut connection = connection;
        // Calls in a row that came to nothing.
        let mut vain = 0;
        while let Some((transactions, rows)) = self.left() {
            let ended = self.call(&mut connection, transactions, rows);
            vain = if self.booked == LoopReport::default() { vain + 1 } else { 0 };
            let error = match ended {
                CallEnd::Done => return self.look_for_the_last_time(&mut connection),
                CallEnd::GivenUp => {
                    self.lose();
                    if let Some(seconds) = self.limit.aborted_after_s() {
                        self.fail(SessionError::Drain(seconds));
                    }
                    return;
                }
                CallEnd::Failed(error) => {
                    let policy = self.shared.plan.errors;
                    let again = vain <= policy.max_retries;
                    let retry = error.is_retryable() && again;
                    let now = self.shared.clock.now();
                    self.note_error(error.sqlstate, &error.to_string(), retry, now);
                    self.lose();
                    if !retry && (policy.on_error == OnError::Stop || !again) {
                        return self.fail(SessionError::Server(error));
                    }
                    std::thread::sleep(PAUSE);
                    continue;
                }
                CallEnd::Broken(error) => error,
            };
            let now = self.shared.clock.now();
            self.note_error(error.sqlstate(), &error.to_string(), false, now);
            self.lose();
            let reopened = if vain > self.shared.plan.errors.max_retries {
                Err(error)
            } else {
                self.connect_again()
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

    /// The numbers of transactions and rows that are still to be done, where a number decides;
    /// `None` where nothing is.
    fn left(&self) -> Option<(Option<u64>, Option<u64>)> {
        let now = self.shared.clock.now();
        if self.end_early.requested() || now >= self.limit.end() {
            return None;
        }
        let sessions = self.shared.total_sessions as u64;
        let share = |count: u64| count / sessions + u64::from(self.number < count % sessions);
        let done = self.before_this_call;
        let rest = |count: u64| Some(share(count).saturating_sub(done)).filter(|&rest| rest > 0);
        match self.shared.plan.stop {
            Stop::DurationS(_) => Some((None, None)),
            Stop::Transactions(count) => rest(count).map(|rest| (Some(rest), None)),
            Stop::Rows(count) => rest(count).map(|rest| (None, Some(rest))),
        }
    }

    fn call(
        &mut self,
        connection: &mut Connection,
        transactions: Option<u64>,
        rows: Option<u64>,
    ) -> CallEnd {
        self.booked = LoopReport::default();
        let on_server = |at: Nanos| self.server_epoch_s + at.as_seconds();
        let looks: Vec<String> =
            self.recipe.checks.iter().map(|(_, explain)| explain.clone()).collect();
        let call = Call {
            id: Uuid::now_v7().to_string(),
            start_s: on_server(self.start),
            measure_s: on_server(self.limit.measure_start()),
            until_s: (!self.limit.is_by_number()).then(|| on_server(self.limit.end())),
            transactions,
            rows,
            report_s: self.link.length.as_seconds(),
            looks: &looks,
        };
        let sql = self.server_loop.call_sql(&call);
        let server_loop = self.server_loop;
        let mut heard = |notice: Notice<'_>| {
            if let Some(report) = notice.detail.and_then(|report| server_loop.read(report)) {
                self.book(report);
            }
        };
        match connection.query_with_notices(&sql, &mut heard) {
            Ok(Answer { rows, .. }) => match rows
                .first()
                .and_then(|row| row.first()?.as_deref())
                .and_then(|last| server_loop.read(last))
            {
                Some(report) => {
                    self.book_last(report);
                    CallEnd::Done
                }
                None => CallEnd::Broken(ConnectionError::Protocol(
                    "the loop in the server gave no report".to_owned(),
                )),
            },
            Err(_) if self.end_early.requested() => CallEnd::GivenUp,
            Err(ConnectionError::Server(error)) => CallEnd::Failed(error),
            Err(error) => CallEnd::Broken(error),
        }
    }

    /// Counts what a report has more than the last one.
    fn book(&mut self, report: LoopReport) {
        let former = std::mem::take(&mut self.booked);
        let nothing = crate::workload::LoopCounts::default();
        for (operation, counts) in report.measured.iter().enumerate() {
            let before = former.measured.get(operation).unwrap_or(&nothing);
            let known: BTreeMap<Nanos, u64> = before.latencies.iter().copied().collect();
            let more: Vec<(Nanos, u64)> = counts
                .latencies
                .iter()
                .map(|&(latency, count)| {
                    // A bucket's middle may be beyond the longest, which is exact.
                    let more = count.saturating_sub(known.get(&latency).copied().unwrap_or(0));
                    (latency.min(counts.longest), more)
                })
                .collect();
            let rows = counts.rows.saturating_sub(before.rows);
            self.report.recorder.transactions(operation, rows, &more);
            if let Some(tally) = self.tallies.get_mut(operation) {
                tally.transactions += more.iter().map(|(_, count)| count).sum::<u64>();
                tally.rows += rows;
                tally.longest = tally.longest.max(counts.longest);
            }
        }
        let now = self.shared.clock.now();
        for (sqlstate, count, before) in [
            (SqlState::SERIALIZATION_FAILURE, report.conflicts, former.conflicts),
            (SqlState::DEADLOCK_DETECTED, report.deadlocks, former.deadlocks),
        ] {
            for _ in before..count {
                self.note_error(sqlstate, RUN_AGAIN, true, now);
            }
        }
        let at = self
            .limit
            .measure_start()
            .after(Nanos::from(Duration::try_from_secs_f64(report.ended_s).unwrap_or_default()));
        self.report.recorder.gaps.success(at);
        self.report.last_end = self.report.last_end.max(at);
        self.end_intervals(report.intervals);
        self.booked = report;
    }

    /// Hands in the intervals that are over; the last one stays until the end.
    fn end_intervals(&mut self, over: usize) {
        let start = self.limit.measure_start();
        let end_of = |interval: usize| {
            start.after(Nanos(self.link.length.0.saturating_mul(interval as u64 + 1)))
        };
        while self.interval < over && end_of(self.interval) < self.limit.window_end() {
            let spare = self.link.spares.try_recv().ok();
            let Some(spare) = spare.or_else(|| IntervalPart::new(false).ok().map(Box::new)) else {
                return;
            };
            self.interval += 1;
            let part = self.report.recorder.next_interval(spare, self.interval);
            let _ = self.link.events.send((self.link.worker, WorkerEvent::Interval(part)));
        }
    }

    /// Counts the report at a call's end, after which nothing is unknown.
    fn book_last(&mut self, mut report: LoopReport) {
        for ((access, _), json) in self.recipe.checks.iter().zip(&report.looks) {
            let finding = access.judge(json);
            note(&mut self.report.findings, &access.statement, Moment::Middle, finding, 1);
        }
        let lost = std::mem::take(&mut report.transactions_unknown);
        if let Some(drained) = report.drained {
            self.report.drained += 1;
            self.report.drained_max = self.report.drained_max.max(drained);
        }
        self.book(report);
        // Only a call that the server has run twice has lost sight of some.
        let rows = std::mem::take(&mut self.booked.rows_unknown);
        self.close(lost, rows);
    }

    /// The call ended without a last word: what it did since its last report is unknown.
    fn lose(&mut self) {
        if self.booked == LoopReport::default() {
            let (transactions, rows) = self.server_loop.before_first_report();
            return self.close(transactions, rows);
        }
        let (transactions, rows) = (self.booked.transactions_unknown, self.booked.rows_unknown);
        self.close(transactions, rows);
    }

    /// Adds up what the database has acknowledged in a call that is over.
    fn close(&mut self, transactions_unknown: u64, rows_unknown: u64) {
        let booked = std::mem::take(&mut self.booked);
        for (acknowledged, (transactions, rows)) in
            self.report.acknowledged.iter_mut().zip(&booked.committed)
        {
            acknowledged.transactions += transactions;
            acknowledged.rows += rows;
        }
        self.report.wrong_replies += booked.wrong_replies;
        let by_rows = matches!(self.shared.plan.stop, Stop::Rows(_));
        let done =
            booked.measured.iter().map(|each| if by_rows { each.rows } else { each.transactions });
        self.before_this_call += done.sum::<u64>();
        let changing = self.shared.changes.iter().position(|&changes| changes);
        if let (Some(operation), true) = (changing, rows_unknown > 0) {
            let unknown = [(Counter::Unknown, transactions_unknown)];
            self.report.recorder.count(Origin::operation(operation), unknown);
            if let Some(acknowledged) = self.report.acknowledged.get_mut(operation) {
                acknowledged.transactions_unknown += transactions_unknown;
                acknowledged.rows_unknown += rows_unknown;
            }
        }
    }

    fn look_for_the_last_time(&mut self, connection: &mut Connection) {
        match look_at_plans(self.recipe, connection, Moment::After, |_| {}) {
            Ok(findings) => merge(&mut self.report.findings, findings),
            // What was measured stands; that the look failed is told.
            Err(error) => {
                let now = self.shared.clock.now();
                self.note_error(error.sqlstate(), &error.to_string(), false, now);
            }
        }
    }

    /// A new connection in the place of a broken one; `None` where it is not needed any more.
    fn connect_again(&mut self) -> Result<Option<Connection>, ConnectionError> {
        let start = Instant::now();
        let patience = Duration::from_secs_f64(self.shared.plan.errors.reconnect_timeout_s);
        self.shared.nodes.left(self.node);
        loop {
            if self.left().is_none() {
                return Ok(None);
            }
            let place = (self.number, &mut self.node);
            let nodes = &self.shared.nodes;
            match make_ready_somewhere(self.recipe, nodes, place, &self.end_early) {
                Ok((mut connection, findings)) => {
                    connection.set_interrupt(&self.end_early);
                    self.end_survivor(&mut connection)?;
                    self.process = connection.greeting().process;
                    merge(&mut self.report.findings, findings);
                    let origin = Origin::node(self.node);
                    self.report.recorder.count(origin, [(Counter::Reconnects, 1)]);
                    self.report.recorder.connects.record(start.elapsed().into());
                    return Ok(Some(connection));
                }
                Err(_) if self.end_early.requested() => return Ok(None),
                Err(error) if error.is_final() || start.elapsed() >= patience => return Err(error),
                Err(_) => std::thread::sleep(PAUSE),
            }
        }
    }

    /// Where only the connection broke, the loop may have gone on without it: then it has to end, and
    /// what it did meanwhile has no bound.
    fn end_survivor(&mut self, connection: &mut Connection) -> Result<(), ConnectionError> {
        let of_it = format!(
            "from pg_stat_activity where pid = {} and application_name = current_setting('application_name')",
            self.process
        );
        let alive = connection.query_value(&format!("select pg_terminate_backend(pid) {of_it}"))?;
        if alive.is_none() {
            return Ok(());
        }
        let changing = self.shared.changes.iter().position(|&changes| changes);
        if let Some(acknowledged) =
            changing.and_then(|operation| self.report.acknowledged.get_mut(operation))
            && acknowledged.rows_unknown > 0
        {
            acknowledged.rows_unknown = ROWS_UNBOUNDED;
        }
        let deadline = Instant::now() + END_PATIENCE;
        while connection.query_value(&format!("select 1 {of_it}"))?.is_some()
            && Instant::now() < deadline
        {
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    fn note_error(&mut self, sqlstate: SqlState, message: &str, retried: bool, now: Nanos) {
        let (attempt, node) = (Nanos(0), self.node);
        self.report.recorder.error(&Failure { sqlstate, message, retried, attempt, node, now });
    }

    fn fail(&mut self, error: SessionError) {
        self.report.failure.get_or_insert(error);
        self.limit.fail(self.shared.clock.now());
    }

    fn finish(mut self) -> WorkerReport {
        for (operation, tally) in self.tallies.iter().enumerate() {
            self.report.recorder.correct_longest(operation, tally.longest);
        }
        self.report.sessions = vec![SessionTally {
            number: self.number,
            node: self.node,
            process: self.process,
            operations: self.tallies,
        }];
        self.report
    }
}
