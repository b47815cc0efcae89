//! Merges the frozen records, as if several clients had done the same at the same time.

use jiff::SignedDuration;

use super::*;
use riops_model::plan::{Share, Threshold};
use riops_model::record::{Histogram, StageKind, StoredHistogram, ThresholdRecord, WarningKind};

const FROZEN: [(&str, &str); 6] = [
    ("load", include_str!("../../../../riops-model/tests/records/load.json")),
    ("oltp", include_str!("../../../../riops-model/tests/records/oltp.json")),
    ("ping", include_str!("../../../../riops-model/tests/records/ping.json")),
    ("point", include_str!("../../../../riops-model/tests/records/point.json")),
    ("rows", include_str!("../../../../riops-model/tests/records/rows.json")),
    ("script", include_str!("../../../../riops-model/tests/records/script.json")),
];

/// The record of a client that started `ms` later. Frozen ones may have no start of the stages.
fn client(json: &str, ms: i64) -> Record {
    let mut record: Record = serde_json::from_str(json).unwrap();
    record.id = Uuid::now_v7();
    record.plan.seed = record.id.as_u64_pair().1;
    let mut start = record.started_at;
    for stage in &mut record.stages {
        stage.started_at = Some(start + SignedDuration::from_millis(ms));
        start += SignedDuration::from_secs_f64(stage.seconds + 1.0);
    }
    record
}

fn rows(ms: i64) -> Record {
    client(FROZEN[4].1, ms)
}

fn merged(records: Vec<Record>) -> Result<Record, MergeError> {
    let parts =
        (0..).zip(records).map(|(position, record)| Part::from_record(position, record)).collect();
    merge(Uuid::now_v7(), parts, None)
}

fn buckets(stored: Option<&StoredHistogram>) -> Vec<(riops_model::units::Nanos, u64)> {
    let histogram = Histogram::merged(stored).unwrap();
    histogram.iter().flat_map(Histogram::recorded).collect()
}

#[test]
fn counts_and_histograms_of_every_workload_are_sums() {
    for (name, json) in FROZEN {
        let records: Vec<_> = [0, 0, 1].map(|ms| client(json, ms)).to_vec();
        let all = merged(records.clone()).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(all.plan.sessions, 3 * records[0].plan.sessions, "{name}");
        for (position, stage) in all.stages.iter().enumerate() {
            let one = &records[0].stages[position];
            let (total, part) = (&stage.session_loop, &one.session_loop);
            assert_eq!(
                (stage.transactions, stage.rows, stage.statements, stage.sessions),
                (3 * one.transactions, 3 * one.rows, 3 * one.statements, 3 * one.sessions),
                "{name}"
            );
            let rate = stage.throughput.transactions_per_s / one.throughput.transactions_per_s;
            // The last one of those that end by count started 1 ms later.
            assert!((rate - 3.0).abs() < 0.03, "{name}: {rate}");
            let histograms = [
                (&total.histogram, &part.histogram),
                (&total.response_histogram, &part.response_histogram),
                (&total.unfinished_histogram, &part.unfinished_histogram),
            ];
            for (total, part) in histograms {
                let triple: Vec<_> =
                    buckets(part.as_ref()).into_iter().map(|(at, count)| (at, 3 * count)).collect();
                assert_eq!(buckets(total.as_ref()), triple, "{name}");
            }
            let summaries = [
                (total.service_us.as_ref(), part.service_us.as_ref()),
                (total.response_us.as_ref(), part.response_us.as_ref()),
            ];
            for (total, part) in summaries.into_iter().filter_map(|(one, two)| one.zip(two)) {
                assert_eq!(
                    (total.count, total.min, total.max),
                    (3 * part.count, part.min, part.max)
                );
                assert!((total.p50 / part.p50 - 1.0).abs() < 2e-3, "{name}: {total:?} {part:?}");
                assert!((total.mean / part.mean - 1.0).abs() < 2e-3, "{name}: {total:?} {part:?}");
            }
            assert_eq!(total.operations.len(), part.operations.len(), "{name}");
            for (total, part) in total.operations.iter().zip(&part.operations) {
                assert_eq!(total.acknowledged_rows, 3 * part.acknowledged_rows, "{name}");
                assert_eq!(total.effects.added, 3 * part.effects.added, "{name}");
                let sums = |tables: &[riops_model::record::TableEffects]| {
                    tables
                        .iter()
                        .map(|table| (table.table, table.effects.added))
                        .collect::<Vec<_>>()
                };
                let triple: Vec<_> = sums(&part.tables)
                    .into_iter()
                    .map(|(table, added)| (table, 3 * added))
                    .collect();
                assert_eq!(sums(&total.tables), triple, "{name}");
            }
            assert_eq!(total.error_count(), 3 * part.error_count(), "{name}");
            assert_eq!(total.series.len(), part.series.len(), "{name}");
            assert_series(&total.series, &part.series);
        }
        let numbers: Vec<u32> = all.agents.iter().map(|agent| agent.number).collect();
        assert_eq!(numbers, [0, 1, 2]);
        assert_eq!(all.agents[1].run, Some(records[1].id));
        // The record can be stored and read.
        let json = serde_json::to_string(&all).unwrap();
        assert_eq!(serde_json::from_str::<Record>(&json).unwrap(), all, "{name}");
    }
}

/// The intervals of three clients that did the same.
fn assert_series(total: &[riops_model::record::Point], part: &[riops_model::record::Point]) {
    for (total, part) in total.iter().zip(part) {
        assert_eq!(
            (total.transactions, total.errors, total.queries.total(), total.max_us),
            (3 * part.transactions, 3 * part.errors, 3 * part.queries.total(), part.max_us)
        );
        // Percentiles of intervals cannot be merged.
        assert_eq!((total.p50_us, total.p99_us, total.percentile_us), (None, None, None));
    }
}

fn refusal(records: Vec<Record>) -> String {
    merged(records).unwrap_err().to_string()
}

#[test]
fn refuses_runs_of_different_loads() {
    assert!(refusal(vec![]).contains("no client has a result"));
    let one = rows(0);
    assert!(refusal(vec![one.clone(), one.clone()]).contains("is given twice"));
    let later = rows(3_600_000);
    assert!(refusal(vec![rows(0), later]).contains("did not take place at the same time"));
    let changed = |change: fn(&mut Record)| {
        let mut other = rows(0);
        change(&mut other);
        refusal(vec![rows(0), other])
    };
    let text = changed(|record| record.plan.pipeline = 7);
    assert!(text.contains("their plans differ: \"pipeline\" is 1 in"), "{text}");
    assert!(changed(|record| record.plan.stop = Stop::DurationS(99.0)).contains("\"stop\""));
    assert!(changed(|record| record.target.server_version = "9.6".to_owned()).contains("9.6"));
    assert!(changed(|record| record.target.database = "other".to_owned()).contains("other"));
    let other = |record: &mut Record| {
        record.target.dataset.as_mut().unwrap().id = "other".to_owned();
    };
    assert!(changed(other).contains("different datasets"));
    assert!(changed(|record| record.stages[0].name = "x".to_owned()).contains("different stages"));
    assert!(changed(|record| record.stages.clear()).contains("has no result"));
    assert!(changed(|record| record.stages[0].kind = StageKind::Statement).contains("not a load"));
    let seeds = [rows(0), rows(0)].map(|mut record| {
        record.plan.seed = 7;
        record
    });
    assert!(refusal(seeds.to_vec()).contains("have the same random seed 7"));
    let all = merged(vec![rows(0), rows(0)]).unwrap();
    assert!(refusal(vec![all, rows(0)]).contains("already merged"));
    let share = |agent| {
        let mut record = rows(0);
        record.plan.share = Some(Share { agent, agents: 2 });
        record
    };
    assert!(refusal(vec![share(1), share(1)]).contains("two runs belong to agent 1"));
    assert_eq!(merged(vec![share(1), share(0)]).unwrap().plan.sessions, rows(0).plan.sessions);
}

#[test]
fn uses_the_rate_of_the_common_intervals_if_windows_differ() {
    let script = |ms| client(FROZEN[5].1, ms);
    // Intervals of 1 s.
    let (first, late) = (script(0), script(2_000));
    let all = merged(vec![first.clone(), late.clone()]).unwrap();
    let (one, two) = (&first.stages[0].session_loop.series, &late.stages[0].session_loop.series);
    let expected: u64 =
        one[2..].iter().zip(two).map(|(one, two)| one.transactions + two.transactions).sum();
    let series = &all.stages[0].session_loop.series;
    assert_eq!(series.iter().map(|point| point.transactions).sum::<u64>(), expected);
    let seconds: f64 = series.iter().map(|point| point.seconds).sum();
    let rate = all.stages[0].throughput.transactions_per_s;
    assert!((rate - expected as f64 / seconds).abs() < 1e-6);
    // The counts still cover the whole windows.
    assert_eq!(all.stages[0].transactions, 2 * first.stages[0].transactions);
    let reason = &all.verdict.reasons[..];
    assert!(
        reason.iter().any(|reason| reason.contains("all clients measured in only")),
        "{reason:?}"
    );
    assert!(!all.verdict.valid);
}

#[test]
fn percentiles_of_intervals_come_from_the_histograms_of_all_clients() {
    let with = |us: u64| {
        let mut record = rows(0);
        for point in &mut record.stages[0].session_loop.series {
            let mut service = Histogram::for_interval().unwrap();
            service.record_many(riops_model::units::Nanos(us * 1_000), 100);
            let service = service.stored().unwrap();
            point.histograms =
                Some(Box::new(riops_model::record::PointHistograms { service, response: None }));
        }
        record
    };
    let all = merged(vec![with(100), with(100), with(100), with(5_000)]).unwrap();
    let point = &all.stages[0].session_loop.series[0];
    assert!((point.p50_us.unwrap() / 100.0 - 1.0).abs() < 0.01, "{point:?}");
    assert!((point.p99_us.unwrap() / 5_000.0 - 1.0).abs() < 0.01, "{point:?}");
    assert_eq!(point.histograms, None);
    assert_eq!(
        merged(vec![with(1), rows(0)]).unwrap().stages[0].session_loop.series[0].p50_us,
        None
    );
}

#[test]
fn takes_over_reasons_and_warnings_of_the_clients() {
    let mut failed = rows(0);
    failed.verdict.valid = false;
    failed.verdict.reasons = vec!["the plan changed".to_owned(), "slow (--strict)".to_owned()];
    let neighbors = riops_model::record::Neighbors {
        sessions: vec![riops_model::record::OtherSessions {
            name: "backup".to_owned(),
            active: 3.0,
        }],
        ..riops_model::record::Neighbors::default()
    };
    failed.stages[0].neighbors = Some(neighbors);
    let all = merged(vec![rows(0), failed]).unwrap();
    assert_eq!(all.verdict.reasons, ["agent 1: the plan changed"]);
    let warning = &all.verdict.warnings[0];
    assert_eq!(warning.kind, WarningKind::ForeignSessions);
    assert!(warning.text.starts_with("agent 1: 3.00 other sessions"), "{warning:?}");
    // A reason that all clients have becomes a reason of the merged run.
    let mut both = [rows(0), rows(0)];
    for record in &mut both {
        record.verdict.reasons = vec!["the plan changed".to_owned()];
    }
    assert_eq!(merged(both.to_vec()).unwrap().verdict.reasons, ["the plan changed"]);
}

#[test]
fn the_series_and_the_histogram_of_each_agent_are_kept_on_request() {
    for keep_agents in [false, true] {
        let mut records = [rows(0), rows(1)].to_vec();
        for record in &mut records {
            record.plan.keep_agents = keep_agents;
        }
        let all = merged(records.clone()).unwrap();
        let one = &records[0].stages[0].session_loop;
        for agent in &all.agents {
            let stage = &agent.stages[0];
            assert_eq!(stage.histogram.as_ref(), one.histogram.as_ref().filter(|_| keep_agents));
            let counts: Vec<u64> = stage.series.iter().map(|point| point.transactions).collect();
            let expected = one.series.iter().map(|point| point.transactions);
            assert_eq!(counts, expected.filter(|_| keep_agents).collect::<Vec<_>>());
        }
    }
}

#[test]
fn warnings_of_many_agents_are_one_line() {
    let disturbed = |position: u32| {
        let mut record = rows(0);
        let active = 3.0 + f64::from(position);
        let session = riops_model::record::OtherSessions { name: "backup".to_owned(), active };
        let sessions = vec![session];
        record.stages[0].neighbors = Some(riops_model::record::Neighbors {
            sessions,
            ..riops_model::record::Neighbors::default()
        });
        record
    };
    let texts = |records: Vec<Record>| -> Vec<String> {
        let warnings = merged(records).unwrap().verdict.warnings.into_iter();
        let sessions = warnings.filter(|warning| warning.kind == WarningKind::ForeignSessions);
        sessions.map(|warning| warning.text).collect()
    };
    let [text] =
        &texts((0..12).map(|position| disturbed(position % 11)).chain([rows(0)]).collect())[..]
    else {
        panic!("several lines");
    };
    assert!(text.starts_with("12 of 13 agents, for example 0: 3.00 other sessions"), "{text}");
    let [text] = &texts((0..4).map(disturbed).collect())[..] else { panic!("several lines") };
    assert!(text.starts_with("4 of 4 agents, for example 0: 3.00 other sessions"), "{text}");
    // Few texts are all shown; many agents with one text are counted.
    assert_eq!(texts((0..3).map(disturbed).collect()).len(), 3);
    let [text] = &texts((0..9).map(|_| disturbed(0)).chain([rows(0)]).collect())[..] else {
        panic!("several lines");
    };
    assert!(text.starts_with("9 of 10 agents: 3.00 other sessions"), "{text}");
}

#[test]
fn sessions_of_other_clients_are_no_neighbors() {
    let (one, mut two) = (rows(0), rows(0));
    let session =
        riops_model::record::OtherSessions { name: format!("riops/{}", one.id), active: 3.0 };
    let neighbors = riops_model::record::Neighbors {
        sessions: vec![session],
        ..riops_model::record::Neighbors::default()
    };
    two.stages[0].neighbors = Some(neighbors);
    let user = format!("process 7, riops/{}, user postgres", one.id);
    two.target.dataset.as_mut().unwrap().other_users = vec![user];
    let all = merged(vec![one, two]).unwrap();
    let kinds: Vec<_> = all.verdict.warnings.iter().map(|warning| warning.kind).collect();
    assert!(!kinds.contains(&WarningKind::ForeignSessions), "{kinds:?}");
    assert!(!kinds.contains(&WarningKind::SharedDataset), "{kinds:?}");
}

#[test]
fn a_lost_client_makes_the_result_invalid() {
    let failure = Some("no heartbeat for 4.2 s".to_owned());
    let agent = AgentRecord { number: 1, host: "b".to_owned(), failure, ..AgentRecord::default() };
    let parts = vec![Part::from_record(0, rows(0)), Part { agent, record: None }];
    let all = merge(Uuid::now_v7(), parts, None).unwrap();
    assert_eq!(all.verdict.reasons, ["agent 1: no heartbeat for 4.2 s"]);
    assert_eq!((all.agents.len(), all.agents[1].status), (2, None));
}

#[test]
fn judges_the_thresholds_of_the_full_plan() {
    let transactions_per_s = rows(0).stages[0].throughput.transactions_per_s;
    let threshold = |text: &str| text.parse::<Threshold>().unwrap();
    let plan = Plan {
        thresholds: vec![
            threshold(&format!("tps>{}", 1.5 * transactions_per_s)),
            threshold("p99<1us"),
            threshold("errors=0"),
        ],
        ..rows(0).plan
    };
    let parts = vec![Part::from_record(0, rows(0)), Part::from_record(1, rows(0))];
    let all = merge(Uuid::now_v7(), parts, Some(&plan)).unwrap();
    let held: Vec<bool> = all.thresholds.iter().map(|threshold| threshold.held).collect();
    // Thresholds of the first stage, then of the second.
    assert_eq!(held, [true, false, true, true, false, true]);
    let p99 = all.stages[0].session_loop.service_us.as_ref().unwrap().p99;
    assert_eq!(all.thresholds[1].found, Some(p99));
}

#[test]
fn keeps_only_the_breach_of_all_agents_in_the_merged_run() {
    let ended = |share: Option<Share>| {
        let mut record = rows(0);
        record.plan.share = share;
        let threshold = "p99<9000ms".parse::<Threshold>().unwrap();
        let own = share.is_none().then(|| threshold.clone());
        record.plan.thresholds = own.into_iter().collect();
        record.thresholds = vec![ThresholdRecord {
            stage: Some(record.stages[0].name.clone()),
            threshold,
            found: None,
            at_least: false,
            held: false,
            ended_run: true,
        }];
        record
    };
    let outcomes = |records| {
        let all = merged(records).unwrap().thresholds;
        all.iter().map(|threshold| (threshold.held, threshold.ended_run)).collect::<Vec<_>>()
    };
    // In both stages, the threshold holds for all clients together; a breach ended the first stage of each client.
    assert_eq!(outcomes(vec![ended(None), ended(None)]), [(true, false), (true, false)]);
    // The plan of an agent does not have the thresholds of the fleet.
    let agent = |agent| ended(Some(Share { agent, agents: 2 }));
    assert_eq!(outcomes(vec![agent(0), agent(1)]), [(false, true)]);
}

#[test]
fn agents_that_ended_early_are_left_out_with_their_reason() {
    let parts = |change: fn(&mut Record)| {
        let mut early = rows(0);
        early.failure = Some("no server".to_owned());
        change(&mut early);
        merge(
            Uuid::now_v7(),
            vec![Part::from_record(0, rows(0)), Part::from_record(1, early)],
            Some(&rows(0).plan),
        )
    };
    let in_warmup = parts(|record| record.stages[0].seconds = 0.0).unwrap();
    assert_eq!(in_warmup.verdict.reasons, ["agent 1: ended before it measured: no server"]);
    assert_eq!(in_warmup.stages[0].transactions, rows(0).stages[0].transactions);
    let after_one = parts(|record| record.stages.truncate(1)).unwrap();
    assert_eq!(after_one.stages.len(), 1);
    assert!(after_one.verdict.reasons[0].contains("those after the first 1 are left out"));
}
