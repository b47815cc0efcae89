use super::super::policy::OnError;
use super::*;
use crate::plan::{CbcRun, LoadDataset, LoadRun, LoopSide};

fn plan() -> Plan {
    Plan {
        sessions: 2,
        workers: 2,
        thresholds: vec!["p99<10ms".parse().unwrap()],
        ..Plan::default()
    }
}

#[test]
fn plans_round_trip_through_json() {
    let json = serde_json::to_string(&plan()).unwrap();
    assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), plan());
}

#[test]
fn reads_plans_of_older_versions() {
    let mut json = serde_json::to_value(plan()).unwrap();
    for added in [
        "protocol",
        "pipeline",
        "errors",
        "thresholds",
        "abort_on_threshold",
        "strict",
        "keep_samples",
        "spread",
        "rebalance",
        "metrics_port",
        "percentile",
    ] {
        json.as_object_mut().unwrap().remove(added);
    }
    for added in ["update_share", "loop", "caches", "non_transactional"] {
        json["rows"].as_object_mut().unwrap().remove(added).unwrap();
    }
    json["rows"]["update_batch"] = 7.into();
    let read: Plan = serde_json::from_value(json).unwrap();
    let work = RowsRun { update_batch: Some(7), ..RowsRun::default() }.into();
    assert_eq!(read, Plan { work, thresholds: Vec::new(), ..plan() });
}

#[test]
fn rejects_invalid_values_with_the_name_of_the_option() {
    type Change = fn(&mut Plan);
    let cases: [(Change, &str); 29] = [
        (|plan| plan.nodes = Some(0), "--nodes must be at least 1"),
        (
            |plan| (plan.nodes, plan.spread) = (Some(2), Spread::Off),
            "--nodes 2 cannot be combined with --spread off",
        ),
        (
            |plan| {
                plan.nodes = Some(2);
                plan.work = RowsRun { loop_side: LoopSide::Server, ..RowsRun::default() }.into();
            },
            "--nodes 2 requires --loop client",
        ),
        (|plan| plan.thresholds.push("late=0".parse().unwrap()), "requires --latency-limit"),
        (
            |plan| {
                plan.schedule = Schedule::Constant { per_s: 1.0 };
                plan.stop = Stop::Rows(5);
                plan.latency_limit = Some(LatencyLimit { limit_s: 1.0, skip: true });
            },
            "requires --duration",
        ),
        (|plan| plan.pipeline = 0, "--pipeline"),
        (|plan| plan.pipeline = 1_000, "--pipeline"),
        (|plan| plan.schedule = Schedule::Constant { per_s: 0.0 }, "--rate"),
        (|plan| plan.schedule = Schedule::Poisson { per_s: f64::NAN }, "--rate"),
        (|plan| plan.reconnect_every = Some(0), "--reconnect"),
        (
            |plan| plan.latency_limit = Some(LatencyLimit { limit_s: 1.0, skip: true }),
            "--skip-late",
        ),
        (|plan| plan.errors.reconnect_timeout_s = f64::NAN, "--reconnect-timeout"),
        (|plan| plan.thresholds.push("response.p99<1s".parse().unwrap()), "requires --rate"),
        (|plan| plan.label = Some("red\u{1b}[31m".to_owned()), "labels and tags"),
        (|plan| plan.sessions = 0, "--sessions"),
        (|plan| plan.sessions = 1_000_000, "--sessions"),
        (|plan| plan.workers = 0, "--workers"),
        (|plan| plan.workers = 3, "--workers"),
        (|plan| plan.stop = Stop::DurationS(0.0), "--duration"),
        (|plan| plan.stop = Stop::DurationS(1e12), "--duration"),
        (|plan| plan.stop = Stop::Transactions(0), "--transactions"),
        (|plan| plan.stop = Stop::Rows(0), "--total-rows"),
        (|plan| plan.max_duration_s = Some(1.0), "--max-duration requires --transactions"),
        (
            |plan| (plan.stop, plan.max_duration_s) = (Stop::Rows(5), Some(0.0)),
            "--max-duration must be greater than 0",
        ),
        (|plan| plan.checkpoints_s = vec![2.0, 1.0], "ascending order"),
        (|plan| plan.checkpoints_s = vec![1.5], "multiples of --interval"),
        (|plan| plan.warmup_s = f64::INFINITY, "--warmup"),
        (|plan| plan.interval_s = 0.0, "--interval"),
        (|plan| plan.work = RowsRun { batch: 0, ..RowsRun::default() }.into(), "--batch"),
    ];
    for (change, option) in cases {
        let mut plan = plan();
        assert_eq!(plan.validate(), Ok(()));
        change(&mut plan);
        let error = plan.validate().unwrap_err().to_string();
        assert!(error.contains(option), "{error}");
    }
    // Ten days with intervals of a second, and a run until it is interrupted.
    let days = |days: f64| Plan { stop: Stop::DurationS(days * 86_400.0), ..plan() };
    assert_eq!((days(10.0).validate(), days(10.0).point_length().after(0)), (Ok(()), 216));
    assert_eq!(days(30.0).point_length().after(0), 1);
}

#[test]
fn workloads_without_repetition_reject_options_for_repeated_transactions() {
    type Change = fn(&mut Plan, LatencyLimit);
    let load = Plan {
        work: LoadRun::default().into(),
        warmup_s: 0.0,
        stop: Stop::Rows(LoadDataset::default().rows),
        ..plan()
    };
    let cbc = Plan {
        work: CbcRun::default().into(),
        stop: Stop::DurationS(CbcRun::default().query_duration_s),
        ..load.clone()
    };
    let limit = LatencyLimit { limit_s: 1.0, skip: false };
    let changes: [(&str, Change); 8] = [
        ("--rate", |plan, _| plan.schedule = Schedule::Constant { per_s: 5.0 }),
        ("--warmup", |plan, _| plan.warmup_s = 2.0),
        ("--max-duration", |plan, _| plan.max_duration_s = Some(2.0)),
        ("--pipeline", |plan, _| plan.pipeline = 2),
        ("--reconnect", |plan, _| plan.reconnect_every = Some(5)),
        ("--latency-limit", |plan, limit| plan.latency_limit = Some(limit)),
        ("--on-error", |plan, _| plan.errors.on_error = OnError::Continue),
        ("--abort-on-threshold", |plan, _| plan.abort_on_threshold = true),
    ];
    for plan in [load, cbc.clone()] {
        assert_eq!(plan.validate(), Ok(()));
        for (option, change) in changes {
            let mut plan = plan.clone();
            change(&mut plan, limit);
            let error = plan.validate().unwrap_err().to_string();
            assert!(error.starts_with(option), "{error}");
        }
    }
    let longer = Plan { stop: Stop::DurationS(5.0), ..cbc };
    assert!(longer.validate().unwrap_err().to_string().contains("--query-duration"));
}

#[test]
fn the_times_of_a_plan_that_is_not_valid_are_within_the_range_of_durations() {
    for (seconds, expected) in
        [(-1.0, Duration::ZERO), (f64::NAN, Duration::ZERO), (1e300, Span::MAX.0)]
    {
        let plan = Plan { warmup_s: seconds, interval_s: seconds, ..plan() };
        assert_eq!((plan.warmup(), plan.interval()), (expected, expected));
    }
}
