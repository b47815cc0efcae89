//! Send buffers. A message is copied into one, because the kernel may read it until the send has completed.

use crate::memory::Memory;

/// Size of a buffer, in bytes: most messages of a benchmark are smaller than 100 bytes, COPY data are larger.
const BYTES: usize = 64 * 1024;
/// Distance of two buffers: their beginnings use different sets of the caches.
const STRIDE: usize = BYTES + 3 * 64;

/// The buffers of a ring. The buffer that became free last is used next, because it is still in the caches.
#[derive(Debug)]
pub(crate) struct Buffers {
    bytes: Memory,
    pub(crate) free: Vec<u16>,
    unsent: Vec<Unsent>,
}

/// The bytes of a buffer that are still to be sent.
#[derive(Debug, Clone, Copy, Default)]
struct Unsent {
    from: u32,
    to: u32,
    /// Number of the turn in which the send is expected to complete before the next wait; 0 for none.
    expected_in: u64,
}

impl Buffers {
    pub(crate) fn new(count: u16) -> Self {
        Self {
            bytes: Memory::new(usize::from(count) * STRIDE),
            free: (0..count).rev().collect(),
            unsent: vec![Unsent::default(); usize::from(count)],
        }
    }

    /// Copies the beginning of a message into a free buffer. Returns the buffer and the number of bytes, or `None`
    /// if no buffer is free.
    pub(crate) fn take(&mut self, message: &[u8]) -> Option<(u16, usize)> {
        let buffer = self.free.pop()?;
        let length = message.len().min(BYTES);
        let target = self.bytes.at(usize::from(buffer) * STRIDE, length);
        // SAFETY: `length` bytes of the message, and of the region. They do not overlap, and the kernel does not use
        // a free buffer.
        unsafe { std::ptr::copy_nonoverlapping(message.as_ptr(), target, length) };
        if let Some(unsent) = self.unsent.get_mut(usize::from(buffer)) {
            let to = u32::try_from(length).unwrap_or(u32::MAX);
            *unsent = Unsent { from: 0, to, expected_in: 0 };
        }
        Some((buffer, length))
    }

    /// Returns the address and the number of the bytes that are still to be sent.
    pub(crate) fn unsent(&self, buffer: u16) -> (*const u8, u32) {
        let Unsent { from, to, .. } =
            self.unsent.get(usize::from(buffer)).copied().unwrap_or_default();
        let length = to - from;
        let offset = usize::from(buffer) * STRIDE + from as usize;
        (self.bytes.at(offset, length as usize).cast_const(), length)
    }

    /// Records that the kernel has sent `count` bytes. Returns whether it has sent all.
    pub(crate) fn note_sent(&mut self, buffer: u16, count: u32) -> bool {
        let Some(unsent) = self.unsent.get_mut(usize::from(buffer)) else {
            return true;
        };
        unsent.from = unsent.from.saturating_add(count).min(unsent.to);
        unsent.from == unsent.to
    }

    /// Records that the send is expected to complete before the wait after this turn.
    pub(crate) fn expect(&mut self, buffer: u16, turn: u64) {
        if let Some(unsent) = self.unsent.get_mut(usize::from(buffer)) {
            unsent.expected_in = turn;
        }
    }

    /// Returns whether the send was expected in this turn, and expects it no longer.
    pub(crate) fn take_expected(&mut self, buffer: u16, turn: u64) -> bool {
        let unsent = self.unsent.get_mut(usize::from(buffer));
        unsent.is_some_and(|unsent| std::mem::take(&mut unsent.expected_in) == turn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hands_out_each_buffer_once_and_the_last_released_one_first() {
        let mut buffers = Buffers::new(2);
        let (first, length) = buffers.take(b"abc").unwrap();
        assert_eq!(length, 3);
        let large = vec![7; BYTES + 1];
        let (second, length) = buffers.take(&large).unwrap();
        assert_eq!((length, buffers.take(b"d")), (BYTES, None));
        assert_ne!(first, second);
        assert_eq!(buffers.free.len(), 0);
        assert!(!buffers.note_sent(first, 2) && buffers.note_sent(first, 1));
        buffers.free.push(first);
        assert_eq!(buffers.take(b"d"), Some((first, 1)));
    }
}
