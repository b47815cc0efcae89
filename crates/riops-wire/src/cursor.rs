//! Checked reads from the body of a message.
//!
//! Every method returns an error if the body is too short; none of them panics.

/// Failure to decode a message body.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CursorError {
    /// The body ends within a field.
    #[error("the message is truncated")]
    Truncated,
    /// A string has no terminating zero byte.
    #[error("a string in the message is not terminated")]
    UnterminatedText,
    /// A string is not valid UTF-8.
    #[error("a string in the message is not valid UTF-8")]
    NotUtf8,
    /// A length or a count is negative or exceeds its limit.
    #[error("a value in the message is out of range: {0}")]
    CountOutOfRange(i64),
    /// Bytes remain after the last field.
    #[error("the message has {0} extra bytes after its last field")]
    Trailing(usize),
}

/// A position in the body of one message.
#[derive(Debug, Clone, Copy)]
pub struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    /// Creates a cursor at the first byte of `body`.
    pub fn new(body: &'a [u8]) -> Self {
        Self { rest: body }
    }

    /// Returns the bytes that were not read yet.
    pub fn rest(self) -> &'a [u8] {
        self.rest
    }

    /// Reads all bytes that were not read yet.
    pub(crate) fn take_rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], CursorError> {
        let (head, tail) = self.rest.split_first_chunk::<N>().ok_or(CursorError::Truncated)?;
        self.rest = tail;
        Ok(*head)
    }

    /// Reads one byte.
    ///
    /// # Errors
    /// Returns [`CursorError::Truncated`] at the end of the body.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, CursorError> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// Reads a 16-bit integer in network order.
    ///
    /// # Errors
    /// Returns [`CursorError::Truncated`] if the body is too short.
    #[inline]
    pub fn i16(&mut self) -> Result<i16, CursorError> {
        self.array().map(i16::from_be_bytes)
    }

    /// Reads a 32-bit integer in network order.
    ///
    /// # Errors
    /// Returns [`CursorError::Truncated`] if the body is too short.
    #[inline]
    pub fn i32(&mut self) -> Result<i32, CursorError> {
        self.array().map(i32::from_be_bytes)
    }

    /// Reads a 16-bit count. The protocol's documentation calls it signed, but the server sends it
    /// unsigned: up to 65535 parameters.
    ///
    /// # Errors
    /// Returns [`CursorError::Truncated`] if the body is too short.
    #[inline]
    pub fn count(&mut self) -> Result<u16, CursorError> {
        self.array().map(u16::from_be_bytes)
    }

    /// Reads `length` bytes.
    ///
    /// # Errors
    /// Returns [`CursorError::Truncated`] if the body is too short.
    #[inline]
    pub fn bytes(&mut self, length: usize) -> Result<&'a [u8], CursorError> {
        let (head, tail) = self.rest.split_at_checked(length).ok_or(CursorError::Truncated)?;
        self.rest = tail;
        Ok(head)
    }

    /// Reads a value after its 32-bit length; −1 is NULL.
    ///
    /// # Errors
    /// Returns [`CursorError::CountOutOfRange`] for a length below −1, or [`CursorError::Truncated`] if
    /// the body is too short.
    #[inline]
    pub fn value(&mut self) -> Result<Option<&'a [u8]>, CursorError> {
        match self.i32()? {
            -1 => Ok(None),
            length => {
                let length = usize::try_from(length)
                    .map_err(|_| CursorError::CountOutOfRange(i64::from(length)))?;
                self.bytes(length).map(Some)
            }
        }
    }

    /// Reads bytes up to a zero byte, and consumes the zero byte.
    ///
    /// # Errors
    /// Returns [`CursorError::UnterminatedText`] if the body contains no zero byte.
    pub fn raw_text(&mut self) -> Result<&'a [u8], CursorError> {
        let end =
            self.rest.iter().position(|&byte| byte == 0).ok_or(CursorError::UnterminatedText)?;
        let text = self.bytes(end)?;
        self.u8()?;
        Ok(text)
    }

    /// Reads a zero-terminated string.
    ///
    /// # Errors
    /// Returns [`CursorError::UnterminatedText`] or [`CursorError::NotUtf8`] for a malformed string.
    pub fn text(&mut self) -> Result<&'a str, CursorError> {
        std::str::from_utf8(self.raw_text()?).map_err(|_| CursorError::NotUtf8)
    }

    /// Checks that the body was read completely.
    ///
    /// # Errors
    /// Returns [`CursorError::Trailing`] with the number of remaining bytes.
    pub fn finish(self) -> Result<(), CursorError> {
        match self.rest.len() {
            0 => Ok(()),
            left => Err(CursorError::Trailing(left)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_fail_at_the_end_of_the_body() {
        let mut cursor = Cursor::new(&[0, 1, 2]);
        assert_eq!(cursor.i32(), Err(CursorError::Truncated));
        assert_eq!(cursor.i16(), Ok(1));
        assert_eq!(cursor.u8(), Ok(2));
        assert_eq!(cursor.u8(), Err(CursorError::Truncated));
        assert_eq!(cursor.finish(), Ok(()));
    }

    #[test]
    fn rejects_a_length_beyond_the_body() {
        let mut cursor = Cursor::new(&[0x7f, 0xff, 0xff, 0xff, 1]);
        assert_eq!(cursor.value(), Err(CursorError::Truncated));
        let mut cursor = Cursor::new(&[0xff, 0xff, 0xff, 0xfe]);
        assert_eq!(cursor.value(), Err(CursorError::CountOutOfRange(-2)));
    }

    #[test]
    fn requires_a_terminating_zero_byte() {
        assert_eq!(Cursor::new(b"abc").text(), Err(CursorError::UnterminatedText));
        assert_eq!(Cursor::new(b"abc\0d").text(), Ok("abc"));
        assert_eq!(Cursor::new(b"\xff\0").text(), Err(CursorError::NotUtf8));
    }
}
