use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use riops_testkit::VERSION;
use riops_wire::backend::{Message, data_row};
use riops_wire::frame::{self, FRAME_BYTES_MAX};
use riops_wire::frontend::Message as Sent;

use super::*;
use crate::workload::effects::{EffectsByTable, TransactionEffects, UNATTRIBUTED};
use crate::workload::tables::Job;
use crate::workload::transaction::{Statements, Transaction, TransactionOutcome};
use riops_model::plan::Protocol;
use riops_model::record::Effects;

const TESTS: [OltpTest; 20] = [
    OltpTest::ReadWrite,
    OltpTest::ReadOnly,
    OltpTest::WriteOnly,
    OltpTest::PointSelect,
    OltpTest::UpdateIndex,
    OltpTest::UpdateNonIndex,
    OltpTest::Insert,
    OltpTest::Delete,
    OltpTest::MultiInsert,
    OltpTest::MultiValueInsert,
    OltpTest::SimpleRanges,
    OltpTest::RandomPoints,
    OltpTest::RandomRanges,
    OltpTest::SequentialScan,
    OltpTest::PrimarykeyScan,
    OltpTest::IndexScan,
    OltpTest::SumScan,
    OltpTest::Join,
    OltpTest::BulkInsert,
    OltpTest::SelectOne,
];

fn small(test: OltpTest) -> OltpRun {
    OltpRun {
        test,
        batch_insert_count: 2,
        random_points: 3,
        number_of_ranges: 2,
        ..OltpRun::default()
    }
}

fn oltp(run: OltpRun) -> Oltp {
    Oltp::new(OltpDataset { tables: 2, table_size: 1_000, ..OltpDataset::default() }, run)
}

/// Returns the generator of the only session, and an empty transaction on its statements.
fn session(
    workload: &Oltp,
    protocol: Protocol,
) -> (Box<dyn crate::workload::Generator>, Transaction) {
    let plan = Plan { work: workload.run.clone().into(), protocol, seed: 7, ..Plan::default() };
    let session = workload.stage(&plan).sessions.remove(0);
    let Work::Client(generator) = session.work else { panic!("the loop runs in the server") };
    (generator, Transaction::new(Arc::new(Statements::new(protocol, session.statements))))
}

/// Returns the statements of one step: their names, or their SQL.
fn sent(bytes: &[u8]) -> Vec<String> {
    let mut statements = Vec::new();
    let mut rest = bytes;
    while let Some((frame, later)) = frame::split(rest, FRAME_BYTES_MAX).unwrap() {
        match Sent::decode(frame).unwrap() {
            Sent::Bind { statement, .. } => statements.push(statement.to_owned()),
            Sent::Query(sql) => statements.push(sql.to_owned()),
            _ => {}
        }
        rest = later;
    }
    statements
}

fn steps(workload: &Oltp, protocol: Protocol) -> Vec<Vec<String>> {
    let (mut generator, mut tx) = session(workload, protocol);
    assert!(generator.next(&mut tx));
    assert_eq!(tx.error(), None);
    (0..tx.steps()).map(|step| sent(tx.step(step).0)).collect()
}

#[test]
fn every_statement_of_every_test_on_both_flavors() {
    let mut text = String::new();
    for dialect in [Dialect::default(), Dialect::from_version(VERSION)] {
        for test in TESTS {
            let workload = oltp(small(test)).on(dialect);
            let _ = writeln!(text, "-- {}, {test}", dialect.flavor());
            for (statement, position) in workload.statements(1..=2).iter().zip(0..) {
                // Statements on the second table differ only by its number.
                if position < 2 || !statement.name.ends_with("_2") {
                    let _ = writeln!(text, "{}: {}", statement.name, statement.sql);
                }
            }
            for access in
                workload.accesses().iter().filter(|access| access.statement.ends_with("_1"))
            {
                let _ = writeln!(text, "  {}: {}", access.statement, access.expected);
            }
        }
    }
    insta::assert_snapshot!(text);
}

#[test]
fn random_points_and_ranges_use_the_first_table_only() {
    let statements = |test| {
        let workload = oltp(small(test));
        let (mut generator, mut tx) = session(&workload, Protocol::Prepared);
        let mut names = BTreeSet::new();
        for _ in 0..50 {
            assert!(generator.next(&mut tx));
            names.extend((0..tx.steps()).flat_map(|step| sent(tx.step(step).0)));
        }
        names.into_iter().collect::<Vec<_>>()
    };
    assert_eq!(statements(OltpTest::RandomPoints), ["random_points_1"]);
    assert_eq!(statements(OltpTest::RandomRanges), ["random_ranges_1"]);
    let both = ["point_select_1", "point_select_2"];
    assert_eq!(statements(OltpTest::PointSelect), both);
}

#[test]
fn statements_that_create_the_tables_on_both_flavors() {
    let ranges = OltpDataset {
        range_key_partitioning: true,
        num_table_splits: 4,
        auto_inc: false,
        ..OltpDataset::default()
    };
    let plain = OltpDataset { secondary: true, create_secondary: false, ..OltpDataset::default() };
    let public = OltpDataset {
        schema: "public".to_owned(),
        serial_cache_size: 50,
        ..OltpDataset::default()
    };
    let mut text = String::new();
    for (dialect, dataset) in [
        (Dialect::default(), OltpDataset::default()),
        (Dialect::default(), public),
        (Dialect::default(), plain.clone()),
        (Dialect::from_version(VERSION), OltpDataset::default()),
        (Dialect::from_version(VERSION), ranges),
        (Dialect::from_version(VERSION), plain),
    ] {
        let created = table::filled(&dataset, dialect);
        let _ = writeln!(text, "-- {}\n{}", dialect.flavor(), created.tables[0].create.join(";\n"));
        let Job::Copy { sql, rows, .. } = (created.tables[0].job)(0) else { panic!("no COPY") };
        let _ = writeln!(text, "{sql} -- {rows} rows");
        for sql in &created.tables[0].finish {
            let _ = writeln!(text, "{sql}");
        }
    }
    text.push_str(&contents(&OltpDataset::default()));
    insta::assert_snapshot!(text);
}

fn contents(dataset: &OltpDataset) -> String {
    table::contents_sql(dataset).join("\n")
}

#[test]
fn each_statement_is_a_round_trip_and_a_pipeline_is_one() {
    let run = small(OltpTest::ReadWrite);
    let one_each = steps(&oltp(run.clone()), Protocol::Prepared);
    assert_eq!(one_each.len(), 20);
    assert!(one_each.iter().all(|step| step.len() == 1));
    assert_eq!((one_each[0][0].as_str(), one_each[19][0].as_str()), ("begin", "commit"));
    let together = steps(&oltp(OltpRun { pipeline: true, ..run.clone() }), Protocol::Prepared);
    assert_eq!(together, [one_each.concat()]);
    let alone = steps(&oltp(OltpRun { skip_trx: true, ..run.clone() }), Protocol::Prepared);
    assert_eq!(alone.concat(), one_each[1..19].concat());
    let simple = steps(&oltp(run), Protocol::Simple);
    assert_eq!(simple.len(), 20);
    assert!(simple[1][0].starts_with("select c from riops.sbtest"), "{:?}", simple[1]);
}

#[test]
fn a_transaction_has_the_statements_of_sysbench_in_order() {
    let steps = steps(&oltp(small(OltpTest::ReadWrite)), Protocol::Prepared).concat();
    let kinds: Vec<&str> = steps
        .iter()
        .map(|name| name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '_'))
        .collect();
    let mut expected = vec!["begin"];
    expected.extend(["point_select"; 10]);
    expected.extend(["simple_range", "sum_range", "order_range", "distinct_range"]);
    expected.extend(["index_update", "non_index_update", "delete", "insert", "commit"]);
    assert_eq!(kinds, expected);
    assert!(steps[1..11].iter().all(|name| *name == steps[1]));
    assert_eq!(steps[17].trim_start_matches("delete"), steps[18].trim_start_matches("insert"));
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    for test in TESTS {
        let workload = oltp(small(test));
        let bytes = || {
            let (mut generator, mut tx) = session(&workload, Protocol::Prepared);
            let mut all = Vec::new();
            for _ in 0..5 {
                generator.next(&mut tx);
                all.extend_from_slice(tx.bytes());
            }
            all
        };
        assert_eq!(bytes(), bytes());
    }
}

/// Returns the outcome of these replies: the number of rows, the length of their first column, and the tag.
fn outcome(workload: &Oltp, replies: &[(usize, usize, &str)]) -> TransactionOutcome {
    let (mut generator, mut tx) = session(workload, Protocol::Prepared);
    generator.next(&mut tx);
    let mut outcome = TransactionOutcome::default();
    for (rows, bytes, tag) in replies {
        let value = vec![b'x'; *bytes];
        let mut encoded = Vec::new();
        data_row(&mut encoded, &[Some(&value)]).unwrap();
        let (frame, _) = frame::split(&encoded, FRAME_BYTES_MAX).unwrap().unwrap();
        let Message::DataRow(row) = Message::decode(frame).unwrap() else { panic!("no row") };
        for _ in 0..*rows {
            generator.reply(&tx, &tx.reply(row), &mut outcome);
        }
        generator.complete(&tx, tag, &mut outcome);
    }
    outcome
}

#[test]
fn a_reply_with_missing_rows_or_a_wrong_text_length_is_wrong() {
    let select = oltp(small(OltpTest::PointSelect));
    assert!(!outcome(&select, &[(1, 120, "SELECT 1")]).wrong);
    for bad in [(0, 120, "SELECT 0"), (2, 120, "SELECT 2"), (1, 119, "SELECT 1")] {
        assert!(outcome(&select, &[bad]).wrong, "{bad:?}");
    }
    let scan = oltp(small(OltpTest::PrimarykeyScan));
    assert!(!outcome(&scan, &[(100, 120, "SELECT 100")]).wrong);
    assert!(outcome(&scan, &[(99, 120, "SELECT 99")]).wrong);
    let update = oltp(small(OltpTest::UpdateNonIndex));
    assert!(!outcome(&update, &[(0, 0, "UPDATE 1")]).wrong);
    assert!(outcome(&update, &[(0, 0, "UPDATE 0")]).wrong);
    let run = OltpRun { point_selects: 0, range_selects: false, ..small(OltpTest::ReadWrite) };
    let ends = |last| {
        let tags = ["BEGIN", "UPDATE 1", "UPDATE 1", "DELETE 1", "INSERT 0 1", last];
        outcome(&oltp(run.clone()), &tags.map(|tag| (0, 0, tag)))
    };
    assert!(!ends("COMMIT").wrong && ends("ROLLBACK").wrong);
}

#[test]
fn counts_the_effects_of_changes_from_the_replies() {
    let run = OltpRun { index_updates: 2, ..small(OltpTest::WriteOnly) };
    let workload = oltp(run);
    let tags = |delete, first| {
        ["BEGIN", first, "UPDATE 1", "UPDATE 1", delete, "INSERT 0 1", "COMMIT"]
            .map(|tag| (0, 0, tag))
    };
    let complete = outcome(&workload, &tags("DELETE 1", "UPDATE 1"));
    assert!(!complete.wrong);
    let effects = complete.effects.total();
    assert_eq!((effects.reinserted, effects.deleted), (1, 1));
    // Two increments, and the k of the inserted row.
    assert!((3..=1_002).contains(&effects.added), "{complete:?}");
    // Another session deleted the row, which is allowed if rows are replaced.
    let missed = outcome(&workload, &tags("DELETE 0", "UPDATE 0"));
    assert!(!missed.wrong);
    let expected = Effects { deleted: 0, added: effects.added - 1, ..effects };
    assert_eq!(missed.effects.total(), expected);
    let many = outcome(&oltp(small(OltpTest::MultiValueInsert)), &[(0, 0, "INSERT 0 2")]);
    assert_eq!((many.wrong, many.effects.total().inserted), (false, 2));
}

#[test]
fn the_expected_effects_are_known_before_the_transaction() {
    let asked = |run: OltpRun| {
        let (mut generator, mut tx) = session(&oltp(run), Protocol::Prepared);
        generator.next(&mut tx);
        (tx.expected_effects(), tx.expected_rows(), tx.is_autocommit())
    };
    let (effects, rows, autocommit) = asked(small(OltpTest::ReadWrite));
    let effects = effects.total();
    assert_eq!((effects.reinserted, effects.deleted, autocommit), (1, 1, false));
    // 10 points, 3 ranges of 100 rows, a sum, four changes.
    assert_eq!(rows, 10 + 300 + 1 + 4);
    let skip = OltpRun { skip_trx: true, ..small(OltpTest::WriteOnly) };
    assert!(asked(skip).2);
    assert_eq!(asked(small(OltpTest::PointSelect)).0, TransactionEffects::default());
}

#[test]
fn ids_generated_by_the_client_are_distinct_and_below_existing_ids() {
    let dataset = OltpDataset { auto_inc: false, ..OltpDataset::default() };
    let mut workload = Oltp::new(dataset, small(OltpTest::Insert));
    assert_eq!(workload.questions().integers.len(), 1);
    workload.set_answers(&Answers { integers: vec![-5], ..Answers::default() });
    let plan = Plan { work: workload.run.clone().into(), sessions: 3, ..Plan::default() };
    let mut ids = Vec::new();
    for session in workload.stage(&plan).sessions {
        let Work::Client(mut generator) = session.work else {
            panic!("the loop runs in the server")
        };
        let statements = Statements::new(Protocol::Simple, session.statements);
        let mut tx = Transaction::new(Arc::new(statements));
        for _ in 0..4 {
            generator.next(&mut tx);
            let sql = sent(tx.step(0).0).concat();
            let values = sql.split("values (").nth(1).unwrap();
            ids.push(values.split(',').next().unwrap().parse::<i64>().unwrap());
        }
    }
    ids.sort_unstable();
    assert_eq!(ids, (-17..=-6).collect::<Vec<_>>());
}

#[test]
fn the_load_has_every_id_once_with_the_texts_of_sysbench() {
    let dataset = OltpDataset { table_size: 25_001, ..OltpDataset::default() };
    let created = table::filled(&dataset, Dialect::default());
    assert_eq!((created.tables.len(), created.tables[0].jobs), (1, 3));
    let mut ids = Vec::new();
    for job in 0..3 {
        let Job::Copy { mut source, rows, .. } = (created.tables[0].job)(job) else {
            panic!("no COPY")
        };
        let mut data = Vec::new();
        while source(&mut data) {}
        // After the signature, flags and extension come rows of a fixed width, then the trailer.
        let body = &data[19..data.len() - 2];
        let width = 2 + 8 + 8 + (4 + texts::C) + (4 + texts::PAD);
        assert_eq!((body.len(), body.len() % width), (usize::try_from(rows).unwrap() * width, 0));
        for row in body.chunks(width) {
            ids.push(u32::from_be_bytes(row[6..10].try_into().unwrap()));
            let k = u32::from_be_bytes(row[14..18].try_into().unwrap());
            assert!((1..=25_001).contains(&k));
            assert!(
                row[22..22 + texts::C].iter().all(|byte| byte.is_ascii_digit() || *byte == b'-')
            );
        }
    }
    ids.sort_unstable();
    assert!(ids.iter().copied().eq(1..=25_001));
}

#[test]
fn checks_compare_the_data_with_the_acknowledged_changes() {
    let dataset = OltpDataset { tables: 2, table_size: 1_000, ..OltpDataset::default() };
    let baseline = vec![vec![1_000, 1_000, 5_000, 0]; 2];
    let failed = |contents: &[Vec<i128>], ledger: &Ledger| -> Vec<String> {
        let checks = table::checks(&dataset, contents, &baseline, ledger);
        checks.into_iter().filter(|check| !check.held).map(|check| check.name).collect()
    };
    let none = Ledger::default();
    assert_eq!(failed(&baseline, &none), [""; 0]);
    let changed =
        |rows, loaded, k, lengths| vec![vec![rows, loaded, k, lengths], baseline[1].clone()];
    let (rows, loaded, k) = (
        "rows of riops.sbtest1",
        "rows in the loaded id range of riops.sbtest1",
        "sum of k of riops.sbtest1",
    );
    assert_eq!(failed(&changed(999, 999, 5_000, 0), &none), [rows, loaded]);
    assert_eq!(failed(&changed(1_000, 1_000, 5_001, 0), &none), [k]);
    assert_eq!(failed(&changed(1_000, 1_000, 5_000, 3), &none).len(), 1);
    let on = |table, effects| {
        let mut all = EffectsByTable::default();
        all.add_to(table, effects);
        all
    };
    let effects = Effects { inserted: 10, added: 70, ..Effects::default() };
    let inserted = Ledger { effects: on(1, effects), ..Ledger::default() };
    assert_eq!(failed(&changed(1_010, 1_000, 5_070, 0), &inserted), [""; 0]);
    assert_eq!(failed(&changed(1_009, 1_000, 5_070, 0), &inserted), [rows]);
    let more = Effects { inserted: 2, ..effects };
    let unknown = Ledger { effects_unknown: on(1, more), ..inserted.clone() };
    for (rows, k) in [(1_010, 5_070), (1_012, 5_140), (1_011, 5_100)] {
        assert_eq!(failed(&changed(rows, 1_000, k, 0), &unknown), [""; 0]);
    }
    assert_eq!(failed(&changed(1_013, 1_000, 5_070, 0), &unknown), [rows]);
    // Changes of another table with an unknown outcome hide no lost row of this one.
    let elsewhere = Ledger { effects_unknown: on(2, more), ..inserted };
    assert_eq!(failed(&changed(1_009, 1_000, 5_070, 0), &elsewhere), [rows]);
    // The k of a deleted row is unknown, but the rows are still counted.
    let effects = Effects { inserted: 3, reinserted: 1, deleted: 5, added: 9 };
    let deleted = Ledger { effects: on(1, effects), ..Ledger::default() };
    assert_eq!(failed(&changed(999, 996, 1, 0), &deleted), [""; 0]);
    assert_eq!(failed(&changed(1_000, 996, 1, 0), &deleted), [rows]);
    assert_eq!(failed(&changed(999, 995, 1, 0), &deleted), [loaded]);
}

#[test]
fn changes_of_a_run_without_a_report_are_unknown_and_not_wrong() {
    let dataset = OltpDataset { table_size: 1_000, ..OltpDataset::default() };
    let baseline = [vec![1_000, 1_000, 5_000, 0]];
    let open = Ledger { open_runs: 1, ..Ledger::default() };
    let checks = table::checks(&dataset, &[vec![900, 900, 7, 0]], &baseline, &open);
    let unknown: Vec<_> = checks.iter().map(|check| (check.held, check.unknown)).collect();
    assert_eq!(unknown, [(false, true), (false, true), (false, true), (true, false)]);
    assert_eq!(checks[0].expected, "unknown (a run did not report its changes)");
}

#[test]
fn bulk_inserts_continue_above_the_existing_ids_and_are_checked() {
    let dataset =
        OltpDataset { tables: 2, table_size: 0, bulk_insert: true, ..OltpDataset::default() };
    let mut workload = Oltp::new(dataset.clone(), small(OltpTest::BulkInsert));
    workload.set_answers(&Answers { integers: vec![10, 20], ..Answers::default() });
    let sql = "insert into riops.sbtest1 (id, k) values (11, 11), (12, 12)";
    assert_eq!(steps(&workload, Protocol::Simple), [[sql]]);
    let (mut generator, mut tx) = session(&workload, Protocol::Prepared);
    generator.next(&mut tx);
    let effects = Effects { inserted: 2, added: 23, ..Effects::default() };
    assert_eq!(tx.expected_effects(), TransactionEffects::on_table(1, effects));
    let mut ledger = Ledger::default();
    ledger.effects.add_to(1, effects);
    let baseline = [vec![10, 0, 55, 0], vec![20, 0, 210, 0]];
    let held = |first: [i128; 4]| {
        let contents = [first.to_vec(), baseline[1].clone()];
        let checks = table::checks(&dataset, &contents, &baseline, &ledger);
        checks.into_iter().filter(|check| !check.held).map(|check| check.name).collect::<Vec<_>>()
    };
    assert_eq!(held([12, 0, 78, 0]), [""; 0]);
    assert_eq!(held([11, 0, 66, 0]), ["rows of riops.sbtest1", "sum of k of riops.sbtest1"]);
    assert_eq!(held([12, 0, 78, 1]), ["rows whose k is not their id"]);
    let refused = OltpRun::default().validate_for(&dataset, Protocol::Simple).unwrap_err();
    assert!(refused.to_string().contains("prepared with --bulk-insert false"), "{refused}");
}

#[test]
fn effects_of_earlier_versions_are_compared_over_all_tables() {
    let dataset = OltpDataset { tables: 2, table_size: 1_000, ..OltpDataset::default() };
    let baseline = vec![vec![1_000, 1_000, 5_000, 0]; 2];
    let mut ledger = Ledger::default();
    ledger.effects.add_to(UNATTRIBUTED, Effects { inserted: 1, added: 7, ..Effects::default() });
    let contents = vec![vec![1_001, 1_000, 5_007, 0], baseline[1].clone()];
    let checks = table::checks(&dataset, &contents, &baseline, &ledger);
    assert!(checks.iter().all(|check| check.held), "{checks:?}");
    assert_eq!(checks[0].name, "rows of all tables");
}

#[test]
fn generating_a_transaction_does_not_allocate() {
    let tests =
        [OltpTest::ReadWrite, OltpTest::Join, OltpTest::MultiValueInsert, OltpTest::BulkInsert];
    for run in tests.map(small) {
        let (mut generator, mut tx) = session(&oltp(run), Protocol::Prepared);
        generator.next(&mut tx);
        let allocations = allocation_counter::measure(|| {
            for _ in 0..100 {
                generator.next(&mut tx);
            }
        });
        assert_eq!(allocations.count_total, 0);
    }
}

#[test]
fn with_autocommit_only_changing_statements_have_effects() {
    let skip = OltpRun { skip_trx: true, range_selects: false, ..small(OltpTest::ReadWrite) };
    let (mut generator, mut tx) = session(&oltp(skip), Protocol::Prepared);
    generator.next(&mut tx);
    let changing: Vec<usize> =
        (0..tx.steps()).filter(|&step| tx.step_effects(step).is_some()).collect();
    // Ten selects, then two updates, a delete and an insert.
    assert_eq!((tx.steps(), changing), (14, vec![10, 11, 12, 13]));
    let deleted = tx.step_effects(12).map(|effects| effects.total());
    assert_eq!(deleted, Some(Effects { deleted: 1, ..Effects::default() }));
}
