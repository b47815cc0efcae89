//! Message frames: a tag byte, a length, a body. Finds frame boundaries in a byte stream, with a size
//! limit.
//!
//! Does not interpret message bodies.

/// Default maximum frame size, in bytes. A result row of a benchmark has a few bytes, an EXPLAIN plan
/// some kilobytes. 16 MiB leaves room for unusual servers and still limits the memory that a hostile
/// server can consume in one session.
pub const FRAME_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Length of the frame header (tag and length), in bytes.
pub const HEADER_BYTES: usize = 5;

/// Maximum size of one read, in bytes. A buffer whose frames are smaller grows to this size while full
/// reads show that more bytes are waiting.
pub const READ_BYTES_MAX: usize = 64 * 1024;
/// Number of consecutive full reads after which the buffer grows to [`READ_BYTES_MAX`]. A reply that
/// fills the initial buffer exactly once must not enlarge it.
pub const FULL_READS: u8 = 2;

/// Invalid frame header. The connection cannot be used any further.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The length includes itself, so it is at least 4.
    #[error("the peer sent a message with invalid length {0}; is it a PostgreSQL server?")]
    BadLength(i32),
    /// The frame exceeds the receiver's limit.
    #[error(
        "the peer sent a message of {length} bytes, which exceeds the limit of {limit}; is it a PostgreSQL server?"
    )]
    TooLarge {
        /// Announced frame size, in bytes.
        length: usize,
        /// Maximum frame size, in bytes.
        limit: usize,
    },
}

/// One undecoded message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Message tag.
    pub tag: u8,
    /// Bytes after the length.
    pub body: &'a [u8],
}

/// Returns the total length of the frame at the start of `bytes`, or `None` if the header is
/// incomplete.
///
/// # Errors
/// Returns [`FrameError`] if the announced length is invalid or exceeds the limit.
pub fn length(bytes: &[u8], limit: usize) -> Result<Option<usize>, FrameError> {
    let Some(&[_, a, b, c, d]) = bytes.first_chunk::<HEADER_BYTES>() else {
        return Ok(None);
    };
    let announced = i32::from_be_bytes([a, b, c, d]);
    let length = usize::try_from(announced).ok().filter(|length| *length >= 4);
    let length = 1 + length.ok_or(FrameError::BadLength(announced))?;
    if length > limit {
        return Err(FrameError::TooLarge { length, limit });
    }
    Ok(Some(length))
}

/// Splits the first frame off `bytes`; returns `None` if more bytes are needed.
///
/// # Errors
/// Returns [`FrameError`] if the announced length is invalid or exceeds the limit.
pub fn split(bytes: &[u8], limit: usize) -> Result<Option<(Frame<'_>, &[u8])>, FrameError> {
    let Some(length) = length(bytes, limit)? else {
        return Ok(None);
    };
    let Some(([tag, _, _, _, _, body @ ..], rest)) = bytes.split_at_checked(length) else {
        return Ok(None);
    };
    Ok(Some((Frame { tag: *tag, body }, rest)))
}

/// A receive buffer: collects bytes from the stream and returns complete frames.
///
/// Reuses its memory: a session that has reached its working size does not allocate again. Grows at
/// most to the size limit of one frame. Has no memory before its first byte.
#[derive(Debug)]
pub struct FrameBuffer {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    limit: usize,
    /// Number of consecutive reads that filled the space.
    full_reads: u8,
}

/// Large enough for a reply of a benchmark statement.
const INITIAL_BYTES: usize = 8 * 1024;

impl FrameBuffer {
    /// Creates an empty buffer for frames of at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), start: 0, end: 0, limit, full_reads: 0 }
    }

    /// Returns the space for the next read: never empty, at most [`READ_BYTES_MAX`]. Moves unread bytes to
    /// the front, and grows only if the current frame still does not fit, or after several full reads.
    ///
    /// # Errors
    /// Returns [`FrameError`] if the current frame is invalid or exceeds the limit.
    pub fn space(&mut self) -> Result<&mut [u8], FrameError> {
        if self.start == self.end {
            self.start = 0;
            self.end = 0;
        }
        let needed = length(self.unread(), self.limit)?.unwrap_or(HEADER_BYTES);
        let capacity = self.bytes.len();
        // With less than half of the buffer free, the next read would be a small one.
        if self.start > 0 && (self.start + needed > capacity || capacity - self.end < capacity / 2)
        {
            self.bytes.copy_within(self.start..self.end, 0);
            self.end -= self.start;
            self.start = 0;
        }
        let mut target = capacity;
        if needed > capacity || self.end == capacity {
            target = needed.max(self.end + 1).next_power_of_two();
        }
        if self.full_reads >= FULL_READS {
            target = target.max(READ_BYTES_MAX.min(self.limit));
        }
        if target > capacity {
            let initial = INITIAL_BYTES.min(self.limit.max(HEADER_BYTES));
            self.bytes.resize(target.max(initial), 0);
        }
        let end = self.bytes.len().min(self.end + READ_BYTES_MAX);
        Ok(self.bytes.get_mut(self.end..end).unwrap_or_default())
    }

    /// Records that the first `count` bytes of [`Self::space`] were filled.
    pub fn filled(&mut self, count: usize) {
        let space = (self.bytes.len() - self.end).min(READ_BYTES_MAX);
        self.full_reads = if count < space { 0 } else { self.full_reads.saturating_add(1) };
        self.end += count.min(space);
    }

    /// Appends a copy of `bytes`, for callers that already hold the bytes.
    ///
    /// # Errors
    /// Returns [`FrameError`] under the same conditions as [`Self::space`].
    pub fn extend(&mut self, mut bytes: &[u8]) -> Result<(), FrameError> {
        while !bytes.is_empty() {
            let space = self.space()?;
            let count = space.len().min(bytes.len());
            let (now, later) = bytes.split_at(count);
            if let Some(target) = space.get_mut(..count) {
                target.copy_from_slice(now);
            }
            self.filled(count);
            bytes = later;
            if !bytes.is_empty() && self.unread().len() >= self.limit {
                // A complete frame is pending; the owner must take it before more bytes can be added.
                return Err(FrameError::TooLarge {
                    length: self.unread().len() + bytes.len(),
                    limit: self.limit,
                });
            }
        }
        Ok(())
    }

    /// Returns whether every byte was part of a returned frame.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Returns the maximum frame size, in bytes.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Returns the bytes that no returned frame contained yet.
    pub fn unread(&self) -> &[u8] {
        self.bytes.get(self.start..self.end).unwrap_or_default()
    }

    /// Removes and returns the next complete frame; `None` if more bytes are needed.
    ///
    /// # Errors
    /// Returns [`FrameError`] if the announced length is invalid or exceeds the limit.
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
        fn returns_the_same_frames_for_any_chunking(
            frames in prop::collection::vec((any::<u8>(), prop::collection::vec(any::<u8>(), 0..20_000)), 0..8),
            sizes in prop::collection::vec(1usize..9_000, 1..20),
        ) {
            let stream = encoded(&frames);
            let mut buffer = FrameBuffer::new(FRAME_BYTES_MAX);
            let mut received = Vec::new();
            let mut rest = stream.as_slice();
            for size in sizes.iter().cycle() {
                let (now, later) = rest.split_at((*size).min(rest.len()));
                buffer.extend(now).unwrap();
                while let Some(frame) = buffer.next_frame().unwrap() {
                    received.push((frame.tag, frame.body.to_vec()));
                }
                rest = later;
                if rest.is_empty() {
                    break;
                }
            }
            prop_assert_eq!(received, frames);
            prop_assert!(buffer.unread().is_empty());
        }
    }

    #[test]
    fn rejects_a_frame_above_the_limit_before_receiving_it() {
        let mut buffer = FrameBuffer::new(100);
        buffer.extend(&[b'D', 0x7f, 0xff, 0xff, 0xff]).unwrap();
        assert!(matches!(buffer.next_frame(), Err(FrameError::TooLarge { limit: 100, .. })));
        assert!(buffer.space().is_err());
    }

    #[test]
    fn compacts_before_it_grows() {
        let mut buffer = FrameBuffer::new(FRAME_BYTES_MAX);
        let stream = encoded(&[(b'D', vec![1; 5_000]), (b'D', vec![2; 6_000])]);
        let (now, later) = stream.split_at(5_100);
        buffer.extend(now).unwrap();
        assert_eq!(buffer.next_frame().unwrap().unwrap().body.len(), 5_000);
        // The second frame begins at 5,005 and needs 6,005 of 8,192 bytes.
        buffer.extend(later).unwrap();
        assert_eq!(buffer.next_frame().unwrap().unwrap().body, [2; 6_000]);
        assert_eq!(buffer.bytes.len(), INITIAL_BYTES);
    }

    /// Reads `stream` as a socket would deliver it and returns the sizes of the reads.
    fn read_sizes(buffer: &mut FrameBuffer, mut stream: &[u8]) -> Vec<usize> {
        let mut sizes = Vec::new();
        while !stream.is_empty() {
            let space = buffer.space().unwrap();
            let size = space.len().min(stream.len());
            let (now, later) = stream.split_at(size);
            space[..size].copy_from_slice(now);
            buffer.filled(size);
            sizes.push(size);
            stream = later;
            while buffer.next_frame().unwrap().is_some() {}
        }
        sizes
    }

    #[test]
    fn reads_up_to_64_kib_after_two_full_reads() {
        let mut buffer = FrameBuffer::new(FRAME_BYTES_MAX);
        // Frames of 64 bytes: no partial frame remains after a read.
        let large = encoded(&vec![(b'D', vec![0; 59]); 10_000]);
        let sizes = read_sizes(&mut buffer, &large);
        assert_eq!(sizes[..4], [8_192, 8_192, 65_536, 65_536]);
        assert!(sizes.iter().all(|&size| size <= READ_BYTES_MAX));
        // Small replies do not enlarge the buffer, however many there are.
        let mut buffer = FrameBuffer::new(FRAME_BYTES_MAX);
        for _ in 0..100 {
            assert_eq!(read_sizes(&mut buffer, &large[..8_128]), [8_128]);
        }
        assert_eq!(buffer.bytes.len(), INITIAL_BYTES);
    }

    #[test]
    fn a_large_frame_is_read_in_bounded_pieces() {
        let mut buffer = FrameBuffer::new(FRAME_BYTES_MAX);
        let sizes = read_sizes(&mut buffer, &encoded(&[(b'D', vec![7; 3_000_000])]));
        assert_eq!(sizes.iter().sum::<usize>(), 3_000_005);
        assert!(sizes.iter().all(|&size| size <= READ_BYTES_MAX), "{sizes:?}");
    }

    #[test]
    fn rejects_a_length_below_four() {
        assert_eq!(split(&[b'Z', 0, 0, 0, 3, 0], 100), Err(FrameError::BadLength(3)));
    }
}
