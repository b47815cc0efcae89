//! Fuzz targets as plain functions: arbitrary bytes must cause no panic and no unbounded memory use.
//!
//! The tests run them on a corpus of complete conversations, on every prefix of it and with every single byte corrupted.
//! The coverage-guided fuzzer (`fuzz/`) calls the same functions.

#![expect(clippy::unwrap_used, reason = "a test panics on an unexpected error")]

mod startup;
mod streams;

use proptest::prelude::*;
use riops_wire::backend::{self, Authentication, Message, TransactionStatus};
use riops_wire::frontend::{self, Format};
use riops_wire::startup::{Credentials, Startup};
use startup::{startup, with_client_nonce};
use streams::{backend_stream, conversation, frontend_stream};

fn run_all_targets(bytes: &[u8]) {
    backend_stream(bytes);
    frontend_stream(bytes);
    conversation(bytes);
    startup(bytes);
}

fn server_corpus() -> Vec<u8> {
    let mut out = Vec::new();
    let connect = [
        Message::Authentication(Authentication::Ok),
        Message::ParameterStatus { name: "server_version", value: "18.1" },
        Message::BackendKeyData { process: 1, secret: &[1, 2, 3, 4] },
        Message::ReadyForQuery(TransactionStatus::Idle),
        Message::ParseComplete,
        Message::ParameterDescription,
        Message::CopyInResponse,
        Message::BindComplete,
    ];
    for message in &connect {
        message.encode(&mut out).unwrap();
    }
    backend::row_description(&mut out, &["count", "max"]).unwrap();
    backend::data_row(&mut out, &[Some(&[0; 8]), None]).unwrap();
    Message::CommandComplete("SELECT 1").encode(&mut out).unwrap();
    backend::error_response(&mut out, &[(b'C', "40001"), (b'M', "no")]).unwrap();
    Message::ReadyForQuery(TransactionStatus::Idle).encode(&mut out).unwrap();
    out
}

fn sasl_corpus() -> Vec<u8> {
    let mut out = Vec::new();
    let steps = [
        Authentication::Sasl(vec!["SCRAM-SHA-256-PLUS", "SCRAM-SHA-256"]),
        Authentication::SaslContinue(b"r=*abc,s=c2FsdA==,i=1"),
        Authentication::SaslFinal(b"v=abc"),
        Authentication::Md5Password([1, 2, 3, 4]),
    ];
    for step in steps {
        Message::Authentication(step).encode(&mut out).unwrap();
    }
    out
}

fn client_corpus() -> Vec<u8> {
    let mut out = Vec::new();
    frontend::startup(&mut out, &[("user", "riops")]).unwrap();
    let messages = [
        frontend::Message::Query("select 1"),
        frontend::Message::Parse { name: "read", sql: "select $1", parameter_types: vec![20] },
        frontend::Message::CopyData(b"1\t2\n"),
        frontend::Message::CopyFail("no"),
        frontend::Message::Sync,
    ];
    for message in &messages {
        message.encode(&mut out).unwrap();
    }
    let parameters = vec![Some([0; 8].as_slice()), None];
    let bind = frontend::Message::Bind { statement: "read", format: Format::Binary, parameters };
    bind.encode(&mut out).unwrap();
    out
}

#[test]
fn the_nonce_of_the_client_is_inserted_into_the_messages_of_the_server() {
    let credentials = Credentials { password: Some("secret".to_owned()), ..Credentials::default() };
    let mut out = Vec::new();
    let mut startup = Startup::begin(&credentials, &mut out).unwrap();
    let sasl = Message::Authentication(Authentication::Sasl(vec!["SCRAM-SHA-256"]));
    startup.receive(&sasl, &mut out).unwrap();
    let server_first = with_client_nonce(b"r=*abc,s=c2FsdA==,i=1", &out);
    let step = Message::Authentication(Authentication::SaslContinue(&server_first));
    assert_eq!(startup.receive(&step, &mut out), Ok(false));
}

#[test]
fn no_target_panics_on_a_corpus_truncated_or_corrupted_at_any_byte() {
    // The first byte chooses the policy of a client that has a password.
    let startup = [&[1], sasl_corpus().as_slice()].concat();
    for corpus in [server_corpus(), sasl_corpus(), client_corpus(), startup] {
        for cut in 0..=corpus.len() {
            run_all_targets(&corpus[..cut]);
        }
        for position in 0..corpus.len() {
            for value in [0, 1, 0x7f, 0x80, 0xff, b'E', b'D'] {
                let mut corrupted = corpus.clone();
                corrupted[position] = value;
                run_all_targets(&corrupted);
            }
        }
    }
}

proptest! {
    #[test]
    fn no_target_panics_on_arbitrary_bytes(bytes in prop::collection::vec(any::<u8>(), 0..2_000)) {
        run_all_targets(&bytes);
    }

    #[test]
    fn no_target_panics_on_frames_with_wrong_lengths(
        frames in prop::collection::vec(
            (prop::sample::select(b"RSKZTDCEN123tnsIGdcfpPBQX".to_vec()), 0u32..300, prop::collection::vec(any::<u8>(), 0..60)),
            0..10,
        ),
    ) {
        let mut bytes = Vec::new();
        for (tag, length, body) in frames {
            bytes.push(tag);
            bytes.extend_from_slice(&length.to_be_bytes());
            bytes.extend_from_slice(&body);
        }
        run_all_targets(&bytes);
    }
}
