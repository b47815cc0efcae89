use std::sync::Arc;

use super::generator::OPERATION_UPDATE;
use super::*;
use crate::workload::transaction::{Statements, Transaction, TransactionOutcome};
use proptest::prelude::*;
use riops_model::plan::{Protocol, UpdateShare};
use riops_testkit::VERSION;
use riops_wire::backend::{Message, data_row};
use riops_wire::frame::{FRAME_BYTES_MAX, split};
use riops_wire::frontend;

fn plan(run: &RowsRun, sessions: u32) -> Plan {
    Plan { work: run.clone().into(), sessions, seed: 42, ..Plan::default() }
}

/// Returns an empty transaction on the statements of a session.
fn transaction(session: &SessionPlan) -> Transaction {
    let statements = Statements::new(Protocol::Prepared, session.statements.clone());
    Transaction::new(Arc::new(statements))
}

fn rows(tables: u32, count: u64, run: RowsRun) -> Rows {
    Rows::new(RowsDataset { tables, rows: count, ..RowsDataset::default() }, run)
}

fn generator(session: &mut SessionPlan) -> &mut dyn crate::workload::Generator {
    match &mut session.work {
        Work::Client(generator) => &mut **generator,
        Work::Server(_) => panic!("the loop runs in the server"),
    }
}

/// Returns the statement and the two keys of an encoded transaction.
fn decoded(tx: &Transaction) -> (String, i64, i64) {
    let (frame, _) = split(tx.bytes(), FRAME_BYTES_MAX).unwrap().unwrap();
    let frontend::Message::Bind { statement, parameters, .. } =
        frontend::Message::decode(frame).unwrap()
    else {
        panic!("no Bind")
    };
    let decode = |value: Option<&[u8]>| i64::from_be_bytes(value.unwrap().try_into().unwrap());
    (statement.to_owned(), decode(parameters[0]), decode(parameters[1]))
}

proptest! {
    #[test]
    fn the_updated_share_of_the_rows_deviates_by_at_most_one_batch(
        percent in 0u8..=100,
        batch in 1u64..50,
        update_batch in 1u64..50,
    ) {
        let run = RowsRun { batch, update_batch: Some(update_batch), update_percent: percent, ..RowsRun::default() };
        let workload = rows(1, 1_000, run.clone());
        let mut session = workload.stage(&plan(&run, 1)).sessions.remove(0);
        let mut tx = transaction(&session);
        let (mut total, mut updated) = (0u64, 0u64);
        for _ in 0..500 {
            generator(&mut session).next(&mut tx);
            total += tx.expected_rows();
            if tx.operation() == OPERATION_UPDATE {
                updated += tx.expected_rows();
            }
            let expected = total as f64 * f64::from(percent) / 100.0;
            let largest = batch.max(update_batch) as f64;
            prop_assert!((updated as f64 - expected).abs() <= largest, "{updated} of {total}");
        }
    }

    #[test]
    fn every_transaction_covers_a_full_range_within_the_keys(batch in 1u64..=300) {
        let run = RowsRun { batch, ..RowsRun::default() };
        let workload = rows(3, 300, run.clone());
        let mut session = workload.stage(&plan(&run, 1)).sessions.remove(0);
        let mut tx = transaction(&session);
        for _ in 0..50 {
            generator(&mut session).next(&mut tx);
            let (_, first, last) = decoded(&tx);
            prop_assert!(first >= 1 && last <= 300 && last - first + 1 == batch.cast_signed());
        }
    }
}

#[test]
fn a_working_set_limits_the_keys_of_both_loops() {
    let run =
        RowsRun { batch: 10, update_percent: 50, working_set: Some(25), ..RowsRun::default() };
    let workload = rows(1, 1_000_000, run.clone());
    let mut session = workload.stage(&plan(&run, 1)).sessions.remove(0);
    let mut tx = transaction(&session);
    let mut largest = 0;
    for _ in 0..500 {
        generator(&mut session).next(&mut tx);
        let (_, first, last) = decoded(&tx);
        assert!(first >= 1 && last <= 25, "{first} to {last}");
        largest = largest.max(last);
    }
    // Every key of the working set is used.
    assert_eq!(largest, 25);
    let samples = workload.stage(&plan(&run, 1)).read_samples;
    assert_eq!(samples.len(), 5);
    assert!(samples[4].contains("between 13 and 22"), "{samples:?}");
    let server = RowsRun { loop_side: LoopSide::Server, ..run };
    let stage = rows(1, 1_000_000, server.clone()).stage(&plan(&server, 1));
    let Work::Server(in_server) = &stage.sessions[0].work else { panic!("a loop in the server") };
    let sql = in_server.call_sql(&crate::workload::Call {
        id: "x".to_owned(),
        start_s: 0.0,
        measure_s: 0.0,
        until_s: None,
        transactions: None,
        rows: None,
        report_s: 1.0,
        explain_statements: &[],
    });
    assert!(sql.starts_with("call riops.ybio_loop('x', 'riops.rows_0001', 25, 10, 10,"), "{sql}");
}

#[test]
fn a_working_set_larger_than_a_table_is_refused() {
    let dataset = RowsDataset { rows: 1000, ..RowsDataset::default() };
    let refused = |working_set: u64, batch: u64| {
        let run = RowsRun { working_set: Some(working_set), batch, ..RowsRun::default() };
        run.validate_for(&dataset).map_err(|error| error.to_string())
    };
    refused(1000, 1000).unwrap();
    assert!(refused(1001, 1).unwrap_err().contains("--working-set 1001 exceeds the 1000 rows"));
    assert!(refused(99, 100).unwrap_err().contains("--batch 100 exceeds --working-set 99"));
}

#[test]
fn statements_are_reproducible_and_differ_by_session_and_seed() {
    let run =
        RowsRun { batch: 10, update_percent: 30, update_batch: Some(5), ..RowsRun::default() };
    let first_of = |session: usize, seed: u64| {
        let workload = rows(4, 1_000, run.clone());
        let plan = Plan { seed, ..plan(&run, 3) };
        let mut stage = workload.stage(&plan);
        let mut tx = transaction(&stage.sessions[session]);
        (0..100)
            .map(|_| {
                generator(&mut stage.sessions[session]).next(&mut tx);
                decoded(&tx)
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(first_of(0, 1), first_of(0, 1));
    assert_ne!(first_of(0, 1), first_of(1, 1));
    assert_ne!(first_of(0, 1), first_of(0, 2));
}

#[test]
fn a_session_uses_one_table_or_all_tables() {
    let run = RowsRun { table_per_session: true, ..RowsRun::default() };
    let stage = rows(2, 5_000, run.clone()).stage(&plan(&run, 3));
    let names: Vec<_> =
        stage.sessions.iter().map(|session| session.statements[0].name.clone()).collect();
    assert_eq!(names, ["read_rows_0001", "read_rows_0002", "read_rows_0001"]);
    let all = RowsRun::default();
    let stage = rows(2, 5_000, all.clone()).stage(&plan(&all, 1));
    assert_eq!(stage.sessions[0].statements.len(), 2);
}

#[test]
fn a_reply_with_missing_rows_is_wrong() {
    let run = RowsRun { batch: 10, ..RowsRun::default() };
    let mut session = rows(1, 100, run.clone()).stage(&plan(&run, 1)).sessions.remove(0);
    let mut tx = transaction(&session);
    generator(&mut session).next(&mut tx);
    let mut reply = |value: Option<&[u8]>| {
        let mut bytes = Vec::new();
        data_row(&mut bytes, &[value, None]).unwrap();
        let (frame, _) = split(&bytes, FRAME_BYTES_MAX).unwrap().unwrap();
        let Message::DataRow(row) = Message::decode(frame).unwrap() else { panic!("no row") };
        let mut outcome = TransactionOutcome::default();
        generator(&mut session).reply(&tx, &tx.reply(row), &mut outcome);
        outcome
    };
    assert_eq!(
        reply(Some(&10i64.to_be_bytes())),
        TransactionOutcome { rows: 10, wrong: false, ..TransactionOutcome::default() }
    );
    assert_eq!(
        reply(Some(&9i64.to_be_bytes())),
        TransactionOutcome { rows: 9, wrong: true, ..TransactionOutcome::default() }
    );
    assert_eq!(
        reply(Some(b"10")),
        TransactionOutcome { rows: 0, wrong: true, ..TransactionOutcome::default() }
    );
    assert_eq!(
        reply(None),
        TransactionOutcome { rows: 0, wrong: true, ..TransactionOutcome::default() }
    );
}

#[test]
fn checks_find_a_lost_row_a_wrong_key_and_a_lost_update() {
    let workload = rows(1, 10, RowsRun::default());
    let baseline = [vec![10, 1, 10, 55, 385, 40]];
    let mut ledger = Ledger { rows_changed: 5, ..Ledger::default() };
    ledger.effects.add(&generator::increments(1, 5));
    let failed = |contents: [i128; 6]| -> Vec<String> {
        workload
            .checks(&[contents.to_vec()], &baseline, &ledger)
            .into_iter()
            .filter(|check| !check.held)
            .map(|check| check.name)
            .collect()
    };
    assert!(failed([10, 1, 10, 55, 385, 45]).is_empty());
    assert_eq!(failed([9, 1, 10, 55, 385, 45]), ["rows of riops.rows_0001"]);
    assert_eq!(failed([10, 1, 10, 54, 385, 45]), ["sum of keys of riops.rows_0001"]);
    // The keys 1, 1, 4, 4 have the same count, bounds and sum as 1, 2, 3, 4.
    assert_eq!(failed([10, 1, 10, 55, 389, 45]), ["sum of squares of keys of riops.rows_0001"]);
    assert_eq!(squares(3_000_000), (1..=3_000_000i128).map(|k| (k % 1_000_003).pow(2)).sum());
    assert_eq!(failed([10, 1, 10, 55, 385, 44]), ["increments of scratch in riops.rows_0001"]);
    assert_eq!(failed([10, 1, 10, 55, 385, 46]), ["increments of scratch in riops.rows_0001"]);
}

proptest! {
    #[test]
    fn the_share_of_updates_can_count_transactions(percent in 0u8..=100) {
        let run = RowsRun {
            batch: 255,
            update_batch: Some(8),
            update_percent: percent,
            update_share: UpdateShare::Transactions,
            ..RowsRun::default()
        };
        let workload = rows(1, 1_000, run.clone());
        let mut session = workload.stage(&plan(&run, 1)).sessions.remove(0);
        let mut tx = transaction(&session);
        let mut updates = 0;
        for done in 1..=200 {
            generator(&mut session).next(&mut tx);
            updates += usize::from(tx.operation() == OPERATION_UPDATE);
            let expected = f64::from(done) * f64::from(percent) / 100.0;
            prop_assert!((updates as f64 - expected).abs() <= 1.0);
        }
    }
}

/// Returns all statements sent for a dataset and a run.
fn all_statements(dataset: RowsDataset, run: &RowsRun, dialect: Dialect) -> String {
    let workload = Rows::new(dataset, run.clone()).on(dialect);
    let created = workload.dataset(dialect);
    let session = workload.stage(&plan(run, 1)).sessions.remove(0);
    let table = &created.tables[0];
    let mut lines: Vec<String> = created.settings.clone();
    lines.push(table.create.join(";\n"));
    match (table.job)(0) {
        crate::workload::tables::Job::Copy { sql, .. }
        | crate::workload::tables::Job::Sql { sql, .. } => lines.push(sql),
    }
    lines.extend(table.finish.clone());
    lines.extend(table.zeros.iter().map(|zero| zero.sql.clone()));
    lines.extend(session.settings);
    lines.extend(session.statements.into_iter().map(|statement| statement.sql));
    lines.extend(workload.accesses().iter().map(|access| access.explain_sql(true)));
    lines.join(";\n")
}

#[test]
fn statements_for_yugabytedb_have_its_clauses() {
    let dataset = RowsDataset {
        rows: 3_000_000_000,
        tablets: 6,
        index_tablets: 3,
        non_transactional: true,
        ..RowsDataset::default()
    };
    let reads = RowsRun { follower_reads_ms: Some(30_000), ..RowsRun::default() };
    let mut text = all_statements(dataset.clone(), &reads, Dialect::from_version(VERSION));
    let by_key =
        RowsDataset { primary_key: true, order: riops_model::plan::Order::Hash, ..dataset };
    let updates = RowsRun { update_percent: 100, non_transactional: true, ..RowsRun::default() };
    text.push_str("\n-- with a primary key\n");
    text.push_str(&all_statements(by_key, &updates, Dialect::from_version(VERSION)));
    insta::assert_snapshot!(text);
}

#[test]
fn block_layout_uses_a_low_fill_factor() {
    let dataset = RowsDataset { layout: Layout::Block, filler: 1024, ..RowsDataset::default() };
    insta::assert_snapshot!(all_statements(dataset, &RowsRun::default(), Dialect::default()));
}

#[test]
fn every_statement_on_postgresql() {
    let mut text = String::new();
    for (index_only, primary_key) in [(false, false), (true, true)] {
        let dataset = RowsDataset { filler: 20, primary_key, ..RowsDataset::default() };
        let run = RowsRun { update_percent: 50, index_only, ..RowsRun::default() };
        let workload = Rows::new(dataset, run.clone());
        let tables = workload.dataset(Dialect::default()).tables;
        let session = workload.stage(&plan(&run, 1)).sessions.remove(0);
        let mut add = |part: &str| {
            text.push_str(part);
            text.push_str(";\n");
        };
        tables[0].create.iter().for_each(|sql| add(sql));
        tables[0].finish.iter().for_each(|sql| add(sql));
        session.settings.iter().for_each(|sql| add(sql));
        session.statements.iter().for_each(|statement| add(&statement.sql));
        workload.contents_sql().iter().for_each(|sql| add(sql));
        workload.accesses().iter().for_each(|access| add(&format!("-- {}", access.expected)));
    }
    insta::assert_snapshot!(text);
}
