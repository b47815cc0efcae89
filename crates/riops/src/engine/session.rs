//! One session of a stage: its connection, the transactions under way on it, what came back.
//!
//! Knows the protocol and the workload's generator; knows neither poller nor schedule.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::sync::Arc;

use riops_wire::backend::{Message, ServerError, TransactionStatus};
use riops_wire::frame::FrameBuffer;
use riops_wire::frontend;
use riops_wire::pipeline::{Event, Pipeline};
use riops_wire::sqlstate::SqlState;

use super::findings::Moment;
use super::opening::{Opened, Recipe};
use crate::metrics::Queries;
use crate::server::Stream;
use crate::units::Nanos;
use crate::workload::Generator;
use crate::workload::access::Finding;
use crate::workload::transaction::{Outcome, Transaction};

/// What a session is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Activity {
    /// Transactions of the workload, or nothing.
    Work,
    /// The plan of its statement of this number is being asked.
    Check(usize),
    /// It waits for a new connection.
    Connect,
    /// It is over.
    Ended,
}

/// Why a session cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// The server refused a statement.
    #[error("the statement failed: {0}")]
    Server(Box<ServerError>),
    /// The server refused to show a plan.
    #[error("the look at the plan of {statement} failed: {error}")]
    Look {
        /// The statement.
        statement: String,
        /// Why.
        error: Box<ServerError>,
    },
    /// The connection broke.
    #[error("the server closed the connection in the middle of the run{}", .0.as_ref().map_or_else(String::new, |error| format!(": {error}")))]
    Closed(Option<Box<ServerError>>),
    /// Reading or writing failed.
    #[error("the connection to the server broke in the middle of the run: {0}")]
    Io(String),
    /// What the server sends is not the protocol.
    #[error("the server does not follow the protocol: {0}")]
    Protocol(String),
    /// There was no new connection in the place of a broken one.
    #[error("a broken connection could not be replaced: {message}")]
    Reconnect {
        /// The server's code, or one of class 08.
        sqlstate: SqlState,
        /// Why not.
        message: String,
    },
    /// A transaction did not end in time.
    #[error("a transaction did not end within {0} s after the end of the measurement")]
    Drain(u64),
}

impl SessionError {
    /// The server's code, where it sent one; class 08 stands for a broken connection.
    pub(super) fn sqlstate(&self) -> SqlState {
        match self {
            Self::Server(error) | Self::Look { error, .. } | Self::Closed(Some(error)) => {
                error.sqlstate
            }
            Self::Closed(None) | Self::Io(_) => SqlState::CONNECTION_FAILURE,
            Self::Protocol(_) => SqlState::PROTOCOL_VIOLATION,
            Self::Reconnect { sqlstate, .. } => *sqlstate,
            Self::Drain(_) => SqlState::UNKNOWN,
        }
    }

    fn protocol(error: &dyn std::fmt::Display) -> Self {
        Self::Protocol(error.to_string())
    }
}

/// A transaction from its intended start to its end, over all attempts.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) tx: Transaction,
    pub(super) outcome: Outcome,
    /// When it was meant to start, and when it was sent for the first time.
    pub(super) intended: Nanos,
    pub(super) started: Nanos,
    /// Whether it is one of those that are counted by number.
    pub(super) claimed: bool,
    /// How often it was sent again.
    pub(super) retries: u32,
    /// When it was sent the last time.
    pub(super) attempt_started: Nanos,
    /// Which of its steps is under way.
    pub(super) step: usize,
    /// Its statements that were answered, in all attempts.
    pub(super) queries: Queries,
}

impl Flight {
    /// Leaves out the statement that failed, where each is committed by itself; whether there is
    /// another one.
    pub(super) fn skip_step(&mut self) -> bool {
        self.step += 1;
        self.outcome.complete += 1;
        self.step < self.tx.steps()
    }

    /// Whether what was sent may have been committed though nobody heard of it.
    pub(super) fn may_be_committed(&self) -> bool {
        if self.tx.is_autocommit() {
            return self.tx.step_effects(self.step).is_some();
        }
        self.step + 1 >= self.tx.steps()
    }
}

/// What one session did of one operation, within the measurement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Transactions.
    pub transactions: u64,
    /// Their rows.
    pub rows: u64,
    /// The longest service time.
    pub longest: Nanos,
    /// The sum of all.
    pub busy: Nanos,
}

/// What one session did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionTally {
    /// Its number in the stage, from 0.
    pub number: u64,
    /// The node that it was connected to last, from 0.
    pub node: usize,
    /// The server's process that served it last.
    pub process: i32,
    /// By operation.
    pub operations: Vec<Tally>,
}

impl SessionTally {
    /// Transactions of all kinds.
    #[must_use]
    pub fn transactions(&self) -> u64 {
        self.operations.iter().map(|tally| tally.transactions).sum()
    }
}

/// What has come to an end on a session.
#[derive(Debug)]
pub(super) enum Ended {
    /// A transaction, with what its reply said.
    Transaction(Flight),
    /// The look at a plan.
    Check(usize, Finding),
    /// A transaction, with an error.
    Failed(Flight, Box<ServerError>),
    /// The look at a plan, with an error.
    CheckFailed(usize, Box<ServerError>),
}

/// How far sending has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flushed {
    /// Everything is sent.
    All,
    /// The socket takes no more for now.
    Blocked,
    /// Nobody will read it; what the peer said before is still to be read.
    PeerGone,
}

/// A connection, with what is on its way in and out.
struct Link {
    stream: Stream,
    received: FrameBuffer,
    pipeline: Pipeline,
    /// What is to be sent, and how much of it was.
    out: Vec<u8>,
    sent: usize,
}

/// A session of a stage, over all its connections.
pub(super) struct Session {
    pub(super) recipe: Arc<Recipe>,
    generator: Box<dyn Generator>,
    link: Option<Link>,
    /// Sent and not answered, the oldest first.
    under_way: VecDeque<Flight>,
    /// Answered with an error, and to be sent again in a moment.
    pub(super) postponed: usize,
    /// Memory of transactions that have ended.
    spare: Vec<Flight>,
    failed: Option<Box<ServerError>>,
    /// Why the transaction that is being rolled back failed.
    rolled_back: Option<Box<ServerError>>,
    plan_text: String,
    pub(super) activity: Activity,
    /// Whether it waits for its worker's next start.
    pub(super) parked: bool,
    /// The next look at the plans.
    pub(super) next_check: Option<Moment>,
    /// What was counted, by operation.
    pub(super) tallies: Vec<Tally>,
    /// The server's process, where it has said so.
    pub(super) process: i32,
    /// Transactions on this connection.
    pub(super) since_connect: u64,
    /// The node that it is connected to, from 0.
    pub(super) node: usize,
    /// Whether it shall go home to another node.
    pub(super) moves: bool,
}

/// Longer plans than any statement of riops has are not kept.
const PLAN_BYTES_MAX: usize = 256 * 1024;

impl Session {
    /// A session with its first connection, on which up to `depth` transactions of so many kinds
    /// are under way.
    pub(super) fn new(
        recipe: Arc<Recipe>,
        generator: Box<dyn Generator>,
        depth: usize,
        operations: usize,
        opened: Opened,
    ) -> Self {
        let flight = || Flight {
            tx: Transaction::new(Arc::clone(&recipe.statements)),
            outcome: Outcome::default(),
            intended: Nanos(0),
            started: Nanos(0),
            claimed: false,
            retries: 0,
            attempt_started: Nanos(0),
            step: 0,
            queries: Queries::default(),
        };
        let mut session = Self {
            spare: (0..depth).map(|_| flight()).collect(),
            recipe,
            generator,
            link: None,
            under_way: VecDeque::with_capacity(depth),
            postponed: 0,
            failed: None,
            rolled_back: None,
            plan_text: String::new(),
            activity: Activity::Work,
            parked: false,
            next_check: Some(Moment::Middle),
            tallies: vec![Tally::default(); operations],
            process: 0,
            since_connect: 0,
            node: 0,
            moves: false,
        };
        session.attach(opened);
        session
    }

    /// Goes on with this connection.
    pub(super) fn attach(&mut self, opened: Opened) {
        let Opened { stream, received, process, node, .. } = opened;
        (self.process, self.node, self.moves) = (process, node, false);
        self.link = Some(Link {
            stream,
            received,
            pipeline: Pipeline::new(),
            out: Vec::with_capacity(256),
            sent: 0,
        });
        self.since_connect = 0;
        self.failed = None;
        self.rolled_back = None;
        self.activity = Activity::Work;
    }

    /// Gives the connection up, with a goodbye for which nobody waits; what was under way on it
    /// comes out.
    pub(super) fn detach(&mut self) -> std::collections::vec_deque::Drain<'_, Flight> {
        self.say_goodbye();
        self.activity = Activity::Connect;
        self.under_way.drain(..)
    }

    /// Why the server has refused the transaction that is under way, where its rollback is not answered
    /// yet.
    pub(super) fn take_refused(&mut self) -> Option<Box<ServerError>> {
        self.rolled_back.take()
    }

    /// Ends the session for good.
    pub(super) fn end(&mut self) {
        self.say_goodbye();
        self.activity = Activity::Ended;
    }

    fn say_goodbye(&mut self) {
        let Some(mut link) = self.link.take() else {
            return;
        };
        let mut goodbye = Vec::new();
        if frontend::Message::Terminate.encode(&mut goodbye).is_ok() {
            let _ = link.stream.write(&goodbye);
        }
        link.stream.close();
    }

    /// The socket, for the poller.
    pub(super) fn descriptor(&self) -> Option<i32> {
        self.link.as_ref().map(|link| link.stream.as_raw_fd())
    }

    /// Whether another transaction may be sent.
    pub(super) fn has_room(&self) -> bool {
        !self.spare.is_empty()
    }

    /// Whether nothing is under way, and nothing waits to be sent again.
    pub(super) fn is_quiet(&self) -> bool {
        self.under_way.is_empty() && self.postponed == 0
    }

    /// Puts the next transaction into what is to be sent; false where there is none any more.
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
        if let Some(error) = flight.tx.error() {
            return Err(SessionError::protocol(error));
        }
        flight.intended = intended;
        flight.started = now;
        flight.claimed = claimed;
        flight.retries = 0;
        flight.step = 0;
        flight.outcome = Outcome::default();
        flight.queries = Queries::default();
        self.since_connect += 1;
        self.queue(flight, now).map(|()| true)
    }

    /// Puts a transaction into what is to be sent; one that failed from its beginning on, the same
    /// bytes once more. Where each step is committed by itself, it goes on with the one that failed.
    pub(super) fn queue(&mut self, mut flight: Flight, now: Nanos) -> Result<(), SessionError> {
        flight.attempt_started = now;
        if !flight.tx.is_autocommit() {
            flight.step = 0;
            flight.outcome = Outcome::default();
        }
        // Rows of a statement that failed half-way come again.
        flight.outcome.rows -= flight.outcome.returned.min(flight.outcome.rows);
        flight.outcome.returned = 0;
        flight.tx.rewind();
        self.under_way.push_back(flight);
        self.send_step()
    }

    /// Puts the step that is due of the transaction that was begun last into what is to be sent.
    fn send_step(&mut self) -> Result<(), SessionError> {
        let Some((link, flight)) = self.link.as_mut().zip(self.under_way.back()) else {
            return Err(SessionError::Closed(None));
        };
        let (bytes, statements) = flight.tx.step(flight.step);
        link.out.extend_from_slice(bytes);
        link.pipeline.sent(statements).map_err(|error| SessionError::protocol(&error))
    }

    /// Ends a transaction that failed and is still open on the server.
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

    /// Keeps the memory of a transaction that has ended.
    pub(super) fn recycle(&mut self, flight: Flight) {
        self.spare.push(flight);
    }

    /// Asks for the plan of the statement of this number.
    pub(super) fn start_check(&mut self, number: usize) -> Result<(), SessionError> {
        let sql = self.recipe.checks.get(number).map_or("", |(_, explain)| explain.as_str());
        let Some(link) = &mut self.link else {
            return Err(SessionError::Closed(None));
        };
        frontend::Message::Query(sql)
            .encode(&mut link.out)
            .map_err(|error| SessionError::protocol(&error))?;
        self.plan_text.clear();
        self.activity = Activity::Check(number);
        link.pipeline.sent(1).map_err(|error| SessionError::protocol(&error))
    }

    /// Sends what is to be sent.
    pub(super) fn flush(&mut self) -> Result<Flushed, SessionError> {
        let Some(link) = &mut self.link else {
            return Ok(Flushed::All);
        };
        if link.out.is_empty() {
            return Ok(Flushed::All);
        }
        loop {
            if link.sent == link.out.len()
                && let Some(flight) = self.under_way.back_mut()
                && flight.tx.next_row().is_some()
            {
                // Made only when the socket has taken what stands before it.
                link.out.clear();
                link.sent = 0;
                self.generator.piece(&mut flight.tx, &mut link.out);
            }
            let rest = link.out.get(link.sent..).unwrap_or_default();
            let done = rest.is_empty();
            // With TLS the last bytes may still wait to go out.
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
                    return Ok(Flushed::PeerGone);
                }
                Err(error) => return Err(SessionError::Io(error.to_string())),
            }
        }
        link.out.clear();
        link.sent = 0;
        Ok(Flushed::All)
    }

    /// Reads once; false where nothing is left to read for now.
    pub(super) fn fill(&mut self) -> Result<bool, SessionError> {
        let Some(link) = &mut self.link else {
            return Ok(false);
        };
        let space = link.received.space().map_err(|error| SessionError::protocol(&error))?;
        let room = space.len();
        match link.stream.read(space) {
            Ok(0) => Err(SessionError::Closed(self.failed.take())),
            Ok(count) => {
                link.received.filled(count);
                // A short read has emptied a plain socket: asking again would cost a call for
                // nothing. With TLS it says nothing of the socket.
                Ok(count == room || link.stream.is_encrypted())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                Err(SessionError::Closed(self.failed.take()))
            }
            Err(error) => Err(SessionError::Io(error.to_string())),
        }
    }

    /// Takes messages out of what was read, up to the end of what is under way; `None` where more
    /// has to be read first.
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
                Event::Row { row, .. } => match self.under_way.front_mut() {
                    Some(flight) => {
                        let reply = flight.tx.reply(row);
                        self.generator.reply(&flight.tx, &reply, &mut flight.outcome);
                    }
                    None => {
                        if let Some(Ok(Some(line))) = row.values().next()
                            && self.plan_text.len() + line.len() < PLAN_BYTES_MAX
                        {
                            self.plan_text.push_str(&String::from_utf8_lossy(line));
                            self.plan_text.push('\n');
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
                        && let Some(flight) = self.under_way.front_mut()
                    {
                        flight.queries.note(tag);
                        self.generator.complete(&flight.tx, tag, &mut flight.outcome);
                    }
                }
                Event::Aside | Event::Step => {}
            }
        }
    }

    /// What has ended with an answer; `None` where more has to be sent first.
    fn finish(&mut self, status: TransactionStatus) -> Result<Option<Ended>, SessionError> {
        let failed = self.failed.take();
        if let Some(error) = self.rolled_back.take() {
            if let Some(refused) = failed {
                let text = format!("a rollback was refused: {refused}");
                return Err(SessionError::Protocol(text));
            }
            let flight = self.under_way.pop_front();
            return Ok(flight.map(|flight| Ended::Failed(flight, error)));
        }
        if let Some(flight) = self.under_way.front_mut() {
            match failed {
                Some(error) if status != TransactionStatus::Idle => {
                    self.roll_back(error)?;
                    return Ok(None);
                }
                None if flight.step + 1 < flight.tx.steps() => {
                    flight.step += 1;
                    self.send_step()?;
                    return Ok(None);
                }
                _ => {}
            }
        }
        if let Some(flight) = self.under_way.pop_front() {
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
        let finding = self.recipe.checks.get(number).map_or_else(
            || Finding { held: false, outline: String::new(), storage: None },
            |(access, _)| access.judge(&self.plan_text),
        );
        Ok(Some(Ended::Check(number, finding)))
    }
}
