//! One worker on a virtual clock: its counters, and the absence of allocations in its loop.

use std::sync::mpsc::{Receiver, channel, sync_channel};

use riops_wire::backend;

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

/// Creates a worker with these sessions, in order, and the receiver of its events.
pub(super) fn worker<C: Clock>(
    target: &Nodes,
    clock: C,
    (stop, schedule, protocol): (Stop, Schedule, Protocol),
    generators: Vec<Box<dyn Generator>>,
) -> (Worker<C>, Receiver<(usize, WorkerEvent)>) {
    let statements = stage(1, true).sessions.remove(0).statements;
    let recipe = Arc::new(Recipe {
        settings: Vec::new(),
        statements: Arc::new(Statements::new(protocol, statements)),
        checks: Vec::new(),
    });
    let share = Share { worker: 0, workers: 1, sessions: generators.len().try_into().unwrap() };
    let open = |generator| {
        let opened =
            opening::open_on_any_node(&recipe, 0, false, target, &Interrupt::new()).unwrap();
        Session::new(Arc::clone(&recipe), generator, 1, 2, opened)
    };
    let sessions = generators.into_iter().map(open).collect();
    let (events, received) = sync_channel::<(usize, WorkerEvent)>(1_000);
    let (_spares, spares) = sync_channel(1);
    let poll = mio::Poll::new().unwrap();
    let waker = Arc::new(mio::Waker::new(poll.registry(), WAKE).unwrap());
    let (reply, reopened) = channel();
    let rng = || stream(1, Purpose::Arrivals, 0);
    let setup = WorkerSetup {
        clock,
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
            connectors: Connectors::new(target, &Interrupt::new(), 1),
            reply,
            reopened,
            waker,
        },
        rng: rng(),
    };
    (Worker::new(setup), received)
}

/// Returns the reply to a statement of the simple protocol, with the description of its columns.
fn described_reply() -> Reply {
    let mut bytes = Vec::new();
    backend::row_description(&mut bytes, &["count", "max"]).unwrap();
    backend::data_row(&mut bytes, &[Some(b"10"), Some(b"1")]).unwrap();
    backend::Message::CommandComplete("SELECT 1").encode(&mut bytes).unwrap();
    Reply::Raw(bytes)
}

/// Runs one worker on this thread; returns its report and the number of allocations in its loop.
fn run_worker(
    stop: Stop,
    sessions: usize,
    schedule: Schedule,
    protocol: Protocol,
) -> (WorkerReport, u64) {
    let server = FakeServer::start(|_, request| match request {
        Request::Query(_) => described_reply(),
        other => normal_reply(other),
    })
    .unwrap();
    let target = Nodes::single(&ConnInfo::unix(server.folder(), PORT, "riops", "test"));
    let reads = |_| Box::new(Reads { number: 0, updates: true }) as Box<dyn Generator>;
    let generators = (0..sessions).map(reads).collect();
    let clock = StepClock(Arc::default());
    let (worker, received) = worker(&target, clock, (stop, schedule, protocol), generators);
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
    let open = Schedule::Constant { per_s: 1e7 };
    for (schedule, protocol) in [
        (Schedule::Closed, Protocol::Prepared),
        (open, Protocol::Prepared),
        (Schedule::Closed, Protocol::Simple),
        (Schedule::Closed, Protocol::Extended),
    ] {
        let allocations = |count| {
            let (report, allocations) =
                run_worker(Stop::Transactions(count), 4, schedule, protocol);
            assert_eq!((counted(&report), report.wrong_replies), (count, 0));
            allocations
        };
        assert_eq!(allocations(500), allocations(20_500), "{schedule:?} {protocol:?}");
    }
}

#[test]
fn counts_transactions_that_end_within_the_time_window() {
    let (report, _) = run_worker(Stop::DurationS(0.001), 1, Schedule::Closed, Protocol::Prepared);
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
    let rate = Schedule::Constant { per_s: 1e7 };
    let (report, _) = run_worker(Stop::Transactions(200), 1, rate, Protocol::Prepared);
    let reads = &report.recorder.operations()[0];
    let response = reads.response.as_ref().unwrap();
    assert_eq!(response.count(), reads.counters.get(Counter::Transactions));
    assert!(response.max() >= Nanos(170_000), "{:?}", response.max());
    assert!(reads.service.max() < Nanos(50_000), "{:?}", reads.service.max());
    assert_eq!(report.starts.unwrap().intended, 200);
}
