//! SCRAM-SHA-256 (RFC 5802, RFC 7677), step by step, with limits on what the server may ask for.
//!
//! The cryptography is the crate `postgres-protocol`'s; this module only guards its input.

use postgres_protocol::authentication::sasl::{ChannelBinding, ScramSha256};

/// The name of the mechanism.
pub const SCRAM_SHA_256: &str = "SCRAM-SHA-256";

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
    /// Starts an exchange without channel binding.
    #[must_use]
    pub fn new(password: &str) -> Self {
        Self(ScramSha256::new(password.as_bytes(), ChannelBinding::unsupported()))
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
        let mut scram = Scram::new("secret");
        assert_eq!(
            scram.update(b"r=abc,s=c2FsdA==,i=4000000000"),
            Err(ScramError::TooManyIterations(4_000_000_000))
        );
    }

    #[test]
    fn a_nonce_that_does_not_continue_ours_is_refused() {
        let mut scram = Scram::new("secret");
        assert!(matches!(scram.update(b"r=abc,s=c2FsdA==,i=4096"), Err(ScramError::Protocol(_))));
    }
}
