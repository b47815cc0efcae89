//! Memory that the kernel reads and writes while requests are in flight.
//!
//! It is only reached through raw pointers: a Rust reference to bytes that the kernel writes would be undefined
//! behavior. It is freed when its owner is dropped, and the owner must not be dropped before the kernel has finished.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// Alignment of the memory; the kernel requires it for the list of receive buffers.
const PAGE: usize = 4096;

/// A region of zeroed memory with a fixed address.
#[derive(Debug)]
pub(crate) struct Memory {
    start: NonNull<u8>,
    layout: Layout,
}

impl Memory {
    /// Allocates `bytes`, which must not be 0.
    pub(crate) fn new(bytes: usize) -> Self {
        let layout = Layout::from_size_align(bytes.max(1), PAGE).unwrap_or(Layout::new::<u8>());
        // SAFETY: the size is not 0.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) });
        Self { start: start.unwrap_or_else(|| handle_alloc_error(layout)), layout }
    }

    /// Returns the address of the byte at `offset`.
    ///
    /// # Panics
    /// If `length` bytes from there are not within the region.
    pub(crate) fn at(&self, offset: usize, length: usize) -> *mut u8 {
        let end = offset.checked_add(length);
        assert!(end.is_some_and(|end| end <= self.layout.size()), "outside of the region");
        // SAFETY: the offset is within the region.
        unsafe { self.start.as_ptr().add(offset) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and not used afterwards.
        unsafe { dealloc(self.start.as_ptr(), self.layout) }
    }
}
