//! Tests of the engine against a fake server: counters, error handling, interrupts.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use riops_testkit::{FakeServer, PORT, Reply, Request};

use super::*;
use crate::metrics::Counter;
use crate::server::{ConnInfo, Dialect};
use crate::workload::access::{AccessPath, Index};
use crate::workload::transaction::{Reply as RowReply, Transaction, TransactionOutcome};
use crate::workload::{Generator, SessionPlan, Statement};
use riops_model::plan::{Driver, ErrorPolicy, OnError, Protocol, Stop};
use riops_model::record::{Events, Point, RunEvent};
use riops_model::units::Nanos;
use riops_wire::sqlstate::SqlState;

mod autocommit;
mod calls;
mod cuts;
mod faults;
mod large_replies;
mod open_loop;
mod scripts;
mod supervision;
mod virtual_time;
mod yugabytedb;

/// Generates reads; with `updates`, every fourth transaction is an update.
struct Reads {
    count: u64,
    updates: bool,
}

impl Generator for Reads {
    fn next(&mut self, tx: &mut Transaction) -> bool {
        self.count += 1;
        let update = self.updates && self.count.is_multiple_of(4);
        tx.begin(usize::from(update), 10);
        tx.execute(usize::from(update), &[1, 10]);
        tx.end_step();
        true
    }

    fn reply(&mut self, tx: &Transaction, reply: &RowReply<'_>, outcome: &mut TransactionOutcome) {
        let count = reply.first_bigint();
        outcome.rows += count.unwrap_or(0).cast_unsigned();
        outcome.wrong |= count != Some(tx.expected_rows().cast_signed());
    }
}

/// The driver that these tests use: they are compiled for both.
fn driver() -> Driver {
    let wanted = if module_path!().contains("epoll") { Driver::Epoll } else { Driver::Auto };
    let ChosenDriver { driver, refused } = choose_driver(wanted, usize::MAX, 1).unwrap();
    // Without the ring, the tests would only repeat those on epoll.
    let is_accepted = refused.is_none() || std::env::var_os("RIOPS_TEST_ALL").is_none();
    assert!(is_accepted, "io_uring is not available: {refused:?}");
    driver
}

fn plan(stop: Stop, sessions: u32, workers: u32) -> Plan {
    let driver = driver();
    Plan { driver, sessions, workers, warmup_s: 0.0, stop, interval_s: 0.1, ..Plan::default() }
}

fn stage(sessions: u32, updates: bool) -> Stage {
    let statement = |name: &str| Statement {
        name: name.to_owned(),
        sql: format!("{name} $1 $2"),
        parameter_types: vec![20, 20],
    };
    Stage {
        name: "test".to_owned(),
        operations: vec!["read".into(), "update".into()],
        changes: vec![false, true],
        explain_by_name: true,
        sessions: (0..sessions)
            .map(|_| SessionPlan {
                settings: vec!["set a = b".to_owned()],
                statements: vec![statement("read"), statement("update")],
                watched: 0..2,
                work: Work::Client(Box::new(Reads { count: 0, updates })),
            })
            .collect(),
        ..Stage::default()
    }
}

fn access() -> Access {
    Access {
        statement: "read".to_owned(),
        sql: "read $1 $2".to_owned(),
        arguments: vec!["1".to_owned(), "10".to_owned()],
        rows: 10,
        expected: AccessPath::IndexScan(Index { table: "t".to_owned(), name: "i".to_owned() }),
        dialect: Dialect::default(),
        parallel_allowed: false,
    }
}

fn plan_json(node: &str) -> Reply {
    let json = format!(
        r#"[{{"Plan": {{"Node Type": "{node}", "Relation Name": "t", "Index Name": "i", "Index Cond": "x"}}}}]"#
    );
    Reply::Row(vec![Some(json.into_bytes())])
}

/// Returns the reply of a server without errors.
fn normal_reply(request: &Request<'_>) -> Reply {
    match request {
        Request::Query(sql) if sql.starts_with("explain") => plan_json("Index Scan"),
        Request::Query(_) | Request::Parse(_) => Reply::Done,
        Request::Execute { .. } => Reply::numbers(10, 1),
    }
}

/// Returns the hooks of a run whose events are collected.
fn collected() -> (Hooks<'static>, Arc<Mutex<Vec<RunEvent>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let collected = Arc::clone(&seen);
    let events = Events::new(move |event| collected.lock().unwrap().push(event.clone()));
    (Hooks { events, ..Hooks::default() }, seen)
}

fn run(
    plan: &Plan,
    updates: bool,
    answer: impl Fn(u64, &Request<'_>) -> Reply + Send + Sync + 'static,
) -> Result<StageResult, EngineError> {
    let server = FakeServer::start(answer).unwrap();
    run_on(server.folder(), plan, updates)
}

/// Runs the stage on a server whose socket is in `folder`.
fn run_on(
    folder: &std::path::Path,
    plan: &Plan,
    updates: bool,
) -> Result<StageResult, EngineError> {
    run_stage_on(folder, plan, (stage(plan.sessions, updates), vec![access()]))
}

fn run_stage_on(
    folder: &std::path::Path,
    plan: &Plan,
    (stage, accesses): (Stage, Vec<Access>),
) -> Result<StageResult, EngineError> {
    run_stage(
        stage,
        accesses,
        plan,
        &Nodes::single(&ConnInfo::unix(folder, PORT, "riops", "test")),
        &Interrupt::new(),
        &mut Probe::without_processes(),
        &mut Hooks::default(),
    )
}

/// Runs reads on the server.
fn run_with(server: &FakeServer, plan: &Plan, hooks: &mut Hooks<'_>) -> StageResult {
    run_stage(
        stage(plan.sessions, false),
        vec![access()],
        plan,
        &Nodes::single(&ConnInfo::unix(server.folder(), PORT, "riops", "test")),
        &Interrupt::new(),
        &mut Probe::without_processes(),
        hooks,
    )
    .unwrap()
}

fn counted(result: &StageResult, counter: Counter) -> u64 {
    result.workers.recorder.counters().get(counter)
}

fn transactions(result: &StageResult) -> u64 {
    counted(result, Counter::Transactions)
}

#[test]
fn runs_exactly_the_requested_number_of_transactions() {
    for (count, sessions, workers) in [(1, 1, 1), (1, 7, 3), (1_001, 7, 3), (500, 2, 2)] {
        let plan = plan(Stop::Transactions(count), sessions, workers);
        let result = run(&plan, true, |_, request| normal_reply(request)).unwrap();
        assert_eq!(transactions(&result), count);
        assert_eq!(
            result.workers.acknowledged.iter().map(|operation| operation.transactions).sum::<u64>(),
            count
        );
        assert_eq!(
            result.workers.sessions.iter().map(SessionTally::transactions).sum::<u64>(),
            count
        );
        assert_eq!(result.workers.sessions.len(), sessions as usize);
        assert!(result.workers.failure.is_none() && result.seconds > 0.0);
        let series: u64 = result.series.iter().map(|point| point.transactions).sum();
        assert_eq!(series, count);
    }
}

#[test]
fn stops_after_the_transaction_that_reaches_the_row_limit() {
    let result =
        run(&plan(Stop::Rows(995), 1, 1), false, |_, request| normal_reply(request)).unwrap();
    assert_eq!(counted(&result, Counter::Rows), 1_000);
}

#[test]
fn timed_run_counts_the_same_transactions_as_its_time_series() {
    let mut plan = plan(Stop::DurationS(0.25), 3, 2);
    plan.warmup_s = 0.05;
    let result = run(&plan, false, |_, request| normal_reply(request)).unwrap();
    assert_eq!(result.seconds, 0.25);
    assert_eq!(result.series.len(), 3);
    assert_eq!(
        result.series.iter().map(|point| point.transactions).sum::<u64>(),
        transactions(&result)
    );
    // Transactions of the warm-up and the drain are acknowledged but not counted.
    assert!(result.workers.acknowledged[0].transactions > transactions(&result));
}

#[test]
fn checks_the_plans_of_every_session_before_during_and_after_the_run() {
    let result =
        run(&plan(Stop::Transactions(5_000), 3, 2), false, |_, request| normal_reply(request))
            .unwrap();
    let seen: Vec<_> = result
        .workers
        .findings
        .iter()
        .map(|check| (check.moment, check.sessions, check.finding.is_expected))
        .collect();
    assert_eq!(
        seen,
        [(Moment::Before, 3, true), (Moment::During, 3, true), (Moment::After, 3, true)]
    );
}

#[test]
fn detects_a_plan_change_during_the_run() {
    let explained = AtomicU64::new(0);
    let result =
        run(&plan(Stop::Transactions(100), 1, 1), false, move |_, request| match request {
            Request::Query(sql) if sql.starts_with("explain") => {
                // As expected before and after the run, another plan during the run.
                match explained.fetch_add(1, Ordering::Relaxed) {
                    1 => plan_json("Seq Scan"),
                    _ => plan_json("Index Scan"),
                }
            }
            other => normal_reply(other),
        })
        .unwrap();
    let held: Vec<_> = result
        .workers
        .findings
        .iter()
        .map(|check| (check.moment, check.finding.is_expected))
        .collect();
    assert_eq!(held, [(Moment::Before, true), (Moment::During, false), (Moment::After, true)]);
}

#[test]
fn counts_replies_with_too_few_rows() {
    let result =
        run(&plan(Stop::Transactions(20), 2, 1), false, |session, request| match request {
            Request::Execute { .. } if session == 0 => Reply::numbers(9, 1),
            other => normal_reply(other),
        })
        .unwrap();
    assert!(result.workers.wrong_replies > 0);
    assert!(result.workers.failure.is_none());
}

#[test]
fn error_stops_the_run_and_is_counted_by_sqlstate() {
    let executed = AtomicU64::new(0);
    let result = run(&plan(Stop::DurationS(60.0), 2, 2), false, move |_, request| match request {
        Request::Execute { .. } if executed.fetch_add(1, Ordering::Relaxed) == 50 => {
            Reply::Error { sqlstate: "53100", message: "could not extend file" }
        }
        other => normal_reply(other),
    })
    .unwrap();
    let entry = &result.workers.recorder.errors.entries[0];
    assert_eq!((entry.sqlstate.as_str(), entry.count), ("53100", 1));
    assert!(entry.sample.contains("could not extend file"));
    assert!(matches!(result.workers.failure, Some(SessionError::Server(_))));
    assert_eq!(result.workers.acknowledged[0].rows_unknown, 0);
}

#[test]
fn invalid_protocol_bytes_stop_the_run_without_a_panic() {
    let invalid: [&[u8]; 4] = [
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        &[b'D', 0, 0, 0, 2],
        &[b'Z', 0, 0, 0, 5, b'?'],
        &[b'C', 0x7f, 0xff, 0xff, 0xff],
    ];
    for bytes in invalid {
        let result =
            run(&plan(Stop::DurationS(60.0), 1, 1), false, move |_, request| match request {
                Request::Execute { .. } => Reply::Raw(bytes.to_vec()),
                other => normal_reply(other),
            })
            .unwrap();
        assert!(
            matches!(result.workers.failure, Some(SessionError::Protocol(_))),
            "{:?}",
            result.workers.failure
        );
        assert_eq!(transactions(&result), 0);
    }
}

#[test]
fn failed_session_setup_aborts_the_stage() {
    let error = run(&plan(Stop::DurationS(60.0), 4, 2), false, |session, request| match request {
        Request::Parse(_) if session == 3 => {
            Reply::Error { sqlstate: "42P01", message: "relation does not exist" }
        }
        other => normal_reply(other),
    })
    .unwrap_err();
    assert!(error.to_string().contains("relation does not exist"), "{error}");
}

#[test]
fn interrupt_stops_the_run_cleanly() {
    let interrupt = Interrupt::new();
    let trigger = interrupt.clone();
    let executed = AtomicU64::new(0);
    let server = FakeServer::start(move |_, request| {
        if matches!(request, Request::Execute { .. })
            && executed.fetch_add(1, Ordering::Relaxed) == 100
        {
            trigger.request();
        }
        normal_reply(request)
    })
    .unwrap();
    let target = Nodes::single(&ConnInfo::unix(server.folder(), PORT, "riops", "test"));
    let plan = plan(Stop::DurationS(3_600.0), 2, 2);
    let (mut hooks, seen) = collected();
    let result = run_stage(
        stage(2, false),
        vec![access()],
        &plan,
        &target,
        &interrupt,
        &mut Probe::without_processes(),
        &mut hooks,
    )
    .unwrap();
    assert!(result.interrupted && result.workers.failure.is_none());
    assert!(result.seconds < 3_600.0 && transactions(&result) > 0);
    assert!(seen.lock().unwrap().contains(&RunEvent::Connected { sessions: 2 }));
}
