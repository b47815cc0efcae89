//! Checked reads from the body of a message.
//!
//! Every method answers an error where the bytes end too early; none of them panics.

/// Why the body of a message could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CursorError {
    /// The body ends before the field does.
    #[error("the message ends in the middle of a field")]
    Truncated,
    /// A text has no closing zero byte.
    #[error("a text in the message has no end")]
    UnterminatedText,
    /// A text is not valid UTF-8.
    #[error("a text in the message is not valid UTF-8")]
    NotUtf8,
    /// A length or a count is negative or above its limit.
    #[error("a count in the message is out of range: {0}")]
    CountOutOfRange(i64),
    /// Bytes are left over behind the last field.
    #[error("{0} bytes are left over behind the last field of the message")]
    Trailing(usize),
}

/// A position in the body of one message.
#[derive(Debug, Clone, Copy)]
pub struct Cursor<'a> {
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    /// Starts at the first byte of `body`.
    #[must_use]
    pub fn new(body: &'a [u8]) -> Self {
        Self { rest: body }
    }

    /// The bytes that were not read yet.
    #[must_use]
    pub fn rest(self) -> &'a [u8] {
        self.rest
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], CursorError> {
        let (head, tail) = self.rest.split_first_chunk::<N>().ok_or(CursorError::Truncated)?;
        self.rest = tail;
        Ok(*head)
    }

    /// Reads one byte.
    ///
    /// # Errors
    /// [`CursorError::Truncated`] at the end of the body; so do all readers below.
    pub fn u8(&mut self) -> Result<u8, CursorError> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// Reads a 16-bit integer in network order.
    ///
    /// # Errors
    /// [`CursorError::Truncated`]
    pub fn i16(&mut self) -> Result<i16, CursorError> {
        self.array().map(i16::from_be_bytes)
    }

    /// Reads a 32-bit integer in network order.
    ///
    /// # Errors
    /// [`CursorError::Truncated`]
    pub fn i32(&mut self) -> Result<i32, CursorError> {
        self.array().map(i32::from_be_bytes)
    }

    /// Reads a 64-bit integer in network order.
    ///
    /// # Errors
    /// [`CursorError::Truncated`]
    pub fn i64(&mut self) -> Result<i64, CursorError> {
        self.array().map(i64::from_be_bytes)
    }

    /// Reads a 16-bit count, which the protocol's documents call signed and the server sends
    /// unsigned: up to 65535 parameters.
    ///
    /// # Errors
    /// [`CursorError::Truncated`]
    pub fn count(&mut self) -> Result<u16, CursorError> {
        self.array().map(u16::from_be_bytes)
    }

    /// Reads `length` bytes.
    ///
    /// # Errors
    /// [`CursorError::Truncated`]
    pub fn bytes(&mut self, length: usize) -> Result<&'a [u8], CursorError> {
        let (head, tail) = self.rest.split_at_checked(length).ok_or(CursorError::Truncated)?;
        self.rest = tail;
        Ok(head)
    }

    /// Reads a value with its 32-bit length before it; −1 stands for NULL.
    ///
    /// # Errors
    /// [`CursorError::CountOutOfRange`] for a length below −1, or [`CursorError::Truncated`].
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

    /// Reads bytes up to a zero byte, and that byte.
    ///
    /// # Errors
    /// [`CursorError::UnterminatedText`] where there is none.
    pub fn raw_text(&mut self) -> Result<&'a [u8], CursorError> {
        let end =
            self.rest.iter().position(|&byte| byte == 0).ok_or(CursorError::UnterminatedText)?;
        let text = self.bytes(end)?;
        self.u8()?;
        Ok(text)
    }

    /// Reads a text up to its zero byte.
    ///
    /// # Errors
    /// [`CursorError::UnterminatedText`] or [`CursorError::NotUtf8`]
    pub fn text(&mut self) -> Result<&'a str, CursorError> {
        std::str::from_utf8(self.raw_text()?).map_err(|_| CursorError::NotUtf8)
    }

    /// Proves that the body was read to its end.
    ///
    /// # Errors
    /// [`CursorError::Trailing`] with the number of bytes left.
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
    fn reads_stop_at_the_end_of_the_body() {
        let mut cursor = Cursor::new(&[0, 1, 2]);
        assert_eq!(cursor.i32(), Err(CursorError::Truncated));
        assert_eq!(cursor.i16(), Ok(1));
        assert_eq!(cursor.u8(), Ok(2));
        assert_eq!(cursor.u8(), Err(CursorError::Truncated));
        assert_eq!(cursor.finish(), Ok(()));
    }

    #[test]
    fn a_length_that_lies_is_an_error() {
        let mut cursor = Cursor::new(&[0x7f, 0xff, 0xff, 0xff, 1]);
        assert_eq!(cursor.value(), Err(CursorError::Truncated));
        let mut cursor = Cursor::new(&[0xff, 0xff, 0xff, 0xfe]);
        assert_eq!(cursor.value(), Err(CursorError::CountOutOfRange(-2)));
    }

    #[test]
    fn a_text_needs_its_zero_byte() {
        assert_eq!(Cursor::new(b"abc").text(), Err(CursorError::UnterminatedText));
        assert_eq!(Cursor::new(b"abc\0d").text(), Ok("abc"));
        assert_eq!(Cursor::new(b"\xff\0").text(), Err(CursorError::NotUtf8));
    }
}
