//! Fuzz targets as plain functions: arbitrary bytes must cause no panic and no unbounded memory use.
//!
//! The tests below run them on a corpus of complete conversations, on every prefix of it and with every
//! single byte corrupted. A coverage-guided fuzzer calls the same functions.

use crate::auth::{AuthPolicy, Method};
use crate::backend::{self, Authentication, ServerError};
use crate::frame::{self, FrameBuffer};
use crate::frontend;
use crate::pipeline::Pipeline;
use crate::startup::{Credentials, Startup};

/// Small, to reach the limits themselves.
const FRAME_LIMIT: usize = 4096;

/// In the replies to [`startup`], the start of a SCRAM message with the nonce of the client, which bytes cannot know.
const CLIENT_NONCE: &[u8] = b"r=*";

/// Decodes bytes as a server's stream and reads every field of each message.
///
/// # Panics
/// If an invariant of this crate is violated; the panic is the finding.
pub fn backend_stream(bytes: &[u8]) {
    let mut rest = bytes;
    while let Ok(Some((frame, later))) = frame::split(rest, FRAME_LIMIT) {
        match backend::Message::decode(frame) {
            Ok(backend::Message::DataRow(row)) => {
                assert_eq!(row.values().count(), usize::from(row.columns()));
            }
            Ok(
                backend::Message::ErrorResponse(fields) | backend::Message::NoticeResponse(fields),
            ) => {
                let error = ServerError::from_fields(fields);
                assert!(error.to_string().len() <= 4 * FRAME_LIMIT);
            }
            _ => {}
        }
        rest = later;
    }
}

/// Decodes bytes as a client's stream.
///
/// # Panics
/// If an invariant of this crate is violated; the panic is the finding.
pub fn frontend_stream(bytes: &[u8]) {
    let mut rest = bytes;
    while let Ok(Some((frame, later))) = frame::split(rest, FRAME_LIMIT) {
        if let Ok(message) = frontend::Message::decode(frame) {
            let mut reencoded = Vec::new();
            let encoded = message.encode(&mut reencoded);
            assert!(encoded.is_ok(), "every decoded message can be encoded: {message:?}");
        }
        rest = later;
    }
    let _ = frontend::decode_startup(bytes);
}

/// Decodes bytes as the replies of a server to a client that connects and then waits for one statement.
///
/// # Panics
/// If an invariant of this crate is violated; the panic is the finding.
pub fn conversation(bytes: &[u8]) {
    let credentials = Credentials {
        user: "riops".to_owned(),
        password: Some("secret".to_owned()),
        database: "riops".to_owned(),
        settings: Vec::new(),
        policy: AuthPolicy {
            cleartext: true,
            server_end_point: Some(vec![7; 32]),
            ..AuthPolicy::default()
        },
    };
    let mut out = Vec::new();
    let Ok(mut startup) = Startup::begin(&credentials, &mut out) else {
        return;
    };
    let mut pipeline = Pipeline::new();
    let mut ready = false;
    let mut buffer = FrameBuffer::new(FRAME_LIMIT);
    for piece in bytes.chunks(7) {
        if buffer.extend(piece).is_err() {
            return;
        }
        while let Ok(Some(frame)) = buffer.next_frame() {
            let Ok(message) = backend::Message::decode(frame) else {
                return;
            };
            let keep_going = if ready {
                pipeline.receive(&message).is_ok()
            } else {
                match startup.receive(&message, &mut out) {
                    Ok(done) => {
                        ready = done;
                        !done || pipeline.sent(1).is_ok()
                    }
                    Err(_) => false,
                }
            };
            if !keep_going {
                return;
            }
        }
        assert!(buffer.unread().len() <= 2 * FRAME_LIMIT);
        assert!(out.len() <= 64 * FRAME_LIMIT);
    }
}

/// Decodes bytes as the replies of a server to a client that connects. The first byte selects the policy of the client.
///
/// # Panics
/// If an invariant of this crate is violated; the panic is the finding.
pub fn startup(bytes: &[u8]) {
    let Some((&choice, mut rest)) = bytes.split_first() else {
        return;
    };
    let chosen = |bit: u8| choice & (1 << bit) != 0;
    let credentials = Credentials {
        user: "riops".to_owned(),
        password: chosen(0).then(|| "secret".to_owned()),
        database: "riops".to_owned(),
        settings: vec![("application_name".to_owned(), "fuzz".to_owned())],
        policy: AuthPolicy {
            allowed: chosen(1).then(|| vec![Method::ScramSha256]),
            cleartext: chosen(2),
            binding_required: chosen(3),
            server_end_point: chosen(4).then(|| vec![7; 32]),
        },
    };
    let mut out = Vec::new();
    let Ok(mut startup) = Startup::begin(&credentials, &mut out) else {
        return;
    };
    while let Ok(Some((frame, later))) = frame::split(rest, FRAME_LIMIT) {
        let Ok(message) = backend::Message::decode(frame) else {
            return;
        };
        let server_first = match message {
            backend::Message::Authentication(Authentication::SaslContinue(server)) => {
                with_client_nonce(server, &out)
            }
            _ => Vec::new(),
        };
        let message = if server_first.is_empty() {
            message
        } else {
            backend::Message::Authentication(Authentication::SaslContinue(&server_first))
        };
        match startup.receive(&message, &mut out) {
            Ok(true) => {
                assert!(!chosen(1), "SCRAM ends only with a proof, which these bytes cannot have");
                return;
            }
            Ok(false) => rest = later,
            Err(error) => {
                assert!(error.to_string().len() <= 4 * FRAME_LIMIT);
                return;
            }
        }
        assert!(out.len() <= 64 * FRAME_LIMIT);
    }
}

/// Replaces [`CLIENT_NONCE`] by the nonce in the messages `sent` so far.
fn with_client_nonce(server_first: &[u8], sent: &[u8]) -> Vec<u8> {
    let Some(server_rest) = server_first.strip_prefix(CLIENT_NONCE) else {
        return server_first.to_vec();
    };
    // RFC 5802: `n=` is an empty user name, and the nonce is the last attribute of the message.
    let nonce = sent.windows(5).position(|window| window == b"n=,r=");
    let mut replaced = b"r=".to_vec();
    replaced.extend(nonce.and_then(|start| sent.get(start + 5..)).unwrap_or_default());
    replaced.extend_from_slice(server_rest);
    replaced
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{CopyStart, Message, TransactionStatus};
    use proptest::prelude::*;

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
            Message::ParameterDescription(vec![20, 20]),
            Message::CopyInResponse(CopyStart { binary: true, columns: 3 }),
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
        frontend::bind_bigints(&mut out, "read", &[1, 2]).unwrap();
        out
    }

    #[test]
    fn the_nonce_of_the_client_is_inserted_into_the_messages_of_the_server() {
        let credentials =
            Credentials { password: Some("secret".to_owned()), ..Credentials::default() };
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
}
