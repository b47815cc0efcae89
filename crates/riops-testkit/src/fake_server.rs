//! A server on a socket in a temporary folder: one thread a session, answers from a closure.

use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use riops_wire::backend::{Authentication, Message, TransactionStatus, data_row, error_response};
use riops_wire::frame::{FRAME_BYTES_MAX, FrameBuffer};
use riops_wire::frontend::{self, EncodeError};

/// What a client asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request<'a> {
    /// A simple query.
    Query(&'a str),
    /// The preparation of a statement.
    Parse(&'a str),
    /// The execution of a prepared statement.
    Execute {
        /// Its name.
        statement: &'a str,
        /// Its parameters, which are all `bigint` here.
        parameters: Vec<i64>,
    },
}

/// What the server answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// One row of values in binary, or none.
    Row(Vec<Option<Vec<u8>>>),
    /// The statement is done and has no rows.
    Done,
    /// An error.
    Error {
        /// Its SQLSTATE.
        sqlstate: &'static str,
        /// Its message.
        message: &'static str,
    },
    /// These bytes, whatever they are.
    Raw(Vec<u8>),
    /// These bytes, and then the connection is closed.
    RawThenClose(Vec<u8>),
    /// The connection is closed without a word.
    Close,
}

impl Reply {
    /// A row of two numbers in binary, as the statements of the workload `rows` return.
    #[must_use]
    pub fn numbers(first: i64, second: i64) -> Self {
        Self::Row(vec![Some(first.to_be_bytes().into()), Some(second.to_be_bytes().into())])
    }
}

type Answer = dyn Fn(u64, &Request<'_>) -> Reply + Send + Sync;

/// A listening fake server; it stops listening when it is dropped.
#[derive(Debug)]
pub struct FakeServer {
    folder: PathBuf,
}

/// The port in the name of its socket.
pub const PORT: u16 = 5432;

static NEXT: AtomicU64 = AtomicU64::new(0);

impl FakeServer {
    /// Starts a server whose answers come from `answer`, which is told the number of the session,
    /// from 0, and the request.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn start(
        answer: impl Fn(u64, &Request<'_>) -> Reply + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let folder =
            std::env::temp_dir().join(format!("riops-fake-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let listener = UnixListener::bind(folder.join(format!(".s.PGSQL.{PORT}")))?;
        let answer: Arc<Answer> = Arc::new(answer);
        std::thread::spawn(move || {
            for (session, stream) in (0..).zip(listener.incoming()) {
                let Ok(stream) = stream else {
                    return;
                };
                let answer = Arc::clone(&answer);
                std::thread::spawn(move || {
                    // A client that goes away ends its session, not the test.
                    let _ = Session::serve(session, stream, &*answer);
                });
            }
        });
        Ok(Self { folder })
    }

    /// The folder of its socket.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for FakeServer {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// One client's session.
struct Session<'a> {
    number: u64,
    stream: UnixStream,
    received: FrameBuffer,
    out: Vec<u8>,
    answer: &'a Answer,
    /// Whether the rest of a batch is skipped after an error.
    failed: bool,
}

fn invalid(error: impl std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error.to_string())
}

impl<'a> Session<'a> {
    fn serve(number: u64, stream: UnixStream, answer: &'a Answer) -> io::Result<()> {
        let mut session = Self {
            number,
            stream,
            received: FrameBuffer::new(FRAME_BYTES_MAX),
            out: Vec::new(),
            answer,
            failed: false,
        };
        session.greet()?;
        session.requests()
    }

    /// Takes any startup message and lets the client in.
    fn greet(&mut self) -> io::Result<()> {
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
                        Some((self.answer)(self.number, &Request::Query(sql)))
                    }
                    frontend::Message::Parse { sql, .. } => {
                        Some((self.answer)(self.number, &Request::Parse(sql)))
                    }
                    frontend::Message::Bind { statement, ref parameters, .. } => {
                        bound = (statement.to_owned(), bigints(parameters));
                        Message::BindComplete.encode(&mut self.out).map_err(invalid)?;
                        None
                    }
                    frontend::Message::Execute { .. } => {
                        let (statement, parameters) = (bound.0.as_str(), bound.1.clone());
                        let request = Request::Execute { statement, parameters };
                        Some((self.answer)(self.number, &request))
                    }
                    frontend::Message::Terminate => return Ok(()),
                    _ => None,
                };
                match (reply.filter(|_| !self.failed), &message) {
                    (Some(Reply::Close), _) => return Ok(()),
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

/// The parameters that are `bigint` in binary.
fn bigints(parameters: &[Option<&[u8]>]) -> Vec<i64> {
    parameters
        .iter()
        .flatten()
        .filter_map(|value| Some(i64::from_be_bytes((*value).try_into().ok()?)))
        .collect()
}

/// Appends a reply; returns whether it is an error.
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
        Reply::Close => {}
    }
    Ok(false)
}
