//! Runs through the library API, with a plan and a server.

use std::sync::{Arc, Mutex};

use riops::host::Interrupt;
use riops::plan::{Plan, PreparePolicy, RowsRun, Stop};
use riops::record::{Events, Record, RunEvent, Status};
use riops::run::{self, ErrorKind, Hooks, NoHistory};
use riops::server::Server;

use crate::fixture::{CommandOutput, Database, command, database, folder};

/// Runs the plan, and returns its events as well, and the record that was complete before the cleanup.
fn run_and_observe(
    plan: &Plan,
    server: &Server,
    interrupt: &Interrupt,
    on_event: impl Fn(&[RunEvent]) + Send + Sync + 'static,
) -> (Result<Record, run::RunError>, Vec<RunEvent>, Option<Record>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let collected = Arc::clone(&seen);
    let events = Events::new(move |event| {
        let mut collected = collected.lock().unwrap();
        collected.push(event.clone());
        on_event(&collected);
    });
    let mut complete = None;
    let mut on_complete = |record: &Record| complete = Some(record.clone());
    let hooks = Hooks { events, complete: Some(&mut on_complete), ..Hooks::default() };
    let ran = run::run(plan, server, interrupt, hooks);
    let seen = seen.lock().unwrap().clone();
    (ran, seen, complete)
}

fn stages(events: &[RunEvent]) -> usize {
    events.iter().filter(|event| matches!(event, RunEvent::Stage { .. })).count()
}

fn plan() -> Plan {
    let work = RowsRun { batch: 5, batches: vec![5, 10], update_percent: 50, ..RowsRun::default() };
    Plan {
        sessions: 2,
        workers: 1,
        warmup_s: 0.0,
        stop: Stop::Transactions(40),
        dataset: [("rows".to_owned(), 2000.into())].into_iter().collect(),
        work: work.into(),
        ..Plan::default()
    }
}

fn server(database: &Database) -> Server {
    Server::external(database.conninfo.clone())
}

#[test]
fn a_run_is_one_call_with_events() {
    let database = database("library_run");
    let plan = Plan { prepare: PreparePolicy::IfMissing, ..plan() };
    let (record, events, complete) =
        run_and_observe(&plan, &server(&database), &Interrupt::new(), |_| {});
    let record = record.unwrap();
    assert_eq!(record.status, Status::Done);
    let prepared = events.iter().filter(|event| matches!(event, RunEvent::Prepared(_))).count();
    assert_eq!((prepared, stages(&events)), (1, 2));
    assert!(events.contains(&RunEvent::Connected { sessions: 2 }));
    let measured: u64 = record.stages.iter().map(|stage| stage.transactions).sum();
    assert_eq!(measured, 80);
    let shown = events.iter().map(|event| match event {
        RunEvent::Point(point) => point.transactions,
        _ => 0,
    });
    assert_eq!(shown.sum::<u64>(), measured);
    assert_eq!(complete.as_ref(), Some(&record));
    assert_eq!(record.plan, plan);
}

#[test]
fn a_missing_dataset_is_an_error_if_the_plan_does_not_prepare_it() {
    let database = database("library_missing");
    let (run, _, complete) =
        run_and_observe(&plan(), &server(&database), &Interrupt::new(), |_| {});
    let error = run.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Failed, "{error}");
    assert!(error.to_string().contains("riops prepare rows"), "{error}");
    assert!(complete.is_none());
    assert_eq!(
        database.value("select count(*)::text from pg_namespace where nspname = 'riops'"),
        Some("0".to_owned())
    );
}

#[test]
fn an_interrupt_between_two_stages_keeps_and_verifies_the_first() {
    let database = database("library_interrupt");
    let interrupt = Interrupt::new();
    let user = interrupt.clone();
    let plan = Plan { prepare: PreparePolicy::IfMissing, ..plan() };
    let (record, ..) = run_and_observe(&plan, &server(&database), &interrupt, move |events| {
        if stages(events) == 2 {
            user.request();
        }
    });
    let record = record.unwrap();
    assert_eq!(record.status, Status::Interrupted);
    assert!(record.stages[0].transactions == 40 && record.stages.len() <= 2);
    assert!(record.checks.len() >= 3 && record.checks.iter().all(|check| check.held));
    let open = "select count(*)::text from riops.run where ended_at is null";
    assert_eq!(database.value(open).as_deref(), Some("0"));
}

#[test]
fn the_dataset_is_unlocked_when_the_record_is_complete() {
    let database = database("library_locks");
    let server = server(&database);
    let mut is_complete = false;
    let mut on_complete = |_: &Record| {
        let interrupt = Interrupt::new();
        let checks = run::verify("rows", &server, &interrupt, &NoHistory, &mut |_| {}).unwrap();
        assert!(checks.iter().all(|check| check.held));
        is_complete = true;
    };
    let hooks = Hooks { complete: Some(&mut on_complete), ..Hooks::default() };
    let plan = Plan { prepare: PreparePolicy::IfMissing, ..plan() };
    run::run(&plan, &server, &Interrupt::new(), hooks).unwrap();
    assert!(is_complete);
}

#[test]
fn the_gate_of_the_examples_ends_with_its_verdict() {
    let database = database("library_example");
    let example = std::path::Path::new(env!("CARGO_BIN_EXE_riops")).with_file_name("examples/gate");
    // cargo builds it unless only this package is tested.
    if !example.exists() {
        return;
    }
    let folder = folder("library-example");
    let ran = std::process::Command::new(example)
        .arg(&database.url)
        .current_dir(&folder)
        .output()
        .unwrap();
    let verdict = String::from_utf8(ran.stdout).unwrap();
    let is_slower = ran.status.code() == Some(1);
    assert_eq!(verdict.trim() == "slower", is_slower, "{verdict} {:?}", ran.stderr);
    assert!(["slower", "not_slower", "inconclusive"].contains(&verdict.trim()), "{verdict}");
    let store = folder.join("example.sqlite");
    let line = format!("experiments show last --store {} --output json", store.display());
    let test = CommandOutput::run(&mut command(&line)).expect(0).json();
    assert_eq!(test["kind"], "ab", "{test}");
}
