//! Sends and receives the bytes of the sessions: with a poller, and with the driver `io_uring` also a ring for the
//! sockets without TLS.
//!
//! The poller remains for the other sockets and for wake-ups by other threads: the ring reports when it has events.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use riops_ring::{Event, Received, Ring};
use riops_wire::frame::READ_BYTES_MAX;

use super::super::alarm::Alarm;
use super::super::clock::Clock;
use super::super::error::SessionError;
use super::super::link::{Outlet, slot};
use super::super::session::{Flushed, Session};
use riops_model::units::Nanos;

/// Token of the worker's timer.
pub(super) const ALARM: Token = Token(usize::MAX - 1);

pub(in crate::engine) struct Transport {
    poll: Poll,
    /// Set by [`Self::start`].
    alarm: Option<Alarm>,
    ring: Option<Box<Ring>>,
    /// Whether the ring has reported that the poller has events.
    poll_is_ready: bool,
    /// Sessions that had more to read than their share of a turn, in the order of their next turns. The poller is
    /// edge-triggered and does not report them again.
    pub(super) unread: VecDeque<usize>,
    /// Memory that the sessions read into. Replies are decoded in it, so that it remains in the cache.
    pub(super) buffer: Vec<u8>,
}

impl Transport {
    /// Creates the transport of this number of sessions. The driver `io_uring` requires a `ring`.
    pub(in crate::engine) fn new(poll: Poll, ring: Option<Box<Ring>>, sessions: usize) -> Self {
        Self {
            poll,
            alarm: None,
            // The poller is watched from the first wait on.
            poll_is_ready: ring.is_some(),
            ring,
            unread: VecDeque::with_capacity(sessions),
            buffer: vec![0; READ_BYTES_MAX],
        }
    }

    pub(super) fn start(&mut self, sessions: &mut [Session]) -> io::Result<()> {
        self.alarm = Some(Alarm::new(self.poll.registry(), ALARM)?);
        (0..).zip(sessions).try_for_each(|(index, session)| self.register(index, session))
    }

    /// Registers the socket of a session, with the ring if there is one and the socket has no TLS.
    pub(super) fn register(&mut self, index: usize, session: &mut Session) -> io::Result<()> {
        if let (Some(ring), Some(socket)) = (&mut self.ring, session.plain_socket()) {
            ring.attach(slot(index), socket)?;
            session.is_on_ring = true;
            return Ok(());
        }
        match session.descriptor() {
            Some(socket) => {
                let (socket, token) = (&mut SourceFd(&socket), Token(index));
                self.poll.registry().register(socket, token, Interest::READABLE)
            }
            None => Ok(()),
        }
    }

    /// Takes the socket of a session from the ring, before it is closed.
    pub(super) fn detach(&mut self, index: usize, session: &mut Session) {
        if let Some(ring) = &mut self.ring
            && std::mem::take(&mut session.is_on_ring)
        {
            // If it fails, the socket stays open until the end of the stage.
            let _ = ring.detach(slot(index));
        }
    }

    /// Waits for an event, a wake-up, a signal, or the time `until`.
    #[inline]
    pub(super) fn wait(
        &mut self,
        until: Option<Nanos>,
        clock: &impl Clock,
        events: &mut Events,
    ) -> io::Result<()> {
        let Some(ring) = &mut self.ring else {
            let timeout = match (until, &mut self.alarm) {
                (Some(at), Some(alarm)) => alarm.wait_until(at, clock.now())?,
                _ => None,
            };
            return self.poll.poll(events, timeout);
        };
        events.clear();
        let mut timeout = until.map(|at| at.since(clock.now()).into());
        if std::mem::take(&mut self.poll_is_ready) {
            timeout = Some(Duration::ZERO);
            self.poll.poll(events, timeout)?;
            ring.watch(&self.poll)?;
        }
        ring.wait(timeout)
    }

    /// Returns the next event of the ring. Messages are sent together at the next wait.
    #[inline]
    pub(super) fn next_event(&mut self) -> io::Result<Option<Event>> {
        while let Some(ring) = &mut self.ring {
            match ring.next_event()? {
                Some(Event::Readable) => self.poll_is_ready = true,
                event => return Ok(event),
            }
        }
        Ok(None)
    }

    /// Copies bytes from the ring to the buffer, because a session that ends its connection needs the ring. Returns how
    /// many.
    #[inline]
    pub(super) fn copy_received(&mut self, received: Received) -> usize {
        let Some(ring) = &mut self.ring else {
            return 0;
        };
        let bytes = ring.bytes(&received);
        let length = bytes.len().min(self.buffer.len());
        if let (Some(target), Some(bytes)) = (self.buffer.get_mut(..length), bytes.get(..length)) {
            target.copy_from_slice(bytes);
        }
        ring.release(received);
        length
    }

    /// Writes the pending bytes of a session to its socket.
    #[inline]
    pub(super) fn flush(
        &mut self,
        index: usize,
        session: &mut Session,
    ) -> Result<Flushed, Box<SessionError>> {
        let outlet = match &mut self.ring {
            Some(ring) if session.is_on_ring => Outlet::Ring(ring, slot(index)),
            _ => Outlet::Socket,
        };
        let flushed = session.flush(outlet)?;
        // The ring reports when it accepts more.
        if flushed == Flushed::Blocked && !session.is_on_ring {
            self.watch_writable(index, session, true)?;
        }
        Ok(flushed)
    }

    /// Sets whether the poller reports that the socket of a session accepts bytes.
    pub(super) fn watch_writable(
        &self,
        index: usize,
        session: &Session,
        enabled: bool,
    ) -> Result<(), Box<SessionError>> {
        let Some(socket) = session.descriptor() else {
            return Ok(());
        };
        let interest =
            if enabled { Interest::READABLE | Interest::WRITABLE } else { Interest::READABLE };
        let registered =
            self.poll.registry().reregister(&mut SourceFd(&socket), Token(index), interest);
        let task = "cannot wait for a free send buffer";
        registered.map_err(|error| SessionError::client(task, &error).into())
    }

    /// Lets a session read more after the other sessions have been served.
    pub(super) fn read_later(&mut self, index: usize, session: &mut Session) {
        if session.is_connected() {
            session.unread = true;
            self.unread.push_back(index);
        }
    }
}
