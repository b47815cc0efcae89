use super::*;
use crate::workload::Generator;
use crate::workload::access::AccessPath;
use crate::workload::transaction::{Statements, Transaction};
use proptest::prelude::*;
use riops_model::plan::Protocol;
use riops_testkit::VERSION;
use riops_wire::frame::{FRAME_BYTES_MAX, split};
use riops_wire::frontend::Message;

fn dataset(rows: u64) -> LoadDataset {
    LoadDataset { rows, field_length: 5, seed: 9, ..LoadDataset::default() }
}

fn load(rows: u64, method: Method, batch_size: u64) -> Load {
    Load::new(dataset(rows), LoadRun { method, batch_size, ..LoadRun::default() })
}

fn plan(load: &Load, sessions: u32, protocol: Protocol) -> Plan {
    Plan { work: load.run.clone().into(), sessions, protocol, ..Plan::default() }
}

/// Returns all bytes of one transaction.
fn bytes_of(generator: &mut dyn Generator, tx: &mut Transaction) -> Option<Vec<u8>> {
    if !generator.next(tx) {
        return None;
    }
    assert_eq!(tx.error(), None);
    let mut bytes = tx.bytes().to_vec();
    while tx.next_row().is_some() {
        generator.piece(tx, &mut bytes);
    }
    Some(bytes)
}

/// A sent row: its id and its texts.
type SentRow = (u64, Vec<String>);

/// Returns the rows that all sessions send, by batch.
fn sent(load: &Load, sessions: u32, protocol: Protocol) -> Vec<Vec<SentRow>> {
    let stage = load.stage(&plan(load, sessions, protocol));
    let mut batches = Vec::new();
    for session in stage.sessions {
        let Work::Client(mut generator) = session.work else {
            panic!("the loop runs in the server")
        };
        let statements = session.statements.clone();
        let mut tx = Transaction::new(Arc::new(Statements::new(protocol, session.statements)));
        while let Some(bytes) = bytes_of(generator.as_mut(), &mut tx) {
            let rows = rows_sent(&bytes, &statements, load.run.method);
            assert_eq!(rows.len() as u64, tx.expected_rows());
            batches.push(rows);
        }
        assert!(
            bytes_of(generator.as_mut(), &mut tx).is_none(),
            "a generator that ended must not start again"
        );
    }
    batches
}

fn rows_sent(bytes: &[u8], statements: &[Statement], method: Method) -> Vec<SentRow> {
    let mut rest = bytes;
    let mut data = Vec::new();
    let mut rows = Vec::new();
    while let Some((frame, later)) = split(rest, FRAME_BYTES_MAX).unwrap() {
        match Message::decode(frame).unwrap() {
            Message::Bind { statement, parameters, .. } => {
                let known = statements.iter().find(|known| known.name == statement).unwrap();
                assert_eq!(known.parameter_types.len(), parameters.len());
                rows = match method {
                    Method::Insert => inserted(&parameters),
                    Method::Unnest => unnested(&parameters),
                    _ => panic!("{method:?} binds nothing"),
                };
            }
            Message::CopyData(piece) => data.extend_from_slice(piece),
            Message::CopyDone => {
                rows =
                    if method == Method::CopyBinary { binary(&data) } else { lines(&data, '\t') };
            }
            Message::Execute { .. } | Message::Sync => {}
            Message::Query(sql) => assert!(sql.starts_with("copy riops.test_table ("), "{sql}"),
            other => panic!("{other:?}"),
        }
        rest = later;
    }
    rows
}

fn text(bytes: &[u8]) -> String {
    std::str::from_utf8(bytes).unwrap().to_owned()
}

fn int(bytes: &[u8]) -> u64 {
    i32::from_be_bytes(bytes.try_into().unwrap()).try_into().unwrap()
}

fn inserted(parameters: &[Option<&[u8]>]) -> Vec<SentRow> {
    let row = |row: &[Option<&[u8]>]| {
        (int(row[0].unwrap()), row[1..].iter().map(|value| text(value.unwrap())).collect())
    };
    parameters.chunks(5).map(row).collect()
}

/// Returns the elements of a binary array.
fn elements(array: &[u8]) -> Vec<&[u8]> {
    let count = i32::from_be_bytes(array[12..16].try_into().unwrap());
    let mut rest = &array[20..];
    let mut elements = Vec::new();
    for _ in 0..count {
        let (length, later) = rest.split_at(4);
        let (element, later) = later.split_at(usize::try_from(int(length)).unwrap());
        elements.push(element);
        rest = later;
    }
    assert!(rest.is_empty());
    elements
}

fn unnested(parameters: &[Option<&[u8]>]) -> Vec<SentRow> {
    let columns: Vec<_> = parameters.iter().map(|array| elements(array.unwrap())).collect();
    (0..columns[0].len())
        .map(|row| {
            (int(columns[0][row]), columns[1..].iter().map(|column| text(column[row])).collect())
        })
        .collect()
}

fn binary(data: &[u8]) -> Vec<SentRow> {
    let mut rest = data.strip_prefix(b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0").unwrap();
    let mut rows = Vec::new();
    loop {
        let (columns, mut later) = rest.split_at(2);
        if columns == [255, 255] {
            assert!(later.is_empty());
            return rows;
        }
        let mut values = Vec::new();
        for _ in 0..columns[1] {
            let (length, value) = later.split_at(4);
            let (value, behind) = value.split_at(usize::try_from(int(length)).unwrap());
            values.push(value);
            later = behind;
        }
        rows.push((int(values[0]), values[1..].iter().map(|value| text(value)).collect()));
        rest = later;
    }
}

fn lines(data: &[u8], separator: char) -> Vec<SentRow> {
    text(data)
        .lines()
        .map(|line| {
            let mut values = line.split(separator);
            let id = values.next().unwrap().parse().unwrap();
            (id, values.map(str::to_owned).collect())
        })
        .collect()
}

const SENT: [Method; 4] = [Method::Insert, Method::Copy, Method::CopyBinary, Method::Unnest];

proptest! {
    #[test]
    fn sends_every_id_once_for_any_remainder(
        rows in 1u64..700,
        sessions in 1u32..9,
        batch in 1u64..120,
        method in prop::sample::select(SENT.to_vec()),
    ) {
        let batches = sent(&load(rows, method, batch), sessions, Protocol::Prepared);
        prop_assert!(batches.iter().all(|rows| rows.len() as u64 <= batch));
        let mut ids: Vec<_> = batches.into_iter().flatten().map(|(id, _)| id).collect();
        ids.sort_unstable();
        prop_assert!(ids.into_iter().eq(0..rows));
    }
}

#[test]
fn every_method_sends_the_same_rows() {
    let rows_of = |method| {
        let mut rows: Vec<_> =
            sent(&load(1_000, method, 77), 3, Protocol::Prepared).into_iter().flatten().collect();
        rows.sort_unstable();
        rows
    };
    let insert = rows_of(Method::Insert);
    assert_eq!(insert.len(), 1_000);
    assert!(insert.iter().all(|(_, texts)| texts.iter().all(|text| text.len() == 5)));
    for method in SENT {
        assert_eq!(rows_of(method), insert, "{method:?}");
    }
    // The files contain the same rows.
    let mut file = Vec::new();
    for ordinal in 1..=3 {
        write_csv(&dataset(1_000), 3, ordinal, &mut file).unwrap();
    }
    assert_eq!(lines(&file, ','), insert);
}

#[test]
fn a_csv_file_whose_last_buffer_cannot_be_written_is_an_error() {
    // The file fits into the buffer, so only the flush writes.
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let mut writer = std::io::BufWriter::with_capacity(1 << 20, full);
    let error = write_csv(&dataset(10), 1, 1, &mut writer).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
}

#[test]
fn a_batch_may_have_the_maximum_number_of_parameters() {
    let batches = sent(&load(13_108, Method::Insert, 13_107), 1, Protocol::Prepared);
    assert_eq!(batches.iter().map(Vec::len).collect::<Vec<_>>(), [13_107, 1]);
}

#[test]
fn a_retry_of_a_copy_sends_the_same_bytes() {
    let load = load(20_000, Method::CopyBinary, 20_000);
    let mut session = load.stage(&plan(&load, 1, Protocol::Prepared)).sessions.remove(0);
    let Work::Client(generator) = &mut session.work else { panic!("the loop runs in the server") };
    let statements = Statements::new(Protocol::Prepared, Vec::new());
    let mut tx = Transaction::new(Arc::new(statements));
    let first = bytes_of(generator.as_mut(), &mut tx).unwrap();
    assert!(first.len() > 4 * crate::workload::tables::PIECE_BYTES);
    tx.rewind();
    let mut again = tx.bytes().to_vec();
    // The server rejects the batch after its first piece.
    generator.piece(&mut tx, &mut again);
    tx.rewind();
    again.truncate(tx.bytes().len());
    while tx.next_row().is_some() {
        generator.piece(&mut tx, &mut again);
    }
    assert!(first == again);
}

#[test]
fn the_simple_protocol_sends_the_values_as_literals() {
    for (method, expected) in [
        (Method::Insert, "values (0, '"),
        (Method::Unnest, "unnest(array[0,1]::int[]), unnest('{"),
        (Method::Procedure, "call riops.load_batch(0, 2, null)"),
        (Method::CopyFile, "from '/tmp/ysql_bench-t1-r2-f5--nr1.csv' with (format csv)"),
    ] {
        let load = load(2, method, 10);
        let mut session = load.stage(&plan(&load, 1, Protocol::Simple)).sessions.remove(0);
        let Work::Client(generator) = &mut session.work else {
            panic!("the loop runs in the server")
        };
        let statements = Statements::new(Protocol::Simple, session.statements);
        let mut tx = Transaction::new(Arc::new(statements));
        let bytes = bytes_of(generator.as_mut(), &mut tx).unwrap();
        let (frame, rest) = split(&bytes, FRAME_BYTES_MAX).unwrap().unwrap();
        let Message::Query(sql) = Message::decode(frame).unwrap() else { panic!("no query") };
        assert!(sql.contains(expected) && !sql.contains('$') && rest.is_empty(), "{sql}");
    }
}

#[test]
fn a_file_has_the_name_that_ysql_bench_uses() {
    let run = LoadRun { method: Method::CopyFile, dir: "/data/".to_owned(), ..LoadRun::default() };
    let load = Load::new(LoadDataset { rows: 10_000_000, ..LoadDataset::default() }, run);
    let files = load.files(4);
    assert_eq!(files.len(), 4);
    assert_eq!(files[3], "/data/ysql_bench-t4-r10000000-f24--nr4.csv");
}

#[test]
fn statements_and_tables_of_every_method() {
    use std::fmt::Write as _;
    let mut text = String::new();
    for (dialect, name) in
        [(Dialect::default(), "PostgreSQL"), (Dialect::from_version(VERSION), "YugabyteDB")]
    {
        let _ = writeln!(text, "== {name}");
        let dataset =
            LoadDataset { tablets: if name == "YugabyteDB" { 8 } else { 0 }, ..dataset(500) };
        for method in [
            Method::Insert,
            Method::Copy,
            Method::CopyBinary,
            Method::CopyFile,
            Method::Procedure,
            Method::Unnest,
        ] {
            let run = LoadRun {
                method,
                batch_size: 2,
                non_transactional: name == "YugabyteDB",
                ..LoadRun::default()
            };
            let load = Load::new(dataset.clone(), run).on(dialect);
            assert_eq!(load.unsupported(dialect), None);
            let session = load.stage(&plan(&load, 1, Protocol::Prepared)).sessions.remove(0);
            let _ = writeln!(text, "-- {}: {:?}", method.as_str(), session.settings);
            for statement in session.statements {
                let _ = writeln!(
                    text,
                    "{}: {} {:?}",
                    statement.name, statement.sql, statement.parameter_types
                );
            }
            if matches!(method, Method::Copy | Method::CopyBinary) {
                let _ = writeln!(text, "{}", load.copy_sql());
            }
            if let (Some(routines), "PostgreSQL") = (load.routines(), name) {
                let _ = writeln!(text, "{}", routines.sql);
            }
        }
        let load = Load::new(dataset, LoadRun::default()).on(dialect);
        let _ = writeln!(
            text,
            "-- table\n{}\n{}",
            load.dataset(dialect).tables[0].create.join(";\n"),
            load.table.finish_sql()
        );
        for sql in load.contents_sql() {
            let _ = writeln!(text, "{sql}");
        }
    }
    insta::assert_snapshot!(text);
}

#[test]
fn rejects_options_of_yugabytedb_on_postgresql() {
    let non_transactional = LoadRun { non_transactional: true, ..LoadRun::default() };
    let load = Load::new(dataset(1), non_transactional);
    assert_eq!(load.unsupported(Dialect::default()), Some("--non-transactional"));
    let tablets = LoadDataset { tablets: 4, ..dataset(1) };
    let load = Load::new(tablets, LoadRun::default());
    assert_eq!(load.unsupported(Dialect::default()), Some("--tablets"));
    assert_eq!(load.unsupported(Dialect::from_version(VERSION)), None);
}

#[test]
fn only_statements_with_a_plan_have_an_expected_access_path() {
    let accesses = |method| load(100, method, 10).accesses();
    let insert = accesses(Method::Insert);
    assert_eq!(insert.len(), 1);
    assert_eq!(insert[0].arguments.len(), 50);
    assert_eq!(insert[0].expected, AccessPath::Insert { table: "test_table".to_owned() });
    assert_eq!(accesses(Method::Unnest)[0].arguments.len(), 5);
    assert!(accesses(Method::CopyBinary).is_empty() && accesses(Method::Procedure).is_empty());
}

/// Returns the results of the contents queries for a table with these ids.
fn contents(load: &Load, ids: &[u64]) -> Vec<Vec<i128>> {
    let expected = load.table.expected();
    let part = 5;
    let numbers = (0..)
        .zip(expected)
        .flat_map(|(position, checksum)| {
            let rows = ids.iter().filter(|&&id| id / part == position).count();
            [i128::from(position), rows as i128, 0, checksum]
        })
        .collect();
    let mut distinct = ids.to_vec();
    distinct.dedup();
    let first = ids.first().copied().unwrap_or(0);
    let last = ids.last().copied().unwrap_or(0);
    vec![vec![distinct.len() as i128, first.into(), last.into()], numbers]
}

fn failed(checks: &[Check]) -> Vec<&str> {
    checks.iter().filter(|check| !check.held).map(|check| check.name.as_str()).collect()
}

#[test]
fn finds_a_lost_a_duplicated_and_a_changed_row() {
    let load = load(500, Method::Insert, 200);
    let ids: Vec<u64> = (0..500).collect();
    let complete = contents(&load, &ids);
    let checks = |contents: &[Vec<i128>]| load.checks(contents, contents, &Ledger::default());
    assert_eq!(failed(&checks(&complete)), [""; 0]);
    assert_eq!(failed(&checks(&contents(&load, &ids[..499]))).len(), 3);
    let mut duplicated = ids.clone();
    duplicated.push(499);
    assert_eq!(failed(&checks(&contents(&load, &duplicated))), ["rows of riops.test_table"]);
    let mut changed = complete.clone();
    changed[1][7] += 1;
    let results = checks(&changed);
    assert_eq!(failed(&results), ["ranges of 5 ids with texts that differ from those loaded"]);
    assert_eq!(results.last().unwrap().found, "1, the first at id 5");
    let mut long = complete;
    long[1][6] = 1;
    assert_eq!(failed(&checks(&long)), ["rows with a text that is not 5 characters long"]);
}

#[test]
fn updates_may_change_at_most_one_range_per_row() {
    let load = load(500, Method::Insert, 200);
    let ids: Vec<u64> = (0..500).collect();
    let mut changed = contents(&load, &ids);
    changed[1][3] += 1;
    changed[1][7] += 1;
    let ledger =
        |rows_changed, rows_unknown| Ledger { rows_changed, rows_unknown, ..Ledger::default() };
    let checks = |ledger| load.checks(&changed, &[], &ledger);
    assert_eq!(failed(&checks(ledger(2, 0))), [""; 0]);
    assert_eq!(failed(&checks(ledger(1, 1))), [""; 0]);
    assert_eq!(failed(&checks(ledger(1, 0))).len(), 1);
    let open = checks(Ledger { open_runs: 1, ..ledger(0, 0) });
    assert_eq!(failed(&open), [""; 0]);
    assert_eq!(open.iter().filter(|check| check.unknown).count(), 1);
    assert!(checks(ledger(2, 0)).iter().all(|check| !check.unknown));
}

#[test]
fn compares_texts_generated_by_the_server_with_the_texts_after_the_load() {
    let mut load = load(500, Method::Procedure, 200);
    load.table.dataset.contents = Method::Procedure.contents();
    let ids: Vec<u64> = (0..500).collect();
    let mut loaded = contents(&load, &ids);
    loaded[1][3] += 1;
    assert_eq!(failed(&load.checks(&loaded, &loaded, &Ledger::default())), [""; 0]);
    let baseline = contents(&load, &ids);
    assert_eq!(failed(&load.checks(&loaded, &baseline, &Ledger::default())).len(), 1);
}

#[test]
fn compares_an_interrupted_load_with_the_acknowledged_rows() {
    let load = load(500, Method::Insert, 10);
    let left = contents(&load, &(0..40).collect::<Vec<_>>());
    let ledger =
        |rows_changed, rows_unknown| Ledger { rows_changed, rows_unknown, ..Ledger::default() };
    let incomplete = "rows of riops.test_table (load incomplete)";
    assert_eq!(failed(&load.table.checks_of_incomplete_load(&left, &ledger(30, 10))), [incomplete]);
    assert_eq!(failed(&load.table.checks_of_incomplete_load(&left, &ledger(20, 10))).len(), 2);
    assert_eq!(failed(&load.table.checks_of_incomplete_load(&left, &ledger(50, 0))).len(), 2);
}

#[test]
fn a_batch_with_an_unknown_outcome_hides_no_lost_row() {
    let load = load(500, Method::Insert, 10);
    // The batches 0–9 to 20–29 were acknowledged; the outcome of 30–39 and 40–49 is unknown.
    let ledger = Ledger {
        rows_changed: 30,
        rows_unknown: 20,
        batches_unknown: vec![(30, 39), (40, 49)],
        ..Ledger::default()
    };
    let checks = |ids: &[u64], batches: [i128; 2]| {
        let mut loaded = contents(&load, ids);
        loaded.extend(batches.map(|rows| vec![rows]));
        load.table.checks_of_incomplete_load(&loaded, &ledger)
    };
    let incomplete = "rows of riops.test_table (load incomplete)";
    let all: Vec<u64> = (0..40).collect();
    assert_eq!(failed(&checks(&all, [10, 0])), [incomplete]);
    // The applied batch has as many rows as the acknowledged ones have lost.
    let lost = checks(&all[10..], [10, 0]);
    assert_eq!(failed(&lost), ["acknowledged rows of riops.test_table", incomplete]);
    assert_eq!((lost[0].expected.as_str(), lost[0].found.as_str()), ("30", "20"));
    let partial = checks(&all[..34], [4, 0]);
    assert_eq!(failed(&partial), ["batches with an unknown outcome", incomplete]);
    assert_eq!(load.ledger_sql(&ledger).len(), 2);
}
