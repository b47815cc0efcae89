//! Streams of both sides of the protocol, and the conversation of a client with a server.

use riops_wire::auth::AuthPolicy;
use riops_wire::backend::{self, ServerError};
use riops_wire::frame::{self, FrameBuffer};
use riops_wire::frontend;
use riops_wire::pipeline::Pipeline;
use riops_wire::startup::{Credentials, Startup};

/// Small, to reach the limits themselves.
const FRAME_LIMIT: usize = 4096;

/// Decodes bytes as a server's stream and reads every field of each message.
///
/// # Panics
/// If an invariant of this crate is violated; the panic is the finding.
pub(crate) fn backend_stream(bytes: &[u8]) {
    let mut rest = bytes;
    while let Ok(Some((frame, later))) = frame::split(rest, FRAME_LIMIT) {
        match backend::Message::decode(frame) {
            Ok(backend::Message::DataRow(row)) => {
                assert!(row.values().all(|value| value.is_ok()));
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
pub(crate) fn frontend_stream(bytes: &[u8]) {
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
pub(crate) fn conversation(bytes: &[u8]) {
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
    let mut pipeline = Pipeline::default();
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
