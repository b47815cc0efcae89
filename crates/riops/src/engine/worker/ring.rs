//! The driver `io_uring`: the sockets of a worker without TLS are served by a ring.
//!
//! The poller remains for the other sockets and for wake-ups by other threads: the ring reports when it has events.

use std::io;
use std::time::Duration;

use mio::Events;
use riops_ring::{Event, Received};

use super::super::alarm::Alarm;
use super::super::link::slot;
use super::super::session::{Activity, SessionError};
use super::{Clock, Worker};

impl<C: Clock> Worker<C> {
    /// Waits until something must be done: for an event, the time of the next alarm, or a wake-up.
    pub(super) fn wait(&mut self, alarm: &mut Alarm, events: &mut Events) -> io::Result<()> {
        if self.ring.is_none() {
            let timeout = self.poll_timeout(alarm)?;
            return self.poll.poll(events, timeout);
        }
        events.clear();
        let poll_is_ready = std::mem::take(&mut self.poll_is_ready);
        if poll_is_ready {
            self.poll.poll(events, Some(Duration::ZERO))?;
        }
        let timeout = if poll_is_ready || self.has_more_to_do() {
            Some(Duration::ZERO)
        } else {
            self.next_alarm().map(|at| at.since(self.clock.now()).into())
        };
        let Some(ring) = &mut self.ring else {
            return Ok(());
        };
        if poll_is_ready {
            ring.watch(&self.poll)?;
        }
        ring.wait(timeout)
    }

    /// Hands the socket of a session to the ring, if there is one and the socket has no TLS. Returns whether it does.
    pub(super) fn attach_to_ring(&mut self, number: usize) -> io::Result<bool> {
        let (Some(ring), Some(session)) = (&mut self.ring, self.sessions.get_mut(number)) else {
            return Ok(false);
        };
        let Some(socket) = session.plain_socket() else {
            return Ok(false);
        };
        ring.attach(slot(number), socket)?;
        session.is_on_ring = true;
        Ok(true)
    }

    /// Takes the socket of a session from the ring, before it is closed.
    pub(super) fn detach_from_ring(&mut self, number: usize) {
        if let (Some(ring), Some(session)) = (&mut self.ring, self.sessions.get_mut(number))
            && std::mem::take(&mut session.is_on_ring)
        {
            // If it fails, the socket stays open until the end of the stage.
            let _ = ring.detach(slot(number));
        }
    }

    /// Handles the events of the ring. Their messages are sent together at the next wait.
    pub(super) fn serve_ring(&mut self) {
        while let Some(ring) = &mut self.ring {
            match ring.next_event() {
                Ok(Some(event)) => self.ring_event(event),
                Ok(None) => return,
                Err(error) => {
                    return self.fail_all(&SessionError::client("cannot wait for replies", &error));
                }
            }
        }
    }

    fn ring_event(&mut self, event: Event) {
        match event {
            Event::Received(slot, received) => self.received(slot as usize, received),
            Event::Sent(slot) => self.flush_session(slot as usize),
            Event::Closed(slot) => {
                let number = slot as usize;
                if let Some(session) = self.sessions.get_mut(number) {
                    let error = session.closed();
                    self.connection_lost(number, error);
                }
            }
            Event::Failed(slot, error) => {
                let number = slot as usize;
                if let Some(session) = self.sessions.get_mut(number) {
                    let error = session.read_failed(&error);
                    self.connection_lost(number, error);
                }
            }
            Event::Readable => self.poll_is_ready = true,
        }
    }

    /// Handles bytes of a session. They are copied, because a session that ends its connection needs the ring.
    fn received(&mut self, number: usize, received: Received) {
        let Some(ring) = &mut self.ring else {
            return;
        };
        let mut buffer = std::mem::take(&mut self.buffer);
        let bytes = ring.bytes(&received);
        let length = bytes.len().min(buffer.len());
        if let (Some(target), Some(bytes)) = (buffer.get_mut(..length), bytes.get(..length)) {
            target.copy_from_slice(bytes);
        }
        ring.release(received);
        let is_open = self.sessions.get(number).is_some_and(|session| {
            !matches!(session.activity, Activity::Ended | Activity::Connect)
        });
        let handled = match buffer.get(..length) {
            Some(data) if is_open => self.receive(number, data),
            _ => Ok(()),
        };
        self.buffer = buffer;
        match handled {
            Ok(()) => self.flush_session(number),
            Err(error) => self.connection_lost(number, *error),
        }
    }
}
