//! The ring: requests to the kernel and their completions.

use std::collections::VecDeque;
use std::io;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use io_uring::types::{CancelBuilder, Fd, Fixed, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

use crate::Event;
use crate::receive::{self, Received};
use crate::send;

/// Maximum number of requests that are submitted together.
const REQUESTS: u32 = 256;
/// Number of sends after which they are submitted without waiting for the end of the turn, so that they do not age.
const SENDS_MAX: usize = 32;
/// Maximum number of receive buffers, and of send buffers.
const BUFFERS_MAX: u16 = 256;
/// Messages up to this length are sent at once: the send buffer of a socket is much larger.
const IMMEDIATE_BYTES: usize = 4096;
/// Maximum wait if a message that should have been sent at once may not have been.
const IMMEDIATE_TIMEOUT: Duration = Duration::from_millis(100);
/// Time for requests to be canceled when the ring is dropped.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(1);

/// Number of rings that were created.
static RINGS: AtomicU32 = AtomicU32::new(0);

/// Flags of a send: without a signal if the peer has closed the connection, and without partial sends.
const SEND_FLAGS: i32 = (SendFlags::NOSIGNAL.bits() | RecvFlags::WAITALL.bits()).cast_signed();

/// Kind of a request, in the upper bits of its user data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
enum Kind {
    Receive = 0,
    Send = 1,
    Watch = 2,
    Other = 3,
}

/// The request of a completion, packed into the user data of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Origin {
    kind: Kind,
    /// The buffer of a send.
    buffer: u16,
    generation: u16,
    slot: u32,
}

impl Origin {
    fn pack(self) -> u64 {
        // 4 bits, 12 bits, 16 bits and 32 bits.
        (self.kind as u64) << 60
            | u64::from(self.buffer & 0xfff) << 48
            | u64::from(self.generation) << 32
            | u64::from(self.slot)
    }

    #[expect(clippy::cast_possible_truncation, reason = "each part was packed from this width")]
    fn unpack(data: u64) -> Self {
        let kind = match data >> 60 {
            0 => Kind::Receive,
            1 => Kind::Send,
            2 => Kind::Watch,
            _ => Kind::Other,
        };
        let buffer = (data >> 48) as u16 & 0xfff;
        Self { kind, buffer, generation: (data >> 32) as u16, slot: data as u32 }
    }
}

/// State of one connection.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    /// Incremented with each connection.
    generation: u16,
    is_attached: bool,
    /// The buffer of the message that is being sent.
    sending: Option<u16>,
    /// Whether a message was not accepted because the previous one is still being sent.
    is_refused: bool,
    /// Whether it waits for a send buffer.
    is_starved: bool,
    /// Number of the last turn in which bytes arrived.
    received_in: u64,
}

/// Sends and receives for many connections.
pub struct Ring {
    /// Number of the ring in this process.
    id: u32,
    /// `ManuallyDrop`, because the memory must not be freed while the kernel uses it.
    parts: ManuallyDrop<Parts>,
    slots: Vec<Slot>,
    /// Connections that wait for a send buffer, longest wait first. Some may have been replaced since then.
    starved: VecDeque<u32>,
    /// Number of free send buffers that connections were told of in this turn and have not taken yet.
    promised: usize,
    /// Number of requests that will have another completion.
    outstanding: usize,
    /// Number of sends since the last submission.
    sends: usize,
    /// Number of sends that complete before the wait begins and are not handled yet. Their completions must not end it.
    immediate: usize,
    /// Connections whose receive request has ended, with their generation.
    ended: Vec<(u32, u16)>,
    /// Number of waits.
    turn: u64,
    /// The kernel accepts requests only from the thread that created the ring.
    of_thread: PhantomData<*const ()>,
}

struct Parts {
    // Dropped first.
    ring: IoUring,
    received: receive::Buffers,
    sent: send::Buffers,
}

impl Ring {
    /// Creates a ring for this many connections.
    ///
    /// # Errors
    /// The error of the kernel: it is older than 6.1, or its settings or a container forbid `io_uring`.
    pub fn new(connections: u32) -> io::Result<Self> {
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_coop_taskrun()
            // Each connection may have a completed receive, a completed send, and a few more.
            .setup_cqsize((4 * connections).max(2 * REQUESTS).next_power_of_two().min(32_768))
            .setup_clamp()
            .build(REQUESTS)?;
        ring.submitter().register_files_sparse(connections.max(1))?;
        let count = u16::try_from(connections).unwrap_or(BUFFERS_MAX);
        let count = count.clamp(8, BUFFERS_MAX).next_power_of_two();
        let received = receive::Buffers::register(&ring, count)?;
        let sent = send::Buffers::new(count);
        Ok(Self {
            id: RINGS.fetch_add(1, Ordering::Relaxed),
            parts: ManuallyDrop::new(Parts { ring, received, sent }),
            slots: vec![Slot::default(); connections as usize],
            starved: VecDeque::new(),
            promised: 0,
            outstanding: 0,
            sends: 0,
            immediate: 0,
            ended: Vec::with_capacity(connections as usize),
            turn: 1,
            of_thread: PhantomData,
        })
    }

    /// Attaches a connection, whose bytes are received from now on.
    ///
    /// # Errors
    /// The error of the kernel; [`io::ErrorKind::InvalidInput`] if there is no such slot.
    pub fn attach(&mut self, slot: u32, descriptor: BorrowedFd<'_>) -> io::Result<()> {
        self.detach(slot)?;
        let entry = self.slots.get_mut(slot as usize).ok_or(io::ErrorKind::InvalidInput)?;
        let generation = entry.generation.wrapping_add(1);
        *entry = Slot { generation, is_attached: true, ..Slot::default() };
        self.submit_all()?;
        self.parts.ring.submitter().register_files_update(slot, &[descriptor.as_raw_fd()])?;
        self.receive(slot)
    }

    /// Detaches a connection. No event of it follows, and after the next wait, the kernel has no reference to its
    /// socket.
    ///
    /// # Errors
    /// The error of the kernel.
    pub fn detach(&mut self, slot: u32) -> io::Result<()> {
        let Some(entry) = self.slots.get_mut(slot as usize).filter(|entry| entry.is_attached)
        else {
            return Ok(());
        };
        (entry.is_attached, entry.is_starved) = (false, false);
        let generation = entry.generation;
        let cancel = opcode::AsyncCancel2::new(CancelBuilder::fd(Fixed(slot)).all()).build();
        let other = Origin { kind: Kind::Other, buffer: 0, generation, slot };
        self.push(cancel, other)?;
        self.submit_all()?;
        self.parts.ring.submitter().register_files_update(slot, &[-1]).map(|_| ())
    }

    /// Sends a message, or the beginning of it. Returns how many bytes were accepted: 0 if the previous message has
    /// not been sent yet, or no memory is free. [`Event::Sent`] follows then.
    ///
    /// # Errors
    /// The error of the kernel; [`io::ErrorKind::NotConnected`] without a connection.
    pub fn send(&mut self, slot: u32, message: &[u8]) -> io::Result<usize> {
        let entry = self.slots.get_mut(slot as usize).filter(|entry| entry.is_attached);
        let entry = entry.ok_or(io::ErrorKind::NotConnected)?;
        if message.is_empty() {
            entry.is_refused = true;
            return Ok(0);
        }
        if let Some(buffer) = entry.sending {
            entry.is_refused = true;
            // The peer may wait for this message: the end of the previous one must wake the caller.
            self.immediate -= usize::from(self.parts.sent.take_expected(buffer, self.turn));
            return Ok(0);
        }
        let generation = entry.generation;
        let Some((buffer, length)) = self.parts.sent.take(message) else {
            if !std::mem::replace(&mut entry.is_starved, true) {
                self.starved.push_back(slot);
            }
            return Ok(0);
        };
        self.promised = self.promised.saturating_sub(1);
        entry.sending = Some(buffer);
        if length <= IMMEDIATE_BYTES {
            self.parts.sent.expect(buffer, self.turn);
            self.immediate += 1;
        }
        let origin = Origin { kind: Kind::Send, buffer, generation, slot };
        self.push_send(origin)?;
        if self.sends >= SENDS_MAX {
            self.submit()?;
        }
        Ok(length)
    }

    fn push_send(&mut self, origin: Origin) -> io::Result<()> {
        let (address, length) = self.parts.sent.unsent(origin.buffer);
        let send = opcode::Send::new(Fixed(origin.slot), address, length).flags(SEND_FLAGS).build();
        self.push(send, origin).inspect_err(|_| {
            self.forget_send(origin);
        })?;
        self.sends += 1;
        Ok(())
    }

    /// Releases the buffer of a send that has ended, or that the kernel has not been asked for. Returns whether its
    /// connection waits for that.
    fn forget_send(&mut self, origin: Origin) -> bool {
        self.immediate -= usize::from(self.parts.sent.take_expected(origin.buffer, self.turn));
        self.parts.sent.free.push(origin.buffer);
        let Some(entry) = self.current(origin) else {
            return false;
        };
        entry.sending = None;
        std::mem::take(&mut entry.is_refused)
    }

    /// Whether a send buffer is free for a connection that waits for one. The longest wait is then first.
    fn can_promise(&mut self) -> bool {
        // The connections at the front that were replaced do not wait any more.
        let slots = &self.slots;
        let waits = |&slot: &u32| slots.get(slot as usize).is_some_and(|entry| entry.is_starved);
        while self.starved.front().is_some_and(|slot| !waits(slot)) {
            self.starved.pop_front();
        }
        !self.starved.is_empty() && self.parts.sent.free.len() > self.promised
    }

    /// Requests all bytes of a connection, each time that some arrive.
    fn receive(&mut self, slot: u32) -> io::Result<()> {
        let generation = self.slots.get(slot as usize).map_or(0, |entry| entry.generation);
        let request = opcode::RecvMulti::new(Fixed(slot), receive::GROUP).build();
        self.push(request, Origin { kind: Kind::Receive, buffer: 0, generation, slot })
    }

    /// Reports once when the descriptor of `owner` is readable.
    ///
    /// # Errors
    /// The error of the kernel.
    pub fn watch(&mut self, owner: &impl AsRawFd) -> io::Result<()> {
        let readable = u32::from(PollFlags::IN.bits());
        let request = opcode::PollAdd::new(Fd(owner.as_raw_fd()), readable).build();
        self.push(request, Origin { kind: Kind::Watch, buffer: 0, generation: 0, slot: 0 })?;
        // Once submitted, the kernel refers to what is open, and no longer to the number of the descriptor.
        self.submit_all()
    }

    /// Renews the receive requests that have ended. The connections that had their share of the buffers in this turn
    /// are the last ones, so that a large reply does not starve the others.
    fn receive_again(&mut self) -> io::Result<()> {
        if self.ended.is_empty() {
            return Ok(());
        }
        let mut ended = std::mem::take(&mut self.ended);
        let entry = |slot: u32| self.slots.get(slot as usize).copied().unwrap_or_default();
        // Not replaced since then.
        ended.retain(|&(slot, generation)| {
            entry(slot).is_attached && entry(slot).generation == generation
        });
        ended.sort_by_key(|&(slot, _)| entry(slot).received_in);
        for (slot, _) in ended.drain(..) {
            self.receive(slot)?;
        }
        self.ended = ended;
        Ok(())
    }

    fn push(&mut self, request: squeue::Entry, origin: Origin) -> io::Result<()> {
        let request = request.user_data(origin.pack());
        if self.parts.ring.submission().is_full() {
            self.submit()?;
        }
        // SAFETY: a request refers to memory of the ring only, which outlives it, or to none.
        let pushed = unsafe { self.parts.ring.submission().push(&request) };
        // Not `WouldBlock`: no event would follow.
        pushed.map_err(|_| io::Error::from(io::ErrorKind::ResourceBusy))?;
        self.outstanding += 1;
        Ok(())
    }

    fn submit(&mut self) -> io::Result<()> {
        self.sends = 0;
        match self.parts.ring.submit() {
            Ok(_) => Ok(()),
            // Completions are waiting: they are taken in the next wait.
            Err(error) if Errno::from_io_error(&error) == Some(Errno::BUSY) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Submits all requests. A request that is left refers to a slot by its number, so that it would be executed on the
    /// next connection of the slot.
    fn submit_all(&mut self) -> io::Result<()> {
        self.submit()?;
        if self.parts.ring.submission().is_empty() {
            Ok(())
        } else {
            Err(io::ErrorKind::ResourceBusy.into())
        }
    }

    /// Submits all requests, and waits until something happens or the time has passed. Without a timeout, waits for
    /// an event.
    ///
    /// # Errors
    /// The error of the kernel.
    pub fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        self.receive_again()?;
        (self.sends, self.promised) = (0, 0);
        if self.can_promise() {
            return self.submit();
        }
        let waited = if self.has_completed() {
            // Does not wait, but lets the kernel continue what is in progress.
            self.parts.ring.submit_and_wait(1)
        } else {
            self.turn += 1;
            let immediate = std::mem::take(&mut self.immediate);
            match timeout.or((immediate > 0).then_some(IMMEDIATE_TIMEOUT)) {
                None => self.parts.ring.submit_and_wait(1),
                Some(timeout) => {
                    let timespec = Timespec::from(timeout);
                    let arguments = SubmitArgs::new().timespec(&timespec);
                    self.parts.ring.submitter().submit_with_args(1 + immediate, &arguments)
                }
            }
        };
        match waited {
            Ok(_) => Ok(()),
            // The time has passed, a signal arrived, or completions must be taken first.
            Err(error) => match Errno::from_io_error(&error) {
                Some(Errno::TIME | Errno::INTR | Errno::BUSY) => Ok(()),
                _ => Err(error),
            },
        }
    }

    /// Returns whether a completion has not been handled yet.
    fn has_completed(&mut self) -> bool {
        !self.parts.ring.completion().is_empty()
    }

    /// Returns the next event; `None` if [`Self::wait`] must be called for more.
    ///
    /// # Errors
    /// The error of the kernel.
    pub fn next_event(&mut self) -> io::Result<Option<Event>> {
        if self.can_promise()
            && let Some(slot) = self.starved.pop_front()
        {
            self.promised += 1;
            if let Some(entry) = self.slots.get_mut(slot as usize) {
                entry.is_starved = false;
            }
            return Ok(Some(Event::Sent(slot)));
        }
        loop {
            let completed = self.parts.ring.completion().next();
            let Some(completion) = completed else {
                return Ok(None);
            };
            if let Some(event) = self.event(&completion)? {
                return Ok(Some(event));
            }
        }
    }

    fn event(&mut self, completion: &cqueue::Entry) -> io::Result<Option<Event>> {
        let origin = Origin::unpack(completion.user_data());
        let more = cqueue::more(completion.flags());
        self.outstanding -= usize::from(!more);
        match origin.kind {
            Kind::Receive => Ok(self.end_receive(origin, completion)),
            Kind::Send => self.end_send(origin, completion.result()),
            Kind::Watch => Ok(Some(Event::Readable)),
            Kind::Other => Ok(None),
        }
    }

    /// Returns the slot of a request; `None` if its connection has been replaced.
    fn current(&mut self, origin: Origin) -> Option<&mut Slot> {
        let entry = self.slots.get_mut(origin.slot as usize)?;
        (entry.is_attached && entry.generation == origin.generation).then_some(entry)
    }

    fn end_send(&mut self, origin: Origin, result: i32) -> io::Result<Option<Event>> {
        // After an error, the bytes that the peer sent before are still to be received, and then the error or the
        // end of the stream.
        if let Ok(count) = u32::try_from(result)
            && !self.parts.sent.note_sent(origin.buffer, count)
            && self.current(origin).is_some()
        {
            self.push_send(origin)?;
            return Ok(None);
        }
        let is_refused = self.forget_send(origin);
        Ok((result >= 0 && is_refused).then_some(Event::Sent(origin.slot)))
    }

    fn end_receive(&mut self, origin: Origin, completion: &cqueue::Entry) -> Option<Event> {
        let no_buffers = -Errno::NOBUFS.raw_os_error();
        let buffer = cqueue::buffer_select(completion.flags());
        let result = completion.result();
        let length = usize::try_from(result).unwrap_or(0);
        let received = buffer.map(|buffer| Received { ring: self.id, buffer, length });
        let turn = self.turn;
        let Some(entry) = self.current(origin) else {
            if let Some(received) = received {
                self.release(received);
            }
            return None;
        };
        if result > 0 {
            entry.received_in = turn;
        }
        // The kernel has ended the request, for example because no buffer was free.
        let has_ended = !cqueue::more(completion.flags());
        if has_ended && (result > 0 || result == no_buffers) {
            self.ended.push((origin.slot, origin.generation));
        }
        if let Some(received) = received {
            if result > 0 {
                return Some(Event::Received(origin.slot, received));
            }
            self.release(received);
        }
        match result {
            0 => Some(Event::Closed(origin.slot)),
            none if none == no_buffers => None,
            error => Some(Event::Failed(origin.slot, io::Error::from_raw_os_error(-error))),
        }
    }

    /// Returns received bytes.
    ///
    /// # Panics
    /// If they belong to another ring.
    #[inline]
    pub fn bytes(&self, received: &Received) -> &[u8] {
        assert!(received.ring == self.id, "bytes of another ring");
        self.parts.received.bytes(received)
    }

    /// Makes the memory of received bytes available again.
    ///
    /// # Panics
    /// If they belong to another ring.
    #[inline]
    pub fn release(&mut self, received: Received) {
        assert!(received.ring == self.id, "bytes of another ring");
        self.parts.received.release(received);
    }

    /// Cancels all requests and waits for their completions. Returns whether all have completed.
    fn cancel_all(&mut self) -> bool {
        if self.submit().is_err() {
            return false;
        }
        let timeout = Timespec::from(CANCEL_TIMEOUT);
        let canceled =
            self.parts.ring.submitter().register_sync_cancel(Some(timeout), CancelBuilder::any());
        // If none was found, no request was in flight.
        if canceled.is_err_and(|error| Errno::from_io_error(&error) != Some(Errno::NOENT)) {
            return false;
        }
        for _ in 0..64 {
            self.slots.iter_mut().for_each(|slot| slot.is_attached = false);
            while let Ok(Some(_)) = self.next_event() {}
            if self.outstanding == 0 {
                return true;
            }
            if self.wait(Some(CANCEL_TIMEOUT)).is_err() || !self.has_completed() {
                return false;
            }
        }
        false
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        if self.cancel_all() {
            // SAFETY: dropped once, and no request uses the memory any more.
            unsafe { ManuallyDrop::drop(&mut self.parts) }
        }
    }
}

/// Checks whether a ring works here, by sending a byte to itself.
///
/// # Errors
/// The error of the kernel: it is older than 6.1, or its settings or a container forbid `io_uring`.
pub fn probe() -> io::Result<()> {
    let (near, far) = std::os::unix::net::UnixStream::pair()?;
    let mut ring = Ring::new(2)?;
    for (slot, socket) in (0..).zip([&near, &far]) {
        ring.attach(slot, std::os::fd::AsFd::as_fd(socket))?;
    }
    ring.send(0, b"x")?;
    for _ in 0..8 {
        ring.wait(Some(CANCEL_TIMEOUT))?;
        while let Some(event) = ring.next_event()? {
            match event {
                Event::Received(1, received) if ring.bytes(&received) == b"x" => {
                    ring.release(received);
                    return Ok(());
                }
                Event::Failed(_, error) => return Err(error),
                _ => {}
            }
        }
    }
    Err(io::Error::new(io::ErrorKind::Unsupported, "a request was not answered"))
}

#[cfg(test)]
mod tests;
