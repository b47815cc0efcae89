use super::*;
use crate::frame::{self, FRAME_BYTES_MAX};
use proptest::prelude::*;

#[test]
fn limits_of_poolers_are_recognized_by_their_texts() {
    let is_limit = |sqlstate: &str, message: &str| {
        let error = ServerError {
            severity: "FATAL".to_owned(),
            sqlstate: SqlState::parse(sqlstate),
            message: message.to_owned(),
            detail: None,
            hint: None,
            others: Vec::new(),
        };
        error.is_connection_limit()
    };
    for (sqlstate, message) in [
        ("53300", "remaining connection slots are reserved"),
        ("08P01", "no more connections allowed (max_client_conn)"),
        ("08P01", "query_wait_timeout"),
        ("XX000", "(EMAXCONN) max client connections reached, limit: 600"),
        ("XX000", "MaxClientsInSessionMode: max clients reached - in Session mode"),
    ] {
        assert!(is_limit(sqlstate, message), "{message}");
    }
    assert!(!is_limit("08P01", "no such user"));
    assert!(!is_limit("P0001", "too many connections"));
}

/// Owned values from which any message can be built.
#[derive(Debug, Clone)]
struct Parts {
    kind: u8,
    step: u8,
    texts: (String, String),
    names: Vec<String>,
    data: Vec<u8>,
    integer: i32,
    row: Vec<u8>,
    description: Vec<u8>,
    fields: Vec<u8>,
}

prop_compose! {
    fn parts()(
        kind in 0u8..22,
        step in 0u8..7,
        texts in ("[^\0]{0,20}", "[^\0]{0,20}"),
        names in prop::collection::vec("[^\0]{1,20}", 0..5),
        data in prop::collection::vec(any::<u8>(), 0..100),
        integer in any::<i32>(),
        values in prop::collection::vec(prop::option::of(prop::collection::vec(any::<u8>(), 0..40)), 0..6),
        fields in prop::collection::vec((1u8.., "[^\0]{0,30}"), 0..6),
    ) -> Parts {
        let mut row = Vec::new();
        let borrowed: Vec<_> = values.iter().map(Option::as_deref).collect();
        data_row(&mut row, &borrowed).unwrap();
        let mut error = Vec::new();
        let borrowed: Vec<_> = fields.iter().map(|(letter, text)| (*letter, text.as_str())).collect();
        error_response(&mut error, &borrowed).unwrap();
        let mut description = Vec::new();
        let borrowed: Vec<_> = names.iter().map(String::as_str).collect();
        row_description(&mut description, &borrowed).unwrap();
        Parts {
            kind, step, texts, names, data, integer, row, description, fields: error,
        }
    }
}

fn decoded(bytes: &[u8]) -> Message<'_> {
    let (frame, _) = frame::split(bytes, FRAME_BYTES_MAX).unwrap().unwrap();
    Message::decode(frame).unwrap()
}

fn authentication_of(parts: &Parts) -> Authentication<'_> {
    match parts.step {
        0 => Authentication::Ok,
        1 => Authentication::CleartextPassword,
        2 => Authentication::Md5Password(parts.integer.to_be_bytes()),
        3 => Authentication::Sasl(parts.names.iter().map(String::as_str).collect()),
        4 => Authentication::SaslContinue(&parts.data),
        5 => Authentication::SaslFinal(&parts.data),
        _ => Authentication::Other(7),
    }
}

fn message_of(parts: &Parts) -> Message<'_> {
    match parts.kind {
        0 => Message::Authentication(authentication_of(parts)),
        1 => Message::BackendKeyData { process: parts.integer, secret: &parts.data },
        2 => Message::BindComplete,
        3 => Message::CloseComplete,
        4 => Message::CommandComplete(&parts.texts.0),
        5 => Message::CopyInResponse,
        6 => Message::CopyOutResponse,
        7 => Message::CopyData(&parts.data),
        8 => Message::CopyDone,
        9 => decoded(&parts.row),
        10 => Message::EmptyQueryResponse,
        11 => decoded(&parts.fields),
        12 => Message::NegotiateProtocolVersion,
        13 => Message::NoData,
        14 => Message::NotificationResponse,
        15 => Message::ParameterDescription,
        16 => Message::ParameterStatus { name: &parts.texts.0, value: &parts.texts.1 },
        17 => Message::ParseComplete,
        18 => Message::PortalSuspended,
        19 => Message::ReadyForQuery(TransactionStatus::Open),
        20 => decoded(&parts.description),
        _ => match decoded(&parts.fields) {
            Message::ErrorResponse(fields) => Message::NoticeResponse(fields),
            other => other,
        },
    }
}

proptest! {
    #[test]
    fn decoding_an_encoded_message_returns_the_message(parts in parts()) {
        let message = message_of(&parts);
        let mut bytes = Vec::new();
        message.encode(&mut bytes).unwrap();
        prop_assert_eq!(decoded(&bytes), message);
    }

    #[test]
    fn decodes_the_encoded_values_of_a_row(
        values in prop::collection::vec(prop::option::of(prop::collection::vec(any::<u8>(), 0..40)), 0..6),
    ) {
        let borrowed: Vec<_> = values.iter().map(Option::as_deref).collect();
        let mut bytes = Vec::new();
        data_row(&mut bytes, &borrowed).unwrap();
        let Message::DataRow(row) = decoded(&bytes) else { panic!("no row") };
        let decoded_values: Vec<_> = row.values().map(Result::unwrap).collect();
        prop_assert_eq!(decoded_values, borrowed);
    }
}

proptest! {
    #[test]
    fn decodes_the_encoded_names_of_the_columns(
        names in prop::collection::vec("[^\0]{0,20}", 0..6),
    ) {
        let borrowed: Vec<_> = names.iter().map(String::as_str).collect();
        let mut bytes = Vec::new();
        row_description(&mut bytes, &borrowed).unwrap();
        let Message::RowDescription(columns) = decoded(&bytes) else { panic!("no columns") };
        prop_assert_eq!(columns.names().collect::<Vec<_>>(), borrowed);
    }
}

#[test]
fn rejects_a_truncated_row_description() {
    let mut bytes = Vec::new();
    row_description(&mut bytes, &["count"]).unwrap();
    let frame = Frame { tag: b'T', body: &bytes[5..bytes.len() - 1] };
    assert!(matches!(Message::decode(frame), Err(DecodeError::Malformed { tag: b'T', .. })));
}

#[test]
fn keeps_all_fields_of_an_error() {
    let mut bytes = Vec::new();
    let fields = [
        (b'S', "FEHLER"),
        (b'V', "ERROR"),
        (b'C', "53100"),
        (b'M', "could not extend file"),
        (b'D', "wrote 0 bytes"),
        (b'H', "Check free disk space."),
        (b'R', "mdextend"),
    ];
    error_response(&mut bytes, &fields).unwrap();
    let Message::ErrorResponse(fields) = decoded(&bytes) else { panic!("no error") };
    let error = ServerError::from_fields(fields);
    assert_eq!(error.severity, "ERROR");
    assert_eq!(error.sqlstate, SqlState::DISK_FULL);
    assert_eq!(error.others, [('R', "mdextend".to_owned())]);
    assert_eq!(
        error.to_string(),
        "could not extend file (SQLSTATE 53100); wrote 0 bytes; hint: Check free disk space."
    );
}

#[test]
fn rejects_a_row_with_a_wrong_column_count() {
    let frame = Frame { tag: b'D', body: &[0, 2, 0, 0, 0, 0] };
    assert!(matches!(Message::decode(frame), Err(DecodeError::Malformed { tag: b'D', .. })));
}

fn error(sqlstate: &str, message: &str) -> ServerError {
    ServerError {
        severity: "ERROR".to_owned(),
        sqlstate: SqlState::parse(sqlstate),
        message: message.to_owned(),
        detail: None,
        hint: None,
        others: Vec::new(),
    }
}

#[test]
fn classifies_retryable_errors_by_sqlstate_and_message() {
    assert!(error("40001", "could not serialize access").is_retryable());
    assert!(error("40P01", "deadlock detected").is_retryable());
    assert!(error("XX000", "The Catalog Version Mismatch: x").is_retryable());
    assert!(error("XX000", "expected: 3, got: 2: MISMATCHED_SCHEMA").is_retryable());
    assert!(error("XX000", "Operation failed. Try again").is_retryable());
    let in_detail = ServerError {
        detail: Some("Catalog Version Mismatch: expected 2".to_owned()),
        ..error("XX000", "query failed")
    };
    assert!(in_detail.is_retryable());
    let in_context = ServerError {
        others: vec![('W', "Catalog Version Mismatch".to_owned())],
        ..error("XX000", "query failed")
    };
    assert!(in_context.is_retryable());
    assert!(!error("XX000", "cache lookup failed").is_retryable());
    assert!(!error("23505", "duplicate key, try again").is_retryable());
}

#[test]
fn only_failed_requests_to_the_storage_leave_the_outcome_unknown() {
    for (sqlstate, message) in [
        ("08006", "connection failure"),
        ("40003", "statement completion unknown"),
        ("XX000", "Operation failed. Try again: Write RPC timed out"),
    ] {
        assert!(error(sqlstate, message).leaves_outcome_unknown(), "{sqlstate} {message}");
    }
    // A request with an outdated schema is rejected before it is applied.
    for (sqlstate, message) in [
        ("XX000", "schema version mismatch for table, try again"),
        ("XX000", "cache lookup failed"),
        ("40001", "Operation expired, try again"),
    ] {
        assert!(!error(sqlstate, message).leaves_outcome_unknown(), "{sqlstate} {message}");
    }
}
