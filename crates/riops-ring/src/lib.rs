//! Sockets of a benchmark client on `io_uring`, behind a safe interface. All unsafe code for it is in this crate.
//!
//! A [`Ring`] belongs to the thread that created it. It sends and receives for many connections, with one system call for
//! everything that is due: a receive request per connection stays in force, and sends are submitted together with the wait for
//! the next completions. No kernel thread does any of the work: its CPU time would be missing from the CPU time of the client.
//!
//! # Invariants
//! - The kernel uses memory of the ring only: messages are copied into it, and received bytes are lent from it. A
//!   caller's memory is never passed to the kernel.
//! - This memory is freed only after all requests have completed. If they do not complete, it is leaked.
//! - A buffer is either free, or in use by exactly one request, or lent to the caller as a [`Received`].
//! - Completions of a connection that has been replaced are recognized by its generation, and dropped.
//!
//! `io_uring` is part of Linux. On other systems, [`probe`] returns an error and no [`Ring`] exists.

#![cfg_attr(
    target_os = "linux",
    expect(unsafe_code, reason = "requests to the kernel contain addresses")
)]

#[cfg(any(test, not(target_os = "linux")))]
mod absent;
#[cfg(target_os = "linux")]
mod memory;
#[cfg(target_os = "linux")]
mod receive;
#[cfg(target_os = "linux")]
mod ring;
#[cfg(target_os = "linux")]
mod send;

#[cfg(not(target_os = "linux"))]
pub use absent::{Ring, probe};
#[cfg(target_os = "linux")]
pub use receive::Received;
#[cfg(target_os = "linux")]
pub use ring::{Ring, probe};

/// Bytes that were received; there are none.
#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
pub enum Received {}

/// An event of a connection.
#[derive(Debug)]
pub enum Event {
    /// Bytes arrived on a connection. To be read with [`Ring::bytes`] and returned with [`Ring::release`].
    Received(u32, Received),
    /// The peer closed the connection: no more bytes follow.
    Closed(u32),
    /// The connection failed.
    Failed(u32, std::io::Error),
    /// A message that was not accepted will be accepted now.
    Sent(u32),
    /// The watched descriptor is readable. It must be watched again.
    Readable,
}
