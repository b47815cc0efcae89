//! What the engine makes of errors and of connections that break: nothing is counted twice, nothing
//! is forgotten, and nothing hangs.

use std::sync::atomic::AtomicBool;

use super::*;
use crate::metrics::ErrorEntry;

/// Succeeded, failed and unknown transactions within the measurement.
fn outcomes(result: &StageResult) -> (u64, u64, u64) {
    (
        counted(result, Counter::Transactions),
        counted(result, Counter::Failed),
        counted(result, Counter::Unknown),
    )
}

fn errors(result: &StageResult) -> Vec<(String, u64, u64)> {
    let entry = |entry: &ErrorEntry| (entry.sqlstate.clone(), entry.count, entry.retried);
    result.recorder.errors().entries().iter().map(entry).collect()
}

fn with_errors(plan: Plan, errors: ErrorPolicy) -> Plan {
    Plan { errors, ..plan }
}

fn is_execute(request: &Request<'_>) -> bool {
    matches!(request, Request::Execute { .. })
}

/// Runs where the executions with these numbers, from 0, get this answer instead of the good one.
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
        well(request)
    })
}

const DEADLOCK: Reply = Reply::Error { sqlstate: "40P01", message: "deadlock detected" };
const SERIALIZATION: Reply = Reply::Error { sqlstate: "40001", message: "could not serialize" };
const READ_ONLY: Reply = Reply::Error { sqlstate: "25006", message: "read-only transaction" };

#[test]
fn a_retry_sends_the_same_bytes_again_and_its_latency_has_all_attempts() {
    for protocol in [Protocol::Prepared, Protocol::Extended] {
        let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
        let (executed, noted) = (AtomicU64::new(0), Arc::clone(&seen));
        let plan = Plan { protocol, ..plan(Stop::Transactions(20), 1, 1) };
        let result = run(&plan, true, move |_, request| match request {
            Request::Execute { statement, parameters } => {
                noted.lock().unwrap().push(((*statement).to_owned(), parameters.clone()));
                match executed.fetch_add(1, Ordering::Relaxed) {
                    7..=9 => SERIALIZATION,
                    _ => well(request),
                }
            }
            other => well(other),
        })
        .unwrap();
        assert_eq!(outcomes(&result), (20, 0, 0));
        assert_eq!(errors(&result), [("40001".to_owned(), 3, 3)]);
        assert_eq!(counted(&result, Counter::Retries), 3);
        assert!(result.failure.is_none());
        let seen = seen.lock().unwrap();
        assert_eq!(seen.len(), 23);
        // Number 7 was an update, and so were its three repetitions.
        assert!(seen[7..11].iter().all(|each| *each == seen[7]), "{:?}", &seen[7..11]);
        let update = &result.recorder.operations()[1];
        // Three pauses of at least 0.5, 1 and 2 ms.
        assert!(update.service.max() >= Nanos(3_500_000), "{:?}", update.service.max());
        assert_eq!(result.acknowledged[1].transactions, 5);
    }
}

#[test]
fn retries_are_bounded_and_what_is_left_is_an_error() {
    let policy = |on_error| ErrorPolicy { max_retries: 2, on_error, ..ErrorPolicy::default() };
    let stopping = with_errors(plan(Stop::Transactions(20), 1, 1), policy(OnError::Stop));
    let result = run_with(&stopping, false, &[5, 6, 7], DEADLOCK).unwrap();
    assert_eq!(outcomes(&result), (5, 1, 0));
    assert_eq!(errors(&result), [("40P01".to_owned(), 3, 2)]);
    assert!(matches!(result.failure, Some(SessionError::Server(_))));
    let going_on = with_errors(plan(Stop::Transactions(20), 1, 1), policy(OnError::Continue));
    let result = run_with(&going_on, false, &[5, 6, 7], DEADLOCK).unwrap();
    assert_eq!(outcomes(&result), (19, 1, 0));
    assert!(result.failure.is_none());
}

#[test]
fn errors_that_no_retry_mends_are_counted_where_the_run_goes_on() {
    let policy = ErrorPolicy { on_error: OnError::Continue, ..ErrorPolicy::default() };
    let plan = with_errors(plan(Stop::Transactions(100), 3, 2), policy);
    let result = run_with(&plan, true, &[3, 4, 50], READ_ONLY).unwrap();
    assert_eq!(outcomes(&result), (97, 3, 0));
    assert_eq!(errors(&result), [("25006".to_owned(), 3, 0)]);
    let acknowledged: u64 = result.acknowledged.iter().map(|each| each.transactions).sum();
    assert_eq!(acknowledged, 97);
}

#[test]
fn a_run_that_only_fails_ends_all_the_same() {
    let policy = ErrorPolicy { on_error: OnError::Continue, ..ErrorPolicy::default() };
    for stop in [Stop::Transactions(50), Stop::Rows(500), Stop::DurationS(0.2)] {
        let plan = with_errors(plan(stop, 2, 2), policy);
        let result = run(&plan, false, |_, request| match request {
            Request::Execute { .. } => READ_ONLY,
            other => well(other),
        })
        .unwrap();
        let (succeeded, failed, unknown) = outcomes(&result);
        assert_eq!((succeeded, unknown), (0, 0));
        assert!(failed >= 50, "{failed}");
    }
}

#[test]
fn a_broken_connection_is_replaced_and_what_it_changed_is_unknown() {
    let result = run_with(&plan(Stop::Transactions(40), 1, 1), true, &[7], Reply::Close).unwrap();
    assert_eq!(outcomes(&result), (39, 0, 1));
    assert_eq!(errors(&result), [("08006".to_owned(), 1, 0)]);
    assert_eq!(result.acknowledged[1].rows_unknown, 10);
    assert_eq!(result.acknowledged[1].transactions_unknown, 1);
    assert_eq!((counted(&result, Counter::Reconnects), result.recorder.connects.count()), (1, 1));
    assert!(result.failure.is_none());
    // What a read would have said is not unknown: it failed.
    let result = run_with(&plan(Stop::Transactions(40), 1, 1), false, &[7], Reply::Close).unwrap();
    assert_eq!(outcomes(&result), (39, 1, 0));
    assert_eq!(result.acknowledged[0].rows_unknown, 0);
}

#[test]
fn with_several_transactions_under_way_each_has_its_own_outcome() {
    let plan = Plan { pipeline: 8, ..plan(Stop::Transactions(400), 2, 2) };
    let result = run(&plan, true, |_, request| well(request)).unwrap();
    assert_eq!(outcomes(&result), (400, 0, 0));
    assert_eq!(result.wrong_replies, 0);
    // Every fourth of each session.
    assert!((99..=100).contains(&result.acknowledged[1].transactions));
    let result = run_with(&plan, true, &[33, 34, 90], DEADLOCK).unwrap();
    assert_eq!(outcomes(&result), (400, 0, 0));
    assert_eq!(counted(&result, Counter::Retries), 3);
    // All that is under way on a connection is lost with it, each once.
    let result = run_with(&plan, true, &[60], Reply::Close).unwrap();
    let (succeeded, failed, unknown) = outcomes(&result);
    assert_eq!(succeeded + failed + unknown, 400);
    assert!(failed >= 1 && failed + unknown <= 8, "{failed} {unknown}");
}

#[test]
fn a_server_s_goodbye_is_counted_by_its_code_and_the_session_comes_back() {
    let mut goodbye = Vec::new();
    let fields = [(b'S', "FATAL"), (b'C', "57P01"), (b'M', "terminating connection")];
    riops_wire::backend::error_response(&mut goodbye, &fields).unwrap();
    // One session: another one could do all that is left before it comes back.
    let plan = plan(Stop::Transactions(100), 1, 1);
    let result = run_with(&plan, true, &[20], Reply::RawThenClose(goodbye)).unwrap();
    assert_eq!(errors(&result), [("57P01".to_owned(), 1, 0)]);
    assert!(result.recorder.errors().entries()[0].sample.contains("terminating connection"));
    assert_eq!(counted(&result, Counter::Reconnects), 1);
    let (succeeded, failed, unknown) = outcomes(&result);
    assert_eq!((succeeded, failed + unknown), (99, 1));
}

#[test]
fn a_connection_that_does_not_come_back_ends_the_run_after_its_time() {
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
            // Every new session is thrown out at its first word.
            if session > 0 || server_is_gone.load(Ordering::Relaxed) {
                return Reply::Close;
            }
            well(request)
        })
        .unwrap();
        assert!(matches!(result.failure, Some(SessionError::Reconnect { .. })));
        assert_eq!(counted(&result, Counter::Reconnects), 0);
        let (succeeded, failed, unknown) = outcomes(&result);
        assert_eq!((succeeded, failed + unknown), (10, 1));
    }
}

#[test]
fn a_session_that_is_refused_for_good_is_not_asked_for_again() {
    let executed = AtomicU64::new(0);
    let policy = ErrorPolicy { reconnect_timeout_s: 3_600.0, ..ErrorPolicy::default() };
    let plan = with_errors(plan(Stop::DurationS(3_600.0), 1, 1), policy);
    let result = run(&plan, false, move |session, request| match request {
        Request::Parse(_) if session > 0 => {
            Reply::Error { sqlstate: "42P01", message: "relation does not exist" }
        }
        Request::Execute { .. } if executed.fetch_add(1, Ordering::Relaxed) == 10 => Reply::Close,
        other => well(other),
    })
    .unwrap();
    let failure = result.failure.unwrap();
    assert!(failure.to_string().contains("relation does not exist"), "{failure}");
    assert_eq!(failure.sqlstate().as_str(), "42P01");
}

#[test]
fn connections_are_renewed_after_their_number_of_transactions() {
    let plan = Plan { reconnect_every: Some(5), ..plan(Stop::Transactions(60), 2, 2) };
    let sessions = Arc::new(AtomicU64::new(0));
    let highest = Arc::clone(&sessions);
    let result = run(&plan, false, move |session, request| {
        highest.fetch_max(session, Ordering::Relaxed);
        well(request)
    })
    .unwrap();
    assert_eq!(outcomes(&result), (60, 0, 0));
    // Two at first, then one for each five transactions but the last of each session.
    let made = result.recorder.connects.count();
    assert!((10..=12).contains(&made), "{made}");
    // One that was ordered may have come when the other session had done the rest.
    let opened = sessions.load(Ordering::Relaxed) + 1;
    assert!((made + 2..=made + 4).contains(&opened), "{opened} {made}");
    assert_eq!((counted(&result, Counter::Reconnects), counted(&result, Counter::Errors)), (0, 0));
}

#[test]
fn garbage_ends_the_run_or_the_connection_as_wanted() {
    let garbage = || Reply::Raw(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec());
    let result = run_with(&plan(Stop::Transactions(40), 1, 1), false, &[7], garbage()).unwrap();
    assert!(matches!(result.failure, Some(SessionError::Protocol(_))));
    let policy = ErrorPolicy { on_error: OnError::Continue, ..ErrorPolicy::default() };
    let plan = with_errors(plan(Stop::Transactions(40), 1, 1), policy);
    let result = run_with(&plan, false, &[7], garbage()).unwrap();
    assert_eq!(outcomes(&result), (39, 1, 0));
    assert_eq!(errors(&result), [("08P01".to_owned(), 1, 0)]);
}

#[test]
fn the_simple_and_the_extended_protocol_do_the_same_work() {
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
            other => well(other),
        })
        .unwrap();
        assert_eq!(outcomes(&result), (40, 0, 0));
        assert_eq!((result.wrong_replies, result.acknowledged[1].rows), (0, 100));
        let each = (queries.load(Ordering::Relaxed), parses.load(Ordering::Relaxed));
        assert_eq!(each, if protocol == Protocol::Simple { (40, 0) } else { (0, 40) });
    }
}
