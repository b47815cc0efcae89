//! A server on a port of 127.0.0.1 that identifies itself as YugabyteDB. It uses the crate `pgwire`, which
//! shares no code with riops's own protocol. It records every statement and takes its replies from a closure.

use std::fmt::Debug;
use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use async_trait::async_trait;
use futures::{Sink, SinkExt, stream};
use pgwire::api::auth::{
    DefaultServerParameterProvider, StartupHandler, finish_authentication,
    save_startup_parameters_to_metadata,
};
use pgwire::api::copy::CopyHandler;
use pgwire::api::portal::Portal;
use pgwire::api::query::{ExtendedQueryHandler, SimpleQueryHandler};
use pgwire::api::results::{
    CopyResponse, DescribePortalResponse, DescribeStatementResponse, QueryResponse, Response, Tag,
};
use pgwire::api::stmt::{NoopQueryParser, StoredStatement};
use pgwire::api::store::PortalStore;
use pgwire::api::{ClientInfo, ClientPortalStore, PgWireServerHandlers};
use pgwire::error::{ErrorInfo, PgWireError, PgWireResult};
use pgwire::messages::copy::{CopyData, CopyDone};
use pgwire::messages::data::DataRow;
use pgwire::messages::response::TransactionStatus;
use pgwire::messages::{PgWireBackendMessage, PgWireFrontendMessage};

use crate::fake_server::PIN;

/// The `server_version` that it reports at connect.
pub const VERSION: &str = "15.12-YB-2025.1.0.0-b0";

/// A statement sent by a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SentStatement<'a> {
    /// Session number, from 0.
    pub session: u64,
    /// The statement.
    pub sql: &'a str,
    /// Whether a prepared statement is executed. Its values are in binary format.
    pub prepared: bool,
    /// Parameters that were sent as text; NULL is empty.
    pub parameters: &'a [String],
}

/// The reply to a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Rows of encoded values.
    Rows(Vec<Vec<Option<Vec<u8>>>>),
    /// Success, with this command tag and row count.
    Done(&'static str, Option<usize>),
    /// An error.
    Error {
        /// Its SQLSTATE.
        sqlstate: &'static str,
        /// Its message.
        message: &'static str,
        /// Whether the server closes the connection after it.
        fatal: bool,
    },
    /// The connection is closed without a reply.
    Close,
}

impl Answer {
    /// One row of text values.
    pub fn row(values: &[&str]) -> Self {
        Self::Rows(vec![values.iter().map(|value| Some(value.as_bytes().to_vec())).collect()])
    }

    /// An empty result.
    pub fn nothing() -> Self {
        Self::Rows(Vec::new())
    }
}

type Answers = dyn Fn(&SentStatement<'_>) -> Answer + Send + Sync;

/// A listening server. Dropping it closes all sessions.
#[derive(Debug)]
pub struct FakeYugabyteDb {
    port: u16,
    statements: Arc<Mutex<Vec<String>>>,
    stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<()>>>,
}

impl FakeYugabyteDb {
    /// Starts a server. `answer` replies to every statement except `begin`, `rollback`, `copy … from stdin`
    /// and `select pg_backend_pid()`, which behave as in PostgreSQL.
    ///
    /// # Errors
    /// If no port or thread is available.
    pub fn start(
        answer: impl Fn(&SentStatement<'_>) -> Answer + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let statements: Arc<Mutex<Vec<String>>> = Arc::default();
        let (answer, kept): (Arc<Answers>, _) = (Arc::new(answer), Arc::clone(&statements));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let stopped = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&stopped);
        let thread = std::thread::Builder::new()
            .name("fake-yugabytedb".to_owned())
            .spawn(move || runtime.block_on(listen(listener, &answer, &kept, &stop)))?;
        Ok(Self { port, statements, stopped, thread: Some(thread) })
    }

    /// The port that it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// All statements received so far, in order of their arrival.
    pub fn statements(&self) -> Vec<String> {
        locked(&self.statements).clone()
    }
}

impl Drop for FakeYugabyteDb {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Release);
        // Wakes the accepting task. The runtime closes the sessions when its thread ends.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn listen(
    listener: TcpListener,
    answer: &Arc<Answers>,
    statements: &Arc<Mutex<Vec<String>>>,
    stopped: &AtomicBool,
) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let mut id = 0;
    loop {
        let stream = listener.accept().await?.0.into_std()?;
        if stopped.load(Ordering::Acquire) {
            return Ok(());
        }
        let session = Session {
            id,
            answer: Arc::clone(answer),
            statements: Arc::clone(statements),
            socket: stream.try_clone()?,
        };
        id += 1;
        let stream = tokio::net::TcpStream::from_std(stream)?;
        let handlers = Handlers(Arc::new(session));
        // A client that disconnects ends its session, not the test.
        tokio::spawn(async move { pgwire::tokio::process_socket(stream, None, handlers).await });
    }
}

/// One client's session.
struct Session {
    id: u64,
    answer: Arc<Answers>,
    statements: Arc<Mutex<Vec<String>>>,
    /// The connection, for [`Answer::Close`].
    socket: TcpStream,
}

impl Session {
    fn record(&self, sql: &str) {
        locked(&self.statements).push(sql.to_owned());
    }

    fn respond(&self, sql: &str, parameters: Option<&[String]>) -> PgWireResult<Response> {
        let prepared = parameters.is_some();
        let parameters = parameters.unwrap_or_default();
        let asked = SentStatement { session: self.id, sql, prepared, parameters };
        let command = sql.split_whitespace().next().unwrap_or_default();
        if !prepared && command == "copy" && sql.contains("from stdin") {
            return Ok(Response::CopyIn(CopyResponse::new(1, 4, stream::empty())));
        }
        match command {
            "begin" => return Ok(Response::TransactionStart(Tag::new("BEGIN"))),
            "rollback" => return Ok(Response::TransactionEnd(Tag::new("ROLLBACK"))),
            _ => {}
        }
        match (self.answer)(&asked) {
            Answer::Rows(rows) => Ok(Response::Query(response(rows))),
            Answer::Done("COMMIT", _) => Ok(Response::TransactionEnd(Tag::new("COMMIT"))),
            Answer::Done(tag, rows) => {
                let tag = Tag::new(tag);
                Ok(Response::Execution(rows.map_or(tag.clone(), |rows| tag.with_rows(rows))))
            }
            Answer::Error { sqlstate, message, fatal } => {
                let severity = if fatal { "FATAL" } else { "ERROR" };
                let info = ErrorInfo::new(severity.into(), sqlstate.into(), message.into());
                Err(PgWireError::UserError(Box::new(info)))
            }
            Answer::Close => {
                self.socket.shutdown(Shutdown::Both)?;
                Err(PgWireError::IoError(io::ErrorKind::ConnectionAborted.into()))
            }
        }
    }
}

fn response(rows: Vec<Vec<Option<Vec<u8>>>>) -> QueryResponse {
    let encoded = rows.into_iter().map(|row| {
        let mut bytes = Vec::new();
        let fields = i16::try_from(row.len()).unwrap_or(0);
        for value in row {
            match value {
                None => bytes.extend_from_slice(&(-1i32).to_be_bytes()),
                Some(value) => {
                    let length = i32::try_from(value.len()).unwrap_or(0);
                    bytes.extend_from_slice(&length.to_be_bytes());
                    bytes.extend_from_slice(&value);
                }
            }
        }
        Ok(DataRow::new(bytes.as_slice().into(), fields))
    });
    QueryResponse::new(Arc::default(), stream::iter(encoded.collect::<Vec<_>>()))
}

/// The handlers of one connection.
struct Handlers(Arc<Session>);

impl PgWireServerHandlers for Handlers {
    fn simple_query_handler(&self) -> Arc<impl SimpleQueryHandler> {
        Arc::clone(&self.0)
    }

    fn extended_query_handler(&self) -> Arc<impl ExtendedQueryHandler> {
        Arc::clone(&self.0)
    }

    fn startup_handler(&self) -> Arc<impl StartupHandler> {
        Arc::clone(&self.0)
    }

    fn copy_handler(&self) -> Arc<impl CopyHandler> {
        Arc::clone(&self.0)
    }
}

#[async_trait]
impl StartupHandler for Session {
    async fn on_startup<C>(
        &self,
        client: &mut C,
        message: PgWireFrontendMessage,
    ) -> PgWireResult<()>
    where
        C: ClientInfo + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        if let PgWireFrontendMessage::Startup(startup) = &message {
            save_startup_parameters_to_metadata(client, startup);
            let mut parameters = DefaultServerParameterProvider::default();
            VERSION.clone_into(&mut parameters.server_version);
            finish_authentication(client, &parameters).await?;
        }
        Ok(())
    }
}

#[async_trait]
impl SimpleQueryHandler for Session {
    async fn do_query<C>(&self, client: &mut C, query: &str) -> PgWireResult<Vec<Response>>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        if query.starts_with(PIN) {
            return Ok(vec![Response::Query(response(vec![vec![Some(Vec::new())]]))]);
        }
        self.record(query);
        // The process id of the handshake, so that riops does not suspect a pooler in between.
        if query == "select pg_backend_pid()" {
            let (process, _) = client.pid_and_secret_key();
            let row = vec![vec![Some(process.to_string().into_bytes())]];
            return Ok(vec![Response::Query(response(row))]);
        }
        Ok(vec![self.respond(query, None)?])
    }
}

#[async_trait]
impl ExtendedQueryHandler for Session {
    type Statement = String;
    type QueryParser = NoopQueryParser;

    fn query_parser(&self) -> Arc<Self::QueryParser> {
        Arc::new(NoopQueryParser)
    }

    async fn do_query<C>(
        &self,
        client: &mut C,
        portal: &Portal<Self::Statement>,
        _max_rows: usize,
    ) -> PgWireResult<Response>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore<Statement = Self::Statement>,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let sql = &portal.statement.statement;
        self.record(sql);
        if sql == "commit" {
            // As in PostgreSQL, the transaction has ended even if its commit fails.
            client.set_transaction_status(TransactionStatus::Idle);
        }
        let parameters: Vec<String> = portal
            .parameters
            .iter()
            .map(|value| value.as_deref().map(String::from_utf8_lossy).unwrap_or_default().into())
            .collect();
        self.respond(sql, Some(&parameters))
    }

    async fn do_describe_statement<C>(
        &self,
        _client: &mut C,
        _statement: &StoredStatement<Self::Statement>,
    ) -> PgWireResult<DescribeStatementResponse>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore<Statement = Self::Statement>,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        Ok(DescribeStatementResponse::new(Vec::new(), Vec::new()))
    }

    async fn do_describe_portal<C>(
        &self,
        _client: &mut C,
        _portal: &Portal<Self::Statement>,
    ) -> PgWireResult<DescribePortalResponse>
    where
        C: ClientInfo + ClientPortalStore + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::PortalStore: PortalStore<Statement = Self::Statement>,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        Ok(DescribePortalResponse::new(Vec::new()))
    }
}

#[async_trait]
impl CopyHandler for Session {
    async fn on_copy_data<C>(&self, _client: &mut C, _data: CopyData) -> PgWireResult<()>
    where
        C: ClientInfo + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        Ok(())
    }

    async fn on_copy_done<C>(&self, client: &mut C, _done: CopyDone) -> PgWireResult<()>
    where
        C: ClientInfo + Sink<PgWireBackendMessage> + Unpin + Send + Sync,
        C::Error: Debug,
        PgWireError: From<<C as Sink<PgWireBackendMessage>>::Error>,
    {
        let tag = Tag::new("COPY").with_rows(0);
        client.send(PgWireBackendMessage::CommandComplete(tag.into())).await?;
        Ok(())
    }
}
