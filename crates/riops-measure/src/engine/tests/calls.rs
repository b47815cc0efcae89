//! Sessions with a server-side loop: counting of their reports, and the unknown outcomes of a call that ends
//! without its last report.

use std::sync::atomic::AtomicI64;

use riops_wire::backend::{Message, data_row, notice_response};

use super::*;
use crate::workload::rows::Rows;
use crate::workload::{Call, LoopReport, ServerLoop, Workload};
use riops_model::plan::{LoopSide, RowsDataset, RowsRun};

/// Returns a report of reads and updates of ten rows in ten milliseconds each. Up to 500 more rows may have
/// been updated before the next report.
fn report(intervals: u32, reads: u64, updates: u64) -> String {
    counts(intervals, reads, updates, 500)
}

/// Returns the same as a last report, after which no more rows follow.
fn last(intervals: u32, reads: u64, updates: u64) -> String {
    counts(intervals, reads, updates, 0)
}

fn counts(intervals: u32, reads: u64, updates: u64, more: u64) -> String {
    let bucket = |count: u64| if count > 0 { format!("[461, {count}]") } else { String::new() };
    format!(
        r#"{{"intervals": {intervals}, "measure_s": 0, "ended_s": {}, "max_scratch": 0, "conflicts": 1, "deadlocks": 1, "drained_us": null,
            "reads": {{"rows": {}, "longest_us": 9999, "buckets": [{}]}},
            "updates": {{"rows": {}, "longest_us": 9999, "buckets": [{}]}},
            "all": {{"batches": {}, "updates": {updates}, "read_rows": {}, "updated_rows": {}}},
            "lost_rows": 0, "announced": {}, "seen": [[{{"Plan": {{"Node Type": "Seq Scan", "Relation Name": "rows_0001"}}}}]]}}"#,
        f64::from(intervals) * 0.1,
        reads * 10,
        bucket(reads),
        updates * 10,
        bucket(updates),
        reads + updates,
        reads * 10,
        updates * 10,
        updates * 10 + more,
    )
}

fn notice(detail: &str, out: &mut Vec<u8>) {
    let fields =
        [(b'S', "NOTICE"), (b'V', "NOTICE"), (b'C', "00000"), (b'M', "progress"), (b'D', detail)];
    notice_response(out, &fields).unwrap();
}

/// Returns a reply with the reports as notices and `result` as the result row.
fn call(reports: &[String], result: &str) -> Reply {
    let mut bytes = Vec::new();
    for report in reports {
        notice(report, &mut bytes);
    }
    data_row(&mut bytes, &[Some(result.as_bytes())]).unwrap();
    Message::CommandComplete("CALL").encode(&mut bytes).unwrap();
    Reply::Raw(bytes)
}

/// Returns the replies to all requests except the CALL.
fn other_reply(request: &Request<'_>, clock: &ServerTime) -> Reply {
    match request {
        Request::Query(sql) if sql.starts_with("explain") => {
            let node = if sql.contains("update_") {
                r#"{"Node Type": "ModifyTable", "Operation": "Update", "Relation Name": "rows_0001", "Plans": [SCAN]}"#
            } else {
                "SCAN"
            };
            let scan = r#"{"Node Type": "Index Scan", "Relation Name": "rows_0001", "Index Name": "rows_0001_asc_mykey", "Index Cond": "x"}"#;
            let json = format!(r#"[{{"Plan": {}}}]"#, node.replace("SCAN", scan));
            Reply::Row(vec![Some(json.into_bytes())])
        }
        Request::Query(sql) if sql.contains("pg_backend_pid") => {
            Reply::Row(vec![Some(b"7".to_vec()), Some(b"20260101000000000000".to_vec())])
        }
        Request::Query(sql) if sql.contains("clock_timestamp") => {
            Reply::Row(vec![Some(format!("{:.6}", clock.seconds()).into_bytes())])
        }
        _ => Reply::Done,
    }
}

/// The clock of the fake server, in milliseconds ahead of 1970-01-01 at the start of the test.
#[derive(Clone)]
struct ServerTime {
    start: std::time::Instant,
    ahead_ms: Arc<AtomicI64>,
}

impl ServerTime {
    fn ahead_ms(ahead_ms: i64) -> Self {
        let ahead_ms = Arc::new(AtomicI64::new(ahead_ms));
        Self { start: std::time::Instant::now(), ahead_ms }
    }

    fn seconds(&self) -> f64 {
        let ahead_s = self.ahead_ms.load(Ordering::Relaxed) as f64 / 1e3;
        1_000.0 + self.start.elapsed().as_secs_f64() + ahead_s
    }

    fn set_forward_ms(&self, step_ms: i64) {
        self.ahead_ms.fetch_add(step_ms, Ordering::Relaxed);
    }
}

fn run_calls(
    plan: Plan,
    answer: impl Fn(u64, &str) -> Reply + Send + Sync + 'static,
) -> StageResult {
    let clock = ServerTime::ahead_ms(0);
    try_calls(plan, move |session, request| match request {
        Request::Query(sql) if sql.starts_with("call ") => answer(session, sql),
        other => other_reply(other, &clock),
    })
    .unwrap()
}

fn try_calls(
    plan: Plan,
    answer: impl Fn(u64, &Request<'_>) -> Reply + Send + Sync + 'static,
) -> Result<StageResult, EngineError> {
    let server = FakeServer::start(answer).unwrap();
    let run = RowsRun {
        batch: 10,
        update_percent: 50,
        loop_side: LoopSide::Server,
        ..RowsRun::default()
    };
    let plan = Plan { work: run.clone().into(), ..plan };
    let workload = Rows::new(RowsDataset::default(), run);
    run_stage(
        workload.stage(&plan),
        workload.accesses(),
        &plan,
        &Nodes::single(&ConnInfo::unix(server.folder(), PORT, "riops", "test")),
        &Interrupt::new(),
        &mut Probe::without_processes(),
        &mut Hooks::default(),
    )
}

/// Runs one call on a server whose clock is ahead, and is set forward after the call has started.
fn run_with_clock(ahead_ms: i64, step_ms: i64) -> StageResult {
    let clock = ServerTime::ahead_ms(ahead_ms);
    try_calls(plan(Stop::Transactions(5), 1, 1), move |_, request| match request {
        Request::Query(sql) if sql.starts_with("call ") => {
            // The two times are the only parameters with six decimals.
            let times: Vec<f64> = sql
                .split(", ")
                .filter(|part| part.split_once('.').is_some_and(|(_, digits)| digits.len() == 6))
                .filter_map(|part| part.parse().ok())
                .collect();
            let [start_s, measure_s] = times[..] else { panic!("{sql}") };
            // The loop does not start late, and it waits for its start.
            assert!(clock.seconds() < start_s + 10.0 && start_s < clock.seconds() + 10.0, "{sql}");
            while clock.seconds() < measure_s {
                std::thread::yield_now();
            }
            clock.set_forward_ms(step_ms);
            call(&[], &last(0, 4, 1))
        }
        other => other_reply(other, &clock),
    })
    .unwrap()
}

#[test]
fn counts_each_report_once_in_its_interval() {
    let result = run_calls(plan(Stop::DurationS(0.3), 2, 2), |_, _| {
        call(&[report(1, 4, 1), report(2, 4, 1)], &last(3, 9, 3))
    });
    assert_eq!(transactions(&result), 24);
    let per_interval: Vec<_> = result.series.iter().map(|point| point.transactions).collect();
    // No session has transactions in its second interval.
    assert_eq!(per_interval, [10, 0, 14]);
    let [reads, updates] = result.workers.recorder.operations.as_slice() else {
        panic!("two operations")
    };
    let rows = [reads, updates].map(|totals| totals.counters.get(Counter::Rows));
    assert_eq!((rows, counted(&result, Counter::Retries)), ([180, 60], 4));
    assert_eq!(
        (reads.service.observed.count(), reads.service.observed.max()),
        (18, Nanos(9_999_000))
    );
    let acknowledged = &result.workers.acknowledged[1];
    assert_eq!((acknowledged.rows, acknowledged.rows_unknown), (60, 0));
    let sessions: Vec<_> = result.workers.sessions.iter().map(SessionTally::transactions).collect();
    assert_eq!(sessions, [12, 12]);
    // Only the check during the run found another plan.
    let held = |moment| {
        result
            .workers
            .findings
            .iter()
            .filter(|check| check.moment == moment)
            .all(|check| check.finding.is_expected)
    };
    assert!(held(Moment::Before) && held(Moment::After) && !held(Moment::During));
    assert_eq!((result.workers.wrong_replies, result.workers.failure.is_none()), (0, true));
}

#[test]
fn repeats_a_call_after_connection_loss_and_counts_announced_rows_as_unknown() {
    let calls = AtomicU64::new(0);
    let result = run_calls(plan(Stop::Transactions(12), 1, 1), move |_, sql| {
        // Transactions reported before the connection was lost count.
        let first = calls.fetch_add(1, Ordering::Relaxed) == 0;
        let expected = if first { ", 12, null, " } else { ", 7, null, " };
        assert!(sql.contains(expected), "{sql}");
        if first {
            let mut bytes = Vec::new();
            notice(&report(1, 4, 1), &mut bytes);
            return Reply::RawThenClose(bytes);
        }
        call(&[], &last(2, 4, 3))
    });
    assert_eq!((transactions(&result), counted(&result, Counter::Reconnects)), (12, 1));
    let acknowledged = &result.workers.acknowledged[1];
    assert_eq!((acknowledged.rows, acknowledged.rows_unknown), (40, 500));
    assert_eq!((acknowledged.transactions, acknowledged.transactions_unknown), (4, 50));
}

#[test]
fn counts_work_before_the_first_report_as_unknown_after_connection_loss() {
    let calls = AtomicU64::new(0);
    let result = run_calls(plan(Stop::Transactions(5), 1, 1), move |_, _| {
        match calls.fetch_add(1, Ordering::Relaxed) {
            0 => Reply::Close,
            _ => call(&[], &last(1, 4, 1)),
        }
    });
    assert_eq!(
        (result.workers.acknowledged[1].rows, result.workers.acknowledged[1].rows_unknown),
        (10, 100)
    );
}

#[test]
fn retries_a_call_after_a_serialization_failure_but_not_after_other_errors() {
    let calls = AtomicU64::new(0);
    let result = run_calls(plan(Stop::Transactions(5), 1, 1), move |_, _| {
        match calls.fetch_add(1, Ordering::Relaxed) {
            0 => Reply::Error { sqlstate: "40001", message: "Restart read required" },
            _ => call(&[], &last(1, 4, 1)),
        }
    });
    assert_eq!((transactions(&result), result.workers.failure), (5, None));
    let conflict =
        result.workers.recorder.errors.entries.iter().find(|error| error.sqlstate == "40001");
    // One retry of the call, one retry within the loop.
    assert_eq!(conflict.unwrap().retried, 2);
    let refused = run_calls(plan(Stop::Transactions(5), 2, 2), |_, _| Reply::Error {
        sqlstate: "42883",
        message: "no such procedure",
    });
    assert!(refused.workers.failure.as_ref().unwrap().to_string().contains("no such procedure"));
    assert_eq!(transactions(&refused), 0);
}

#[test]
fn repeated_calls_without_progress_stop_the_run() {
    let errors =
        ErrorPolicy { max_retries: 2, on_error: OnError::Continue, ..ErrorPolicy::default() };
    let plan = Plan { errors, ..plan(Stop::Transactions(1), 1, 1) };
    // An invalid report counts as no report.
    let result = run_calls(plan.clone(), |_, _| call(&["{}".to_owned()], "not JSON"));
    assert!(result.workers.failure.as_ref().unwrap().to_string().contains("no report"));
    assert_eq!(counted(&result, Counter::Reconnects), 2);
    let refused =
        run_calls(plan, |_, _| Reply::Error { sqlstate: "42883", message: "no such procedure" });
    assert!(refused.workers.failure.as_ref().unwrap().to_string().contains("no such procedure"));
    assert_eq!(counted(&refused, Counter::Errors), 3);
}

#[test]
fn a_loop_starts_by_the_clock_of_its_server() {
    for ahead_ms in [0, 15_000, -15_000] {
        let result = run_with_clock(ahead_ms, 0);
        assert_eq!((transactions(&result), result.workers.clock_step_s), (5, 0.0), "{ahead_ms}");
    }
}

#[test]
fn finds_a_step_of_the_server_clock() {
    for step_ms in [15_000, -15_000] {
        let result = run_with_clock(5_000, step_ms);
        let error_s = (result.workers.clock_step_s - step_ms as f64 / 1e3).abs();
        assert!(error_s < 1.0, "{}", result.workers.clock_step_s);
    }
    // A report from the future shows a step although the call did not end.
    let result = run_calls(plan(Stop::DurationS(0.3), 1, 1), |_, _| {
        call(&[report(30_000, 4, 1)], "not JSON")
    });
    assert!(result.workers.clock_step_s > 2_900.0, "{}", result.workers.clock_step_s);
}

#[test]
fn an_unreadable_clock_is_not_a_failed_connection() {
    let clock = ServerTime::ahead_ms(0);
    let error = try_calls(plan(Stop::Transactions(5), 1, 1), move |_, request| match request {
        Request::Query(sql) if sql.contains("clock_timestamp") => {
            Reply::Error { sqlstate: "42501", message: "permission denied" }
        }
        other => other_reply(other, &clock),
    })
    .unwrap_err();
    assert!(matches!(error, EngineError::Clock { session: 1, sessions: 1, .. }), "{error}");
    let text = error.to_string();
    assert!(text.starts_with("cannot read the clock of the server for session 1 of 1: "), "{text}");
}

#[test]
fn a_check_that_fails_after_the_call_is_not_a_finding() {
    let (clock, explained) = (ServerTime::ahead_ms(0), AtomicU64::new(0));
    let result = try_calls(plan(Stop::Transactions(5), 1, 1), move |_, request| match request {
        Request::Query(sql) if sql.starts_with("call ") => call(&[], &last(1, 4, 1)),
        // Two statements: the checks after the run are the third and the fourth.
        Request::Query(sql)
            if sql.starts_with("explain") && explained.fetch_add(1, Ordering::Relaxed) == 2 =>
        {
            Reply::Error { sqlstate: "57014", message: "canceling statement" }
        }
        other => other_reply(other, &clock),
    })
    .unwrap();
    let after = result
        .workers
        .findings
        .iter()
        .filter(|check| check.moment == Moment::After)
        .collect::<Vec<_>>();
    let [unchecked] = result.workers.unchecked.as_slice() else {
        panic!("{:?}", result.workers.unchecked)
    };
    assert_eq!((unchecked.moment, unchecked.sessions, after.len()), (Moment::After, 1, 1));
    assert_ne!(unchecked.statement, after[0].statement);
    assert!(unchecked.reason.contains("canceling statement"), "{}", unchecked.reason);
}

/// A loop with a bug.
struct Panics;

impl ServerLoop for Panics {
    fn call_sql(&self, _: &Call<'_>) -> String {
        panic!("of the test")
    }

    fn read(&self, _: &str) -> Option<LoopReport> {
        None
    }

    fn before_first_report(&self) -> (u64, u64) {
        (0, 0)
    }
}

#[test]
fn a_lost_loop_ends_the_stage() {
    let clock = ServerTime::ahead_ms(0);
    let server = FakeServer::start(move |_, request| other_reply(request, &clock)).unwrap();
    let mut stage = stage(1, false);
    stage.sessions[0].work = Work::Server(Box::new(Panics));
    let plan = plan(Stop::DurationS(3_600.0), 1, 1);
    let result = run_stage_on(server.folder(), &plan, (stage, Vec::new()));
    assert!(matches!(result, Err(EngineError::WorkerLost)));
}
