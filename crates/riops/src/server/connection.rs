//! One blocking connection: connect, run statements, feed COPY, and hand the socket over.
//!
//! For everything around a measurement. The measurement itself is the engine's poll loop.

use std::io::{self, Read, Write};
use std::time::Instant;

use riops_wire::backend::{Message, ServerError};
use riops_wire::frame::{FRAME_BYTES_MAX, Frame, FrameBuffer};
use riops_wire::frontend;
use riops_wire::startup::Greeting;

pub use super::connection_error::ConnectionError;
use super::conninfo::{ConnInfo, Server};
use super::socket::second_stream;
use super::stream::{Place, Stream, is_wait};
use crate::host::Interrupt;

/// Rows that one statement may return here: settings, plans, registry entries.
const ROWS_MAX: usize = 100_000;

/// A row as text; `None` stands for NULL.
pub type TextRow = Vec<Option<String>>;

/// What statements have answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// The rows of all of them.
    pub rows: Vec<TextRow>,
    /// The tag of each that is complete: `SELECT 1`.
    pub tags: Vec<String>,
}

/// What the server says beside its answer.
#[derive(Debug, Clone, Copy)]
pub struct Notice<'a> {
    /// The text.
    pub message: &'a str,
    /// More of it.
    pub detail: Option<&'a str>,
}

/// A session with a server.
#[derive(Debug)]
pub struct Connection {
    stream: Stream,
    received: FrameBuffer,
    out: Vec<u8>,
    greeting: Greeting,
    info: ConnInfo,
    server: Server,
    place: Place,
    address: String,
    interrupt: Interrupt,
    deadline: Option<Instant>,
    plain_because: Option<String>,
    /// What the server said before it closed the connection.
    farewell: Option<Box<ServerError>>,
}

impl Connection {
    /// A connection whose socket is open and on which nothing was said yet.
    pub(super) fn on(
        stream: Stream,
        info: &ConnInfo,
        server: &Server,
        place: &Place,
        interrupt: &Interrupt,
    ) -> Self {
        Self {
            stream,
            received: FrameBuffer::new(FRAME_BYTES_MAX),
            out: Vec::with_capacity(1024),
            greeting: Greeting::default(),
            info: info.clone(),
            server: server.clone(),
            place: place.clone(),
            address: server.to_string(),
            interrupt: interrupt.clone(),
            deadline: None,
            plain_because: None,
            farewell: None,
        }
    }

    /// Whether the channel is encrypted, and what SCRAM may bind to.
    pub(super) fn channel(&self) -> (bool, Option<Vec<u8>>) {
        (self.stream.is_encrypted(), self.stream.server_end_point())
    }

    pub(super) fn out(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    pub(super) fn greet(&mut self, greeting: Greeting) {
        self.greeting = greeting;
    }

    /// The next message, and the buffer for the answer.
    pub(super) fn next_frame(&mut self) -> Result<(Frame<'_>, &mut Vec<u8>), ConnectionError> {
        self.fill_frame()?;
        match self.received.next_frame()? {
            Some(frame) => Ok((frame, &mut self.out)),
            None => Err(ConnectionError::Protocol("a frame without an end".to_owned())),
        }
    }

    /// From when on waiting for the server is given up; without one it is not.
    pub fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.deadline = deadline;
    }

    /// The server that let the session in.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    pub(super) fn note_plain(&mut self, reason: &str) {
        if !self.stream.is_encrypted() {
            self.plain_because = Some(reason.to_owned());
        }
    }

    /// Why the session is not encrypted, where TLS was tried first and failed.
    #[must_use]
    pub fn plain_because(&self) -> Option<&str> {
        self.plain_because.as_deref()
    }

    /// TLS version and cipher suite; `None` for a plain connection.
    #[must_use]
    pub fn encryption(&self) -> Option<String> {
        self.stream.encryption()
    }

    /// What the server told of itself at connect.
    #[must_use]
    pub fn greeting(&self) -> &Greeting {
        &self.greeting
    }

    /// Runs one or more statements and returns the rows of all, as text.
    ///
    /// # Errors
    /// [`ConnectionError`]; after one of the server's, the connection can be used again.
    pub fn query(&mut self, sql: &str) -> Result<Vec<TextRow>, ConnectionError> {
        frontend::Message::Query(sql).encode(&mut self.out)?;
        self.collect()
    }

    /// Runs one or more statements whose rows do not matter.
    ///
    /// # Errors
    /// As [`Self::query`].
    pub fn execute(&mut self, sql: &str) -> Result<(), ConnectionError> {
        self.query(sql).map(drop)
    }

    /// The first column of the first row as text; `None` for no row or NULL.
    ///
    /// # Errors
    /// As [`Self::query`].
    pub fn query_value(&mut self, sql: &str) -> Result<Option<String>, ConnectionError> {
        let rows = self.query(sql)?;
        Ok(rows.into_iter().next().and_then(|row| row.into_iter().next().flatten()))
    }

    /// Runs one statement with parameters as text, which keeps them apart from the SQL.
    ///
    /// # Errors
    /// As [`Self::query`].
    pub fn query_with(
        &mut self,
        sql: &str,
        parameters: &[Option<&str>],
    ) -> Result<Vec<TextRow>, ConnectionError> {
        frontend::Message::Parse { name: "", sql, parameter_types: Vec::new() }
            .encode(&mut self.out)?;
        frontend::Message::Bind {
            portal: "",
            statement: "",
            parameter_format: frontend::Format::Text,
            parameters: parameters.iter().map(|value| value.map(str::as_bytes)).collect(),
            result_format: frontend::Format::Text,
        }
        .encode(&mut self.out)?;
        frontend::Message::Execute { portal: "", rows_max: 0 }.encode(&mut self.out)?;
        frontend::Message::Sync.encode(&mut self.out)?;
        self.collect()
    }

    /// Runs one or more statements and hands each notice to `notice` as it comes.
    ///
    /// # Errors
    /// As [`Self::query`].
    pub fn query_with_notices(
        &mut self,
        sql: &str,
        notice: &mut dyn FnMut(Notice<'_>),
    ) -> Result<Answer, ConnectionError> {
        frontend::Message::Query(sql).encode(&mut self.out)?;
        self.collect_with(notice)
    }

    /// From now on this interrupts it.
    pub fn set_interrupt(&mut self, interrupt: &Interrupt) {
        self.interrupt = interrupt.clone();
    }

    /// Prepares a statement under a name.
    ///
    /// # Errors
    /// As [`Self::query`].
    pub fn prepare(
        &mut self,
        name: &str,
        sql: &str,
        parameter_types: &[u32],
    ) -> Result<(), ConnectionError> {
        frontend::Message::Parse { name, sql, parameter_types: parameter_types.to_vec() }
            .encode(&mut self.out)?;
        frontend::Message::Sync.encode(&mut self.out)?;
        self.collect().map(drop)
    }

    /// Forgets a prepared statement; one that does not exist is none of its business.
    ///
    /// # Errors
    /// As [`Self::query`].
    pub fn close_statement(&mut self, name: &str) -> Result<(), ConnectionError> {
        frontend::Message::Close(frontend::Object::Statement, name).encode(&mut self.out)?;
        frontend::Message::Sync.encode(&mut self.out)?;
        self.collect().map(drop)
    }

    /// Runs a COPY … FROM STDIN whose data `fill` appends, piece by piece, until it returns
    /// false. The data are in the database when this returns.
    ///
    /// # Errors
    /// As [`Self::query`].
    pub fn copy_in(
        &mut self,
        sql: &str,
        mut fill: impl FnMut(&mut Vec<u8>) -> bool,
    ) -> Result<(), ConnectionError> {
        frontend::Message::Query(sql).encode(&mut self.out)?;
        self.flush()?;
        self.await_copy_start()?;
        let mut more = true;
        let mut data = Vec::new();
        while more {
            if self.interrupt.requested() {
                return Err(ConnectionError::Interrupted);
            }
            data.clear();
            more = fill(&mut data);
            frontend::Message::CopyData(&data).encode(&mut self.out)?;
            self.flush()?;
        }
        frontend::Message::CopyDone.encode(&mut self.out)?;
        self.collect().map(drop)
    }

    /// Runs a COPY … TO STDOUT and hands each piece of its data to `take`.
    ///
    /// # Errors
    /// As [`Self::query`].
    pub fn copy_out(
        &mut self,
        sql: &str,
        mut take: impl FnMut(&[u8]),
    ) -> Result<(), ConnectionError> {
        frontend::Message::Query(sql).encode(&mut self.out)?;
        self.flush()?;
        self.await_copy_start()?;
        loop {
            let (frame, _) = self.next_frame()?;
            match Message::decode(frame)? {
                Message::CopyData(data) => take(data),
                Message::CopyDone => return self.collect().map(drop),
                Message::ErrorResponse(fields) => {
                    let error = Box::new(ServerError::from_fields(fields));
                    self.collect()?;
                    return Err(ConnectionError::Server(error));
                }
                Message::NoticeResponse(_) | Message::ParameterStatus { .. } => {}
                other => return Err(ConnectionError::Protocol(format!("{other:?} in COPY"))),
            }
        }
    }

    fn await_copy_start(&mut self) -> Result<(), ConnectionError> {
        loop {
            let (frame, _) = self.next_frame()?;
            match Message::decode(frame)? {
                Message::CopyInResponse(_) | Message::CopyOutResponse(_) => return Ok(()),
                Message::ErrorResponse(fields) => {
                    let error = Box::new(ServerError::from_fields(fields));
                    self.collect()?;
                    return Err(ConnectionError::Server(error));
                }
                Message::NoticeResponse(_) | Message::ParameterStatus { .. } => {}
                other => return Err(ConnectionError::Protocol(format!("{other:?} for COPY"))),
            }
        }
    }

    /// Sends what is encoded and reads to the next ReadyForQuery.
    fn collect(&mut self) -> Result<Vec<TextRow>, ConnectionError> {
        self.collect_with(&mut |_| {}).map(|answer| answer.rows)
    }

    /// The same, with the tags, and with somebody who hears the notices.
    fn collect_with(
        &mut self,
        notice: &mut dyn FnMut(Notice<'_>),
    ) -> Result<Answer, ConnectionError> {
        self.flush()?;
        let Answer { mut rows, mut tags } = Answer::default();
        let mut failed = None;
        loop {
            let (frame, _) = self.next_frame()?;
            match Message::decode(frame)? {
                Message::DataRow(row) if rows.len() < ROWS_MAX => {
                    let row: Result<TextRow, _> = row
                        .values()
                        .map(|value| {
                            value.map(|value| {
                                value.map(|bytes| String::from_utf8_lossy(bytes).into_owned())
                            })
                        })
                        .collect();
                    rows.push(row.map_err(|error| ConnectionError::Protocol(error.to_string()))?);
                }
                Message::NoticeResponse(fields) => {
                    let field = |wanted: u8| {
                        let (_, text) = fields.iter().find(|(letter, _)| *letter == wanted)?;
                        std::str::from_utf8(text).ok()
                    };
                    let message = field(b'M').unwrap_or_default();
                    notice(Notice { message, detail: field(b'D') });
                }
                Message::CommandComplete(tag) if tags.len() < ROWS_MAX => {
                    tags.push(tag.to_owned());
                }
                Message::ErrorResponse(fields) => {
                    let error = Box::new(ServerError::from_fields(fields));
                    if error.severity == "FATAL" || error.severity == "PANIC" {
                        self.farewell = Some(error);
                    } else {
                        failed.get_or_insert(error);
                    }
                }
                Message::ReadyForQuery(_) => {
                    return match failed {
                        Some(error) => Err(ConnectionError::Server(error)),
                        None => Ok(Answer { rows, tags }),
                    };
                }
                _ => {}
            }
        }
    }

    /// Sends all that is encoded.
    pub(super) fn flush(&mut self) -> Result<(), ConnectionError> {
        let mut sent = 0;
        loop {
            let rest = self.out.get(sent..).unwrap_or_default();
            let written = if rest.is_empty() {
                self.stream.flush().map(|()| 0)
            } else {
                self.stream.write(rest)
            };
            match written {
                Ok(_) if rest.is_empty() => break,
                Ok(count) => sent += count,
                Err(error) if is_wait(&error) => self.check_interrupt()?,
                // The server's reason may still be waiting to be read.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                    return Err(self.closed());
                }
                Err(error) => return Err(ConnectionError::Io(error)),
            }
        }
        self.out.clear();
        Ok(())
    }

    /// Reads until a whole frame is there.
    fn fill_frame(&mut self) -> Result<(), ConnectionError> {
        let mut reads = 0u64;
        loop {
            let unread = self.received.unread();
            if riops_wire::frame::split(unread, FRAME_BYTES_MAX)?.is_some() {
                return Ok(());
            }
            // A server that sends a byte now and then is not waited for any longer than one that
            // is silent.
            if reads > 0 && self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Err(self.too_late());
            }
            reads += 1;
            let space = self.received.space()?;
            match self.stream.read(space) {
                Ok(0) => return Err(ConnectionError::Closed(self.farewell.take())),
                Ok(count) => self.received.filled(count),
                Err(error) if is_wait(&error) => self.check_interrupt()?,
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                    return Err(ConnectionError::Closed(self.farewell.take()));
                }
                Err(error) => return Err(ConnectionError::Io(error)),
            }
        }
    }

    fn too_late(&self) -> ConnectionError {
        ConnectionError::Connect {
            address: self.address.clone(),
            source: io::ErrorKind::TimedOut.into(),
        }
    }

    /// Where the user asked to end: asks the server to stop what it does, and ends here.
    fn check_interrupt(&self) -> Result<(), ConnectionError> {
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(self.too_late());
        }
        if !self.interrupt.requested() {
            return Ok(());
        }
        // Before the greeting there is nothing to cancel. Nobody waits for the answer: the server
        // closes the connection without one.
        if !self.greeting.secret.is_empty() {
            let _ = self.cancel();
        }
        Err(ConnectionError::Interrupted)
    }

    /// Asks the server to cancel what this session does, over a connection of the same kind.
    ///
    /// # Errors
    /// Where the request could not be sent; whether it had an effect, no server says.
    pub fn cancel(&self) -> Result<(), ConnectionError> {
        let mut message = Vec::new();
        frontend::cancel_request(&mut message, self.greeting.process, &self.greeting.secret)?;
        let encrypted = self.stream.is_encrypted();
        let mut stream = second_stream(&self.info, &self.server, &self.place, encrypted)?;
        stream.write_all(&message).map_err(ConnectionError::Io)?;
        stream.flush().map_err(ConnectionError::Io)
    }

    /// Reads what the server said before it closed the connection.
    fn closed(&mut self) -> ConnectionError {
        self.deadline = Some(Instant::now());
        while let Ok(()) = self.fill_frame() {
            if let Ok(Some(frame)) = self.received.next_frame()
                && let Ok(Message::ErrorResponse(fields)) = Message::decode(frame)
            {
                self.farewell = Some(Box::new(ServerError::from_fields(fields)));
            }
        }
        ConnectionError::Closed(self.farewell.take())
    }

    /// Hands the socket over, with the buffer that receives from it.
    #[must_use]
    pub fn into_parts(self) -> (Stream, FrameBuffer) {
        (self.stream, self.received)
    }
}
