//! Runs with a rate: intended starts, backlog, late and skipped transactions, thresholds.

use std::sync::OnceLock;
use std::time::Instant;

use super::*;
use crate::metrics::Fate;
use riops_model::plan::Drain;
use riops_model::plan::{Schedule, Threshold};

fn open(per_s: f64, stop: Stop, sessions: u32, workers: u32) -> Plan {
    Plan { schedule: Schedule::Constant { per_s }, ..plan(stop, sessions, workers) }
}

#[test]
fn intended_starts_equal_rate_times_duration() {
    for (sessions, workers) in [(1, 1), (5, 2)] {
        let mut plan = open(1_500.0, Stop::DurationS(0.3), sessions, workers);
        plan.warmup_s = 0.07;
        let result = run(&plan, true, |_, request| normal_reply(request)).unwrap();
        let starts = result.workers.starts.unwrap();
        assert_eq!(starts.intended, 450);
        let started = starts.intended - starts.waiting;
        let ended = transactions(&result);
        // Transactions that started in the measurement ended in it or were drained. Each start, including the
        // 105 of the warm-up, was acknowledged once.
        assert!(ended + result.workers.drained >= started, "{ended} {started}");
        let acknowledged: u64 =
            result.workers.acknowledged.iter().map(|operation| operation.transactions).sum();
        assert_eq!(acknowledged, 105 + started);
        let reads = &result.workers.recorder.operations[0];
        assert_eq!(
            reads.response.as_ref().unwrap().observed.count(),
            reads.counters.get(Counter::Transactions)
        );
        assert!(result.series.iter().all(|point| point.backlog.is_some()));
    }
}

#[test]
fn each_step_of_a_profile_accounts_for_the_transactions_that_were_due_in_it() {
    let profile = |steps: [&str; 3], poisson| {
        let steps = steps.map(|step| step.parse().unwrap()).to_vec();
        let schedule = Schedule::Profile { steps, poisson };
        let mut plan = Plan { schedule, ..plan(Stop::DurationS(0.3), 3, 2) };
        plan.warmup_s = 0.05;
        let result = run(&plan, false, |_, request| normal_reply(request)).unwrap();
        let steps = result.workers.recorder.steps.totals;
        let fates = [Fate::Answered, Fate::Drained, Fate::NotStarted];
        let counts: Vec<_> = steps.iter().map(|step| fates.map(|fate| step.count(fate))).collect();
        let sum = |fate: usize| counts.iter().map(|step| step[fate]).sum::<u64>();
        let starts = result.workers.starts.unwrap();
        assert_eq!((sum(2), sum(1) <= result.workers.drained), (starts.waiting, true));
        for (step, counts) in steps.iter().zip(&counts) {
            assert_eq!(step.response.observed.count(), counts[0]);
        }
        assert_eq!(counts.iter().flatten().sum::<u64>(), starts.intended);
        counts.iter().map(|step| step.iter().sum()).collect::<Vec<u64>>()
    };
    // The ramp exceeds the capacity of the server. A transaction counts in the step in which it was due, whenever it is
    // answered.
    let steps = ["500:100ms", "4e6..0:100ms", "1000:100ms"];
    assert_eq!(profile(steps, false), [50, 200_000, 100]);
    assert_eq!(profile(["0..1000:100ms", "0:100ms", "100:100ms"], false), [50, 0, 10]);
    let random = profile(steps, true);
    assert!((198_000..=202_000).contains(&random[1]), "{random:?}");
}

#[test]
fn reports_the_backlog_when_the_rate_exceeds_the_capacity_of_the_server() {
    let plan = open(1e6, Stop::DurationS(0.2), 2, 2);
    let result = run(&plan, false, |_, request| normal_reply(request)).unwrap();
    let starts = result.workers.starts.unwrap();
    assert_eq!(starts.intended, 200_000);
    assert!(starts.waiting > 0 && starts.oldest_wait > Nanos(1_000_000));
    // The backlog grows until the end, where it equals the number of starts that were not taken.
    let backlog: Vec<u64> = result.series.iter().map(|point| point.backlog.unwrap()).collect();
    assert!(backlog.is_sorted() && backlog.first() > Some(&0), "{backlog:?}");
    assert_eq!(starts.backlog_before, 0, "there was no warm-up");
    // A session of the other worker may have claimed one at the very end.
    assert!(backlog.last().unwrap().abs_diff(starts.waiting) <= 2, "{backlog:?} {starts:?}");
    let reads = &result.workers.recorder.operations[0];
    assert!(reads.response.as_ref().unwrap().observed.max() > reads.service.observed.max());
}

#[test]
fn reports_the_starts_of_the_warmup_that_still_wait_when_the_measurement_starts() {
    let mut plan = open(1e6, Stop::DurationS(0.1), 2, 2);
    plan.warmup_s = 0.1;
    let result = run(&plan, false, |_, request| normal_reply(request)).unwrap();
    let starts = result.workers.starts.unwrap();
    let acknowledged: u64 =
        result.workers.acknowledged.iter().map(|operation| operation.transactions).sum();
    // The backlog is the number of the 100,000 starts of the warm-up that were not sent before the measurement.
    assert!(starts.backlog_before > 0 && starts.backlog_before <= 100_000, "{starts:?}");
    assert!(starts.backlog_before + acknowledged >= 100_000, "{starts:?} {acknowledged}");
}

#[test]
fn run_with_a_rate_executes_exactly_the_requested_transactions() {
    for schedule in [Schedule::Constant { per_s: 20_000.0 }, Schedule::Poisson { per_s: 20_000.0 }]
    {
        let plan = Plan { schedule, ..plan(Stop::Transactions(500), 3, 2) };
        let result = run(&plan, true, |_, request| normal_reply(request)).unwrap();
        assert_eq!(transactions(&result), 500);
        assert_eq!(result.workers.starts.unwrap().intended, 500);
    }
}

#[test]
fn reconnecting_does_not_shift_the_schedule() {
    let executed = AtomicU64::new(0);
    let plan = open(1_000.0, Stop::DurationS(0.4), 1, 1);
    let result = run(&plan, false, move |_, request| match request {
        // Early: a busy machine executes few statements in this time.
        Request::Execute { .. } if executed.fetch_add(1, Ordering::Relaxed) == 5 => Reply::Close,
        other => normal_reply(other),
    })
    .unwrap();
    let starts = result.workers.starts.unwrap();
    assert_eq!((starts.intended, counted(&result, Counter::Reconnects)), (400, 1));
    let lost = counted(&result, Counter::Failed);
    assert_eq!(lost, 1);
    // All starts that were due while the session had no connection were taken late.
    assert!(starts.waiting + transactions(&result) + lost >= 398);
}

#[test]
fn breached_threshold_stops_the_run_if_enabled() {
    let mut plan = plan(Stop::DurationS(3_600.0), 1, 1);
    plan.thresholds = vec!["errors=0".parse().unwrap(), "tps>1e9".parse().unwrap()];
    plan.abort_on_threshold = true;
    let result = run(&plan, false, |_, request| normal_reply(request)).unwrap();
    assert_eq!(result.breached.unwrap().to_string(), "tps>1e9");
    assert!(result.seconds < 3_600.0 && result.workers.failure.is_none());
}

/// One of several clients, which together have breached a threshold.
struct Breached(Breach);

impl Coordination for Breached {
    fn agree_start(&mut self) -> Result<Agreement, String> {
        let breach = Arc::new(self.0.clone().into());
        Ok(Agreement { start: Instant::now(), breach })
    }

    fn settled(&mut self) -> bool {
        true
    }
}

#[test]
fn several_clients_end_at_the_agreed_time_after_a_breach() {
    let server = FakeServer::start(|_, request| normal_reply(request)).unwrap();
    let threshold: Threshold = "tps>1e9".parse().unwrap();
    let cases = [(Stop::DurationS(3_600.0), 1_u32, true), (Stop::Transactions(1), 3_600, false)];
    for (stop, end_s, ends_early) in cases {
        let end = Instant::now() + Duration::from_secs(end_s.into());
        let clients = &mut Breached(Breach { threshold: threshold.clone(), end });
        let mut hooks = Hooks { coordination: Some(clients), ..Hooks::default() };
        let result = run_with(&server, &plan(stop, 2, 2), &mut hooks);
        assert!(result.seconds <= f64::from(end_s) && !result.interrupted, "{}", result.seconds);
        assert_eq!(result.breached, ends_early.then(|| threshold.clone()));
    }
}

/// One of several clients, which learns of a breach long after all should have ended: at its first interval.
struct LearnsLate(Arc<OnceLock<Breach>>);

impl Coordination for LearnsLate {
    fn agree_start(&mut self) -> Result<Agreement, String> {
        Ok(Agreement { start: Instant::now(), breach: Arc::clone(&self.0) })
    }

    fn settled(&mut self) -> bool {
        true
    }
}

#[test]
fn a_client_that_learns_of_a_breach_late_measures_until_then() {
    let server = FakeServer::start(|_, request| normal_reply(request)).unwrap();
    let plan = Plan { interval_s: 0.1, ..plan(Stop::DurationS(3_600.0), 2, 2) };
    let breach = Arc::new(OnceLock::new());
    let clients = &mut LearnsLate(Arc::clone(&breach));
    let events = Events::new(move |event| {
        if matches!(event, RunEvent::Point(_)) {
            let threshold = "tps>1e9".parse().unwrap();
            let end = Instant::now().checked_sub(Duration::from_mins(2)).unwrap();
            breach.get_or_init(|| Breach { threshold, end });
        }
    });
    let mut hooks = Hooks { events, coordination: Some(clients), ..Hooks::default() };
    let result = run_with(&server, &plan, &mut hooks);
    assert!(result.seconds >= 0.1 && result.breached.is_some(), "{}", result.seconds);
    assert!(result.workers.failure.is_none(), "{:?}", result.workers.failure);
    let counted: u64 = result.series.iter().map(|point| point.transactions).sum();
    assert_eq!(counted, transactions(&result));
}

#[test]
fn measurement_without_another_start_ends_with_its_last_transaction_as_in_pgbench() {
    // The second start would be after 100 s.
    let plan = plan(Stop::DurationS(60.0), 2, 2);
    let schedule = Schedule::Constant { per_s: 0.01 };
    let plan = Plan { schedule, drain: Drain::CountedOnce, ..plan };
    let result = run(&plan, false, |_, request| normal_reply(request)).unwrap();
    assert_eq!((transactions(&result), result.workers.drained), (1, 0));
    let starts = result.workers.starts.unwrap();
    assert_eq!((starts.intended, starts.waiting), (1, 0));
    assert!(result.seconds > 0.0 && result.seconds < 60.0, "{}", result.seconds);
}
