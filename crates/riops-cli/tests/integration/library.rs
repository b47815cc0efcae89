//! Runs through the library API, with a plan and a server.

use std::sync::Arc;

use riops::host::Interrupt;
use riops::plan::{Plan, PreparePolicy, RowsRun, Stop};
use riops::probe::sampler::OnPoint;
use riops::record::Point;
use riops::record::{Record, Status};
use riops::run::{self, ErrorKind, NoHistory, Observer};
use riops::server::Server;

use crate::fixture::{Database, database};

/// Records the events of a run.
#[derive(Default)]
struct Recorder {
    notices: Vec<String>,
    prepared: u32,
    stages: u32,
    points: u64,
    complete: Option<Record>,
    /// Called at the start of each stage, with the number of the stage from 1.
    on_stage: Option<Box<dyn Fn(u32)>>,
    /// Called when the record is complete.
    on_complete: Option<Box<dyn Fn()>>,
}

impl Observer for Recorder {
    fn connected(&mut self, sessions: usize) {
        assert_eq!(sessions, 2);
    }

    fn point(&mut self, point: &Point) {
        self.points += point.transactions;
    }

    fn notice(&mut self, text: &str) {
        self.notices.push(text.to_owned());
    }

    fn prepared(&mut self, _: &riops::dataset::prepare::Prepared) {
        self.prepared += 1;
    }

    fn stage(&mut self, _: &str, _: &Plan) -> OnPoint {
        self.stages += 1;
        if let Some(on_stage) = &self.on_stage {
            on_stage(self.stages);
        }
        Arc::new(|_| {})
    }

    fn complete(&mut self, record: &Record) {
        self.complete = Some(record.clone());
        if let Some(on_complete) = &self.on_complete {
            on_complete();
        }
    }
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
    Server { conninfo: database.conninfo.clone(), embedded: false }
}

#[test]
fn a_run_is_one_call_and_notifies_the_observer() {
    let database = database("library_run");
    let mut recorder = Recorder::default();
    let plan = Plan { prepare: PreparePolicy::IfMissing, ..plan() };
    let record = run::run(&plan, &server(&database), &Interrupt::new(), &mut recorder).unwrap();
    assert_eq!(record.status, Status::Done);
    assert_eq!((recorder.prepared, recorder.stages), (1, 2));
    let measured: u64 = record.stages.iter().map(|stage| stage.transactions).sum();
    assert_eq!(measured, 80);
    assert_eq!(recorder.points, measured);
    assert_eq!(recorder.complete.as_ref(), Some(&record));
    assert_eq!(record.plan, plan);
}

#[test]
fn a_missing_dataset_is_an_error_if_the_plan_does_not_prepare_it() {
    let database = database("library_missing");
    let mut recorder = Recorder::default();
    let run = run::run(&plan(), &server(&database), &Interrupt::new(), &mut recorder);
    let error = run.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Failed, "{error}");
    assert!(error.to_string().contains("riops prepare rows"), "{error}");
    assert!(recorder.complete.is_none());
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
    let mut recorder = Recorder {
        on_stage: Some(Box::new(move |stage| {
            if stage == 2 {
                user.request();
            }
        })),
        ..Recorder::default()
    };
    let plan = Plan { prepare: PreparePolicy::IfMissing, ..plan() };
    let record = run::run(&plan, &server(&database), &interrupt, &mut recorder).unwrap();
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
    let other = server.clone();
    let mut recorder = Recorder {
        on_complete: Some(Box::new(move || {
            let interrupt = Interrupt::new();
            let checks = run::verify("rows", &other, &interrupt, &NoHistory, &mut |_| {}).unwrap();
            assert!(checks.iter().all(|check| check.held));
        })),
        ..Recorder::default()
    };
    let plan = Plan { prepare: PreparePolicy::IfMissing, ..plan() };
    run::run(&plan, &server, &Interrupt::new(), &mut recorder).unwrap();
    assert!(recorder.complete.is_some());
}
