//! The interface of the ring on systems without `io_uring`, where no ring can be created.

#![cfg_attr(
    target_os = "linux",
    expect(dead_code, unreachable_pub, reason = "compiled for its test only")
)]
#![cfg_attr(
    not(target_os = "linux"),
    expect(missing_docs, clippy::missing_errors_doc, reason = "documented where rings exist")
)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use crate::{Event, Received};

/// A ring; there is none.
#[derive(Debug)]
pub enum Ring {}

/// # Errors
/// Always [`io::ErrorKind::Unsupported`].
pub fn probe() -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "io_uring requires Linux"))
}

impl Ring {
    /// # Errors
    /// Always [`io::ErrorKind::Unsupported`].
    pub fn new(_: u32) -> io::Result<Self> {
        Err(probe().err().unwrap_or_else(|| io::ErrorKind::Unsupported.into()))
    }

    pub fn attach(&mut self, _: u32, _: BorrowedFd<'_>) -> io::Result<()> {
        match *self {}
    }

    pub fn detach(&mut self, _: u32) -> io::Result<()> {
        match *self {}
    }

    pub fn send(&mut self, _: u32, _: &[u8]) -> io::Result<usize> {
        match *self {}
    }

    pub fn watch(&mut self, _: &impl AsRawFd) -> io::Result<()> {
        match *self {}
    }

    pub fn wait(&mut self, _: Option<Duration>) -> io::Result<()> {
        match *self {}
    }

    pub fn next_event(&mut self) -> io::Result<Option<Event>> {
        match *self {}
    }

    pub fn bytes(&self, _: &Received) -> &[u8] {
        match *self {}
    }

    pub fn release(&mut self, _: Received) {
        match *self {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_ring_is_created() {
        assert_eq!(Ring::new(1).unwrap_err().to_string(), "io_uring requires Linux");
    }
}
