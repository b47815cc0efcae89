//! A server on a Unix socket: one thread a session. It speaks the protocol, knows no SQL, and takes its
//! replies from a closure.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;

use riops_wire::backend::{Authentication, Message, TransactionStatus, data_row, error_response};
use riops_wire::frame::{FRAME_BYTES_MAX, FrameBuffer};
use riops_wire::frontend::{self, EncodeError};

use crate::listener::{Connection, Listener};

/// The start of the first query of every connection, which pins its search path.
pub(crate) const PIN: &str = "select pg_catalog.set_config('search_path'";

/// A request of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request<'a> {
    /// A simple query.
    Query(&'a str),
    /// Preparation of a statement.
    Parse(&'a str),
    /// Execution of a prepared statement.
    Execute {
        /// Name of the statement.
        statement: &'a str,
        /// Its parameters, all of type `bigint`.
        parameters: Vec<i64>,
    },
}

/// The server's reply to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// One row of values in binary format.
    Row(Vec<Option<Vec<u8>>>),
    /// The statement succeeded and returned no rows.
    Done,
    /// An error.
    Error {
        /// Its SQLSTATE.
        sqlstate: &'static str,
        /// Its message.
        message: &'static str,
    },
    /// Exactly these bytes.
    Raw(Vec<u8>),
    /// Exactly these bytes, then the connection is closed.
    RawThenClose(Vec<u8>),
    /// The connection is closed without a reply.
    Close,
    /// No reply; the connection stays open.
    Silence,
    /// These bytes, again and again until the client disconnects.
    Stream(Vec<u8>),
}

impl Reply {
    /// A row of two numbers in binary format, as the statements of the workload `rows` return it.
    pub fn numbers(first: i64, second: i64) -> Self {
        Self::Row(vec![Some(first.to_be_bytes().into()), Some(second.to_be_bytes().into())])
    }
}

type Answer = dyn Fn(u64, &Request<'_>) -> Reply + Send + Sync;

/// A listening fake server. Dropping it closes all sessions.
#[derive(Debug)]
pub struct FakeServer {
    listener: Listener,
}

impl FakeServer {
    /// Starts a server. `answer` gets the session number, from 0, and the request.
    ///
    /// # Errors
    /// If the folder or the socket cannot be created.
    pub fn start(
        answer: impl Fn(u64, &Request<'_>) -> Reply + Send + Sync + 'static,
    ) -> io::Result<Self> {
        Self::without_settings(move |session, request| match request {
            Request::Query(sql) if sql.starts_with(PIN) => Reply::Row(vec![Some(Vec::new())]),
            // The first setting of a session of scripts.
            Request::Query("reset search_path") => Reply::Done,
            _ => answer(session, request),
        })
    }

    /// Starts a server that does not answer any request itself: `answer` gets all of them.
    ///
    /// # Errors
    /// If the folder or the socket cannot be created.
    pub fn without_settings(
        answer: impl Fn(u64, &Request<'_>) -> Reply + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let answer: Arc<Answer> = Arc::new(answer);
        let listener = Listener::start("fake", move |session, stream| {
            let socket = Arc::new(stream);
            let (answer, served) = (Arc::clone(&answer), Arc::clone(&socket));
            let thread = std::thread::spawn(move || {
                // A client that disconnects ends its session, not the test.
                let _ = Session::serve(session, &served, &*answer);
                let _ = served.shutdown(Shutdown::Both);
            });
            Ok(Connection { sockets: vec![socket], threads: vec![thread] })
        })?;
        Ok(Self { listener })
    }

    /// The folder of its socket.
    pub fn folder(&self) -> &Path {
        self.listener.folder()
    }
}

/// One client's session.
struct Session<'a> {
    id: u64,
    stream: &'a UnixStream,
    received: FrameBuffer,
    out: Vec<u8>,
    answer: &'a Answer,
    /// Whether the requests up to the next Sync are skipped after an error.
    failed: bool,
}

fn invalid(error: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}

impl<'a> Session<'a> {
    fn serve(id: u64, stream: &'a UnixStream, answer: &'a Answer) -> io::Result<()> {
        let mut session = Self {
            id,
            stream,
            received: FrameBuffer::new(FRAME_BYTES_MAX),
            out: Vec::new(),
            answer,
            failed: false,
        };
        session.start_up()?;
        session.requests()
    }

    /// Accepts any startup message without authentication.
    fn start_up(&mut self) -> io::Result<()> {
        let mut length = [0; 4];
        self.stream.read_exact(&mut length)?;
        let mut body = vec![0; u32::from_be_bytes(length).saturating_sub(4) as usize];
        self.stream.read_exact(&mut body)?;
        let messages = [
            Message::Authentication(Authentication::Ok),
            Message::ParameterStatus { name: "server_version", value: "18.0" },
            Message::BackendKeyData { process: 1, secret: &[0; 4] },
            Message::ReadyForQuery(TransactionStatus::Idle),
        ];
        for message in messages {
            message.encode(&mut self.out).map_err(invalid)?;
        }
        self.flush()
    }

    fn requests(&mut self) -> io::Result<()> {
        let mut bound = (String::new(), Vec::new());
        loop {
            while let Some(frame) = self.received.next_frame().map_err(invalid)? {
                let message = frontend::Message::decode(frame).map_err(invalid)?;
                let reply = match message {
                    frontend::Message::Query(sql) => {
                        Some((self.answer)(self.id, &Request::Query(sql)))
                    }
                    frontend::Message::Parse { sql, .. } => {
                        Some((self.answer)(self.id, &Request::Parse(sql)))
                    }
                    frontend::Message::Bind { statement, ref parameters, .. } => {
                        bound = (statement.to_owned(), bigints(parameters));
                        Message::BindComplete.encode(&mut self.out).map_err(invalid)?;
                        None
                    }
                    frontend::Message::Execute { .. } => {
                        let (statement, parameters) = (bound.0.as_str(), bound.1.clone());
                        let request = Request::Execute { statement, parameters };
                        Some((self.answer)(self.id, &request))
                    }
                    frontend::Message::Terminate => return Ok(()),
                    _ => None,
                };
                match (reply.filter(|_| !self.failed), &message) {
                    (Some(Reply::Close), _) => return Ok(()),
                    (Some(Reply::Silence), _) => continue,
                    (Some(Reply::Stream(bytes)), _) => loop {
                        self.out.extend_from_slice(&bytes);
                        self.flush()?;
                    },
                    (Some(Reply::RawThenClose(bytes)), _) => {
                        self.out.extend_from_slice(&bytes);
                        return self.flush();
                    }
                    (Some(Reply::Done), frontend::Message::Parse { .. }) => {
                        Message::ParseComplete.encode(&mut self.out).map_err(invalid)?;
                    }
                    (Some(reply), _) => {
                        self.failed = encode(&reply, &mut self.out).map_err(invalid)?;
                    }
                    (None, _) => {}
                }
                if matches!(message, frontend::Message::Query(_) | frontend::Message::Sync) {
                    self.failed = false;
                    let ready = Message::ReadyForQuery(TransactionStatus::Idle);
                    ready.encode(&mut self.out).map_err(invalid)?;
                }
            }
            self.flush()?;
            let space = self.received.space().map_err(invalid)?;
            match self.stream.read(space)? {
                0 => return Ok(()),
                count => self.received.filled(count),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.write_all(&self.out)?;
        self.out.clear();
        Ok(())
    }
}

/// The parameters that are `bigint` in binary format.
fn bigints(parameters: &[Option<&[u8]>]) -> Vec<i64> {
    parameters
        .iter()
        .flatten()
        .filter_map(|value| Some(i64::from_be_bytes((*value).try_into().ok()?)))
        .collect()
}

/// Appends a reply to `out`. Returns whether the reply is an error.
fn encode(reply: &Reply, out: &mut Vec<u8>) -> Result<bool, EncodeError> {
    match reply {
        Reply::Row(values) => {
            let values: Vec<_> = values.iter().map(Option::as_deref).collect();
            data_row(out, &values)?;
            Message::CommandComplete("SELECT 1").encode(out)?;
        }
        Reply::Done => Message::CommandComplete("SET").encode(out)?,
        Reply::Error { sqlstate, message } => {
            let fields = [(b'S', "ERROR"), (b'V', "ERROR"), (b'C', *sqlstate), (b'M', *message)];
            error_response(out, &fields)?;
            return Ok(true);
        }
        Reply::Raw(bytes) | Reply::RawThenClose(bytes) => out.extend_from_slice(bytes),
        Reply::Close | Reply::Silence | Reply::Stream(_) => {}
    }
    Ok(false)
}
