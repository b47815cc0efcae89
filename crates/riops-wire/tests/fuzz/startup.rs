//! The startup of a connection to a server that sends anything.

use riops_wire::auth::{AuthPolicy, Method};
use riops_wire::backend::{self, Authentication};
use riops_wire::frame;
use riops_wire::startup::{Credentials, Startup};

/// Small, to reach the limits themselves.
const FRAME_LIMIT: usize = 4096;

/// In the replies to [`startup`], the start of a SCRAM message with the nonce of the client, which bytes cannot know.
const CLIENT_NONCE: &[u8] = b"r=*";

/// Decodes bytes as the replies of a server to a client that connects. The first byte selects the policy of the client.
///
/// # Panics
/// If an invariant of this crate is violated; the panic is the finding.
pub(crate) fn startup(bytes: &[u8]) {
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
pub(crate) fn with_client_nonce(server_first: &[u8], sent: &[u8]) -> Vec<u8> {
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
