//! Authentication methods: SCRAM-SHA-256 with and without channel binding (RFC 5802, RFC 7677, RFC
//! 5929), MD5, and the policy for which methods a server may request.
//!
//! The cryptography comes from the crate `postgres-protocol`. This module only validates its input.

use postgres_protocol::authentication::sasl::{ChannelBinding, ScramSha256};

/// SASL mechanism name of SCRAM without channel binding.
pub const SCRAM_SHA_256: &str = "SCRAM-SHA-256";
/// SASL mechanism name of SCRAM with channel binding.
pub const SCRAM_SHA_256_PLUS: &str = "SCRAM-SHA-256-PLUS";

/// Authentication method, named as in libpq's `require_auth`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// No authentication visible in the protocol: trust, peer, or a client certificate.
    None,
    /// The cleartext password.
    Password,
    /// The password hashed with a salt.
    Md5,
    /// SCRAM-SHA-256, with or without channel binding.
    ScramSha256,
}

impl Method {
    /// All supported methods.
    pub const ALL: [Self; 4] = [Self::None, Self::Password, Self::Md5, Self::ScramSha256];

    /// Returns libpq's name of the method.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Password => "password",
            Self::Md5 => "md5",
            Self::ScramSha256 => "scram-sha-256",
        }
    }
}

/// Authentication methods that the client accepts. Default: all except a cleartext password.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuthPolicy {
    /// Allowed methods; `None` allows all.
    pub allowed: Option<Vec<Method>>,
    /// Whether the password may be sent in cleartext.
    pub cleartext: bool,
    /// Whether SCRAM must use channel binding to the TLS connection.
    pub binding_required: bool,
    /// Hash of the server's certificate (`tls-server-end-point`, RFC 5929); `None` without TLS or if
    /// channel binding is disabled.
    pub server_end_point: Option<Vec<u8>>,
}

/// Maximum SCRAM iteration count that a server may request. PostgreSQL's default is 4096, and its
/// documentation calls 15,000 strong. One million takes this client about a second; a server that
/// requests more would only keep the client busy.
const ITERATIONS_MAX: u64 = 1_000_000;

/// SCRAM failure detected by the client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScramError {
    /// The server's message violates the RFC, or its signature is wrong.
    #[error("SCRAM authentication failed: {0}")]
    Protocol(String),
    /// The server requests too many iterations.
    #[error(
        "SCRAM authentication failed: the server requests {0} iterations, at most {ITERATIONS_MAX} are allowed"
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
    /// Starts an exchange. Uses channel binding if `server_end_point` is set and the server offers it.
    pub fn new(password: &str, server_end_point: Option<Vec<u8>>, offered: bool) -> Self {
        let binding = match (server_end_point, offered) {
            (Some(hash), true) => ChannelBinding::tls_server_end_point(hash),
            (Some(_), false) => ChannelBinding::unrequested(),
            (None, _) => ChannelBinding::unsupported(),
        };
        Self(ScramSha256::new(password.as_bytes(), binding))
    }

    /// Returns the client's next message.
    pub fn message(&self) -> &[u8] {
        self.0.message()
    }

    /// Processes the server's first message; afterwards, [`Self::message`] returns the client's proof.
    ///
    /// # Errors
    /// Returns [`ScramError`] for a malformed message or too many iterations.
    pub fn update(&mut self, server: &[u8]) -> Result<(), ScramError> {
        match iterations(server) {
            0 => Err(ScramError::Protocol("invalid iteration count".to_owned())),
            1..=ITERATIONS_MAX => self.0.update(server).map_err(|error| protocol(&error)),
            iterations => Err(ScramError::TooManyIterations(iterations)),
        }
    }

    /// Processes the server's final message and verifies that the server also knows the password.
    ///
    /// # Errors
    /// Returns [`ScramError::Protocol`] if the server's signature is wrong.
    pub fn finish(&mut self, server: &[u8]) -> Result<(), ScramError> {
        self.0.finish(server).map_err(|error| protocol(&error))
    }
}

fn protocol(error: &std::io::Error) -> ScramError {
    ScramError::Protocol(error.to_string())
}

/// Returns the attribute `i` of the server's first message, or 0 if it is missing; the next step
/// rejects such a message.
fn iterations(server: &[u8]) -> u64 {
    server
        .split(|&byte| byte == b',')
        .filter_map(|attribute| attribute.strip_prefix(b"i="))
        .map(|digits| {
            digits.iter().fold(0u64, |value, byte| {
                value.saturating_mul(10).saturating_add(u64::from(byte.saturating_sub(b'0')))
            })
        })
        .max()
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rejects_an_excessive_iteration_count() {
        let mut scram = Scram::new("secret", None, false);
        assert_eq!(
            scram.update(b"r=abc,s=c2FsdA==,i=4000000000"),
            Err(ScramError::TooManyIterations(4_000_000_000))
        );
    }

    #[test]
    fn rejects_an_iteration_count_of_zero() {
        for (count, is_valid) in [("0", false), ("1", true)] {
            let mut scram = Scram::new("secret", None, false);
            let own = String::from_utf8(scram.message().to_vec()).unwrap();
            let (_, nonce) = own.split_once("r=").unwrap();
            let server = format!("r={nonce}x,s=c2FsdA==,i={count}");
            assert_eq!(scram.update(server.as_bytes()).is_ok(), is_valid, "{count}");
        }
    }

    #[test]
    fn rejects_a_server_nonce_that_does_not_extend_the_client_nonce() {
        let mut scram = Scram::new("secret", None, false);
        assert!(matches!(scram.update(b"r=abc,s=c2FsdA==,i=4096"), Err(ScramError::Protocol(_))));
    }
}
