//! Errors and lost connections: every transaction is counted exactly once, and the engine does not hang.

use std::sync::atomic::AtomicBool;

use super::*;
use riops_model::record::ErrorEntry;

/// Returns the succeeded, failed and unknown transactions within the measurement.
fn outcomes(result: &StageResult) -> (u64, u64, u64) {
    (
        counted(result, Counter::Transactions),
        counted(result, Counter::Failed),
        counted(result, Counter::Unknown),
    )
}

fn errors(result: &StageResult) -> Vec<(String, u64, u64)> {
    let entry = |entry: &ErrorEntry| (entry.sqlstate.clone(), entry.count, entry.retried);
    result.workers.recorder.errors.entries.iter().map(entry).collect()
}

fn with_errors(plan: Plan, errors: ErrorPolicy) -> Plan {
    Plan { errors, ..plan }
}

fn is_execute(request: &Request<'_>) -> bool {
    matches!(request, Request::Execute { .. })
}

/// Runs `plan` with `reply` as the reply to the executions with these numbers, from 0.
fn run_with(
    plan: &Plan,
    updates: bool,
    numbers: &'static [u64],
    reply: Reply,
) -> Result<StageResult, EngineError> {
    let executed = AtomicU64::new(0);
    run(plan, updates, move |_, request| {
        if is_execute(request) && numbers.contains(&executed.fetch_add(1, Ordering::Relaxed)) {
            return reply.clone();
        }
        normal_reply(request)
    })
}

const DEADLOCK: Reply = Reply::Error { sqlstate: "40P01", message: "deadlock detected" };
const SERIALIZATION: Reply = Reply::Error { sqlstate: "40001", message: "could not serialize" };
const READ_ONLY: Reply = Reply::Error { sqlstate: "25006", message: "read-only transaction" };

#[test]
fn retry_sends_identical_statements_and_latency_includes_all_attempts() {
    for protocol in [Protocol::Prepared, Protocol::Extended] {
        let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
        let (executed, noted) = (AtomicU64::new(0), Arc::clone(&seen));
        let plan = Plan { protocol, ..plan(Stop::Transactions(20), 1, 1) };
        let result = run(&plan, true, move |_, request| match request {
            Request::Execute { statement, parameters } => {
                noted.lock().unwrap().push(((*statement).to_owned(), parameters.clone()));
                match executed.fetch_add(1, Ordering::Relaxed) {
                    7..=9 => SERIALIZATION,
                    _ => normal_reply(request),
                }
            }
            other => normal_reply(other),
        })
        .unwrap();
        assert_eq!(outcomes(&result), (20, 0, 0));
        assert_eq!(errors(&result), [("40001".to_owned(), 3, 3)]);
        assert_eq!(counted(&result, Counter::Retries), 3);
        assert!(result.workers.failure.is_none());
        let seen = seen.lock().unwrap();
        assert_eq!(seen.len(), 23);
        // Execution 7 was an update, followed by its three retries.
        assert!(seen[7..11].iter().all(|sql| *sql == seen[7]), "{:?}", &seen[7..11]);
        let update = &result.workers.recorder.operations[1];
        // Three backoffs of at least 0.5, 1 and 2 ms.
        assert!(
            update.service.observed.max() >= Nanos(3_500_000),
            "{:?}",
            update.service.observed.max()
        );
        assert_eq!(result.workers.acknowledged[1].transactions, 5);
    }
}

/// Generates reads with another first parameter each.
struct Numbered(i64);

impl Generator for Numbered {
    fn next(&mut self, tx: &mut Transaction) -> bool {
        self.0 += 1;
        tx.begin(0, 10);
        tx.execute(0, &[self.0, 10]);
        tx.end_step();
        true
    }

    fn reply(&mut self, _: &Transaction, reply: &RowReply<'_>, outcome: &mut TransactionOutcome) {
        outcome.rows += reply.first_bigint().unwrap_or(0).cast_unsigned();
    }
}

#[test]
fn a_retry_sends_new_values_if_they_are_to_be_redrawn() {
    for (redraw, sent) in [(false, vec![1, 2, 2, 2, 3]), (true, vec![1, 2, 3, 4, 5])] {
        let policy = ErrorPolicy { redraw, ..ErrorPolicy::default() };
        let plan = with_errors(plan(Stop::Transactions(3), 1, 1), policy);
        let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
        let noted = Arc::clone(&seen);
        let server = FakeServer::start(move |_, request| match request {
            Request::Execute { parameters, .. } => {
                let mut noted = noted.lock().unwrap();
                noted.push(parameters[0]);
                if matches!(noted.len(), 2 | 3) { DEADLOCK } else { normal_reply(request) }
            }
            other => normal_reply(other),
        })
        .unwrap();
        let mut stage = stage(1, false);
        stage.sessions[0].work = Work::Client(Box::new(Numbered(0)));
        let result = run_stage_on(server.folder(), &plan, (stage, Vec::new())).unwrap();
        // The transaction is still one, with two retries.
        assert_eq!((outcomes(&result), counted(&result, Counter::Retries)), ((3, 0, 0), 2));
        assert_eq!(*seen.lock().unwrap(), sent, "redraw: {redraw}");
    }
}

#[test]
fn ignores_a_failure_after_the_end_that_is_not_retried() {
    let policy = ErrorPolicy { max_retries: u32::MAX, ..ErrorPolicy::default() };
    let plan = with_errors(plan(Stop::DurationS(0.1), 2, 1), policy);
    let plan = Plan { drain: riops_model::plan::Drain::CountedOnce, ..plan };
    let result = run(&plan, false, |_, request| match request {
        Request::Execute { .. } => SERIALIZATION,
        other => normal_reply(other),
    })
    .unwrap();
    assert_eq!(outcomes(&result), (0, 0, 0));
    assert_eq!(result.workers.drained_lost, 2);
    let (_, count, retried) = errors(&result).remove(0);
    assert!(count == retried && count > 0, "{count} {retried}");
}

#[test]
fn retries_up_to_the_limit_and_then_reports_the_error() {
    let policy = |on_error| ErrorPolicy { max_retries: 2, on_error, ..ErrorPolicy::default() };
    let stop = with_errors(plan(Stop::Transactions(20), 1, 1), policy(OnError::Stop));
    let result = run_with(&stop, false, &[5, 6, 7], DEADLOCK).unwrap();
    assert_eq!(outcomes(&result), (5, 1, 0));
    assert_eq!(errors(&result), [("40P01".to_owned(), 3, 2)]);
    assert!(matches!(result.workers.failure, Some(SessionError::Server(_))));
    let continuing = with_errors(plan(Stop::Transactions(20), 1, 1), policy(OnError::Continue));
    let result = run_with(&continuing, false, &[5, 6, 7], DEADLOCK).unwrap();
    assert_eq!(outcomes(&result), (19, 1, 0));
    assert!(result.workers.failure.is_none());
}

#[test]
fn counts_non_retryable_errors_with_on_error_continue() {
    let policy = ErrorPolicy { on_error: OnError::Continue, ..ErrorPolicy::default() };
    let plan = with_errors(plan(Stop::Transactions(100), 3, 2), policy);
    let result = run_with(&plan, true, &[3, 4, 50], READ_ONLY).unwrap();
    assert_eq!(outcomes(&result), (97, 3, 0));
    assert_eq!(errors(&result), [("25006".to_owned(), 3, 0)]);
    let acknowledged: u64 =
        result.workers.acknowledged.iter().map(|operation| operation.transactions).sum();
    assert_eq!(acknowledged, 97);
}

#[test]
fn attempts_that_do_not_succeed_are_counted_in_all_phases() {
    let policy = ErrorPolicy { on_error: OnError::Continue, ..ErrorPolicy::default() };
    let plan = with_errors(plan(Stop::Transactions(100), 1, 1), policy);
    let plan = Plan { warmup_s: 0.2, ..plan };
    let result = run_with(&plan, true, &[0, 1, 2, 3, 4], READ_ONLY).unwrap();
    // The first transactions belong to the warm-up.
    assert_eq!((outcomes(&result), result.workers.unsuccessful), ((100, 0, 0), 5));
    let result = run_with(&plan, true, &[0, 1], SERIALIZATION).unwrap();
    assert_eq!((counted(&result, Counter::Retries), result.workers.unsuccessful), (0, 2));
}

#[test]
fn run_ends_when_every_transaction_fails() {
    let policy = ErrorPolicy { on_error: OnError::Continue, ..ErrorPolicy::default() };
    for stop in [Stop::Transactions(50), Stop::Rows(500), Stop::DurationS(0.2)] {
        let plan = with_errors(plan(stop, 2, 2), policy);
        let result = run(&plan, false, |_, request| match request {
            Request::Execute { .. } => READ_ONLY,
            other => normal_reply(other),
        })
        .unwrap();
        let (succeeded, failed, unknown) = outcomes(&result);
        assert_eq!((succeeded, unknown), (0, 0));
        assert!(failed >= 50, "{failed}");
    }
}

#[test]
fn reconnects_and_counts_updates_in_flight_as_unknown() {
    let result = run_with(&plan(Stop::Transactions(40), 1, 1), true, &[7], Reply::Close).unwrap();
    assert_eq!(outcomes(&result), (39, 0, 1));
    assert_eq!(errors(&result), [("08006".to_owned(), 1, 0)]);
    assert_eq!(result.workers.acknowledged[1].rows_unknown, 10);
    assert_eq!(result.workers.acknowledged[1].transactions_unknown, 1);
    assert_eq!(
        (counted(&result, Counter::Reconnects), result.workers.recorder.connects.count()),
        (1, 1)
    );
    assert!(result.workers.failure.is_none());
    // A lost read counts as failed, not as unknown.
    let result = run_with(&plan(Stop::Transactions(40), 1, 1), false, &[7], Reply::Close).unwrap();
    assert_eq!(outcomes(&result), (39, 1, 0));
    assert_eq!(result.workers.acknowledged[0].rows_unknown, 0);
}

#[test]
fn pipelined_transactions_have_separate_outcomes() {
    let plan = Plan { pipeline: 8, ..plan(Stop::Transactions(400), 2, 2) };
    let result = run(&plan, true, |_, request| normal_reply(request)).unwrap();
    assert_eq!(outcomes(&result), (400, 0, 0));
    assert_eq!(result.workers.wrong_replies, 0);
    // Every fourth transaction of each session is an update.
    assert!((99..=100).contains(&result.workers.acknowledged[1].transactions));
    let result = run_with(&plan, true, &[33, 34, 90], DEADLOCK).unwrap();
    assert_eq!(outcomes(&result), (400, 0, 0));
    assert_eq!(counted(&result, Counter::Retries), 3);
    // All transactions in flight on a lost connection are counted, each once.
    let result = run_with(&plan, true, &[60], Reply::Close).unwrap();
    let (succeeded, failed, unknown) = outcomes(&result);
    assert_eq!(succeeded + failed + unknown, 400);
    assert!(failed >= 1 && failed + unknown <= 8, "{failed} {unknown}");
}

#[test]
fn counts_a_fatal_error_by_sqlstate_and_reconnects() {
    let mut fatal = Vec::new();
    let fields = [(b'S', "FATAL"), (b'C', "57P01"), (b'M', "terminating connection")];
    riops_wire::backend::error_response(&mut fatal, &fields).unwrap();
    // One session only: a second one could complete the run before the first has reconnected.
    let plan = plan(Stop::Transactions(100), 1, 1);
    let result = run_with(&plan, true, &[20], Reply::RawThenClose(fatal)).unwrap();
    assert_eq!(errors(&result), [("57P01".to_owned(), 1, 0)]);
    assert!(result.workers.recorder.errors.entries[0].sample.contains("terminating connection"));
    assert_eq!(counted(&result, Counter::Reconnects), 1);
    let (succeeded, failed, unknown) = outcomes(&result);
    assert_eq!((succeeded, failed + unknown), (99, 1));
}

const TRY_AGAIN: Reply =
    Reply::Error { sqlstate: "XX000", message: "Try again: Write RPC to tablet failed" };

#[test]
fn a_change_with_an_unknown_outcome_is_not_retried() {
    let received = Arc::new(AtomicU64::new(0));
    let noted = Arc::clone(&received);
    let result = run(&plan(Stop::Transactions(20), 1, 1), true, move |_, request| match request {
        // Execution 7 is an update, 8 is a read.
        Request::Execute { .. } => match noted.fetch_add(1, Ordering::Relaxed) {
            7 | 8 => TRY_AGAIN,
            _ => normal_reply(request),
        },
        other => normal_reply(other),
    })
    .unwrap();
    // The read is retried, the update is not: it may have been committed.
    assert_eq!(outcomes(&result), (19, 0, 1));
    assert_eq!(errors(&result), [("XX000".to_owned(), 2, 1)]);
    assert_eq!(result.workers.acknowledged[1].transactions_unknown, 1);
    assert_eq!(result.workers.acknowledged[1].rows_unknown, 10);
    assert_eq!(received.load(Ordering::Relaxed), 21);
    // Like a lost connection, it does not end the run, unless the outcome must be exact.
    assert!(result.workers.failure.is_none(), "{:?}", result.workers.failure);
}

#[test]
fn a_change_rejected_because_of_an_outdated_schema_is_retried() {
    let mismatch = Reply::Error { sqlstate: "XX000", message: "schema version mismatch" };
    let result = run_with(&plan(Stop::Transactions(20), 1, 1), true, &[7], mismatch).unwrap();
    assert_eq!(outcomes(&result), (20, 0, 0));
    assert_eq!(errors(&result), [("XX000".to_owned(), 1, 1)]);
}

#[test]
fn reads_a_large_reply_to_its_end_although_the_server_has_closed_the_connection() {
    let mut last = Vec::new();
    for _ in 0..200 {
        riops_wire::backend::data_row(&mut last, &[Some(&[0; 10_000])]).unwrap();
    }
    let fields = [(b'S', "FATAL"), (b'C', "57P01"), (b'M', "terminating connection")];
    riops_wire::backend::error_response(&mut last, &fields).unwrap();
    let plan = plan(Stop::Transactions(30), 1, 1);
    let result = run_with(&plan, false, &[20], Reply::RawThenClose(last)).unwrap();
    // The error stands behind 2 MB of rows.
    assert_eq!(errors(&result), [("57P01".to_owned(), 1, 0)]);
    assert_eq!(outcomes(&result), (29, 1, 0));
}

#[test]
fn stops_the_run_after_the_reconnect_timeout() {
    for on_error in [OnError::Stop, OnError::Continue] {
        let gone = Arc::new(AtomicBool::new(false));
        let server_is_gone = Arc::clone(&gone);
        let policy = ErrorPolicy { on_error, reconnect_timeout_s: 0.1, ..ErrorPolicy::default() };
        let plan = with_errors(plan(Stop::DurationS(3_600.0), 1, 1), policy);
        let executed = AtomicU64::new(0);
        let result = run(&plan, true, move |session, request| {
            if is_execute(request) && executed.fetch_add(1, Ordering::Relaxed) == 10 {
                server_is_gone.store(true, Ordering::Relaxed);
            }
            // The server closes every new connection at its first request.
            if session > 0 || server_is_gone.load(Ordering::Relaxed) {
                return Reply::Close;
            }
            normal_reply(request)
        })
        .unwrap();
        assert!(matches!(result.workers.failure, Some(SessionError::Reconnect { .. })));
        assert_eq!(counted(&result, Counter::Reconnects), 0);
        let (succeeded, failed, unknown) = outcomes(&result);
        assert_eq!((succeeded, failed + unknown), (10, 1));
    }
}

#[test]
fn does_not_retry_a_permanent_connection_error() {
    let executed = AtomicU64::new(0);
    let policy = ErrorPolicy { reconnect_timeout_s: 3_600.0, ..ErrorPolicy::default() };
    let plan = with_errors(plan(Stop::DurationS(3_600.0), 1, 1), policy);
    let result = run(&plan, false, move |session, request| match request {
        Request::Parse(_) if session > 0 => {
            Reply::Error { sqlstate: "42P01", message: "relation does not exist" }
        }
        Request::Execute { .. } if executed.fetch_add(1, Ordering::Relaxed) == 10 => Reply::Close,
        other => normal_reply(other),
    })
    .unwrap();
    let failure = result.workers.failure.unwrap();
    assert!(failure.to_string().contains("relation does not exist"), "{failure}");
    assert_eq!(failure.sqlstate().as_str(), "42P01");
}

#[test]
fn reconnects_after_the_configured_number_of_transactions() {
    let plan = Plan { reconnect_every: Some(5), ..plan(Stop::Transactions(60), 2, 2) };
    let sessions = Arc::new(AtomicU64::new(0));
    let highest = Arc::clone(&sessions);
    let result = run(&plan, false, move |session, request| {
        highest.fetch_max(session, Ordering::Relaxed);
        normal_reply(request)
    })
    .unwrap();
    assert_eq!(outcomes(&result), (60, 0, 0));
    // The first two are not counted. One follows every five transactions, except at the end of each session.
    let replaced = result.workers.recorder.connects.count();
    assert!((10..=12).contains(&replaced), "{replaced}");
    // A requested connection may arrive after the other session has completed the run.
    let opened = sessions.load(Ordering::Relaxed) + 1;
    assert!((replaced + 2..=replaced + 4).contains(&opened), "{opened} {replaced}");
    assert_eq!((counted(&result, Counter::Reconnects), counted(&result, Counter::Errors)), (0, 0));
}

#[test]
fn protocol_violation_stops_the_run_or_reconnects_by_policy() {
    let invalid = || Reply::Raw(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec());
    let result = run_with(&plan(Stop::Transactions(40), 1, 1), false, &[7], invalid()).unwrap();
    assert!(matches!(result.workers.failure, Some(SessionError::Protocol(_))));
    let policy = ErrorPolicy { on_error: OnError::Continue, ..ErrorPolicy::default() };
    let plan = with_errors(plan(Stop::Transactions(40), 1, 1), policy);
    let result = run_with(&plan, false, &[7], invalid()).unwrap();
    assert_eq!(outcomes(&result), (39, 1, 0));
    assert_eq!(errors(&result), [("08P01".to_owned(), 1, 0)]);
}

#[test]
fn simple_and_extended_protocols_give_the_same_counts() {
    for protocol in [Protocol::Extended, Protocol::Simple] {
        let queries = Arc::new(AtomicU64::new(0));
        let parses = Arc::new(AtomicU64::new(0));
        let (counted_queries, counted_parses) = (Arc::clone(&queries), Arc::clone(&parses));
        let plan = Plan { protocol, ..plan(Stop::Transactions(40), 1, 1) };
        let result = run(&plan, true, move |_, request| match request {
            Request::Query(sql) if sql.starts_with("read") || sql.starts_with("update") => {
                assert!(sql.ends_with(" 1 10"), "{sql}");
                counted_queries.fetch_add(1, Ordering::Relaxed);
                Reply::Row(vec![Some(b"10".to_vec()), Some(b"1".to_vec())])
            }
            Request::Parse(_) => {
                counted_parses.fetch_add(1, Ordering::Relaxed);
                Reply::Done
            }
            other => normal_reply(other),
        })
        .unwrap();
        assert_eq!(outcomes(&result), (40, 0, 0));
        assert_eq!((result.workers.wrong_replies, result.workers.acknowledged[1].rows), (0, 100));
        let counts = (queries.load(Ordering::Relaxed), parses.load(Ordering::Relaxed));
        assert_eq!(counts, if protocol == Protocol::Simple { (40, 0) } else { (0, 40) });
    }
}

#[test]
fn a_plan_that_cannot_be_checked_is_not_a_finding() {
    // The checks of a session: before, during and after the run.
    let run_with_check = |position: u64, reply: fn() -> Reply| {
        let explained = AtomicU64::new(0);
        let policy = ErrorPolicy { on_error: OnError::Continue, ..ErrorPolicy::default() };
        let plan = with_errors(plan(Stop::Transactions(20), 1, 1), policy);
        let result = run(&plan, false, move |_, request| match request {
            Request::Query(sql)
                if sql.starts_with("explain")
                    && explained.fetch_add(1, Ordering::Relaxed) == position =>
            {
                reply()
            }
            other => normal_reply(other),
        })
        .unwrap();
        assert!(result.workers.findings.iter().all(|check| check.finding.is_expected));
        let moments: Vec<_> = result.workers.findings.iter().map(|check| check.moment).collect();
        let [unchecked] = result.workers.unchecked.as_slice() else {
            panic!("{:?}", result.workers.unchecked)
        };
        assert_eq!((unchecked.statement.as_str(), unchecked.sessions), ("read", 1));
        (moments, unchecked.moment, unchecked.reason.clone())
    };
    let (moments, moment, reason) = run_with_check(2, || READ_ONLY);
    assert_eq!((moments, moment), (vec![Moment::Before, Moment::During], Moment::After));
    assert!(reason.starts_with("EXPLAIN failed: "), "{reason}");
    let too_long = || Reply::Row(vec![Some(vec![b'x'; 300 * 1024])]);
    let (moments, moment, reason) = run_with_check(1, too_long);
    assert_eq!((moments, moment), (vec![Moment::Before, Moment::After], Moment::During));
    assert_eq!(reason, "the plan is longer than 256 kB");
}
