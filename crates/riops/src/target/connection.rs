//! One blocking connection: connect, run statements, feed COPY, and hand the socket over.
//!
//! For everything around a measurement. The measurement itself is the engine's poll loop.

use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use riops_wire::backend::{self, Message, ServerError};
use riops_wire::frame::{FRAME_BYTES_MAX, FrameBuffer, FrameError};
use riops_wire::frontend::{self, EncodeError};
use riops_wire::sqlstate::SqlState;
use riops_wire::startup::{Greeting, Startup, StartupError};

use super::conninfo::{ConnInfo, Host};
use super::interrupt::Interrupt;

/// How often a waiting connection looks whether the user has lost patience.
const INTERRUPT_CHECK: Duration = Duration::from_millis(100);
/// Rows that one statement may return here: settings, plans, registry entries.
const ROWS_MAX: usize = 100_000;

/// Why a connection or a statement failed.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    /// No connection to the address.
    #[error("cannot connect to {address}: {source}{}", connect_hint(.source))]
    Connect {
        /// Where to.
        address: String,
        /// Why not.
        source: io::Error,
    },
    /// Connected, but no session.
    #[error("{address} refused the session of user {user} in database {database}: {source}{}", startup_hint(.source))]
    Startup {
        /// Where.
        address: String,
        /// Who.
        user: String,
        /// Where to.
        database: String,
        /// Why not.
        source: StartupError,
    },
    /// The server reports an error.
    #[error("{0}")]
    Server(Box<ServerError>),
    /// The connection broke.
    #[error("the server closed the connection{}", farewell(.0.as_deref()))]
    Closed(Option<Box<ServerError>>),
    /// Reading or writing failed.
    #[error("the connection to the server broke: {0}")]
    Io(#[source] io::Error),
    /// What the server sends is not the protocol.
    #[error("the server does not follow the protocol: {0}")]
    Protocol(String),
    /// The user asked to end.
    #[error("interrupted")]
    Interrupted,
}

fn connect_hint(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::ConnectionRefused => "; is the server running, and is the port right?",
        io::ErrorKind::NotFound => "; is the server running, and is this its socket folder?",
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
            "; the server did not answer in time (connect_timeout)"
        }
        _ => "",
    }
}

fn startup_hint(source: &StartupError) -> &'static str {
    match source {
        StartupError::PasswordMissing => {
            "; set PGPASSWORD, or put the password into the connection string"
        }
        StartupError::Server(error) => match error.sqlstate {
            SqlState::INVALID_PASSWORD => "; is the password right?",
            SqlState::TOO_MANY_CONNECTIONS => {
                "; use fewer sessions, or raise max_connections (embedded server: --server-set max_connections=N)"
            }
            SqlState::INVALID_CATALOG_NAME => "; create the database first, or name another",
            _ => "",
        },
        _ => "",
    }
}

fn farewell(error: Option<&ServerError>) -> String {
    error.map_or_else(String::new, |error| format!(": {error}"))
}

impl From<FrameError> for ConnectionError {
    fn from(error: FrameError) -> Self {
        Self::Protocol(error.to_string())
    }
}

impl From<backend::DecodeError> for ConnectionError {
    fn from(error: backend::DecodeError) -> Self {
        Self::Protocol(error.to_string())
    }
}

impl From<EncodeError> for ConnectionError {
    fn from(error: EncodeError) -> Self {
        Self::Protocol(error.to_string())
    }
}

/// A socket to a server.
#[derive(Debug)]
pub enum Stream {
    /// Over the network.
    Tcp(TcpStream),
    /// On this machine.
    Unix(UnixStream),
}

impl Stream {
    fn connect(info: &ConnInfo) -> io::Result<Self> {
        match &info.host {
            Host::Unix(_) => UnixStream::connect(info.socket_path()).map(Self::Unix),
            Host::Tcp(host) => {
                let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
                for address in (host.as_str(), info.port).to_socket_addrs()? {
                    match TcpStream::connect_timeout(&address, info.connect_timeout) {
                        Ok(stream) => {
                            // A request is one small write: waiting for more would cost 40 ms.
                            stream.set_nodelay(true)?;
                            return Ok(Self::Tcp(stream));
                        }
                        Err(error) => last = error,
                    }
                }
                Err(last)
            }
        }
    }

    /// Switches between blocking and non-blocking.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.set_nonblocking(nonblocking),
            Self::Unix(stream) => stream.set_nonblocking(nonblocking),
        }
    }

    fn set_timeouts(&self, timeout: Duration) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => {
                stream.set_write_timeout(Some(timeout))?;
                stream.set_read_timeout(Some(timeout))
            }
            Self::Unix(stream) => {
                stream.set_write_timeout(Some(timeout))?;
                stream.set_read_timeout(Some(timeout))
            }
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            Self::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(buffer),
            Self::Unix(stream) => stream.write(buffer),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsRawFd for Stream {
    fn as_raw_fd(&self) -> RawFd {
        match self {
            Self::Tcp(stream) => stream.as_raw_fd(),
            Self::Unix(stream) => stream.as_raw_fd(),
        }
    }
}

/// A row as text; `None` stands for NULL.
pub type TextRow = Vec<Option<String>>;

/// A session with a server.
#[derive(Debug)]
pub struct Connection {
    stream: Stream,
    received: FrameBuffer,
    out: Vec<u8>,
    greeting: Greeting,
    info: ConnInfo,
    interrupt: Interrupt,
    /// What the server said before it closed the connection.
    farewell: Option<Box<ServerError>>,
}

impl Connection {
    /// Connects and authenticates, within the time that `info` allows.
    ///
    /// # Errors
    /// [`ConnectionError`]
    pub fn open(info: &ConnInfo, interrupt: &Interrupt) -> Result<Self, ConnectionError> {
        let connect_error = |source| ConnectionError::Connect { address: info.address(), source };
        let stream = Stream::connect(info).map_err(connect_error)?;
        stream.set_timeouts(INTERRUPT_CHECK).map_err(connect_error)?;
        let mut connection = Self {
            stream,
            received: FrameBuffer::new(FRAME_BYTES_MAX),
            out: Vec::with_capacity(1024),
            greeting: Greeting::default(),
            info: info.clone(),
            interrupt: interrupt.clone(),
            farewell: None,
        };
        connection.start()?;
        Ok(connection)
    }

    fn start(&mut self) -> Result<(), ConnectionError> {
        let deadline = Instant::now() + self.info.connect_timeout;
        let refused = |info: &ConnInfo, source| ConnectionError::Startup {
            address: info.address(),
            user: info.user.clone(),
            database: info.database.clone(),
            source,
        };
        let mut startup = Startup::begin(&self.info.credentials(), &mut self.out)
            .map_err(|source| refused(&self.info, source))?;
        loop {
            self.flush()?;
            self.fill_frame(Some(deadline))?;
            let Some(frame) = self.received.next_frame()? else {
                continue;
            };
            let ready = startup
                .receive(&Message::decode(frame)?, &mut self.out)
                .map_err(|source| refused(&self.info, source))?;
            if ready {
                self.greeting = startup.into_greeting();
                return Ok(());
            }
        }
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

    fn await_copy_start(&mut self) -> Result<(), ConnectionError> {
        loop {
            self.fill_frame(None)?;
            let Some(frame) = self.received.next_frame()? else {
                continue;
            };
            match Message::decode(frame)? {
                Message::CopyInResponse(_) => return Ok(()),
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
        self.flush()?;
        let mut rows = Vec::new();
        let mut failed = None;
        loop {
            self.fill_frame(None)?;
            let Some(frame) = self.received.next_frame()? else {
                continue;
            };
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
                        None => Ok(rows),
                    };
                }
                _ => {}
            }
        }
    }

    /// Sends all that is encoded.
    fn flush(&mut self) -> Result<(), ConnectionError> {
        let mut sent = 0;
        while let Some(rest) = self.out.get(sent..).filter(|rest| !rest.is_empty()) {
            match self.stream.write(rest) {
                Ok(count) => sent += count,
                Err(error) if is_wait(&error) => self.heed_interrupt()?,
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
    fn fill_frame(&mut self, deadline: Option<Instant>) -> Result<(), ConnectionError> {
        loop {
            let unread = self.received.unread();
            if riops_wire::frame::split(unread, FRAME_BYTES_MAX)?.is_some() {
                return Ok(());
            }
            let space = self.received.space()?;
            match self.stream.read(space) {
                Ok(0) => return Err(ConnectionError::Closed(self.farewell.take())),
                Ok(count) => self.received.filled(count),
                Err(error) if is_wait(&error) => {
                    self.heed_interrupt()?;
                    if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                        return Err(ConnectionError::Connect {
                            address: self.info.address(),
                            source: io::ErrorKind::TimedOut.into(),
                        });
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                    return Err(ConnectionError::Closed(self.farewell.take()));
                }
                Err(error) => return Err(ConnectionError::Io(error)),
            }
        }
    }

    /// Where the user asked to end: asks the server to stop what it does, and ends here.
    fn heed_interrupt(&self) -> Result<(), ConnectionError> {
        if !self.interrupt.requested() {
            return Ok(());
        }
        // Nobody waits for the answer: the server closes the connection without one.
        if let Ok(mut stream) = Stream::connect(&self.info) {
            const CANCEL_REQUEST: i32 = 80_877_102;
            let mut message = 16i32.to_be_bytes().to_vec();
            message.extend_from_slice(&CANCEL_REQUEST.to_be_bytes());
            message.extend_from_slice(&self.greeting.process.to_be_bytes());
            message.extend_from_slice(&self.greeting.secret);
            let _ = stream.write(&message);
        }
        Err(ConnectionError::Interrupted)
    }

    /// Reads what the server said before it closed the connection.
    fn closed(&mut self) -> ConnectionError {
        while let Ok(()) = self.fill_frame(Some(Instant::now())) {
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

fn is_wait(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}
