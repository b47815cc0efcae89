//! The events of a ring.

use std::io;

#[cfg(target_os = "linux")]
pub use crate::receive::Received;

/// Bytes that were received; there are none.
#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
pub enum Received {}

/// What happened.
#[derive(Debug)]
pub enum Event {
    /// Bytes arrived on a connection. To be read with [`Ring::bytes`](crate::Ring::bytes) and returned with [`Ring::release`](crate::Ring::release).
    Received(u32, Received),
    /// The peer closed the connection: no more bytes follow.
    Closed(u32),
    /// The connection failed.
    Failed(u32, io::Error),
    /// A message that was not accepted will be accepted now.
    Sent(u32),
    /// The watched descriptor is readable. It must be watched again.
    Readable,
}
