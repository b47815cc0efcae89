//! The messages that answer the statements of a run. In steady state a server sends no others, so they are decoded
//! directly, without the enumeration of all messages.

use crate::backend::{Row, TransactionStatus};
use crate::frame::HEADER_BYTES;

/// A message that answers a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reply<'a> {
    /// Bind succeeded.
    Bound,
    /// A row.
    Row(Row<'a>),
    /// A statement completed, with this command tag.
    Complete(&'a str),
    /// The server is ready for the next request.
    Ready(TransactionStatus),
}

impl<'a> Reply<'a> {
    /// Decodes the message at the start of `bytes`, and returns the bytes after it. Returns `None` if it is another
    /// message, not complete or malformed: [`Message::decode`](crate::backend::Message::decode) finds out which.
    #[inline]
    pub fn decode(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (&[tag, a, b, c, d], rest) = bytes.split_first_chunk::<HEADER_BYTES>()?;
        let length = u32::from_be_bytes([a, b, c, d]);
        let (body, rest) = rest.split_at_checked(length.checked_sub(4)? as usize)?;
        let reply = match (tag, body) {
            (b'2', []) => Self::Bound,
            (b'D', _) => Self::Row(Row::decode(body).ok()?),
            (b'C', _) => Self::Complete(command_tag(body)?),
            (b'Z', &[code]) => Self::Ready(TransactionStatus::from_code(code)?),
            _ => return None,
        };
        Some((reply, rest))
    }
}

/// Returns the tag, which ends with a zero byte. The usual ones need no validation.
#[inline]
fn command_tag(body: &[u8]) -> Option<&str> {
    Some(match body {
        b"SELECT 1\0" => "SELECT 1",
        b"UPDATE 1\0" => "UPDATE 1",
        b"INSERT 0 1\0" => "INSERT 0 1",
        b"DELETE 1\0" => "DELETE 1",
        b"BEGIN\0" => "BEGIN",
        b"COMMIT\0" => "COMMIT",
        [text @ .., 0] if !text.contains(&0) => std::str::from_utf8(text).ok()?,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::backend::{Message, data_row};
    use crate::frame::{self, FRAME_BYTES_MAX};

    /// The same by the decoder of all messages.
    fn expected(bytes: &[u8]) -> Option<(Reply<'_>, &[u8])> {
        let (frame, rest) = frame::split(bytes, FRAME_BYTES_MAX).ok()??;
        let reply = match Message::decode(frame).ok()? {
            Message::BindComplete => Reply::Bound,
            Message::DataRow(row) => Reply::Row(row),
            Message::CommandComplete(tag) => Reply::Complete(tag),
            Message::ReadyForQuery(status) => Reply::Ready(status),
            _ => return None,
        };
        Some((reply, rest))
    }

    fn stream() -> Vec<u8> {
        let mut bytes = Vec::new();
        Message::BindComplete.encode(&mut bytes).unwrap();
        data_row(&mut bytes, &[Some(b"abc"), None, Some(b"")]).unwrap();
        Message::CommandComplete("SELECT 1").encode(&mut bytes).unwrap();
        Message::ReadyForQuery(TransactionStatus::Open).encode(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn decodes_the_replies_to_a_statement() {
        let bytes = stream();
        let mut rest = bytes.as_slice();
        let mut kinds = Vec::new();
        while let Some((reply, later)) = Reply::decode(rest) {
            assert_eq!(expected(rest), Some((reply, later)));
            kinds.push(reply);
            rest = later;
        }
        assert!(rest.is_empty());
        assert!(matches!(
            kinds.as_slice(),
            [Reply::Bound, Reply::Row(_), Reply::Complete("SELECT 1"), Reply::Ready(_)]
        ));
    }

    #[test]
    fn returns_every_command_tag() {
        for tag in
            ["SELECT 1", "UPDATE 1", "INSERT 0 1", "DELETE 1", "BEGIN", "COMMIT", "COPY 7", ""]
        {
            let mut bytes = Vec::new();
            Message::CommandComplete(tag).encode(&mut bytes).unwrap();
            assert_eq!(Reply::decode(&bytes), Some((Reply::Complete(tag), &[][..])));
        }
    }

    proptest! {
        #[test]
        fn agrees_with_the_decoder_of_all_messages(
            changes in prop::collection::vec((0usize..60, any::<u8>()), 0..4),
            start in 0usize..50,
            end in 0usize..60,
        ) {
            let mut bytes = stream();
            for (position, value) in changes {
                if let Some(byte) = bytes.get_mut(position) {
                    *byte = value;
                }
            }
            let bytes = bytes.get(start..end.min(bytes.len())).unwrap_or_default();
            prop_assert_eq!(Reply::decode(bytes), expected(bytes));
        }

        #[test]
        fn agrees_for_any_body(tag in prop::sample::select(b"2DCZE1".as_slice()), body in prop::collection::vec(0u8..5, 0..12)) {
            let mut bytes = vec![tag];
            bytes.extend_from_slice(&u32::try_from(body.len() + 4).unwrap().to_be_bytes());
            bytes.extend_from_slice(&body);
            prop_assert_eq!(Reply::decode(&bytes), expected(&bytes));
        }
    }
}
