use super::*;
use crate::workload::Statement;
use riops_wire::frame::{self, FRAME_BYTES_MAX};
use riops_wire::frontend::Message;

fn statements(protocol: Protocol) -> Arc<Statements> {
    let statement = |name: &str, sql: &str| Statement {
        name: name.to_owned(),
        sql: sql.to_owned(),
        parameter_types: vec![20, 20],
    };
    let list = vec![
        statement("read", "select $1 + $2"),
        statement("bad\0name", "select $2 from t where a > $1 and b > $2 limit 1"),
    ];
    Arc::new(Statements::new(protocol, list))
}

/// Returns the message types of a transaction of two statements, and its SQL.
fn sent(protocol: Protocol) -> (String, String) {
    let mut tx = Transaction::new(statements(protocol));
    tx.begin(0, 5);
    tx.execute(0, &[1, -2]);
    tx.execute(0, &[3, 4]);
    tx.end_step();
    let (mut kinds, mut sql) = (String::new(), String::new());
    let mut rest = tx.bytes();
    while let Some((frame, later)) = frame::split(rest, FRAME_BYTES_MAX).unwrap() {
        kinds.push(char::from(frame.tag));
        match Message::decode(frame).unwrap() {
            Message::Query(text) | Message::Parse { sql: text, .. } => sql.push_str(text),
            _ => {}
        }
        rest = later;
    }
    (kinds, sql)
}

#[test]
fn each_protocol_sends_the_expected_messages() {
    assert_eq!(sent(Protocol::Prepared), ("BEBES".to_owned(), String::new()));
    let (kinds, sql) = sent(Protocol::Extended);
    assert_eq!((kinds.as_str(), sql.as_str()), ("PBEPBES", "select $1 + $2select $1 + $2"));
    let (kinds, sql) = sent(Protocol::Simple);
    assert_eq!((kinds.as_str(), sql.as_str()), ("Q", "select 1 + -2; select 3 + 4"));
}

#[test]
fn replaces_parameters_in_any_order() {
    let sql = "select $2 from t where a > $1 and b > $2 limit 1";
    assert_eq!(
        with_literals(sql, &["7".to_owned(), "8".to_owned()]),
        "select 8 from t where a > 7 and b > 8 limit 1"
    );
    assert_eq!(with_literals("select 1", &[]), "select 1");
}

#[test]
fn the_steps_of_a_transaction_are_its_bytes() {
    for (protocol, kinds) in
        [(Protocol::Prepared, ["BES", "BEBES"]), (Protocol::Simple, ["Q", "Q"])]
    {
        let mut tx = Transaction::new(statements(protocol));
        tx.begin(0, 3);
        tx.execute(0, &[1, 2]);
        tx.end_step();
        tx.execute(0, &[3, 4]);
        tx.execute(0, &[5, 6]);
        tx.end_step();
        assert_eq!((tx.steps(), tx.statements()), (2, 3));
        let mut all = Vec::new();
        for (step, expected) in kinds.iter().enumerate() {
            let (bytes, statements) = tx.step(step);
            let mut tags = String::new();
            let mut rest = bytes;
            while let Some((frame, later)) = frame::split(rest, FRAME_BYTES_MAX).unwrap() {
                tags.push(char::from(frame.tag));
                rest = later;
            }
            assert_eq!((tags.as_str(), statements as usize), (*expected, step + 1));
            all.extend_from_slice(bytes);
        }
        assert_eq!((all.as_slice(), tx.step(2)), (tx.bytes(), (&[][..], 0)));
    }
}

#[test]
fn reports_an_encoding_error() {
    let mut tx = Transaction::new(statements(Protocol::Prepared));
    tx.begin(1, 10);
    tx.execute(1, &[1, 2]);
    tx.end_step();
    assert!(tx.error().is_some());
    tx.begin(0, 5);
    tx.execute(0, &[1, 2]);
    tx.end_step();
    assert_eq!((tx.error(), tx.statements(), tx.operation(), tx.expected_rows()), (None, 1, 0, 5));
    assert_eq!(tx.bytes().last(), Some(&4));
}
