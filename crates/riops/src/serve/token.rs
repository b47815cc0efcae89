//! The token that clients must present, and values derived from secrets.

use sha2::{Digest, Sha256};

use super::error::ServeError;
use crate::units::text::hash_text;

/// Shortest token that is accepted: a random one cannot be guessed.
const LENGTH_MIN: usize = 16;
/// Random bytes of a generated secret.
const SECRET_BYTES: usize = 24;

/// A token, of which only the hash is compared.
#[derive(Clone)]
pub struct Token(String);

impl std::fmt::Debug for Token {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Token")
    }
}

impl Token {
    /// Checks a token of the user.
    ///
    /// # Errors
    /// [`ServeError::WeakToken`] if it is short, or cannot be sent in a header.
    pub fn new(text: &str) -> Result<Self, ServeError> {
        if text.len() < LENGTH_MIN || !text.chars().all(|character| character.is_ascii_graphic()) {
            return Err(ServeError::WeakToken { length: text.chars().count(), min: LENGTH_MIN });
        }
        Ok(Self(text.to_owned()))
    }

    /// Generates a token.
    ///
    /// # Errors
    /// If the operating system has no random numbers.
    pub fn generate() -> std::io::Result<Self> {
        random_text().map(Self)
    }

    /// Returns the token, to be shown once.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Returns whether this is the token.
    pub(super) fn is_equal(&self, text: &str) -> bool {
        are_equal(&self.0, text)
    }

    /// Returns the value of the cookie that replaces the token. Other servers on the same host receive this cookie
    /// too, so it must not be the token.
    pub(super) fn session(&self) -> String {
        derived(&self.0, "session")
    }
}

/// Returns a random text for a secret.
pub(super) fn random_text() -> std::io::Result<String> {
    use rand::TryRng;
    let mut bytes = [0; SECRET_BYTES];
    rand::rngs::SysRng
        .try_fill_bytes(&mut bytes)
        .map_err(|error| std::io::Error::other(error.to_string()))?;
    let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
    Ok(digits.collect())
}

/// Derives a value for a purpose from a secret.
pub(super) fn derived(secret: &str, purpose: &str) -> String {
    hash_text(format!("riops {purpose} {secret}"))
}

/// Compares two texts in a time that does not depend on their contents.
pub(super) fn are_equal(a: &str, b: &str) -> bool {
    let (a, b) = (Sha256::digest(a.as_bytes()), Sha256::digest(b.as_bytes()));
    a.iter().zip(b.iter()).fold(0, |difference, (a, b)| difference | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_is_accepted() {
        let token = Token::new("0123456789abcdef").unwrap();
        assert!(token.is_equal("0123456789abcdef"));
        for other in ["", "0123456789abcde", "0123456789abcdef ", "0123456789abcdeg"] {
            assert!(!token.is_equal(other), "{other}");
        }
        assert_ne!(token.session(), token.text());
    }

    #[test]
    fn short_tokens_and_tokens_with_spaces_are_refused() {
        for text in ["", "short", "0123456789 abcdef", "0123456789abcdeä"] {
            assert!(Token::new(text).is_err(), "{text}");
        }
    }

    #[test]
    fn generated_tokens_differ_and_are_accepted() {
        let (one, two) = (Token::generate().unwrap(), Token::generate().unwrap());
        assert_ne!(one.text(), two.text());
        assert!(Token::new(one.text()).is_ok());
    }
}
