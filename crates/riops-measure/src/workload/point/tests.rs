use std::sync::Arc;

use super::*;
use crate::workload::Generator;
use crate::workload::transaction::{Statements, Transaction, TransactionOutcome};
use proptest::prelude::*;
use riops_model::plan::Protocol;
use riops_wire::backend::{Message as Answer, data_row};
use riops_wire::frame::{FRAME_BYTES_MAX, split};
use riops_wire::frontend::Message;

fn point(rows: u64, op: &str, field_length: Option<u32>) -> PointAccess {
    let run = PointRun { op: op.parse().unwrap(), field_length, ..PointRun::default() };
    PointAccess::new(LoadDataset { rows, field_length: 6, ..LoadDataset::default() }, run)
}

fn session(point: &PointAccess) -> (Box<dyn Generator>, Transaction) {
    let plan = Plan { seed: 3, ..Plan::default() };
    let session = point.stage(&plan).sessions.remove(0);
    let Work::Client(generator) = session.work else { panic!("the loop runs in the server") };
    let statements = Statements::new(Protocol::Prepared, session.statements);
    (generator, Transaction::new(Arc::new(statements)))
}

/// Returns the name of the statement and its parameters.
fn decoded(tx: &Transaction) -> (String, Vec<Vec<u8>>) {
    let (frame, _) = split(tx.bytes(), FRAME_BYTES_MAX).unwrap().unwrap();
    let Message::Bind { statement, parameters, .. } = Message::decode(frame).unwrap() else {
        panic!("no Bind")
    };
    (statement.to_owned(), parameters.into_iter().map(|value| value.unwrap().to_vec()).collect())
}

proptest! {
    #[test]
    fn the_share_of_updates_deviates_by_less_than_one_statement(update_percent in 0u8..=100) {
        let mut point = point(100, "select", None);
        point.run.op = PointOperations { update_percent };
        let (mut generator, mut tx) = session(&point);
        let mut updates = 0;
        for all in 1..400u32 {
            prop_assert!(generator.next(&mut tx));
            updates += u32::from(tx.operation() == OPERATION_UPDATE);
            let (name, _) = decoded(&tx);
            prop_assert_eq!(name == "update", tx.operation() == OPERATION_UPDATE);
            let expected = f64::from(all) * f64::from(update_percent) / 100.0;
            prop_assert!((f64::from(updates) - expected).abs() < 1.0, "{updates} of {all}");
        }
    }
}

#[test]
fn picks_every_id_of_the_table_and_no_other() {
    let (mut generator, mut tx) = session(&point(20, "select", None));
    let mut seen = [false; 20];
    for _ in 0..2_000 {
        generator.next(&mut tx);
        let (_, parameters) = decoded(&tx);
        let id = i32::from_be_bytes(parameters[0].clone().try_into().unwrap());
        seen[usize::try_from(id).unwrap()] = true;
    }
    assert!(seen.iter().all(|seen| *seen));
}

#[test]
fn updates_write_new_texts_of_the_requested_length() {
    for (length, expected) in [(None, 6), (Some(9), 9)] {
        let (mut generator, mut tx) = session(&point(20, "update", length));
        let mut texts = Vec::new();
        for _ in 0..50 {
            generator.next(&mut tx);
            let (_, parameters) = decoded(&tx);
            assert_eq!(parameters.len(), 5);
            texts.extend(parameters.into_iter().skip(1));
        }
        assert!(texts.iter().all(|text| text.len() == expected));
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts.len(), 200);
    }
}

/// Returns the outcome of a select with these rows in its reply.
fn outcome(point: &PointAccess, rows: &[&[&str]]) -> TransactionOutcome {
    let (mut generator, mut tx) = session(point);
    generator.next(&mut tx);
    let mut outcome = TransactionOutcome::default();
    for row in rows {
        let mut bytes = Vec::new();
        let values: Vec<_> = row.iter().map(|value| Some(value.as_bytes())).collect();
        data_row(&mut bytes, &values).unwrap();
        let (frame, _) = split(&bytes, FRAME_BYTES_MAX).unwrap().unwrap();
        let Answer::DataRow(row) = Answer::decode(frame).unwrap() else { panic!("no row") };
        generator.reply(&tx, &tx.reply(row), &mut outcome);
    }
    generator.complete(&tx, &format!("SELECT {}", rows.len()), &mut outcome);
    outcome
}

#[test]
fn a_row_must_have_four_texts_of_an_allowed_length() {
    let select = point(10, "select", None);
    let good: &[&str] = &["abcdef"; 4];
    assert_eq!(
        outcome(&select, &[good]),
        TransactionOutcome { rows: 1, wrong: false, ..TransactionOutcome::default() }
    );
    for wrong in [&["abcdef"; 3][..], &["abcdef"; 5], &["abcdef", "abcdef", "abcdef", "abcde"]] {
        assert!(outcome(&select, &[wrong]).wrong, "{wrong:?}");
    }
    assert!(outcome(&select, &[]).wrong, "a lost row");
    assert!(outcome(&select, &[good, good]).wrong, "a duplicated row");
    // Texts written by concurrent updates are also correct.
    let mixed = point(10, "mixed:90/10", Some(9));
    let both: &[&str] = &["abcdef", "abcdefghi", "abcdef", "abcdefghi"];
    assert_eq!(
        outcome(&mixed, &[both]),
        TransactionOutcome { rows: 1, wrong: false, ..TransactionOutcome::default() }
    );
}

#[test]
fn an_update_must_change_exactly_one_row() {
    let (mut generator, mut tx) = session(&point(10, "update", None));
    generator.next(&mut tx);
    for (tag, wrong) in [("UPDATE 1", false), ("UPDATE 0", true), ("UPDATE 2", true)] {
        let mut outcome = TransactionOutcome::default();
        generator.complete(&tx, tag, &mut outcome);
        assert_eq!(outcome.wrong, wrong, "{tag}");
    }
}

#[test]
fn statements_are_expected_to_use_the_primary_key() {
    let accesses = point(10, "mixed:50/50", None).accesses();
    let lines: Vec<_> = accesses
        .iter()
        .map(|access| {
            format!("{}: {} -- {}", access.explain_sql(true), access.sql, access.expected)
        })
        .collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn each_statement_reads_the_table_that_has_its_key() {
    let mut point = point(100, "mixed:50/50", None);
    point.table.dataset.tables = 7;
    // 50 rows are in the first four tables.
    point.rows_used = 50;
    assert_eq!(point.used_table_names().len(), 4);
    assert_eq!(point.accesses().len(), 8);
    let (mut generator, mut tx) = session(&point);
    let mut tables = std::collections::BTreeSet::new();
    for _ in 0..500 {
        generator.next(&mut tx);
        let (name, parameters) = decoded(&tx);
        let id = i32::from_be_bytes(parameters[0].clone().try_into().unwrap());
        let (operation, table) = name.split_once('_').unwrap();
        assert_eq!(operation == "update", parameters.len() == 5);
        let keys = point.table.dataset.keys_of_table(table.parse::<u32>().unwrap() - 1);
        assert!(keys.contains(&u64::try_from(id).unwrap()), "{name} with {id}");
        tables.insert(name);
    }
    assert_eq!(tables.len(), 8);
}
