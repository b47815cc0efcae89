//! Frames: one tag byte, a length, a body. Finding their ends in a stream of bytes, with a limit.
//!
//! Knows nothing of what a body means.

/// The largest frame that riops accepts unless told otherwise, in bytes. A result row of a
/// benchmark has a few bytes, an EXPLAIN plan some kilobytes; 16 MiB leaves room for odd targets
/// and still bounds what a hostile server can make the client hold for one session.
pub const FRAME_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Bytes before the body: the tag and the length.
pub const HEADER_BYTES: usize = 5;

/// Why no frame can be found in the stream any more. The connection is of no further use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The length counts itself, so it is 4 at the least.
    #[error("the peer sent a frame of impossible length {0}: not the PostgreSQL protocol?")]
    BadLength(i32),
    /// The frame is larger than the receiver allows.
    #[error(
        "the peer sent a frame of {length} bytes, above the limit of {limit}: not the PostgreSQL protocol?"
    )]
    TooLarge {
        /// Bytes of the frame as announced.
        length: usize,
        /// Bytes allowed.
        limit: usize,
    },
}

/// One message as it stands on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The kind of message.
    pub tag: u8,
    /// What follows the length.
    pub body: &'a [u8],
}

/// Answers the total length of the frame at the start of `bytes`, or `None` where the header is
/// not complete yet.
///
/// # Errors
/// [`FrameError`] where the header announces an impossible or too large frame.
pub fn length(bytes: &[u8], limit: usize) -> Result<Option<usize>, FrameError> {
    let Some((_, rest)) = bytes.split_first() else {
        return Ok(None);
    };
    let Some((&announced, _)) = rest.split_first_chunk::<4>() else {
        return Ok(None);
    };
    let announced = i32::from_be_bytes(announced);
    if announced < 4 {
        return Err(FrameError::BadLength(announced));
    }
    let length = 1 + usize::try_from(announced).map_err(|_| FrameError::BadLength(announced))?;
    if length > limit {
        return Err(FrameError::TooLarge { length, limit });
    }
    Ok(Some(length))
}

/// Splits the first frame off `bytes`; `None` where more bytes are needed.
///
/// # Errors
/// [`FrameError`] where the header announces an impossible or too large frame.
pub fn split(bytes: &[u8], limit: usize) -> Result<Option<(Frame<'_>, &[u8])>, FrameError> {
    let Some(length) = length(bytes, limit)? else {
        return Ok(None);
    };
    let Some((frame, rest)) = bytes.split_at_checked(length) else {
        return Ok(None);
    };
    let Some((header, body)) = frame.split_first_chunk::<HEADER_BYTES>() else {
        return Ok(None);
    };
    let [tag, ..] = *header;
    Ok(Some((Frame { tag, body }, rest)))
}

/// A receive buffer: bytes from the stream go in at one end, whole frames come out at the other.
///
/// It keeps its memory, so that a session that has reached its working size allocates no more, and
/// it grows to the limit of one frame and not beyond.
#[derive(Debug)]
pub struct FrameBuffer {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    limit: usize,
}

/// A reply of a benchmark statement fits, and 1,000 sessions need 8 MiB.
const INITIAL_BYTES: usize = 8 * 1024;

impl FrameBuffer {
    /// An empty buffer for frames of at most `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { bytes: vec![0; INITIAL_BYTES.min(limit.max(HEADER_BYTES))], start: 0, end: 0, limit }
    }

    /// Room for the next read, never empty: moves what is left to the front and grows when the
    /// frame that is being received does not fit.
    ///
    /// # Errors
    /// [`FrameError`] where the frame that is being received may not be accepted.
    pub fn space(&mut self) -> Result<&mut [u8], FrameError> {
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
        } else if self.end == self.bytes.len() {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        let needed = length(self.unread(), self.limit)?.unwrap_or(HEADER_BYTES);
        if self.start + needed > self.bytes.len() || self.end == self.bytes.len() {
            let target = (self.start + needed).max(self.end + 1);
            self.bytes.resize(target.next_power_of_two(), 0);
        }
        Ok(self.bytes.get_mut(self.end..).unwrap_or_default())
    }

    /// Says that the first `count` bytes of [`Self::space`] were filled.
    pub fn filled(&mut self, count: usize) {
        self.end = (self.end + count).min(self.bytes.len());
    }

    /// Appends a copy of `bytes`, for callers that hold the bytes already.
    ///
    /// # Errors
    /// [`FrameError`] as for [`Self::space`].
    pub fn extend(&mut self, mut bytes: &[u8]) -> Result<(), FrameError> {
        while !bytes.is_empty() {
            let space = self.space()?;
            let count = space.len().min(bytes.len());
            let (now, later) = bytes.split_at(count);
            if let Some(room) = space.get_mut(..count) {
                room.copy_from_slice(now);
            }
            self.filled(count);
            bytes = later;
            if !bytes.is_empty() && self.unread().len() >= self.limit {
                // A full frame is waiting: the owner has to take it before more can come.
                return Err(FrameError::TooLarge {
                    length: self.unread().len() + bytes.len(),
                    limit: self.limit,
                });
            }
        }
        Ok(())
    }

    /// The bytes that no frame was made of yet.
    #[must_use]
    pub fn unread(&self) -> &[u8] {
        self.bytes.get(self.start..self.end).unwrap_or_default()
    }

    /// Takes the next whole frame out; `None` where more bytes are needed.
    ///
    /// # Errors
    /// [`FrameError`] where the header announces an impossible or too large frame.
    pub fn next_frame(&mut self) -> Result<Option<Frame<'_>>, FrameError> {
        let unread = self.bytes.get(self.start..self.end).unwrap_or_default();
        let Some((frame, _)) = split(unread, self.limit)? else {
            return Ok(None);
        };
        self.start += HEADER_BYTES + frame.body.len();
        Ok(Some(frame))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encoded(frames: &[(u8, Vec<u8>)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (tag, body) in frames {
            bytes.push(*tag);
            bytes.extend_from_slice(&u32::try_from(body.len() + 4).unwrap().to_be_bytes());
            bytes.extend_from_slice(body);
        }
        bytes
    }

    proptest! {
        #[test]
        fn any_chunking_of_the_bytes_gives_the_same_frames(
            frames in prop::collection::vec((any::<u8>(), prop::collection::vec(any::<u8>(), 0..20_000)), 0..8),
            sizes in prop::collection::vec(1usize..9_000, 1..20),
        ) {
            let stream = encoded(&frames);
            let mut buffer = FrameBuffer::new(FRAME_BYTES_MAX);
            let mut found = Vec::new();
            let mut rest = stream.as_slice();
            for size in sizes.iter().cycle() {
                let (now, later) = rest.split_at((*size).min(rest.len()));
                buffer.extend(now).unwrap();
                while let Some(frame) = buffer.next_frame().unwrap() {
                    found.push((frame.tag, frame.body.to_vec()));
                }
                rest = later;
                if rest.is_empty() {
                    break;
                }
            }
            prop_assert_eq!(found, frames);
            prop_assert!(buffer.unread().is_empty());
        }
    }

    #[test]
    fn a_frame_above_the_limit_is_refused_before_it_is_received() {
        let mut buffer = FrameBuffer::new(100);
        buffer.extend(&[b'D', 0x7f, 0xff, 0xff, 0xff]).unwrap();
        assert!(matches!(buffer.next_frame(), Err(FrameError::TooLarge { limit: 100, .. })));
        assert!(buffer.space().is_err());
    }

    #[test]
    fn a_length_below_four_is_refused() {
        assert_eq!(split(&[b'Z', 0, 0, 0, 3, 0], 100), Err(FrameError::BadLength(3)));
    }
}
