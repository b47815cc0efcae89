//! A blocking connection: runs statements and COPY, and gives its socket to the engine.
//!
//! Used for everything around a measurement. The measurement itself runs in the engine's poll loop.

use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

use riops_wire::backend::{Message, ServerError, TransactionStatus};
use riops_wire::frame::{FRAME_BYTES_MAX, Frame, FrameBuffer};
use riops_wire::frontend;
use riops_wire::startup::SessionInfo;

pub use super::connection_error::ConnectionError;
use super::conninfo::{ConnInfo, Server};
use super::dialect::Dialect;
use super::search_path::SearchPath;
use super::silence::Silence;
use super::socket::{Encryption, open_stream};
use super::stream::{Place, Stream, is_wait};
use crate::host::Interrupt;

/// Maximum number of rows of a result: settings, plans, registry entries.
const ROWS_MAX: usize = 100_000;

/// A row in text format; `None` is NULL.
pub type TextRow = Vec<Option<String>>;

/// The results of one or more statements.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// Rows of all statements.
    pub rows: Vec<TextRow>,
    /// Command tag of each completed statement, for example `SELECT 1`.
    pub tags: Vec<String>,
}

/// A notice from the server.
#[derive(Debug, Clone, Copy)]
pub struct Notice<'a> {
    /// Primary message.
    pub message: &'a str,
    /// Detail message.
    pub detail: Option<&'a str>,
}

/// A session on a server.
#[derive(Debug)]
pub struct Connection {
    pub(super) stream: Stream,
    received: FrameBuffer,
    /// Encoded messages that have not been sent.
    pub(super) out: Vec<u8>,
    session_info: SessionInfo,
    dialect: Dialect,
    pub(super) search_path: SearchPath,
    in_transaction: bool,
    pub(super) info: ConnInfo,
    pub(super) server: Server,
    place: Place,
    address: String,
    pub(super) interrupt: Interrupt,
    deadline: Option<Instant>,
    pub(super) silence: Silence,
    pub(super) unencrypted_reason: Option<String>,
    /// Number of replies that were not read to their end, because the wait timed out or was interrupted.
    unread_replies: u32,
    /// Error that the server sent before it closed the connection.
    closing_error: Option<Box<ServerError>>,
}

impl Connection {
    /// Creates a connection from an open socket, before the startup.
    pub(super) fn from_stream(
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
            session_info: SessionInfo::default(),
            dialect: Dialect::default(),
            search_path: SearchPath::default(),
            in_transaction: false,
            info: info.clone(),
            server: server.clone(),
            place: place.clone(),
            address: server.to_string(),
            interrupt: interrupt.clone(),
            deadline: None,
            silence: Silence::new(info.connect_timeout),
            unencrypted_reason: None,
            unread_replies: 0,
            closing_error: None,
        }
    }

    pub(super) fn set_session_info(&mut self, session_info: SessionInfo) {
        self.session_info = session_info;
        self.dialect = Dialect::from_version(self.server_version());
    }

    pub(super) fn set_search_path(&mut self, search_path: SearchPath) {
        self.search_path = search_path;
        if search_path == SearchPath::Unsupported {
            self.dialect = self.dialect.without_catalogs();
        }
    }

    /// Returns the next message and the buffer for the response.
    pub(super) fn next_frame(&mut self) -> Result<(Frame<'_>, &mut Vec<u8>), ConnectionError> {
        self.fill_frame()?;
        if self.silence.has_streamed() {
            self.check_interrupt()?;
        }
        match self.received.next_frame()? {
            Some(frame) => Ok((frame, &mut self.out)),
            None => Err(ConnectionError::Protocol("incomplete message".to_owned())),
        }
    }

    /// Sets when to stop waiting for the server; `None` waits without a limit.
    pub fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.deadline = deadline;
    }

    /// Returns whether the server has not completed its reply to an earlier query, whose wait timed out or was
    /// interrupted. The next query skips that reply.
    pub fn awaits_reply(&self) -> bool {
        self.unread_replies > 0
    }

    /// Returns the address of the server.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns why the session is not encrypted, if TLS was tried first and failed.
    pub fn unencrypted_reason(&self) -> Option<&str> {
        self.unencrypted_reason.as_deref()
    }

    /// Returns the TLS version and the cipher suite; `None` for an unencrypted connection.
    pub fn encryption(&self) -> Option<String> {
        self.stream.encryption()
    }

    /// Returns the parameters that the server sent during the startup.
    pub fn session_info(&self) -> &SessionInfo {
        &self.session_info
    }

    /// Returns whether the packets pass through a network interface other than loopback.
    pub fn is_over_network(&self) -> bool {
        self.stream.is_over_network()
    }

    /// Returns the version that the server sent at connect; empty if it sent none.
    pub fn server_version(&self) -> &str {
        self.session_info.parameter("server_version").unwrap_or_default()
    }

    /// Returns what the server can do.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Runs one or more statements and returns the rows of all of them in text format.
    ///
    /// # Errors
    /// [`ConnectionError`]. After [`ConnectionError::Server`] the connection remains usable.
    pub fn query(&mut self, sql: &str) -> Result<Vec<TextRow>, ConnectionError> {
        self.encode_query(sql)?;
        self.collect()
    }

    pub(super) fn encode_query(&mut self, sql: &str) -> Result<(), ConnectionError> {
        self.silence.begin(sql);
        let with_path = self.search_path.applied_to(sql, self.in_transaction);
        let sql = with_path.as_deref().unwrap_or(sql);
        Ok(frontend::Message::Query(sql).encode(&mut self.out)?)
    }

    /// Encodes one statement with parameters in text format, without a Sync.
    fn encode_execution(
        &mut self,
        sql: &str,
        parameters: &[Option<&str>],
    ) -> Result<(), ConnectionError> {
        frontend::Message::Parse { name: "", sql, parameter_types: Vec::new() }
            .encode(&mut self.out)?;
        frontend::Message::Bind {
            statement: "",
            format: frontend::Format::Text,
            parameters: parameters.iter().map(|value| value.map(str::as_bytes)).collect(),
        }
        .encode(&mut self.out)?;
        Ok(frontend::Message::Execute.encode(&mut self.out)?)
    }

    /// Runs one or more statements and discards their rows.
    ///
    /// # Errors
    /// As [`Self::query`].
    pub fn execute(&mut self, sql: &str) -> Result<(), ConnectionError> {
        self.query(sql).map(drop)
    }

    /// Runs a query and returns the first column of the first row in text format; `None` for no row
    /// or NULL.
    ///
    /// # Errors
    /// As [`Self::query`].
    pub fn query_value(&mut self, sql: &str) -> Result<Option<String>, ConnectionError> {
        let rows = self.query(sql)?;
        Ok(rows.into_iter().next().and_then(|row| row.into_iter().next().flatten()))
    }

    /// Returns whether the server is a standby. PostgreSQL 14 and later report it at connect.
    pub(super) fn is_standby(&mut self) -> Result<bool, ConnectionError> {
        match self.session_info.parameter("in_hot_standby") {
            Some(reported) => Ok(reported == "on"),
            None => Ok(self.query_value("select pg_is_in_recovery()")?.as_deref() == Some("t")),
        }
    }

    /// Runs one statement with parameters in text format.
    ///
    /// # Errors
    /// As [`Self::query`].
    pub fn query_with(
        &mut self,
        sql: &str,
        parameters: &[Option<&str>],
    ) -> Result<Vec<TextRow>, ConnectionError> {
        self.silence.begin(sql);
        let before = self.search_path.before_query(self.in_transaction);
        if let Some(before) = before {
            self.encode_execution(before, &[])?;
        }
        self.encode_execution(sql, parameters)?;
        frontend::Message::Sync.encode(&mut self.out)?;
        let mut rows = self.collect()?;
        // The first row is the search path.
        Ok(if before.is_some() { rows.split_off(1.min(rows.len())) } else { rows })
    }

    /// Runs one or more statements and passes each notice to `notice` when it arrives.
    ///
    /// # Errors
    /// As [`Self::query`].
    pub fn query_with_notices(
        &mut self,
        sql: &str,
        notice: &mut dyn FnMut(Notice<'_>),
    ) -> Result<Answer, ConnectionError> {
        self.encode_query(sql)?;
        self.collect_with(notice)
    }

    /// Reads the rest of the response after [`Self::query_with_notices`] was interrupted and the cancel request
    /// was sent. The notices that the server sent until the cancellation took effect are in this rest.
    ///
    /// # Errors
    /// As [`Self::query`]: `Server` if the statement was canceled, and a timeout if its response did not end
    /// within `timeout`.
    pub fn await_canceled(
        &mut self,
        timeout: Duration,
        notice: &mut dyn FnMut(Notice<'_>),
    ) -> Result<Answer, ConnectionError> {
        self.interrupt = Interrupt::new();
        self.deadline = Some(Instant::now() + timeout);
        self.unread_replies = self.unread_replies.saturating_sub(1);
        let answer = self.collect_with(notice);
        self.deadline = None;
        answer
    }

    /// Sets the interrupt that cancels statements on this connection.
    pub fn set_interrupt(&mut self, interrupt: &Interrupt) {
        self.interrupt = interrupt.clone();
    }

    /// Creates a prepared statement.
    ///
    /// # Errors
    /// As [`Self::query`].
    pub fn prepare(
        &mut self,
        name: &str,
        sql: &str,
        parameter_types: &[u32],
    ) -> Result<(), ConnectionError> {
        self.silence.begin(sql);
        frontend::Message::Parse { name, sql, parameter_types: parameter_types.to_vec() }
            .encode(&mut self.out)?;
        frontend::Message::Sync.encode(&mut self.out)?;
        self.collect().map(drop)
    }

    /// Closes a prepared statement. It is not an error if the statement does not exist.
    ///
    /// # Errors
    /// As [`Self::query`].
    pub fn close_statement(&mut self, name: &str) -> Result<(), ConnectionError> {
        frontend::Message::Close(frontend::Object::Statement, name).encode(&mut self.out)?;
        frontend::Message::Sync.encode(&mut self.out)?;
        self.collect().map(drop)
    }

    /// Closes the connection. All further statements fail.
    pub fn close(&mut self) {
        self.stream.close();
    }

    /// Sends the encoded messages and reads up to the next ReadyForQuery.
    pub(super) fn collect(&mut self) -> Result<Vec<TextRow>, ConnectionError> {
        self.collect_with(&mut |_| {}).map(|answer| answer.rows)
    }

    /// Like [`Self::collect`], but also returns the command tags and passes notices to `notice`.
    fn collect_with(
        &mut self,
        notice: &mut dyn FnMut(Notice<'_>),
    ) -> Result<Answer, ConnectionError> {
        self.unread_replies += 1;
        self.flush()?;
        while self.unread_replies > 1 {
            let (frame, _) = self.next_frame()?;
            if matches!(Message::decode(frame)?, Message::ReadyForQuery(_)) {
                self.unread_replies -= 1;
            }
        }
        self.read_reply(notice)
    }

    /// Reads the reply to the last request, up to its ReadyForQuery.
    fn read_reply(
        &mut self,
        notice: &mut dyn FnMut(Notice<'_>),
    ) -> Result<Answer, ConnectionError> {
        let Answer { mut rows, mut tags } = Answer::default();
        let mut failed = None;
        loop {
            let (frame, _) = self.next_frame()?;
            match Message::decode(frame)? {
                Message::DataRow(row) if rows.len() < ROWS_MAX => {
                    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
                    let row = row.values().map(|value| value.map(|value| value.map(text)));
                    let row = row.collect::<Result<TextRow, _>>();
                    rows.push(row.map_err(|error| ConnectionError::Protocol(error.to_string()))?);
                }
                Message::NoticeResponse(fields) => {
                    let field = |code: u8| {
                        let (_, text) = fields.iter().find(|(letter, _)| *letter == code)?;
                        std::str::from_utf8(text).ok()
                    };
                    let message = field(b'M').unwrap_or_default();
                    notice(Notice { message, detail: field(b'D') });
                    // A statement that sends notices all the time never waits for the interrupt.
                    self.check_interrupt()?;
                }
                Message::CommandComplete(tag) if tags.len() < ROWS_MAX => {
                    tags.push(tag.to_owned());
                }
                Message::ErrorResponse(fields) => {
                    let error = Box::new(ServerError::from_fields(fields));
                    if error.severity == "FATAL" || error.severity == "PANIC" {
                        self.closing_error = Some(error);
                    } else {
                        failed.get_or_insert(error);
                    }
                }
                Message::ReadyForQuery(status) => {
                    self.unread_replies = 0;
                    self.in_transaction = status != TransactionStatus::Idle;
                    return match failed {
                        Some(error) => Err(ConnectionError::Server(error)),
                        None => Ok(Answer { rows, tags }),
                    };
                }
                _ => {}
            }
        }
    }

    /// Sends all encoded messages.
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
                Ok(count) => {
                    sent += count;
                    self.silence.end();
                }
                Err(error) if is_wait(&error) => {
                    if let Err(error) = self.check_interrupt().and_then(|()| self.check_silence()) {
                        // The rest is sent before the next request.
                        self.out.drain(..sent);
                        return Err(error);
                    }
                }
                // The receive buffer may still contain the server's error.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                    return Err(self.closed());
                }
                Err(error) => return Err(ConnectionError::Io(error)),
            }
        }
        self.out.clear();
        Ok(())
    }

    /// Reads until the buffer contains a complete frame.
    fn fill_frame(&mut self) -> Result<(), ConnectionError> {
        let mut reads = 0u64;
        loop {
            let unread = self.received.unread();
            if riops_wire::frame::split(unread, FRAME_BYTES_MAX)?.is_some() {
                return Ok(());
            }
            // The deadline also applies if the server sends single bytes from time to time.
            if reads > 0 && self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Err(self.timed_out());
            }
            reads += 1;
            let space = self.received.space()?;
            match self.stream.read(space) {
                Ok(0) => return Err(ConnectionError::Closed(self.closing_error.take())),
                Ok(count) => {
                    self.received.filled(count);
                    self.silence.end();
                }
                Err(error) if is_wait(&error) => {
                    self.check_interrupt()?;
                    self.check_silence()?;
                }
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                    return Err(ConnectionError::Closed(self.closing_error.take()));
                }
                Err(error) => return Err(ConnectionError::Io(error)),
            }
        }
    }

    fn timed_out(&self) -> ConnectionError {
        ConnectionError::Connect {
            address: self.address.clone(),
            source: io::ErrorKind::TimedOut.into(),
        }
    }

    /// Checks the deadline and the interrupt. If the user interrupted, cancels the statement and
    /// returns an error.
    fn check_interrupt(&self) -> Result<(), ConnectionError> {
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Err(self.timed_out());
        }
        if !self.interrupt.is_requested() {
            return Ok(());
        }
        // Before the startup is complete, there is nothing to cancel. The server sends no response to
        // a cancel request.
        if !self.session_info.secret.is_empty() {
            let _ = self.cancel();
        }
        Err(ConnectionError::Interrupted)
    }

    /// Sends a cancel request for this session, over a new connection with the same encryption.
    ///
    /// # Errors
    /// [`ConnectionError`] if the request cannot be sent. The server does not report whether it had
    /// an effect.
    pub fn cancel(&self) -> Result<(), ConnectionError> {
        let mut message = Vec::new();
        frontend::cancel_request(
            &mut message,
            self.session_info.process,
            &self.session_info.secret,
        )?;
        let mut stream = self.second_connection()?;
        stream.write_all(&message).map_err(ConnectionError::Io)?;
        stream.flush().map_err(ConnectionError::Io)
    }

    /// Opens another connection to the same place, with the same encryption.
    pub(super) fn second_connection(&self) -> Result<Stream, ConnectionError> {
        let encryption =
            if self.stream.is_encrypted() { Encryption::Always } else { Encryption::Never };
        let deadline = Instant::now() + self.info.connect_timeout;
        // The connection's own interrupt may already be set, which would prevent the cancel request.
        let interrupt = Interrupt::new();
        open_stream(&self.info, &self.server, &self.place, encryption, deadline, &interrupt)
    }

    /// Reads the error that the server sent before it closed the connection.
    fn closed(&mut self) -> ConnectionError {
        self.deadline = Some(Instant::now());
        while let Ok(()) = self.fill_frame() {
            if let Ok(Some(frame)) = self.received.next_frame()
                && let Ok(Message::ErrorResponse(fields)) = Message::decode(frame)
            {
                self.closing_error = Some(Box::new(ServerError::from_fields(fields)));
            }
        }
        ConnectionError::Closed(self.closing_error.take())
    }

    /// Returns the socket and its receive buffer.
    pub fn into_parts(self) -> (Stream, FrameBuffer) {
        (self.stream, self.received)
    }
}
