//! One worker on a virtual clock: its counters, and the absence of allocations in its loop.

use std::sync::mpsc::{channel, sync_channel};

use super::super::limit::Limit;
use super::super::opening::{self, Recipe};
use super::super::schedule::{Arrivals, Share};
use super::super::session::Session;
use super::super::worker::{
    IntervalLink, ReconnectLink, Rules, WAKE, Worker, WorkerEvent, WorkerReport, WorkerSetup,
};
use super::*;
use crate::metrics::Recorder;
use crate::plan::Schedule;
use crate::workload::keys::{Purpose, stream};
use crate::workload::transaction::Statements;

/// A clock that advances by one microsecond with every read.
#[derive(Clone)]
struct StepClock(Arc<AtomicU64>);

impl Clock for StepClock {
    fn now(&self) -> Nanos {
        Nanos(self.0.fetch_add(1_000, Ordering::Relaxed))
    }
}

/// Runs one worker on this thread; returns its report and the number of allocations in its loop.
fn run_worker(stop: Stop, sessions: u32, schedule: Schedule) -> (WorkerReport, u64) {
    let server = FakeServer::start(|_, request| normal_reply(request)).unwrap();
    let target = Nodes::single(&ConnInfo::unix(server.folder(), PORT, "riops", "test"));
    let statements = stage(1, true).sessions.remove(0).statements;
    let recipe = Arc::new(Recipe {
        settings: Vec::new(),
        identifies_backend: false,
        statements: Arc::new(Statements::new(Protocol::Prepared, statements)),
        checks: Vec::new(),
    });
    let open = |_| {
        let opened =
            opening::open_on_any_node(&recipe, 0, false, &target, &Interrupt::new()).unwrap();
        let reads = Box::new(Reads { number: 0, updates: true });
        Session::new(Arc::clone(&recipe), reads, 1, 2, opened)
    };
    let share = Share { worker: 0, workers: 1, sessions };
    let sessions = (0..sessions).map(open).collect();
    let (events, received) = sync_channel::<(usize, WorkerEvent)>(1_000);
    let (_spares, spares) = sync_channel(1);
    let poll = mio::Poll::new().unwrap();
    let waker = Arc::new(mio::Waker::new(poll.registry(), WAKE).unwrap());
    let (reply, reopened) = channel();
    let rng = || stream(1, Purpose::Arrivals, 0);
    let setup = WorkerSetup {
        clock: StepClock(Arc::default()),
        limit: Arc::new(Limit::new(stop, Nanos(0))),
        poll,
        sessions,
        share,
        arrivals: Arrivals::new(schedule, share, Nanos(0), Nanos(0), rng()),
        rules: Rules::of(&Plan::default(), false, Vec::new()),
        nodes: target.clone(),
        recorder: Recorder::new(2, schedule != Schedule::Closed).unwrap(),
        changes: vec![false, true],
        link: IntervalLink { worker: 0, length: Nanos(1 << 60), events, spares },
        reconnect: ReconnectLink {
            connectors: Connectors::new(&target, &Interrupt::new(), 1),
            reply,
            reopened,
            waker,
        },
        rng: rng(),
    };
    let worker = Worker::new(setup);
    let mut report = None;
    let allocations = allocation_counter::measure(|| report = Some(worker.run()));
    drop(received);
    (report.unwrap(), allocations.count_total)
}

fn counted(report: &WorkerReport) -> u64 {
    report.sessions.iter().map(SessionTally::transactions).sum()
}

#[test]
fn in_steady_state_a_transaction_allocates_nothing() {
    let (few, allocations_of_few) = run_worker(Stop::Transactions(500), 4, Schedule::Closed);
    let (many, allocations_of_many) = run_worker(Stop::Transactions(20_500), 4, Schedule::Closed);
    assert_eq!((counted(&few), counted(&many)), (500, 20_500));
    assert_eq!(allocations_of_few, allocations_of_many);
    let open = Schedule::Constant { per_s: 1e7 };
    let (_, allocations_of_few) = run_worker(Stop::Transactions(500), 4, open);
    let (_, allocations_of_many) = run_worker(Stop::Transactions(20_500), 4, open);
    assert_eq!(allocations_of_few, allocations_of_many);
}

#[test]
fn counts_transactions_that_end_within_the_time_window() {
    let (report, _) = run_worker(Stop::DurationS(0.001), 1, Schedule::Closed);
    let counted: u64 = counted(&report);
    // 1,000 clock reads: at least one per transaction, and one more if the loop polls for its reply.
    assert!((300..=1_000).contains(&counted), "{counted}");
    assert_eq!(report.recorder.counters().get(Counter::Transactions), counted);
    assert_eq!(
        report.acknowledged.iter().map(|each| each.transactions).sum::<u64>(),
        counted + report.drained
    );
}

#[test]
fn response_time_starts_at_the_intended_start() {
    // Ten starts per microsecond, but each transaction takes at least one microsecond. The last of 200 is
    // therefore late by almost the total time of the others.
    let (report, _) = run_worker(Stop::Transactions(200), 1, Schedule::Constant { per_s: 1e7 });
    let reads = &report.recorder.operations()[0];
    let response = reads.response.as_ref().unwrap();
    assert_eq!(response.count(), reads.counters.get(Counter::Transactions));
    assert!(response.max() >= Nanos(170_000), "{:?}", response.max());
    assert!(reads.service.max() < Nanos(50_000), "{:?}", reads.service.max());
    assert_eq!(report.starts.unwrap().intended, 200);
}
