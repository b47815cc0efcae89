//! The supervision of a stage: a receiver of the events or a control connection that blocks does not disturb the
//! measurement.

use std::sync::Condvar;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use super::*;
use crate::probe::database::DatabaseProbe;
use crate::server::Connection;

/// Maximum wait of a test that fails.
const TEST_TIMEOUT: Duration = Duration::from_mins(1);

#[test]
fn a_blocked_receiver_of_events_neither_stops_the_workers_nor_loses_intervals() {
    const COUNT: u64 = 50_000;
    let (release, released) = channel();
    let (executed, release) = (AtomicU64::new(0), Mutex::new(release));
    let server = FakeServer::start(move |_, request| {
        let is_execute = matches!(request, Request::Execute { .. });
        if is_execute && executed.fetch_add(1, Ordering::Relaxed) + 1 == COUNT {
            release.lock().unwrap().send(()).unwrap();
        }
        normal_reply(request)
    })
    .unwrap();
    // The shortest interval of a plan: with much shorter ones, a busy machine makes them faster than it merges them.
    let plan = Plan { interval_s: 0.1, ..plan(Stop::Transactions(COUNT), 2, 2) };
    let (mut hooks, seen) = collected();
    let (receiver, released) = (hooks.events.clone(), Mutex::new(released));
    let has_blocked = AtomicU64::new(0);
    // Like a terminal that is stopped.
    hooks.events = Events::new(move |event| {
        if matches!(event, RunEvent::Point(_)) && has_blocked.swap(1, Ordering::Relaxed) == 0 {
            let released = released.lock().unwrap();
            released.recv_timeout(TEST_TIMEOUT).expect("the workers have stopped");
        }
        receiver.send(event);
    });
    let result = run_with(&server, &plan, &mut hooks);
    let seen = seen.lock().unwrap();
    let points: Vec<Point> = seen
        .iter()
        .filter_map(|event| match event {
            RunEvent::Point(point) => Some(point.as_ref().clone()),
            _ => None,
        })
        .collect();
    assert_eq!(transactions(&result), COUNT);
    assert_eq!(points, result.series);
    assert!(points.len() > 1, "it blocked only at the end");
    let shown: u64 = points.iter().map(|point| point.transactions).sum();
    assert_eq!(shown, COUNT);
    assert!(points.is_sorted_by(|one, next| one.t_s < next.t_s));
}

/// A generator with a bug.
struct Panics;

impl Generator for Panics {
    fn next(&mut self, _: &mut Transaction) -> bool {
        panic!("of the test")
    }

    fn reply(&mut self, _: &Transaction, _: &RowReply<'_>, _: &mut TransactionOutcome) {}
}

/// A generator that shows when its session has ended: the sender is dropped.
struct Held(Reads, #[expect(dead_code, reason = "dropped with the session")] Sender<()>);

impl Generator for Held {
    fn next(&mut self, tx: &mut Transaction) -> bool {
        self.0.next(tx)
    }

    fn reply(&mut self, tx: &Transaction, reply: &RowReply<'_>, outcome: &mut TransactionOutcome) {
        self.0.reply(tx, reply, outcome);
    }
}

#[test]
fn a_lost_worker_ends_the_others() {
    let server = FakeServer::start(|_, request| normal_reply(request)).unwrap();
    let (held, ended) = channel();
    let reads = Reads { count: 0, updates: false };
    let generators: [Box<dyn Generator>; 2] = [Box::new(Panics), Box::new(Held(reads, held))];
    let mut stage = stage(2, false);
    for (session, generator) in stage.sessions.iter_mut().zip(generators) {
        session.work = Work::Client(generator);
    }
    let plan = plan(Stop::DurationS(3_600.0), 2, 2);
    let result = run_stage_on(server.folder(), &plan, (stage, Vec::new()));
    assert!(matches!(result, Err(EngineError::WorkerLost)));
    assert_eq!(ended.recv_timeout(TEST_TIMEOUT), Err(RecvTimeoutError::Disconnected));
}

/// A door that some threads open and others wait for.
#[derive(Default)]
struct Door {
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Door {
    fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.opened.notify_all();
    }

    /// Waits until the door is open; returns whether it is.
    fn wait(&self) -> bool {
        let is_open = self.is_open.lock().unwrap();
        let (is_open, _) =
            self.opened.wait_timeout_while(is_open, TEST_TIMEOUT, |is_open| !*is_open).unwrap();
        *is_open
    }
}

/// Returns the reply to a query of the probe. `reading` is called for the reading of the tables with this
/// number: at the opening, the start, the end and the closing.
fn probe_reply(sql: &str, readings: &AtomicU64, reading: impl Fn(u64)) -> Reply {
    let texts = |texts: &[&str]| {
        Reply::Row(texts.iter().map(|text| Some(text.as_bytes().to_vec())).collect())
    };
    if sql.contains("pg_statio_user_tables") {
        reading(readings.fetch_add(1, Ordering::Relaxed));
        return texts(&["1", "2", "3", "4"]);
    }
    match sql {
        sql if sql.contains("to_regproc") => texts(&["t"]),
        sql if sql.contains("to_regclass") => texts(&["f"]),
        sql if sql.contains("pg_stat_activity") => texts(&["0"]),
        sql if sql.starts_with("select 'echo'") => texts(&["echo"]),
        _ => Reply::Done,
    }
}

/// Runs 20 transactions of one session with a database probe, whose connection is the server's first session.
fn run_with_probe(
    server: &FakeServer,
    timeout: Duration,
    after: impl FnOnce(),
) -> (StageResult, crate::probe::MachineUse, Option<String>) {
    let conninfo = ConnInfo::unix(server.folder(), PORT, "riops", "test");
    let mut control = Connection::open(&conninfo, &Interrupt::new()).unwrap();
    let mut database = DatabaseProbe::new(&mut control, &["t".to_owned()]).unwrap();
    database.timeout = timeout;
    let mut probe = Probe::without_processes();
    probe.database = Some(database);
    let result = run_stage(
        stage(1, false),
        vec![access()],
        &plan(Stop::Transactions(20), 1, 1),
        &Nodes::single(&conninfo),
        &Interrupt::new(),
        &mut probe,
        &mut Hooks::default(),
    )
    .unwrap();
    let usage = probe.usage();
    drop(probe);
    after();
    // The reply to a query that timed out must not be taken for the reply to this one.
    let echo = control.query_value("select 'echo'").unwrap();
    (result, usage, echo)
}

#[test]
fn a_hanging_control_connection_costs_only_its_counters() {
    let (door, readings) = (Arc::new(Door::default()), AtomicU64::new(0));
    let server = {
        let door = Arc::clone(&door);
        FakeServer::start(move |session, request| match request {
            // The reply to the reading at the start arrives after the run.
            Request::Query(sql) if session == 0 => probe_reply(sql, &readings, |position| {
                if position == 1 {
                    door.wait();
                }
            }),
            other => normal_reply(other),
        })
        .unwrap()
    };
    let (result, usage, echo) = run_with_probe(&server, Duration::from_millis(20), || door.open());
    assert_eq!((transactions(&result), echo.as_deref()), (20, Some("echo")));
    let database = usage.database.unwrap();
    assert_eq!(database.blocks_measured, None);
}

#[test]
fn the_counters_of_a_run_by_count_end_with_its_last_transaction() {
    let (door, readings) = (Arc::new(Door::default()), AtomicU64::new(0));
    let (explained, waited) = (AtomicU64::new(0), Arc::new(Mutex::new(None)));
    let server = {
        let (door, waited) = (Arc::clone(&door), Arc::clone(&waited));
        FakeServer::start(move |session, request| match request {
            Request::Query(sql) if session == 0 => probe_reply(sql, &readings, |position| {
                if position == 2 {
                    door.open();
                }
            }),
            // The third EXPLAIN is the one after the last transaction.
            Request::Query(sql)
                if sql.starts_with("explain") && explained.fetch_add(1, Ordering::Relaxed) == 2 =>
            {
                *waited.lock().unwrap() = Some(door.wait());
                normal_reply(request)
            }
            other => normal_reply(other),
        })
        .unwrap()
    };
    let (result, usage, _) = run_with_probe(&server, TEST_TIMEOUT, || {});
    assert_eq!((transactions(&result), *waited.lock().unwrap()), (20, Some(true)));
    assert!(usage.database.unwrap().blocks_measured.is_some());
    assert!(result.workers.findings.iter().any(|check| check.moment == Moment::After));
}
