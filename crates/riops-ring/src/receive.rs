//! Receive buffers that all connections of a ring share. The kernel takes one for each receive.

use std::io;
use std::mem::size_of;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::{IoUring, types::BufRingEntry};

use crate::memory::Memory;

/// Number of the group of buffers; a ring has one.
pub(crate) const GROUP: u16 = 0;
/// Size of a buffer, in bytes.
const BYTES: usize = 16 * 1024;
/// Distance of two buffers: their beginnings use different sets of the caches.
const STRIDE: usize = BYTES + 3 * 64;

/// Bytes that were received. The kernel does not write to the buffer until it is released.
#[derive(Debug)]
pub struct Received {
    /// Number of its ring.
    pub(crate) ring: u32,
    pub(crate) buffer: u16,
    pub(crate) length: usize,
}

/// The buffers, and the list in which the kernel finds the free ones.
#[derive(Debug)]
pub(crate) struct Buffers {
    list: Memory,
    bytes: Memory,
    /// Number of buffers, a power of two.
    count: u16,
    /// Number of buffers returned so far, which wraps around.
    returned: u16,
}

impl Buffers {
    /// Creates `count` buffers, a power of two, and hands them to the kernel.
    pub(crate) fn register(ring: &IoUring, count: u16) -> io::Result<Self> {
        let list = Memory::new(usize::from(count) * size_of::<BufRingEntry>());
        let bytes = Memory::new(usize::from(count) * STRIDE);
        let mut buffers = Self { list, bytes, count, returned: 0 };
        let address = buffers.entry(0) as u64;
        // SAFETY: the list has `count` entries, is aligned to a page, and is freed only after the ring, see `Ring`.
        unsafe { ring.submitter().register_buf_ring_with_flags(address, count, GROUP, 0) }?;
        (0..count).for_each(|buffer| buffers.hand_over(buffer));
        Ok(buffers)
    }

    /// Returns the address of an entry of the list.
    fn entry(&self, position: u16) -> *mut BufRingEntry {
        let size = size_of::<BufRingEntry>();
        self.list.at(usize::from(position) * size, size).cast()
    }

    /// Hands a buffer to the kernel.
    fn hand_over(&mut self, buffer: u16) {
        let address = self.bytes.at(usize::from(buffer) * STRIDE, BYTES);
        let entry = self.entry(self.returned & (self.count - 1));
        // SAFETY: the kernel reads only entries before the tail, which is increased below. The entry is within the
        // list, which is aligned and initialized.
        unsafe {
            (*entry).set_addr(address as u64);
            (*entry).set_len(u32::try_from(BYTES).unwrap_or(u32::MAX));
            (*entry).set_bid(buffer);
        }
        self.returned = self.returned.wrapping_add(1);
        // SAFETY: the tail is within the first entry, aligned, and the kernel only reads it.
        let tail = unsafe { &*BufRingEntry::tail(self.entry(0)).cast::<AtomicU16>() };
        // The kernel must see the entry before the new tail.
        tail.store(self.returned, Ordering::Release);
    }

    /// Returns received bytes.
    pub(crate) fn bytes(&self, received: &Received) -> &[u8] {
        let length = received.length.min(BYTES);
        let start = self.bytes.at(usize::from(received.buffer) * STRIDE, length);
        // SAFETY: initialized, within the region, and the kernel does not write to the buffer before it is handed over
        // again, for which `release` takes the value that is borrowed here.
        unsafe { std::slice::from_raw_parts(start, length) }
    }

    /// Returns a buffer to the kernel.
    #[expect(clippy::needless_pass_by_value, reason = "the buffer must not be read afterwards")]
    pub(crate) fn release(&mut self, received: Received) {
        self.hand_over(received.buffer);
    }
}
