//! One worker on a virtual clock: its counters, and the absence of allocations in its loop.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, sync_channel};

use riops_wire::backend;

use super::super::opening::{self, AccessCheck, SessionSetup};
use super::super::schedule::{Arrivals, Gaps, Unclaimed};
use super::super::session::Session;
use super::super::window::Window;
use super::super::worker::{
    Counts, Intervals, Reconnects, Retries, Rules, Shell, StartQueue, Transport, WAKE, Worker,
    WorkerEvent, WorkerReport, add_unclaimed,
};
use super::*;
use crate::metrics::{IntervalPart, Recorder};
use crate::probe::cpu;
use crate::workload::keys::{Purpose, stream};
use crate::workload::transaction::Statements;
use riops_model::plan::{Drain, LatencyLimit, Quantity, Schedule};

/// A clock that advances by one microsecond with every read.
#[derive(Clone)]
pub(super) struct StepClock(pub(super) Arc<AtomicU64>);

impl Clock for StepClock {
    fn now(&self) -> Nanos {
        Nanos(self.0.fetch_add(1_000, Ordering::Relaxed))
    }
}

/// A worker without a server that changes anything but its replies.
pub(super) struct Setting {
    pub(super) stop: Stop,
    pub(super) drain: Drain,
    pub(super) sessions: usize,
    pub(super) schedule: Schedule,
    pub(super) latency_limit: Option<LatencyLimit>,
    pub(super) protocol: Protocol,
    pub(super) measure_start: Nanos,
    pub(super) interval: Nanos,
    /// Capacity of the channel to the main thread, which receives nothing.
    pub(super) capacity: usize,
    /// Number of plan checks at each moment.
    pub(super) checks: usize,
    /// Whether the poller cannot register the sockets.
    pub(super) is_poller_broken: bool,
}

impl Default for Setting {
    fn default() -> Self {
        Self {
            stop: Stop::Transactions(500),
            drain: Drain::Uncounted,
            sessions: 1,
            schedule: Schedule::Closed,
            latency_limit: None,
            protocol: Protocol::Prepared,
            measure_start: Nanos(0),
            interval: Nanos(1 << 60),
            capacity: 1_000,
            checks: 0,
            is_poller_broken: false,
        }
    }
}

/// Creates a worker with these sessions, in order, and the receiver of its events.
pub(super) fn worker<C: Clock>(
    target: &Nodes,
    clock: C,
    setting: &Setting,
    generators: Vec<Box<dyn Generator>>,
) -> (Worker<C>, Receiver<(usize, WorkerEvent)>) {
    let statements = stage(1, true).sessions.remove(0).statements;
    let check = || AccessCheck { access: access(), explain: access().explain_sql(true) };
    let setup = Arc::new(SessionSetup {
        settings: Vec::new(),
        identifies_backend: false,
        statements: Arc::new(Statements::new(setting.protocol, statements)),
        checks: std::iter::repeat_with(check).take(setting.checks).collect(),
    });
    let open = |(id, generator)| {
        let opened =
            opening::open_on_any_node(&setup, 0, false, target, &Interrupt::new()).unwrap();
        Session::new(id, Arc::clone(&setup), generator, 1, 2, opened)
    };
    let sessions: Vec<Session> = (0..).zip(generators).map(open).collect();
    let (events, received) = sync_channel::<(usize, WorkerEvent)>(setting.capacity);
    let (_spares, spares) = sync_channel(1);
    let poll = mio::Poll::new().unwrap();
    if setting.is_poller_broken {
        // A socket can be registered only once.
        let socket = sessions[0].descriptor().unwrap();
        let (token, interest) = (mio::Token(0), mio::Interest::READABLE);
        poll.registry().register(&mut mio::unix::SourceFd(&socket), token, interest).unwrap();
    }
    let waker = Arc::new(mio::Waker::new(poll.registry(), WAKE).unwrap());
    let random = || stream(1, Purpose::Arrivals, 0);
    let window = Window::new(setting.stop, None, setting.measure_start).with_drain(setting.drain);
    let window = Arc::new(window);
    let ring = (driver() == Driver::IoUring && !setting.is_poller_broken)
        .then(|| Box::new(riops_ring::Ring::new(sessions.len().try_into().unwrap()).unwrap()));
    let plan = Plan { latency_limit: setting.latency_limit, ..Plan::default() };
    let rules = Rules::new(&plan, false, Vec::new());
    let arrivals =
        Arrivals::new(&setting.schedule, Nanos(0), setting.measure_start, Gaps::Own(random()));
    let recorder = Recorder::new(2, setting.schedule != Schedule::Closed).unwrap();
    let connectors = Connectors::new(target, &Interrupt::new(), &plan);
    let worker = Worker {
        clock,
        transport: Transport::new(poll, ring, sessions.len()),
        starts: StartQueue::new(
            arrivals.map(|arrivals| Arc::new(Unclaimed::new(arrivals))),
            true,
            sessions.len(),
        ),
        retries: Retries::new(random(), plan.errors.redraw),
        deferred: VecDeque::new(),
        shell: Shell::new(Arc::clone(&waker)),
        reconnects: Reconnects::new(connectors, target.clone(), waker, plan.rebalance),
        checking: None,
        counts: Counts::new(
            Arc::clone(&window),
            WorkerReport::new(recorder, 2, setting.measure_start),
            vec![false, true],
            rules.late_after,
            Intervals::new(0, &window, setting.interval, events, spares),
            None,
        ),
        active: sessions.len(),
        unfinished: sessions.len(),
        sessions,
        window,
        rules,
    };
    (worker, received)
}

/// Results of a worker.
struct Ran {
    report: WorkerReport,
    allocations: u64,
    /// CPU time of the worker's loop.
    cpu_s: f64,
    /// Intervals in the channel.
    sent: Vec<IntervalPart>,
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
fn run_worker(stop: Stop, sessions: usize, schedule: Schedule) -> (WorkerReport, u64) {
    let ran = run_setting(&Setting { stop, sessions, schedule, ..Setting::default() });
    (ran.report, ran.allocations)
}

fn run_setting(setting: &Setting) -> Ran {
    let server = FakeServer::start(|_, request| match request {
        Request::Query(_) => described_reply(),
        other => normal_reply(other),
    })
    .unwrap();
    let target = Nodes::single(&ConnInfo::unix(server.folder(), PORT, "riops", "test"));
    let reads = |_| Box::new(Reads { count: 0, updates: true }) as Box<dyn Generator>;
    let generators = (0..setting.sessions).map(reads).collect();
    let (worker, received) = worker(&target, StepClock(Arc::default()), setting, generators);
    let (unclaimed, window) = (worker.starts.unclaimed.clone(), Arc::clone(&worker.window));
    let mut report = None;
    let cpu_start_s = cpu::thread_seconds();
    let allocations = allocation_counter::measure(|| report = Some(worker.run()));
    let cpu_s = cpu::thread_seconds() - cpu_start_s;
    let sent = received.try_iter().filter_map(|(_, event)| match event {
        WorkerEvent::Interval(part) => Some(*part),
        _ => None,
    });
    let sent = sent.collect();
    let mut report = report.unwrap();
    if let (Some(unclaimed), Some(starts)) = (&unclaimed, &mut report.starts) {
        add_unclaimed(unclaimed, &window, starts, &mut report.recorder);
    }
    Ran { report, allocations: allocations.count_total, cpu_s, sent }
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
            let stop = Stop::Transactions(count);
            let schedule = schedule.clone();
            let setting = Setting { stop, sessions: 4, schedule, protocol, ..Setting::default() };
            let ran = run_setting(&setting);
            assert_eq!((counted(&ran.report), ran.report.wrong_replies), (count, 0));
            ran.allocations
        };
        assert_eq!(allocations(500), allocations(20_500), "{schedule:?} {protocol:?}");
    }
}

#[test]
fn counts_transactions_that_end_within_the_time_window() {
    let (report, _) = run_worker(Stop::DurationS(0.001), 1, Schedule::Closed);
    let counted: u64 = counted(&report);
    // 1,000 clock reads: at least one per transaction, and one more if the loop polls for its reply.
    assert!((300..=1_000).contains(&counted), "{counted}");
    assert_eq!(report.recorder.counters().get(Counter::Transactions), counted);
    assert_eq!(
        report.acknowledged.iter().map(|operation| operation.transactions).sum::<u64>(),
        counted + report.drained
    );
}

#[test]
fn transactions_in_flight_at_the_end_count_if_the_plan_says_so() {
    for drain in [Drain::Uncounted, Drain::Counted, Drain::CountedOnce] {
        let (stop, interval) = (Stop::DurationS(0.001), Nanos(300_000));
        let setting = Setting { stop, drain, sessions: 3, interval, ..Setting::default() };
        let Ran { report, sent, .. } = run_setting(&setting);
        let acknowledged: u64 =
            report.acknowledged.iter().map(|operation| operation.transactions).sum();
        let in_flight = if drain == Drain::Uncounted { 3 } else { 0 };
        assert_eq!(report.drained, in_flight, "{drain}");
        assert_eq!(counted(&report), acknowledged - in_flight, "{drain}");
        assert_eq!(report.last_end >= Nanos(1_000_000), in_flight == 0, "{drain}");
        // The intervals have all that count.
        let parts = sent.iter().chain([&*report.recorder.interval]);
        let of_parts: u64 = parts.map(|part| part.counters.get(Counter::Transactions)).sum();
        assert_eq!(of_parts, counted(&report), "{drain}");
    }
}

#[test]
fn response_time_starts_at_the_intended_start() {
    // Ten starts per microsecond, but each transaction takes at least one microsecond. The last of 200 is
    // therefore late by almost the total time of the others.
    let (report, _) = run_worker(Stop::Transactions(200), 1, Schedule::Constant { per_s: 1e7 });
    let reads = &report.recorder.operations[0];
    let response = reads.response.as_ref().unwrap();
    assert_eq!(response.observed.count(), reads.counters.get(Counter::Transactions));
    assert!(response.observed.max() >= Nanos(170_000), "{:?}", response.observed.max());
    assert!(reads.service.observed.max() < Nanos(50_000), "{:?}", reads.service.observed.max());
    assert_eq!(report.starts.unwrap().intended, 200);
}

#[test]
fn every_transaction_that_was_due_is_answered_in_flight_or_not_started() {
    // 10,000 starts within a millisecond, of which about 300 are answered.
    let (stop, schedule) = (Stop::DurationS(0.001), Schedule::Constant { per_s: 1e7 });
    let (report, _) = run_worker(stop, 4, schedule);
    let (starts, answered) = (report.starts.unwrap(), counted(&report));
    assert_eq!(starts.intended, answered + report.drained + starts.waiting);
    assert!(report.drained > 0 && starts.waiting > 9_000, "{starts:?}");
    let (service, response) = report.recorder.latencies().unwrap();
    // Half of them waited for half of the millisecond and longer. The service times of those in flight are known.
    let p50 = response.unwrap().figure(Quantity::Percentile(50.0)).unwrap().unwrap();
    assert!(p50.is_bound && (400.0..600.0).contains(&p50.value), "{p50:?}");
    let service = service.figure(Quantity::Percentile(50.0)).unwrap().unwrap();
    assert!(!service.is_bound && service.value < 50.0, "{service:?}");
}

#[test]
fn counts_or_skips_late_transactions() {
    let limited = |skip| {
        let latency_limit = Some(LatencyLimit { limit_s: 0.000_1, skip });
        let (stop, schedule) = (Stop::DurationS(0.001), Schedule::Constant { per_s: 1e7 });
        let setting = Setting { stop, schedule, latency_limit, ..Setting::default() };
        let report = run_setting(&setting).report;
        let count = |counter| report.recorder.counters().get(counter);
        let (late, skipped) = (count(Counter::Late), count(Counter::Skipped));
        (late, skipped, counted(&report), report.starts.unwrap())
    };
    // The first starts are answered within the limit, all others wait for longer.
    let (late, skipped, answered, starts) = limited(false);
    assert!(late > 0 && late < answered, "{late} of {answered}");
    assert!(skipped == 0 && starts.oldest_wait > Nanos(100_000), "{skipped} {starts:?}");
    let (_, skipped, answered, starts) = limited(true);
    assert_eq!(starts.intended, 10_000);
    assert!(skipped > 8_000 && skipped + answered <= 10_000, "{skipped} and {answered}");
    // No start waits for longer than the limit and one transaction before it is sent or skipped.
    assert!(starts.oldest_wait < Nanos(150_000), "{starts:?}");
}

#[test]
fn a_full_channel_does_not_stop_the_worker_and_loses_no_interval() {
    let setting = Setting {
        stop: Stop::Transactions(2_000),
        interval: Nanos(50_000),
        capacity: 2,
        ..Setting::default()
    };
    let Ran { report, sent, .. } = run_setting(&setting);
    assert_eq!((counted(&report), sent.len()), (2_000, 2));
    assert!(report.unsent.len() > 10, "{}", report.unsent.len());
    let last = &*report.recorder.interval;
    let unsent = report.unsent.iter().map(|part| &**part);
    let parts = || sent.iter().chain(unsent.clone()).chain([last]);
    let indexes: Vec<usize> = parts().map(|part| part.index).collect();
    assert_eq!(indexes, (0..indexes.len()).collect::<Vec<_>>());
    let transactions: u64 = parts().map(|part| part.counters.get(Counter::Transactions)).sum();
    assert_eq!(transactions, 2_000);
}

#[test]
fn excludes_the_work_after_the_last_counted_transaction_from_a_run_by_count() {
    let checks = 500;
    let setting = Setting { stop: Stop::Transactions(4), checks, ..Setting::default() };
    let Ran { report, cpu_s, .. } = run_setting(&setting);
    assert_eq!(report.findings.iter().map(|check| check.sessions).sum::<u32>(), 1_000);
    // Each reply is at least one turn of the loop: 500 checks during the run, and 500 after it.
    let stalls = report.recorder.poll_stalls.count();
    assert!((500..800).contains(&stalls), "{stalls}");
    let measured_s: f64 = report.worker_cpu_s.iter().sum();
    assert!(measured_s < 0.8 * cpu_s, "{measured_s} of {cpu_s}");
}

#[test]
fn reports_the_warmup_that_is_in_flight_at_the_start_of_a_run_by_count() {
    let measure_start = Nanos(100_500);
    let setting = Setting { measure_start, ..Setting::default() };
    let Ran { report, .. } = run_setting(&setting);
    let warmup = report.warmup_in_flight;
    assert_eq!((counted(&report), warmup.transactions), (500, 1));
    assert!(warmup.occupied > Nanos(0) && warmup.occupied < Nanos(50_000), "{warmup:?}");
    let by_duration = Setting { measure_start, stop: Stop::DurationS(0.001), ..Setting::default() };
    assert_eq!(run_setting(&by_duration).report.warmup_in_flight.transactions, 0);
}

#[test]
fn an_error_of_the_client_is_not_counted_as_an_error_of_the_server() {
    let setting = Setting { is_poller_broken: true, ..Setting::default() };
    let Ran { report, .. } = run_setting(&setting);
    assert_eq!(report.recorder.errors.entries, []);
    let failure = report.failure.unwrap();
    assert!(matches!(failure, SessionError::Client { .. }));
    let text = failure.to_string();
    assert!(text.starts_with("error on the client machine: cannot wait for replies: "), "{text}");
}
