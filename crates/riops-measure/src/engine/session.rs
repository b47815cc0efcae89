//! One session of a stage: its connection, its transactions in flight and their replies.
//!
//! It uses the wire protocol and the workload's generator. It must not depend on the poller or the schedule.

mod checks;
mod turns;

use std::collections::VecDeque;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::Arc;

use riops_wire::backend::{Columns, Row, ServerError, TransactionStatus};
use riops_wire::pipeline::{ANY_STATEMENTS, Event};
use riops_wire::reply::Reply;

use super::error::SessionError;
use super::findings::{Moment, PlanText};
use super::in_flight::{Begun, InFlight};
use super::link::{Filled, Link, Outlet};
use super::opening::{Opened, SessionSetup};
use super::queue::Queue;
use super::tally::{Backend, SessionTally, Tally};
use crate::server::{Dialect, Stream};
use crate::workload::Generator;
use crate::workload::access::{Executed, Finding};
use crate::workload::transaction::Transaction;
use riops_model::units::Nanos;

/// Current activity of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Activity {
    /// Running transactions of the workload, or idle.
    Work,
    /// Waiting for the EXPLAIN of the check with this number.
    Check(usize),
    /// Waiting for a new connection.
    Connect,
    /// Ended for good.
    Ended,
}

/// A completed request of a session.
#[derive(Debug)]
pub(super) enum Ended {
    /// A transaction that succeeded.
    Transaction(Box<InFlight>),
    /// The current turn of an interactive transaction.
    Turn(Box<InFlight>),
    /// A plan check, with its number and its finding, or the reason why it has no verdict.
    Check(usize, Result<Box<Finding>, String>),
    /// A transaction that failed.
    Failed(Box<InFlight>, Box<ServerError>),
    /// A plan check that failed.
    CheckFailed(usize, Box<ServerError>),
}

/// Result of writing to the socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flushed {
    /// Everything is sent.
    All,
    /// The socket's send buffer is full.
    Blocked,
    /// The peer has closed the connection. Bytes that it sent before are still to be read.
    PeerClosed,
}

/// A session of a stage. It outlives its connections.
///
/// The fields stay in their declared order (`repr(C)`): the fields that every transaction uses come first, in few cache
/// lines, because the server's processes use the same caches between two transactions of a session.
#[repr(C)]
pub(super) struct Session {
    answers: Answers,
    /// Number of the newest transactions in flight that are not in the send buffer yet.
    unsent: usize,
    /// Memory for reuse.
    spare: Queue<Box<InFlight>>,
    failed: Option<Box<ServerError>>,
    pub(super) activity: Activity,
    /// Number of transactions that were started.
    pub(super) started: u64,
    /// Number of transactions after which it ends.
    pub(super) most: u64,
    /// Number of transactions on this connection.
    pub(super) since_connect: u64,
    /// Number of the node that it is connected to, from 0.
    pub(super) node: usize,
    /// Whether the session waits for the worker's next start.
    pub(super) parked: bool,
    /// Whether the session must reconnect to its home node.
    pub(super) moving_home: bool,
    /// Whether unread bytes wait for the worker's next turn.
    pub(super) unread: bool,
    /// Whether its last transaction has ended.
    pub(super) finished: bool,
    /// Whether a ring serves its socket.
    pub(super) is_on_ring: bool,
    /// Time of the next plan check.
    pub(super) next_check: Option<Moment>,
    /// Whether an interactive transaction has left a transaction block open.
    in_block: bool,
    link: Option<Link>,
    /// Counted work by operation.
    pub(super) tallies: Vec<Tally>,
    pub(super) setup: Arc<SessionSetup>,
    /// Process id of the backend; 0 if the server did not send it.
    pub(super) process: i32,
    /// Dialect of the server that it is connected to.
    pub(super) dialect: Dialect,
    /// The backend with its start time, if the workload terminates sessions.
    pub(super) backend: Option<Backend>,
    /// Transactions that wait for their retry.
    pub(super) postponed: VecDeque<Box<InFlight>>,
    /// An interactive transaction that waits for its time or for the shell.
    pub(super) paused: Option<Box<InFlight>>,
    /// Executions whose plans are checked after the plans of the setup.
    executed: Vec<Executed>,
    /// Number in the stage.
    pub(super) id: u64,
    /// Number of transactions in the log.
    pub(super) logged: u64,
}

/// The generator and the transactions that the rows and completions of a reply belong to.
#[repr(C)]
struct Answers {
    generator: Box<dyn Generator>,
    /// Transactions that wait for their reply, oldest first.
    in_flight: Queue<Box<InFlight>>,
    /// Error of the transaction that is being rolled back.
    rolled_back: Option<Box<ServerError>>,
    /// The plan, if no transaction is in flight.
    plan: PlanText,
}

impl Answers {
    /// Processes an answer. Returns the status of a transaction that it ends.
    #[inline]
    fn reply(&mut self, reply: Reply<'_>) -> Option<TransactionStatus> {
        match reply {
            Reply::Bound => {}
            Reply::Row(row) => self.row(row),
            Reply::Complete(tag) => self.completion(tag),
            Reply::Ready(status) => return Some(status),
        }
        None
    }

    #[inline]
    fn row(&mut self, row: Row<'_>) {
        if let Some(flight) = self.in_flight.first_mut() {
            let reply = flight.tx.reply(row);
            self.generator.reply(&flight.tx, &reply, &mut flight.outcome);
        } else if let Some(Ok(Some(line))) = row.values().next() {
            self.plan.push(line);
        }
    }

    fn columns(&mut self, columns: Columns<'_>) {
        if let Some(flight) = self.in_flight.first_mut() {
            self.generator.columns(&flight.tx, &columns);
        }
    }

    #[inline]
    fn completion(&mut self, tag: &str) {
        if self.rolled_back.is_none()
            && let Some(flight) = self.in_flight.first_mut()
        {
            flight.queries.note(tag);
            self.generator.complete(&flight.tx, tag, &mut flight.outcome);
        }
    }
}

impl Session {
    /// Creates the session with this number in the stage, with its first connection and up to `depth` transactions in
    /// flight.
    pub(super) fn new(
        id: u64,
        setup: Arc<SessionSetup>,
        generator: Box<dyn Generator>,
        depth: usize,
        operations: usize,
        opened: Opened,
    ) -> Self {
        let mut spare = Queue::with_capacity(depth);
        for _ in 0..depth {
            let tx = Transaction::new(Arc::clone(&setup.statements));
            spare.push(Box::new(InFlight::new(tx)));
        }
        let first_check = if generator.notes_executions() { Moment::First } else { Moment::During };
        let mut session = Self {
            answers: Answers {
                generator,
                in_flight: Queue::with_capacity(depth),
                rolled_back: None,
                plan: PlanText::default(),
            },
            spare,
            setup,
            link: None,
            unsent: 0,
            postponed: VecDeque::new(),
            finished: false,
            is_on_ring: false,
            failed: None,
            activity: Activity::Work,
            parked: false,
            next_check: Some(first_check),
            tallies: vec![Tally::default(); operations],
            process: 0,
            backend: None,
            started: 0,
            most: u64::MAX,
            since_connect: 0,
            node: 0,
            dialect: Dialect::default(),
            moving_home: false,
            unread: false,
            in_block: false,
            paused: None,
            executed: Vec::new(),
            id,
            logged: 0,
        };
        session.attach(opened);
        session
    }

    /// Attaches a new connection.
    pub(super) fn attach(&mut self, opened: Opened) {
        let Opened { stream, received, process, backend, node, dialect, .. } = opened;
        (self.process, self.node, self.dialect) = (process, node, dialect);
        (self.moving_home, self.unread, self.in_block) = (false, false, false);
        self.backend = backend;
        self.link = Some(Link::new(stream, received));
        self.since_connect = 0;
        self.answers.generator.connected();
        (self.failed, self.answers.rolled_back) = (None, None);
        self.activity = Activity::Work;
    }

    /// Closes the connection and returns the transactions that were in flight on it.
    #[expect(clippy::vec_box, reason = "memory for reuse, moved into the queue and back")]
    pub(super) fn detach(&mut self) -> Vec<Box<InFlight>> {
        self.close_connection();
        self.activity = Activity::Connect;
        self.unsent = 0;
        std::iter::from_fn(|| self.answers.in_flight.pop()).collect()
    }

    /// Takes the error of the transaction whose rollback has not been answered yet.
    pub(super) fn take_rejected(&mut self) -> Option<Box<ServerError>> {
        self.answers.rolled_back.take()
    }

    /// Ends the session for good.
    pub(super) fn end(&mut self) {
        self.close_connection();
        self.activity = Activity::Ended;
    }

    /// Returns its work.
    pub(super) fn into_tally(self) -> SessionTally {
        SessionTally {
            id: self.id,
            node: self.node,
            process: self.process,
            backend: self.backend,
            started: self.started,
            operations: self.tallies,
        }
    }

    fn close_connection(&mut self) {
        if let Some(link) = self.link.take() {
            link.close();
        }
    }

    /// Returns the file descriptor of the socket, for the poller.
    pub(super) fn descriptor(&self) -> Option<i32> {
        self.link.as_ref().map(|link| link.stream.as_raw_fd())
    }

    /// Returns the socket, if it has no TLS.
    pub(super) fn plain_socket(&self) -> Option<BorrowedFd<'_>> {
        let stream = self.link.as_ref().map(|link| &link.stream);
        stream.filter(|stream| !stream.is_encrypted()).map(Stream::as_fd)
    }

    /// Returns whether it has a connection.
    pub(super) fn is_connected(&self) -> bool {
        !matches!(self.activity, Activity::Ended | Activity::Connect)
    }

    /// Returns whether another transaction may be sent.
    pub(super) fn has_free_slot(&self) -> bool {
        !self.spare.is_empty()
    }

    /// Returns whether there may be another transaction.
    #[inline]
    pub(super) fn has_next(&self) -> bool {
        self.started < self.most && self.answers.generator.has_next()
    }

    /// Counts the next transaction as started without executing it. Returns its operation, if it is known.
    pub(super) fn skip(&mut self) -> Option<usize> {
        self.answers.generator.skip()
    }

    /// Returns whether no transaction is in flight, waits for its retry or is paused.
    pub(super) fn is_idle(&self) -> bool {
        self.answers.in_flight.is_empty() && self.postponed.is_empty() && self.paused.is_none()
    }

    /// Begins the next transaction, to be sent by [`Self::flush`].
    #[inline]
    pub(super) fn begin(
        &mut self,
        intended: Nanos,
        now: Nanos,
        claimed: bool,
    ) -> Result<Begun, SessionError> {
        let Some(mut flight) = self.spare.pop() else {
            return Ok(Begun::Sent);
        };
        if !self.answers.generator.next(&mut flight.tx) {
            self.spare.push(flight);
            return Ok(Begun::NoMore);
        }
        if let Some(error) = flight.tx.error() {
            return Err(SessionError::protocol(error));
        }
        flight.start(self.started, intended, now, claimed);
        self.started += 1;
        self.since_connect += 1;
        if flight.tx.is_interactive() {
            flight.start_attempt(now);
            return self.proceed(flight, now, None).map(Begun::Interactive);
        }
        self.queue(flight, now).map(|()| Begun::Sent)
    }

    /// Starts an attempt of a transaction. A retry sends the same bytes again from the first step, or from the
    /// failed step if each step commits separately.
    #[inline]
    pub(super) fn queue(
        &mut self,
        mut flight: Box<InFlight>,
        now: Nanos,
    ) -> Result<(), SessionError> {
        flight.start_attempt(now);
        self.answers.in_flight.push(flight);
        self.send_step()
    }

    /// Records that the current step of the newest transaction must be sent.
    fn send_step(&mut self) -> Result<(), SessionError> {
        let (Some(link), Some(flight)) = (&mut self.link, self.answers.in_flight.last()) else {
            return Err(SessionError::Closed(None));
        };
        self.unsent += 1;
        let sent = if flight.tx.is_interactive() {
            (0..flight.tx.steps())
                .try_for_each(|step| link.pipeline.sent(flight.tx.statements_of(step)))
        } else {
            link.pipeline.sent(flight.tx.step(flight.step).1)
        };
        sent.map_err(SessionError::protocol)
    }

    /// Appends everything that must be sent to the send buffer.
    fn fill_send_buffer(&mut self) {
        let Some(link) = &mut self.link else {
            return;
        };
        let sent = self.answers.in_flight.len().saturating_sub(std::mem::take(&mut self.unsent));
        for flight in self.answers.in_flight.iter().skip(sent) {
            link.out.extend_from_slice(flight.to_send());
        }
    }

    /// Appends a simple query, of any number of statements, to the send buffer.
    fn send_query(&mut self, sql: &str) -> Result<(), SessionError> {
        self.fill_send_buffer();
        let Some(link) = &mut self.link else {
            return Err(SessionError::Closed(None));
        };
        link.query(sql).map_err(SessionError::protocol)?;
        link.pipeline.sent(ANY_STATEMENTS).map_err(SessionError::protocol)
    }

    /// Writes everything that must be sent.
    #[inline]
    pub(super) fn flush(&mut self, mut outlet: Outlet<'_>) -> Result<Flushed, Box<SessionError>> {
        if self.unsent > 1 {
            self.fill_send_buffer();
        }
        let Some(link) = &mut self.link else {
            return Ok(Flushed::All);
        };
        let mut written = Ok(());
        if let (1, Some(flight)) = (self.unsent, self.answers.in_flight.last()) {
            self.unsent = 0;
            let bytes = flight.to_send();
            if link.out.is_empty() {
                written = link.write(bytes, &mut outlet);
            } else {
                link.out.extend_from_slice(bytes);
            }
        } else if link.out.is_empty() {
            return Ok(Flushed::All);
        }
        loop {
            match written {
                Ok(()) => {}
                Err(error) => match error.kind() {
                    io::ErrorKind::Interrupted => {}
                    io::ErrorKind::WouldBlock => return Ok(Flushed::Blocked),
                    io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => {
                        link.clear_out();
                        return Ok(Flushed::PeerClosed);
                    }
                    _ => return Err(Box::new(SessionError::Io(error.to_string()))),
                },
            }
            if link.out.is_empty() {
                // COPY data is generated only after the socket has accepted all earlier bytes.
                let copying = self.answers.in_flight.last_mut();
                if let Some(flight) = copying.filter(|flight| flight.tx.next_row().is_some()) {
                    self.answers.generator.piece(&mut flight.tx, &mut link.out);
                }
            }
            let is_last = link.out.is_empty();
            // With TLS, the last bytes may still be encrypted and not sent.
            written = if is_last { link.stream.flush() } else { link.write_rest(&mut outlet) };
            if is_last && written.is_ok() {
                return Ok(Flushed::All);
            }
        }
    }

    /// Returns whether the poller has reported that the server closed the connection, now with `closed` or
    /// before. It reports a close only once, together with the last bytes.
    pub(super) fn is_read_closed(&mut self, closed: bool) -> bool {
        self.link.as_mut().is_some_and(|link| {
            link.read_closed |= closed;
            link.read_closed
        })
    }

    /// Notes that the poller reported more bytes, which will be read later. It reports them only once.
    pub(super) fn note_readable(&mut self) {
        if let Some(link) = &mut self.link {
            link.stream.note_readable();
        }
    }

    /// Reads from the socket once, into `buffer` unless the bytes continue a message.
    #[inline]
    pub(super) fn fill(&mut self, buffer: &mut [u8]) -> Result<Filled, Box<SessionError>> {
        let nothing = Filled { bytes: 0, in_buffer: 0, more: false };
        let Some(link) = &mut self.link else {
            return Ok(nothing);
        };
        match link.read(buffer)? {
            Ok(Filled { bytes: 0, .. }) => Err(self.closed().into()),
            Ok(filled) => Ok(filled),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock => Ok(nothing),
                io::ErrorKind::Interrupted => Ok(Filled { more: true, ..nothing }),
                _ => Err(self.read_failed(&error).into()),
            },
        }
    }

    /// Returns the error of a connection that the server has closed.
    pub(super) fn closed(&mut self) -> SessionError {
        SessionError::Closed(self.failed.take())
    }

    /// Returns the error of a connection that cannot be read.
    pub(super) fn read_failed(&mut self, error: &io::Error) -> SessionError {
        match error.kind() {
            io::ErrorKind::ConnectionReset => self.closed(),
            _ => SessionError::Io(error.to_string()),
        }
    }

    /// Decodes received messages, the newest of which are in `data`, up to the end of the oldest request. Returns
    /// `None` if more bytes are needed.
    #[inline]
    pub(super) fn take_end(
        &mut self,
        data: &mut &[u8],
    ) -> Result<Option<Ended>, Box<SessionError>> {
        loop {
            let Some(link) = &mut self.link else {
                return Ok(None);
            };
            let ready = if let Some(reply) = link.next_reply(data) {
                self.answers.reply(reply)
            } else {
                if data.is_empty() && link.received.is_empty() {
                    return Ok(None);
                }
                let Some(event) = link.next_event(data)? else {
                    return Ok(None);
                };
                let mut ready = None;
                match event {
                    Event::Reply(reply) => ready = self.answers.reply(reply),
                    Event::Failed(fields) => {
                        // If a turn has several errors, the first one counts.
                        let error = || Box::new(ServerError::from_fields(fields));
                        self.failed.get_or_insert_with(error);
                    }
                    Event::Columns(columns) => self.answers.columns(columns),
                    Event::CopyIn => {
                        let flight = self.answers.in_flight.first_mut();
                        if let Some(flight) = flight.filter(|flight| flight.tx.is_interactive()) {
                            link.refuse_copy(flight.tx.protocol())?;
                        }
                    }
                    Event::Notice(fields) => {
                        self.answers.generator.notice(&ServerError::from_fields(fields));
                    }
                    Event::Other => {}
                }
                ready
            };
            if let Some(status) = ready
                && let Some(ended) = self.finish(status)?
            {
                return Ok(Some(ended));
            }
        }
    }

    /// Returns the request that a `ReadyForQuery` completes; `None` if another step or a rollback follows.
    #[inline]
    fn finish(&mut self, status: TransactionStatus) -> Result<Option<Ended>, Box<SessionError>> {
        let failed = self.failed.take();
        if let Some(error) = self.answers.rolled_back.take() {
            if let Some(refused) = failed {
                let text = format!("rollback failed: {refused}");
                return Err(SessionError::Protocol(text).into());
            }
            self.in_block = status != TransactionStatus::Idle;
            let flight = self.answers.in_flight.pop();
            return Ok(flight.map(|mut flight| {
                flight.rolled_back = true;
                Ended::Failed(flight, error)
            }));
        }
        if let Some(flight) = self.answers.in_flight.first_mut() {
            if flight.tx.is_interactive() {
                self.in_block = status != TransactionStatus::Idle;
                if flight.step + 1 < flight.tx.steps() {
                    flight.step += 1;
                    // The server continues after the Sync; the turn has failed.
                    self.failed = failed;
                    return Ok(None);
                }
                if failed.is_none() {
                    return Ok(self.answers.in_flight.pop().map(Ended::Turn));
                }
            }
            match failed {
                Some(error) if status != TransactionStatus::Idle => {
                    self.answers.rolled_back = Some(error);
                    self.send_query("rollback")?;
                    return Ok(None);
                }
                None if flight.step + 1 < flight.tx.steps() => {
                    flight.complete_step();
                    self.send_step()?;
                    return Ok(None);
                }
                _ => {}
            }
        }
        if let Some(flight) = self.answers.in_flight.pop() {
            return Ok(Some(match failed {
                Some(error) => Ended::Failed(flight, error),
                None => Ended::Transaction(flight),
            }));
        }
        let Activity::Check(position) = self.activity else {
            return Ok(None);
        };
        Ok(Some(self.end_check(position, failed)))
    }
}
