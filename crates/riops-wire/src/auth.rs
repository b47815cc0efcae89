//! Ways to prove who one is: SCRAM-SHA-256 with and without channel binding (RFC 5802, RFC 7677,
//! RFC 5929), MD5, and what the client lets a server ask for.
//!
//! The cryptography is the crate `postgres-protocol`'s; this module only guards its input.

use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, ScramSha256};

/// The name of the mechanism.
pub const SCRAM_SHA_256: &str = "SCRAM-SHA-256";
/// The same, bound to the TLS channel.
pub const SCRAM_SHA_256_PLUS: &str = "SCRAM-SHA-256-PLUS";

/// How a server makes sure of a client, by libpq's names in `require_auth`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Not at all, as far as the protocol shows: trust, peer, a certificate.
    None,
    /// The password as it is.
    Password,
    /// The password, hashed with a salt.
    Md5,
    /// SCRAM-SHA-256, bound to the channel or not.
    ScramSha256,
}

impl Method {
    /// All that riops offers.
    pub const ALL: [Self; 4] = [Self::None, Self::Password, Self::Md5, Self::ScramSha256];

    /// libpq's name of it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Password => "password",
            Self::Md5 => "md5",
            Self::ScramSha256 => "scram-sha-256",
        }
    }
}

/// What the client lets a server ask for. The default: anything but a cleartext password.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuthPolicy {
    /// Methods that the server may use; without a list any.
    pub allowed: Option<Vec<Method>>,
    /// Whether the password may be sent as it is.
    pub cleartext: bool,
    /// Whether SCRAM has to be bound to the TLS channel.
    pub binding_required: bool,
    /// The hash of the server's certificate (`tls-server-end-point`, RFC 5929); `None` where there
    /// is no TLS, or where binding is not wanted.
    pub server_end_point: Option<Vec<u8>>,
}

impl AuthPolicy {
    pub(crate) fn allows(&self, method: Method) -> bool {
        self.allowed.as_ref().is_none_or(|allowed| allowed.contains(&method))
    }
}

/// The answer to `AuthenticationMD5Password`.
#[must_use]
pub fn md5_answer(user: &str, password: &str, salt: [u8; 4]) -> String {
    md5_hash(user.as_bytes(), password.as_bytes(), salt)
}

/// Hash iterations that a server may ask for. PostgreSQL's default is 4096 and its documentation
/// speaks of 15,000 as strong; a million takes this client about a second, and a server that asks
/// for more wants to keep it busy.
const ITERATIONS_MAX: u32 = 1_000_000;

/// Why SCRAM failed on the client's side.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScramError {
    /// The server's message does not follow the RFC, or its proof is wrong.
    #[error("SCRAM authentication failed: {0}")]
    Protocol(String),
    /// The server asks for more work than riops does for it.
    #[error(
        "SCRAM authentication refused: the server asks for {0} iterations, above {ITERATIONS_MAX}"
    )]
    TooManyIterations(u64),
}

/// The client's side of one SCRAM exchange.
pub struct Scram(ScramSha256);

impl std::fmt::Debug for Scram {
    // The state holds the password.
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Scram")
    }
}

impl Scram {
    /// Starts an exchange: bound to the channel where `server_end_point` is there and the server
    /// offers it, else without.
    #[must_use]
    pub fn new(password: &str, server_end_point: Option<Vec<u8>>, offered: bool) -> Self {
        let binding = match (server_end_point, offered) {
            (Some(hash), true) => ChannelBinding::tls_server_end_point(hash),
            (Some(_), false) => ChannelBinding::unrequested(),
            (None, _) => ChannelBinding::unsupported(),
        };
        Self(ScramSha256::new(password.as_bytes(), binding))
    }

    /// What the client has to send next.
    #[must_use]
    pub fn message(&self) -> &[u8] {
        self.0.message()
    }

    /// Takes the server's first message; [`Self::message`] is then the client's proof.
    ///
    /// # Errors
    /// [`ScramError`]
    pub fn update(&mut self, server: &[u8]) -> Result<(), ScramError> {
        let iterations = iterations(server);
        if iterations > u64::from(ITERATIONS_MAX) {
            return Err(ScramError::TooManyIterations(iterations));
        }
        self.0.update(server).map_err(|error| protocol(&error))
    }

    /// Takes the server's last message and checks that the server knows the password too.
    ///
    /// # Errors
    /// [`ScramError::Protocol`]
    pub fn finish(&mut self, server: &[u8]) -> Result<(), ScramError> {
        self.0.finish(server).map_err(|error| protocol(&error))
    }
}

fn protocol(error: &std::io::Error) -> ScramError {
    ScramError::Protocol(error.to_string())
}

/// The attribute `i` of the server's first message; 0 where there is none, which the next step
/// refuses by itself.
fn iterations(server: &[u8]) -> u64 {
    server
        .split(|&byte| byte == b',')
        .filter_map(|attribute| attribute.strip_prefix(b"i="))
        .map(|digits| {
            digits.iter().fold(0u64, |number, byte| {
                number.saturating_mul(10).saturating_add(u64::from(byte.saturating_sub(b'0')))
            })
        })
        .max()
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_asks_for_endless_work_is_refused() {
        let mut scram = Scram::new("secret", None, false);
        assert_eq!(
            scram.update(b"r=abc,s=c2FsdA==,i=4000000000"),
            Err(ScramError::TooManyIterations(4_000_000_000))
        );
    }

    #[test]
    fn a_nonce_that_does_not_continue_ours_is_refused() {
        let mut scram = Scram::new("secret", None, false);
        assert!(matches!(scram.update(b"r=abc,s=c2FsdA==,i=4096"), Err(ScramError::Protocol(_))));
    }
}
