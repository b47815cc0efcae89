//! A run without the command: the library is called with a plan and a server.

use riops::host::Interrupt;
use riops::metrics::Point;
use riops::plan::{Plan, PreparePolicy, RowsRun, Stop};
use riops::record::{Record, Status};
use riops::run::{self, ErrorKind, Nothing, Observer};
use riops::server::Server;

use crate::fixture::{Database, database};

/// Keeps what it is told.
#[derive(Default)]
struct Told {
    notices: Vec<String>,
    prepared: u32,
    stages: u32,
    points: u64,
    complete: Option<Record>,
    /// What it does when it is told of a stage, which it counts from 1.
    on_stage: Option<Box<dyn Fn(u32)>>,
    /// What it does when the record is complete.
    on_complete: Option<Box<dyn Fn()>>,
}

impl riops::engine::Observer for Told {
    fn connected(&mut self, sessions: usize) {
        assert_eq!(sessions, 2);
    }

    fn measuring(&mut self) {}

    fn point(&mut self, point: &Point) {
        self.points += point.transactions;
    }
}

impl Observer for Told {
    fn notice(&mut self, text: &str) {
        self.notices.push(text.to_owned());
    }

    fn prepared(&mut self, _: &riops::dataset::prepare::Prepared) {
        self.prepared += 1;
    }

    fn stage(&mut self, _: &Plan) {
        self.stages += 1;
        if let Some(on_stage) = &self.on_stage {
            on_stage(self.stages);
        }
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
fn a_run_is_one_call_and_tells_an_observer_what_happens() {
    let database = database("library_run");
    let mut told = Told::default();
    let plan = Plan { prepare: PreparePolicy::IfMissing, ..plan() };
    let record = run::run(&plan, &server(&database), &Interrupt::new(), &mut told).unwrap();
    assert_eq!(record.status, Status::Done);
    assert_eq!((told.prepared, told.stages), (1, 2));
    let measured: u64 = record.stages.iter().map(|stage| stage.transactions).sum();
    assert_eq!(measured, 80);
    assert_eq!(told.points, measured);
    assert_eq!(told.complete.as_ref(), Some(&record));
    assert_eq!(record.plan, plan);
}

#[test]
fn a_dataset_that_is_missing_is_an_error_where_the_plan_prepares_none() {
    let database = database("library_missing");
    let mut told = Told::default();
    let run = run::run(&plan(), &server(&database), &Interrupt::new(), &mut told);
    let error = run.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Failed, "{error}");
    assert!(error.to_string().contains("riops prepare rows"), "{error}");
    assert!(told.complete.is_none());
    assert_eq!(
        database.value("select count(*)::text from pg_namespace where nspname = 'riops'"),
        Some("0".to_owned())
    );
}

#[test]
fn an_interrupt_between_two_stages_keeps_the_first_one_and_its_verification() {
    let database = database("library_interrupt");
    let interrupt = Interrupt::new();
    let user = interrupt.clone();
    let mut told = Told {
        on_stage: Some(Box::new(move |stage| {
            if stage == 2 {
                user.request();
            }
        })),
        ..Told::default()
    };
    let plan = Plan { prepare: PreparePolicy::IfMissing, ..plan() };
    let record = run::run(&plan, &server(&database), &interrupt, &mut told).unwrap();
    assert_eq!(record.status, Status::Interrupted);
    assert!(record.stages[0].transactions == 40 && record.stages.len() <= 2);
    assert!(record.checks.len() >= 3 && record.checks.iter().all(|check| check.held));
    let open = "select count(*)::text from riops.run where ended_at is null";
    assert_eq!(database.value(open).as_deref(), Some("0"));
}

#[test]
fn nothing_of_the_dataset_is_locked_any_more_when_the_record_is_complete() {
    let database = database("library_locks");
    let server = server(&database);
    let other = server.clone();
    let mut told = Told {
        on_complete: Some(Box::new(move || {
            let checks = run::verify("rows", &other, &Interrupt::new(), &Nothing).unwrap();
            assert!(checks.iter().all(|check| check.held));
        })),
        ..Told::default()
    };
    let plan = Plan { prepare: PreparePolicy::IfMissing, ..plan() };
    run::run(&plan, &server, &Interrupt::new(), &mut told).unwrap();
    assert!(told.complete.is_some());
}
