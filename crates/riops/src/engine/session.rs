//! One session of a stage: its connection, its transactions in flight and their replies.
//!
//! It uses the wire protocol and the workload's generator. It must not depend on the poller or the schedule.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::sync::Arc;

use riops_wire::backend::{Message, ServerError, TransactionStatus};
use riops_wire::frame::FrameBuffer;
use riops_wire::frontend;
use riops_wire::pipeline::{Event, Pipeline};

use super::backend::Backend;
use super::findings::Moment;
use super::opening::{Opened, Recipe};
pub use super::session_error::SessionError;
use super::tally::Tally;
use crate::metrics::Queries;
use crate::server::{Flavor, Stream};
use crate::units::Nanos;
use crate::workload::Generator;
use crate::workload::access::Finding;
use crate::workload::effects::TableEffects;
use crate::workload::transaction::{Outcome, Transaction};

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

/// A transaction in flight, from its intended start to its end, including all attempts.
#[derive(Debug)]
pub(super) struct InFlight {
    pub(super) tx: Transaction,
    pub(super) outcome: Outcome,
    /// The outcome after the last completed step. A step may still fail at the Sync, where it commits.
    pub(super) completed: Outcome,
    /// Number of the transaction in its session, from 0.
    pub(super) number: u64,
    pub(super) intended: Nanos,
    /// Time of the first send.
    pub(super) started: Nanos,
    /// Whether it counts toward the requested number of transactions or rows.
    pub(super) claimed: bool,
    pub(super) retries: u32,
    /// Time of the last send.
    pub(super) attempt_started: Nanos,
    pub(super) step: usize,
    pub(super) queries: Queries,
    /// Whether the last attempt was rolled back explicitly, which proves that it changed nothing.
    rolled_back: bool,
}

impl InFlight {
    fn new(tx: Transaction) -> Self {
        Self {
            tx,
            outcome: Outcome::default(),
            completed: Outcome::default(),
            number: 0,
            intended: Nanos(0),
            started: Nanos(0),
            claimed: false,
            retries: 0,
            attempt_started: Nanos(0),
            step: 0,
            queries: Queries::default(),
            rolled_back: false,
        }
    }

    /// Skips the failed statement of a transaction whose statements commit separately. Returns whether
    /// another statement follows.
    pub(super) fn skip_step(&mut self) -> bool {
        self.step += 1;
        self.completed.complete += 1;
        self.outcome = self.completed;
        self.step < self.tx.steps()
    }

    /// Returns whether the transaction may have been committed without an acknowledgment.
    pub(super) fn may_be_committed(&self) -> bool {
        if self.rolled_back {
            return false;
        }
        if self.tx.is_autocommit() {
            return self.tx.step_effects(self.step).is_some();
        }
        self.step + 1 >= self.tx.steps()
    }

    /// Returns the effects that are unknown if the reply to the current step is lost.
    pub(super) fn effects_in_doubt(&self) -> TableEffects {
        if self.tx.is_autocommit() {
            // Earlier statements are acknowledged, later ones were not sent.
            return self.tx.step_effects(self.step).unwrap_or_default();
        }
        self.tx.expected_effects()
    }
}

/// A completed request of a session.
#[derive(Debug)]
pub(super) enum Ended {
    /// A transaction that succeeded.
    Transaction(Box<InFlight>),
    /// A plan check, with its number and finding.
    Check(usize, Finding),
    /// A transaction that failed.
    Failed(Box<InFlight>, Box<ServerError>),
    /// A plan check that failed.
    CheckFailed(usize, Box<ServerError>),
    /// A plan check without a verdict, with its number and the reason.
    Unchecked(usize, String),
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

/// Result of one read from the socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Filled {
    pub(super) bytes: usize,
    /// Whether another read may return more bytes at once.
    pub(super) more: bool,
}

/// A connection with its receive and send buffers.
struct Link {
    stream: Stream,
    received: FrameBuffer,
    pipeline: Pipeline,
    /// Bytes to send.
    out: Vec<u8>,
    /// Number of bytes of `out` that have been sent.
    sent: usize,
    /// Whether the poller has reported that the server closed the connection.
    read_closed: bool,
}

/// A session of a stage. It outlives its connections.
#[expect(clippy::struct_excessive_bools, reason = "independent facts, not states")]
pub(super) struct Session {
    pub(super) recipe: Arc<Recipe>,
    generator: Box<dyn Generator>,
    link: Option<Link>,
    /// Transactions that wait for their reply, oldest first.
    in_flight: VecDeque<Box<InFlight>>,
    /// Number of transactions that wait for their retry.
    pub(super) postponed: usize,
    /// Whether its last transaction has ended.
    pub(super) finished: bool,
    #[expect(clippy::vec_box, reason = "memory for reuse, moved into the queue and back")]
    spare: Vec<Box<InFlight>>,
    failed: Option<Box<ServerError>>,
    /// Error of the transaction that is being rolled back.
    rolled_back: Option<Box<ServerError>>,
    plan: PlanText,
    pub(super) activity: Activity,
    /// Whether the session waits for the worker's next start.
    pub(super) parked: bool,
    /// Time of the next plan check.
    pub(super) next_check: Option<Moment>,
    /// Counted work by operation.
    pub(super) tallies: Vec<Tally>,
    /// Process id of the backend; 0 if the server did not send it.
    pub(super) process: i32,
    /// The backend with its start time, if the workload terminates sessions.
    pub(super) backend: Option<Backend>,
    /// Number of transactions that were started.
    pub(super) started: u64,
    /// Number of transactions on this connection.
    pub(super) since_connect: u64,
    /// Number of the node that it is connected to, from 0.
    pub(super) node: usize,
    /// Flavor of the server that it is connected to.
    pub(super) flavor: Flavor,
    /// Whether the session must reconnect to its home node.
    pub(super) moving_home: bool,
    /// Whether unread bytes wait for the worker's next turn.
    pub(super) unread: bool,
}

/// Maximum stored length of a plan, longer than the plan of any statement of riops.
const PLAN_BYTES_MAX: usize = 256 * 1024;

/// The result of an EXPLAIN.
#[derive(Debug, Default)]
struct PlanText {
    text: String,
    /// Whether the plan is longer than the maximum. It cannot be judged then.
    is_cut: bool,
}

impl PlanText {
    fn push(&mut self, line: &[u8]) {
        self.is_cut |= self.text.len() + line.len() >= PLAN_BYTES_MAX;
        if !self.is_cut {
            self.text.push_str(&String::from_utf8_lossy(line));
            self.text.push('\n');
        }
    }
}

impl Session {
    /// Creates a session with its first connection and up to `depth` transactions in flight.
    pub(super) fn new(
        recipe: Arc<Recipe>,
        generator: Box<dyn Generator>,
        depth: usize,
        operations: usize,
        opened: Opened,
    ) -> Self {
        let flight = |_| Box::new(InFlight::new(Transaction::new(Arc::clone(&recipe.statements))));
        let mut session = Self {
            spare: (0..depth).map(flight).collect(),
            recipe,
            generator,
            link: None,
            in_flight: VecDeque::with_capacity(depth),
            postponed: 0,
            finished: false,
            failed: None,
            rolled_back: None,
            plan: PlanText::default(),
            activity: Activity::Work,
            parked: false,
            next_check: Some(Moment::During),
            tallies: vec![Tally::default(); operations],
            process: 0,
            backend: None,
            started: 0,
            since_connect: 0,
            node: 0,
            flavor: Flavor::PostgreSql,
            moving_home: false,
            unread: false,
        };
        session.attach(opened);
        session
    }

    /// Attaches a new connection.
    pub(super) fn attach(&mut self, opened: Opened) {
        let Opened { stream, received, process, backend, node, flavor, .. } = opened;
        (self.process, self.node, self.flavor) = (process, node, flavor);
        (self.moving_home, self.unread) = (false, false);
        self.backend = backend;
        self.link = Some(Link {
            stream,
            received,
            pipeline: Pipeline::new(),
            out: Vec::with_capacity(256),
            sent: 0,
            read_closed: false,
        });
        self.since_connect = 0;
        self.failed = None;
        self.rolled_back = None;
        self.activity = Activity::Work;
    }

    /// Closes the connection and returns the transactions that were in flight on it.
    pub(super) fn detach(&mut self) -> std::collections::vec_deque::Drain<'_, Box<InFlight>> {
        self.close_connection();
        self.activity = Activity::Connect;
        self.in_flight.drain(..)
    }

    /// Takes the error of the transaction whose rollback has not been answered yet.
    pub(super) fn take_rejected(&mut self) -> Option<Box<ServerError>> {
        self.rolled_back.take()
    }

    /// Ends the session for good.
    pub(super) fn end(&mut self) {
        self.close_connection();
        self.activity = Activity::Ended;
    }

    /// Sends a Terminate message without waiting, and closes the socket.
    fn close_connection(&mut self) {
        let Some(mut link) = self.link.take() else {
            return;
        };
        let mut terminate = Vec::new();
        if frontend::Message::Terminate.encode(&mut terminate).is_ok() {
            let _ = link.stream.write(&terminate);
        }
        link.stream.close();
    }

    /// Returns the file descriptor of the socket, for the poller.
    pub(super) fn descriptor(&self) -> Option<i32> {
        self.link.as_ref().map(|link| link.stream.as_raw_fd())
    }

    /// Returns whether another transaction may be sent.
    pub(super) fn has_free_slot(&self) -> bool {
        !self.spare.is_empty()
    }

    /// Returns whether no transaction is in flight or waits for its retry.
    pub(super) fn is_idle(&self) -> bool {
        self.in_flight.is_empty() && self.postponed == 0
    }

    /// Appends the next transaction to the send buffer; returns false if the generator has no more.
    pub(super) fn begin(
        &mut self,
        intended: Nanos,
        now: Nanos,
        claimed: bool,
    ) -> Result<bool, SessionError> {
        let Some(mut flight) = self.spare.pop() else {
            return Ok(true);
        };
        if !self.generator.next(&mut flight.tx) {
            self.spare.push(flight);
            return Ok(false);
        }
        flight.number = self.started;
        self.started += 1;
        if let Some(error) = flight.tx.error() {
            return Err(SessionError::protocol(error));
        }
        flight.intended = intended;
        flight.started = now;
        flight.claimed = claimed;
        flight.retries = 0;
        flight.step = 0;
        flight.completed = Outcome::default();
        flight.queries = Queries::default();
        self.since_connect += 1;
        self.queue(flight, now).map(|()| true)
    }

    /// Appends a transaction to the send buffer. A retry sends the same bytes again from the first step, or
    /// from the failed step if each step commits separately.
    pub(super) fn queue(
        &mut self,
        mut flight: Box<InFlight>,
        now: Nanos,
    ) -> Result<(), SessionError> {
        flight.attempt_started = now;
        flight.rolled_back = false;
        if !flight.tx.is_autocommit() {
            flight.step = 0;
            flight.completed = Outcome::default();
        }
        // The retry returns all replies to the failed step again.
        flight.outcome = flight.completed;
        flight.tx.rewind();
        self.in_flight.push_back(flight);
        self.send_step()
    }

    /// Appends the current step of the newest transaction to the send buffer.
    fn send_step(&mut self) -> Result<(), SessionError> {
        let Some((link, flight)) = self.link.as_mut().zip(self.in_flight.back()) else {
            return Err(SessionError::Closed(None));
        };
        let (bytes, statements) = flight.tx.step(flight.step);
        link.out.extend_from_slice(bytes);
        link.pipeline.sent(statements).map_err(|error| SessionError::protocol(&error))
    }

    /// Rolls back a failed transaction that is still open on the server.
    fn roll_back(&mut self, error: Box<ServerError>) -> Result<(), SessionError> {
        self.rolled_back = Some(error);
        let Some(link) = &mut self.link else {
            return Err(SessionError::Closed(None));
        };
        frontend::Message::Query("rollback")
            .encode(&mut link.out)
            .map_err(|error| SessionError::protocol(&error))?;
        link.pipeline.sent(1).map_err(|error| SessionError::protocol(&error))
    }

    /// Stores the memory of a completed transaction for reuse.
    pub(super) fn recycle(&mut self, flight: Box<InFlight>) {
        self.spare.push(flight);
    }

    /// Appends the EXPLAIN of check `number` to the send buffer.
    pub(super) fn start_check(&mut self, number: usize) -> Result<(), SessionError> {
        let sql = self.recipe.checks.get(number).map_or("", |(_, explain)| explain.as_str());
        let Some(link) = &mut self.link else {
            return Err(SessionError::Closed(None));
        };
        frontend::Message::Query(sql)
            .encode(&mut link.out)
            .map_err(|error| SessionError::protocol(&error))?;
        self.plan.text.clear();
        self.plan.is_cut = false;
        self.activity = Activity::Check(number);
        link.pipeline.sent(1).map_err(|error| SessionError::protocol(&error))
    }

    /// Writes the send buffer to the socket.
    pub(super) fn flush(&mut self) -> Result<Flushed, SessionError> {
        let Some(link) = &mut self.link else {
            return Ok(Flushed::All);
        };
        if link.out.is_empty() {
            return Ok(Flushed::All);
        }
        loop {
            if link.sent == link.out.len()
                && let Some(flight) = self.in_flight.back_mut()
                && flight.tx.next_row().is_some()
            {
                // COPY data is generated only after the socket has accepted all earlier bytes.
                link.out.clear();
                link.sent = 0;
                self.generator.piece(&mut flight.tx, &mut link.out);
            }
            let rest = link.out.get(link.sent..).unwrap_or_default();
            let done = rest.is_empty();
            // With TLS, the last bytes may still be buffered.
            let written =
                if done { link.stream.flush().map(|()| 0) } else { link.stream.write(rest) };
            match written {
                Ok(_) if done => break,
                Ok(count) => link.sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(Flushed::Blocked);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
                    ) =>
                {
                    link.out.clear();
                    link.sent = 0;
                    return Ok(Flushed::PeerClosed);
                }
                Err(error) => return Err(SessionError::Io(error.to_string())),
            }
        }
        link.out.clear();
        link.sent = 0;
        Ok(Flushed::All)
    }

    /// Returns whether the poller has reported that the server closed the connection, now with `closed` or
    /// before. It reports a close only once, together with the last bytes.
    pub(super) fn is_read_closed(&mut self, closed: bool) -> bool {
        self.link.as_mut().is_some_and(|link| {
            link.read_closed |= closed;
            link.read_closed
        })
    }

    /// Reads from the socket once.
    pub(super) fn fill(&mut self) -> Result<Filled, SessionError> {
        let Some(link) = &mut self.link else {
            return Ok(Filled { bytes: 0, more: false });
        };
        let space = link.received.space().map_err(|error| SessionError::protocol(&error))?;
        let available = space.len();
        match link.stream.read(space) {
            Ok(0) => Err(SessionError::Closed(self.failed.take())),
            Ok(count) => {
                link.received.filled(count);
                Ok(Filled { bytes: count, more: link.stream.may_have_more(count, available) })
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                Ok(Filled { bytes: 0, more: false })
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                Ok(Filled { bytes: 0, more: true })
            }
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                Err(SessionError::Closed(self.failed.take()))
            }
            Err(error) => Err(SessionError::Io(error.to_string())),
        }
    }

    /// Decodes received messages up to the end of the oldest request. Returns `None` if more bytes are
    /// needed.
    pub(super) fn take_end(&mut self) -> Result<Option<Ended>, SessionError> {
        loop {
            let Some(link) = &mut self.link else {
                return Ok(None);
            };
            let frame =
                link.received.next_frame().map_err(|error| SessionError::protocol(&error))?;
            let Some(frame) = frame else {
                return Ok(None);
            };
            let message = Message::decode(frame).map_err(|error| SessionError::protocol(&error))?;
            match link.pipeline.receive(&message).map_err(|error| SessionError::protocol(&error))? {
                Event::Row { row, .. } => match self.in_flight.front_mut() {
                    Some(flight) => {
                        let reply = flight.tx.reply(row);
                        self.generator.reply(&flight.tx, &reply, &mut flight.outcome);
                    }
                    None => {
                        if let Some(Ok(Some(line))) = row.values().next() {
                            self.plan.push(line);
                        }
                    }
                },
                Event::Failed { fields, .. } => {
                    self.failed = Some(Box::new(ServerError::from_fields(fields)));
                }
                Event::Ready(status) => {
                    if let Some(ended) = self.finish(status)? {
                        return Ok(Some(ended));
                    }
                }
                Event::Complete { tag, .. } => {
                    if self.rolled_back.is_none()
                        && let Some(flight) = self.in_flight.front_mut()
                    {
                        flight.queries.note(tag);
                        self.generator.complete(&flight.tx, tag, &mut flight.outcome);
                    }
                }
                Event::Asynchronous | Event::Step => {}
            }
        }
    }

    /// Returns the request that a `ReadyForQuery` completes; `None` if another step or a rollback follows.
    fn finish(&mut self, status: TransactionStatus) -> Result<Option<Ended>, SessionError> {
        let failed = self.failed.take();
        if let Some(error) = self.rolled_back.take() {
            if let Some(refused) = failed {
                let text = format!("rollback failed: {refused}");
                return Err(SessionError::Protocol(text));
            }
            let flight = self.in_flight.pop_front();
            return Ok(flight.map(|mut flight| {
                flight.rolled_back = true;
                Ended::Failed(flight, error)
            }));
        }
        if let Some(flight) = self.in_flight.front_mut() {
            match failed {
                Some(error) if status != TransactionStatus::Idle => {
                    self.roll_back(error)?;
                    return Ok(None);
                }
                None if flight.step + 1 < flight.tx.steps() => {
                    flight.step += 1;
                    flight.completed = flight.outcome;
                    self.send_step()?;
                    return Ok(None);
                }
                _ => {}
            }
        }
        if let Some(flight) = self.in_flight.pop_front() {
            return Ok(Some(match failed {
                Some(error) => Ended::Failed(flight, error),
                None => Ended::Transaction(flight),
            }));
        }
        let Activity::Check(number) = self.activity else {
            return Ok(None);
        };
        self.activity = Activity::Work;
        if let Some(error) = failed {
            return Ok(Some(Ended::CheckFailed(number, error)));
        }
        if self.plan.is_cut {
            let reason = format!("the plan is longer than {} kB", PLAN_BYTES_MAX / 1024);
            return Ok(Some(Ended::Unchecked(number, reason)));
        }
        let finding = self.recipe.checks.get(number).map_or_else(
            || Finding { held: false, outline: String::new(), storage: None },
            |(access, _)| access.judge(&self.plan.text),
        );
        Ok(Some(Ended::Check(number, finding)))
    }
}
