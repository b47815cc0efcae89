//! The error of a message that cannot be encoded.

/// Failure to encode a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The protocol terminates strings with a zero byte, so a string cannot contain one.
    #[error("cannot send a string with a zero byte: {0:?}")]
    ZeroByte(String),
    /// A list or a message exceeds the range of the protocol's counts.
    #[error("cannot send {what} with {count} elements: exceeds the protocol's limit")]
    TooLong {
        /// Kind of object that is too long.
        what: &'static str,
        /// Number of elements or bytes.
        count: usize,
    },
}
