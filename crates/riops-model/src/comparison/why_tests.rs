//! Tests of the reasons for the change of a time, with records of known parts.

use super::*;
use crate::record::example::example_record;
use crate::record::{
    CostRecord, DatabaseUse, OperationRecord, Record, Sampled, SessionTime, WaitShare,
};

/// A run of 10 s whose two sessions spend this time of each transaction in CPU and WAL, in µs, and 1 ms elsewhere.
fn run(cpu_us: f64, wal_us: f64) -> Record {
    let mut record = example_record();
    let stage = &mut record.stages[0];
    let whole_us = cpu_us + wal_us + 1_000.0;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a positive number"
    )]
    let transactions = (20e6 / whole_us) as u64;
    stage.transactions = transactions;
    stage.database_s = Some(19.8);
    let (cpu, wal) = (cpu_us / whole_us, wal_us / whole_us);
    let shares = [(TimePart::Cpu, cpu), (TimePart::Wal, wal)];
    stage.probes = Some(Sampled {
        waits: vec![WaitShare { event: "CPU".to_owned(), share: cpu }],
        looks: 50,
        session_time: shares
            .map(|(part, share)| SessionTime { part, share, reach: Some(0.03) })
            .to_vec(),
        ..Sampled::default()
    });
    record
}

fn blocks<'a>(a: &'a [Record], b: &'a [Record]) -> Vec<RunBlock<'a>> {
    let stage = |record: &'a Record| Summary { record, stage: &record.stages[0] };
    let stages = |runs: &'a [Record]| runs.iter().map(stage).collect();
    vec![RunBlock { a: stages(a), b: stages(b) }]
}

fn setting(name: &str, a: &str, b: &str) -> Change {
    let [name, a, b] = [name, a, b].map(str::to_owned);
    Change { topic: Topic::Setting, name, a, b, is_more: None }
}

#[test]
fn another_address_explains_only_a_change_of_the_network() {
    let address = Change { topic: Topic::Environment, ..setting("address", "a:5432", "b:5432") };
    assert_eq!([Cpu, Network].map(|part| is_cause(&address, part)), [false, true]);
}

#[test]
fn a_network_without_a_rest_of_the_time_did_not_change() {
    let without_rest = || {
        let mut record = run(100.0, 2_000.0);
        let sampled = record.stages[0].probes.as_mut().unwrap();
        sampled.session_time[1].share = 0.98;
        record
    };
    let (a, b) = ([(); 4].map(|()| without_rest()), [(); 4].map(|()| run(100.0, 100.0)));
    let change = time_change(&blocks(&a, &b), &[]).unwrap();
    let part = |part| change.parts.iter().find(|change| change.part == part).unwrap();
    assert!(part(Network).a_us < 5.0 && part(Network).change_us > 500.0);
    assert_eq!((part(Wal).is_cause, part(Network).is_cause), (true, false));
}

#[test]
fn flushes_without_effect_on_the_wal_part_explain_cpu_time_before_conditions_do() {
    let a = [run(500.0, 100.0), run(510.0, 100.0), run(490.0, 100.0)];
    let b = [run(300.0, 100.0), run(310.0, 100.0), run(290.0, 100.0)];
    let condition = Change {
        topic: Topic::Condition,
        is_more: Some(true),
        ..setting("neighboring rows in one block", "54%", "61%")
    };
    let changes = [condition, setting("fsync", "on", "off")];
    let change = time_change(&blocks(&a, &b), &changes).unwrap();
    assert_eq!(change.parts[0].beside[0], "setting fsync: on → off");
}

#[test]
fn the_part_that_changed_most_is_first_and_has_its_setting_beside_it() {
    let a = [run(500.0, 100.0), run(510.0, 110.0), run(490.0, 90.0)];
    let b = [run(500.0, 800.0), run(520.0, 820.0), run(490.0, 780.0)];
    let changes = [setting("jit", "off", "on"), setting("synchronous_commit", "off", "on")];
    let change = time_change(&blocks(&a, &b), &changes).unwrap();
    let wal = &change.parts[0];
    assert_eq!((wal.part, wal.is_cause), (TimePart::Wal, true));
    assert!((wal.change_us - 700.0).abs() < 1.0, "{wal:?}");
    assert_eq!(wal.beside, ["setting synchronous_commit: off → on", "setting jit: off → on"]);
    let cpu = change.parts.iter().find(|part| part.part == TimePart::Cpu).unwrap();
    assert!(!cpu.is_cause, "{cpu:?}");
    let sum: f64 = change.parts.iter().map(|part| part.change_us).sum();
    assert!((sum - (change.b_us - change.a_us)).abs() < 1e-6);
}

#[test]
fn names_consequences_after_their_cause() {
    let with = |mut record: Record, images: f64, exec_us: f64| {
        let stage = &mut record.stages[0];
        stage.cost =
            Some(CostRecord { wal_full_page_images: Some(images), ..CostRecord::default() });
        stage.database = Some(DatabaseUse {
            statements: vec![StatementUse {
                query: "update t".to_owned(),
                is_own: true,
                calls: 100,
                exec_us,
                ..StatementUse::default()
            }],
            ..DatabaseUse::default()
        });
        stage.session_loop.operations =
            vec![OperationRecord { acknowledged_transactions: 100, ..OperationRecord::default() }];
        record
    };
    let a = [(); 3].map(|()| with(run(500.0, 100.0), 0.1, 1_000.0));
    let b = [(); 3].map(|()| with(run(500.0, 800.0), 0.9, 60_000.0));
    let changes = [setting("full_page_writes", "off", "on")];
    let change = time_change(&blocks(&a, &b), &changes).unwrap();
    assert_eq!(
        change.parts[0].beside,
        [
            "setting full_page_writes: off → on",
            "full-page images per transaction: 0.100 → 0.900",
            "update t per transaction: 10.0 µs → 600 µs"
        ]
    );
    // Without a cause, what follows from it is what is known.
    let change = time_change(&blocks(&a, &b), &[]).unwrap();
    assert_eq!(change.parts[0].beside.len(), 2);
}

#[test]
fn ignores_changes_in_the_other_direction_and_small_costs() {
    let with = |mut record: Record, images: f64| {
        record.stages[0].cost =
            Some(CostRecord { wal_full_page_images: Some(images), ..CostRecord::default() });
        record
    };
    let beside = |images_b: f64, changes: &[Change]| {
        let a = [(); 3].map(|()| with(run(500.0, 100.0), 0.0));
        let b = [(); 3].map(|()| with(run(500.0, 10_800.0), images_b));
        let change = time_change(&blocks(&a, &b), changes).unwrap();
        assert_eq!(change.parts[0].part, TimePart::Wal);
        change.parts[0].beside.clone()
    };
    // At most 11 µs of 10.7 ms.
    assert_eq!(beside(0.00135, &[]), [""; 0]);
    assert_eq!(beside(2.0, &[]).len(), 1);
    let condition = |name: &str, is_more| Change {
        topic: Topic::Condition,
        is_more: Some(is_more),
        ..setting(name, "1", "2")
    };
    for (name, explains) in
        [("checkpoints", true), ("CPU used by other processes", true), ("order of the rows", false)]
    {
        assert_eq!(!beside(0.0, &[condition(name, true)]).is_empty(), explains, "{name}");
        assert_eq!(!beside(0.0, &[condition(name, false)]).is_empty(), !explains, "{name}");
    }
}

#[test]
fn a_changed_plan_is_a_candidate_although_no_part_changed_by_more_than_chance() {
    let a = [run(500.0, 100.0), run(600.0, 200.0), run(400.0, 50.0)];
    let b = [run(510.0, 110.0), run(590.0, 190.0), run(420.0, 70.0)];
    let path = Change { topic: Topic::AccessPath, ..setting("command 1", "Index", "Seq") };
    let client = Change { topic: Topic::Environment, ..setting("client", "x", "y") };
    let changes = [setting("jit", "off", "on"), client, path];
    let change = time_change(&blocks(&a, &b), &changes).unwrap();
    assert_eq!(
        change.candidates,
        [
            "access path command 1: Index → Seq",
            "setting jit: off → on",
            "environment client: x → y"
        ]
    );
}

#[test]
fn a_condition_and_an_option_are_candidates_in_their_direction() {
    let a = [run(500.0, 100.0), run(600.0, 200.0), run(400.0, 50.0)];
    let b = [run(510.0, 110.0), run(590.0, 190.0), run(420.0, 70.0)];
    let script = Change { topic: Topic::Plan, ..setting("script", "a", "b") };
    let others = |is_more| Change {
        topic: Topic::Condition,
        is_more: Some(is_more),
        ..setting("CPU used by other processes", "15%", "45%")
    };
    let candidates = |is_more| {
        let changes = [others(is_more), script.clone()];
        time_change(&blocks(&a, &b), &changes).unwrap().candidates
    };
    assert_eq!(
        candidates(true),
        ["plan script: a → b", "condition CPU used by other processes: 15% → 45%"]
    );
    assert_eq!(candidates(false), ["plan script: a → b"]);
}

#[test]
fn another_script_is_named_before_the_access_paths_of_its_statements() {
    let (a, b) = ([(); 3].map(|()| run(500.0, 0.0)), [(); 3].map(|()| run(900.0, 0.0)));
    let path = Change { topic: Topic::AccessPath, ..setting("command 3", "none", "Seq Scan") };
    let script = Change { topic: Topic::Plan, ..setting("script.scripts", "a", "b") };
    let change = time_change(&blocks(&a, &b), &[script, path]).unwrap();
    assert_eq!((change.parts[0].part, change.parts[0].is_cause), (TimePart::Cpu, true));
    assert_eq!(
        change.parts[0].beside,
        ["plan script.scripts: a → b", "access path command 3: none → Seq Scan"]
    );
}

#[test]
fn without_enough_samples_the_candidates_are_named() {
    let unsampled = |wal_us| {
        let mut record = run(500.0, wal_us);
        record.stages[0].probes.as_mut().unwrap().looks = 3;
        record
    };
    let (a, b) = ([unsampled(100.0)], [unsampled(4_000.0)]);
    let address = Change { topic: Topic::Environment, ..setting("address", "x", "y") };
    let change = time_change(&blocks(&a, &b), &[address]).unwrap();
    assert!(change.parts.is_empty() && change.b_us > 2.0 * change.a_us, "{change:?}");
    assert_eq!(change.candidates, ["environment address: x → y"]);
}

#[test]
fn equal_groups_and_single_runs_have_no_cause() {
    let a = [run(500.0, 100.0), run(600.0, 200.0), run(400.0, 50.0)];
    let b = [run(510.0, 110.0), run(590.0, 190.0), run(420.0, 70.0)];
    let change = time_change(&blocks(&a, &b), &[]).unwrap();
    assert!(change.parts.iter().all(|part| !part.is_cause), "{change:?}");
    let single = time_change(&blocks(&a[..1], &b[..1]), &[]).unwrap();
    assert!(single.parts.iter().all(|part| part.interval.is_none() && !part.is_cause));
    let mut unsampled = a.clone();
    unsampled[1].stages[0].probes = None;
    assert!(time_change(&blocks(&unsampled, &b), &[]).is_some());
    assert_eq!(time_change(&blocks(&unsampled[1..2], &b), &[]), None);
}
