//! The connection of a session with its buffers. Both are empty most of the time: messages are sent from the buffer
//! of their transaction, and decoded in the buffer that the worker reads into.

use std::io::{self, Read, Write};

use riops_ring::Ring;
use riops_wire::backend::Message;
use riops_wire::frame::{self, FrameBuffer};
use riops_wire::frontend::{self, EncodeError};
use riops_wire::pipeline::{Event, Pipeline};
use riops_wire::reply::Reply;

use super::error::SessionError;
use crate::server::Stream;
use riops_model::plan::Protocol;

/// Result of one read from the socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Filled {
    pub(super) bytes: usize,
    /// How many of these bytes are in the worker's buffer. The others continue a message.
    pub(super) in_buffer: usize,
    /// Whether another read may return more bytes at once.
    pub(super) more: bool,
}

/// A connection with its receive and send buffers.
///
/// The fields stay in their declared order (`repr(C)`): the fields that every transaction uses come first, in few cache
/// lines.
#[repr(C)]
pub(super) struct Link {
    pub(super) stream: Stream,
    pub(super) pipeline: Pipeline,
    /// Bytes to send.
    pub(super) out: Vec<u8>,
    /// Number of bytes of `out` that have been sent.
    sent: usize,
    /// The beginning of a message whose rest has not arrived yet.
    pub(super) received: FrameBuffer,
    /// Whether the poller has reported that the server closed the connection.
    pub(super) read_closed: bool,
}

/// Where messages go.
pub(super) enum Outlet<'a> {
    Socket,
    /// A ring, and the number of the connection in it.
    Ring(&'a mut Ring, u32),
}

/// Returns the number of a session in the ring of its worker.
pub(super) fn slot(index: usize) -> u32 {
    // A plan has fewer sessions.
    u32::try_from(index).unwrap_or(u32::MAX)
}

impl Outlet<'_> {
    #[inline]
    fn write(&mut self, stream: &mut Stream, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Socket => stream.write(bytes),
            Self::Ring(ring, slot) => match ring.send(*slot, bytes)? {
                0 => Err(io::ErrorKind::WouldBlock.into()),
                count => Ok(count),
            },
        }
    }
}

impl Link {
    pub(super) fn new(stream: Stream, received: FrameBuffer) -> Self {
        // The memory that connecting required is released.
        let received =
            if received.is_empty() { FrameBuffer::new(received.limit()) } else { received };
        let pipeline = Pipeline::default();
        Self { stream, pipeline, out: Vec::new(), sent: 0, received, read_closed: false }
    }

    /// Sends a Terminate message without waiting, and closes the socket.
    pub(super) fn close(mut self) {
        let mut terminate = Vec::new();
        if frontend::Message::Terminate.encode(&mut terminate).is_ok() {
            let _ = self.stream.write(&terminate);
        }
        self.stream.close();
    }

    /// Appends a simple query to the send buffer.
    pub(super) fn query(&mut self, sql: &str) -> Result<(), EncodeError> {
        frontend::Message::Query(sql).encode(&mut self.out)
    }

    /// Ends a COPY FROM STDIN with an error: a script has no data for it. The server has ignored the Sync that followed its
    /// start.
    pub(super) fn refuse_copy(&mut self, protocol: Protocol) -> Result<(), Box<SessionError>> {
        let reason = frontend::Message::CopyFail("a script has no data for COPY FROM STDIN");
        reason.encode(&mut self.out).map_err(SessionError::protocol)?;
        if protocol != Protocol::Simple {
            self.out.extend_from_slice(&frontend::SYNC);
        }
        Ok(())
    }

    /// Writes bytes, and keeps those that are not accepted in the send buffer, which is empty.
    #[inline]
    pub(super) fn write(&mut self, bytes: &[u8], outlet: &mut Outlet<'_>) -> io::Result<()> {
        let written = outlet.write(&mut self.stream, bytes);
        let count = written.as_ref().map_or(0, |count| *count);
        self.out.extend_from_slice(bytes.get(count..).unwrap_or_default());
        written.map(|_| ())
    }

    /// Writes a part of the send buffer.
    pub(super) fn write_rest(&mut self, outlet: &mut Outlet<'_>) -> io::Result<()> {
        let rest = self.out.get(self.sent..).unwrap_or_default();
        self.sent += outlet.write(&mut self.stream, rest)?;
        if self.sent == self.out.len() {
            self.clear_out();
        }
        Ok(())
    }

    pub(super) fn clear_out(&mut self) {
        self.out.clear();
        self.sent = 0;
    }

    /// Reads from the socket once: into `buffer`, or after the beginning of a message that was received before.
    #[inline]
    pub(super) fn read(
        &mut self,
        buffer: &mut [u8],
    ) -> Result<io::Result<Filled>, Box<SessionError>> {
        if self.received.is_empty() {
            return Ok(self.stream.read(buffer).map(|bytes| {
                let more = self.stream.may_have_more(bytes, buffer.len());
                Filled { bytes, in_buffer: bytes, more }
            }));
        }
        let space = self.received.space().map_err(SessionError::protocol)?;
        let available = space.len();
        Ok(self.stream.read(space).map(|bytes| {
            self.received.filled(bytes);
            Filled { bytes, in_buffer: 0, more: self.stream.may_have_more(bytes, available) }
        }))
    }

    /// Decodes the next message if it answers a statement and is complete in `data`.
    #[inline]
    pub(super) fn next_reply<'d>(&mut self, data: &mut &'d [u8]) -> Option<Reply<'d>> {
        if !self.received.is_empty() {
            return None;
        }
        let (reply, rest) = Reply::decode(data)?;
        if !self.pipeline.accept(&reply) {
            return None;
        }
        *data = rest;
        Some(reply)
    }

    /// Decodes the next message, from bytes received before or from `data`, and assigns it to its request. If it is
    /// not complete, its beginning is kept, and `None` is returned.
    pub(super) fn next_event<'a, 'd: 'a>(
        &'a mut self,
        data: &mut &'d [u8],
    ) -> Result<Option<Event<'a>>, Box<SessionError>> {
        if !self.received.is_empty() && !data.is_empty() {
            let kept = self.received.extend(std::mem::take(data));
            kept.map_err(SessionError::protocol)?;
        }
        let frame = if self.received.is_empty() {
            let split =
                frame::split(data, self.received.limit()).map_err(SessionError::protocol)?;
            let Some((frame, rest)) = split else {
                let kept = self.received.extend(std::mem::take(data));
                kept.map_err(SessionError::protocol)?;
                return Ok(None);
            };
            *data = rest;
            frame
        } else {
            let Some(frame) = self.received.next_frame().map_err(SessionError::protocol)? else {
                return Ok(None);
            };
            frame
        };
        let message = Message::decode(frame).map_err(SessionError::protocol)?;
        let event = self.pipeline.receive(&message);
        Ok(Some(event.map_err(SessionError::protocol)?))
    }
}
