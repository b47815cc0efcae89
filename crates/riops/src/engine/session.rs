//! One connection doing the work: which transaction is under way, what came back, what is next.
//!
//! Knows the protocol and the workload's generator; knows neither poller nor schedule.

use std::io::{self, Read, Write};

use riops_wire::backend::{Message, ServerError};
use riops_wire::frame::FrameBuffer;
use riops_wire::frontend;
use riops_wire::pipeline::{Event, Pipeline};
use riops_wire::sqlstate::SqlState;

use super::schedule::Pace;
use crate::target::Stream;
use crate::units::Nanos;
use crate::workload::access::{Access, Finding};
use crate::workload::{Generator, Outcome, Transaction};

/// What a session is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Activity {
    /// Nothing is under way.
    Idle,
    /// A transaction of the workload.
    Transaction,
    /// The plan of its statement of this number is being asked.
    Check(usize),
    /// It is over.
    Ended,
}

/// When a plan was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moment {
    /// Before the first transaction.
    Before,
    /// In the middle of the measurement.
    Middle,
    /// After the last transaction.
    After,
}

/// Why a session cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// The server refused a statement.
    #[error("the statement failed: {0}")]
    Server(Box<ServerError>),
    /// The connection broke.
    #[error("the server closed the connection in the middle of the run{}", .0.as_ref().map_or_else(String::new, |error| format!(": {error}")))]
    Closed(Option<Box<ServerError>>),
    /// Reading or writing failed.
    #[error("the connection to the server broke in the middle of the run: {0}")]
    Io(String),
    /// What the server sends is not the protocol.
    #[error("the server does not follow the protocol: {0}")]
    Protocol(String),
    /// A transaction did not end in time.
    #[error("a transaction did not end within {0} s after the end of the measurement")]
    Drain(u64),
}

/// What has come to an end on a session.
#[derive(Debug)]
pub(super) enum Ended {
    /// The transaction, with what its reply said.
    Transaction(Outcome),
    /// The look at a plan.
    Check(usize, Finding),
    /// The transaction, with an error.
    Failed(Box<ServerError>),
}

/// A session with its connection.
pub(super) struct Session {
    stream: Stream,
    received: FrameBuffer,
    pipeline: Pipeline,
    generator: Box<dyn Generator>,
    pub(super) tx: Transaction,
    outcome: Outcome,
    failed: Option<Box<ServerError>>,
    /// Bytes of the request under way, where they are not the transaction's.
    request: Vec<u8>,
    sent: usize,
    plan_text: String,
    pub(super) activity: Activity,
    pub(super) accesses: Vec<Access>,
    pub(super) pace: Pace,
    /// When the transaction under way was meant to start, and when it was sent.
    pub(super) intended: Nanos,
    pub(super) started: Nanos,
    /// Whether it is one of those that are counted by number.
    pub(super) claimed: bool,
    /// The next look at the plans.
    pub(super) next_check: Option<Moment>,
    /// Transactions that were counted.
    pub(super) transactions: u64,
}

/// Longer plans than any statement of riops has are not kept.
const PLAN_BYTES_MAX: usize = 256 * 1024;

impl Session {
    pub(super) fn new(
        stream: Stream,
        received: FrameBuffer,
        generator: Box<dyn Generator>,
        accesses: Vec<Access>,
    ) -> Self {
        Self {
            stream,
            received,
            pipeline: Pipeline::new(),
            generator,
            tx: Transaction::default(),
            outcome: Outcome::default(),
            failed: None,
            request: Vec::new(),
            sent: 0,
            plan_text: String::new(),
            activity: Activity::Idle,
            accesses,
            pace: Pace::Closed,
            intended: Nanos(0),
            started: Nanos(0),
            claimed: false,
            next_check: Some(Moment::Middle),
            transactions: 0,
        }
    }

    pub(super) fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Makes the next transaction and sends it; false where the socket takes no more for now.
    pub(super) fn start_transaction(&mut self) -> Result<bool, SessionError> {
        self.generator.next(&mut self.tx);
        if let Some(error) = self.tx.error() {
            return Err(SessionError::Protocol(error.to_string()));
        }
        self.outcome = Outcome::default();
        self.activity = Activity::Transaction;
        self.begin_request(self.tx.statements())?;
        self.send()
    }

    /// Asks for the plan of the statement of this number.
    pub(super) fn start_check(&mut self, number: usize) -> Result<bool, SessionError> {
        let sql = self.accesses.get(number).map(Access::explain_sql).unwrap_or_default();
        self.request.clear();
        frontend::Message::Query(&sql)
            .encode(&mut self.request)
            .map_err(|error| SessionError::Protocol(error.to_string()))?;
        self.plan_text.clear();
        self.activity = Activity::Check(number);
        self.begin_request(1)?;
        self.send()
    }

    /// Says goodbye; nobody waits for an answer.
    pub(super) fn end(&mut self) {
        self.activity = Activity::Ended;
        self.request.clear();
        if frontend::Message::Terminate.encode(&mut self.request).is_ok() {
            let _ = self.stream.write(&self.request);
        }
    }

    fn begin_request(&mut self, statements: u32) -> Result<(), SessionError> {
        self.sent = 0;
        self.pipeline.sent(statements).map_err(|error| SessionError::Protocol(error.to_string()))
    }

    /// Sends what is left of the request; false where the socket takes no more for now.
    pub(super) fn send(&mut self) -> Result<bool, SessionError> {
        let bytes = match self.activity {
            Activity::Transaction => self.tx.bytes(),
            _ => &self.request,
        };
        while let Some(rest) = bytes.get(self.sent..).filter(|rest| !rest.is_empty()) {
            match self.stream.write(rest) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                    return Err(self.farewell());
                }
                Err(error) => return Err(SessionError::Io(error.to_string())),
            }
        }
        Ok(true)
    }

    /// The peer has gone: reads what it said before, for the error.
    fn farewell(&mut self) -> SessionError {
        while let Ok(true) = self.fill() {}
        match self.take_end() {
            Err(error) => error,
            Ok(_) => SessionError::Closed(self.failed.take()),
        }
    }

    /// Reads once; false where nothing is left to read for now.
    pub(super) fn fill(&mut self) -> Result<bool, SessionError> {
        let space =
            self.received.space().map_err(|error| SessionError::Protocol(error.to_string()))?;
        let room = space.len();
        match self.stream.read(space) {
            Ok(0) => Err(SessionError::Closed(self.failed.take())),
            Ok(count) => {
                self.received.filled(count);
                // A short read has emptied the socket: asking again would cost a call for nothing.
                Ok(count == room)
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
        let protocol = |error: &dyn std::fmt::Display| SessionError::Protocol(error.to_string());
        loop {
            let Some(frame) = self.received.next_frame().map_err(|error| protocol(&error))? else {
                return Ok(None);
            };
            let message = Message::decode(frame).map_err(|error| protocol(&error))?;
            match self.pipeline.receive(&message).map_err(|error| protocol(&error))? {
                Event::Row { row, .. } if self.activity == Activity::Transaction => {
                    self.generator.reply(&row, &mut self.outcome);
                }
                Event::Row { row, .. } => {
                    if let Some(Ok(Some(line))) = row.values().next()
                        && self.plan_text.len() + line.len() < PLAN_BYTES_MAX
                    {
                        self.plan_text.push_str(&String::from_utf8_lossy(line));
                        self.plan_text.push('\n');
                    }
                }
                Event::Failed { fields, .. } => {
                    self.failed = Some(Box::new(ServerError::from_fields(fields)));
                }
                Event::Ready(_) => return Ok(Some(self.finish())),
                Event::Complete { .. } | Event::Aside | Event::Step => {}
            }
        }
    }

    fn finish(&mut self) -> Ended {
        let activity = std::mem::replace(&mut self.activity, Activity::Idle);
        match (self.failed.take(), activity) {
            (Some(error), _) => Ended::Failed(error),
            (None, Activity::Check(number)) => {
                let finding = self.accesses.get(number).map_or_else(
                    || Finding { held: false, outline: String::new() },
                    |access| access.judge(&self.plan_text),
                );
                Ended::Check(number, finding)
            }
            (None, _) => Ended::Transaction(self.outcome),
        }
    }
}

impl SessionError {
    /// The server's code, where it sent one; class 08 stands for a broken connection.
    pub(super) fn sqlstate(&self) -> SqlState {
        match self {
            Self::Server(error) | Self::Closed(Some(error)) => error.sqlstate,
            Self::Closed(None) | Self::Io(_) => SqlState::parse("08006"),
            Self::Protocol(_) => SqlState::parse("08P01"),
            Self::Drain(_) => SqlState::UNKNOWN,
        }
    }
}
