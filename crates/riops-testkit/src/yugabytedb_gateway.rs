//! A gateway that makes a PostgreSQL server look and behave like a release of YugabyteDB. It translates statements,
//! rejects the statements that the release rejects, and replaces PostgreSQL's plans and errors with YugabyteDB's.
//! The data are real, so that a workload can be prepared, run and verified through it.
//!
//! It shares no code with riops's own protocol.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use crate::yugabytedb_rules::{
    Behavior, ErrorFields, Failure, INVALIDATED, LOST_REQUEST, Release, Sharding, Which,
    changes_catalog, plan, refusal, translated,
};

/// Invalid statement that is sent to PostgreSQL instead of a statement that must fail. Its error is replaced.
const FAILING: &str = "gateway_failure";

/// A running gateway. Dropping it closes all connections.
#[derive(Debug)]
pub struct YugabyteDbGateway {
    address: SocketAddr,
    cluster: Arc<Cluster>,
    stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// State that all sessions share.
#[derive(Debug)]
struct Cluster {
    behavior: Behavior,
    state: Mutex<State>,
    /// Whether commits are answered with the error of a failed request to the storage.
    storage_fails: AtomicBool,
    /// Whether no connection is accepted.
    is_closed: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    /// Every statement sent, with the number of its session.
    statements: Vec<(usize, String)>,
    /// Version of the catalog.
    version: u64,
    /// Session that is changing the catalog.
    changing: Option<usize>,
    /// Number of concurrent changes that were rejected.
    conflicts: usize,
    /// Number of commits sent since the storage fails.
    commits: usize,
    /// Number of commits whose outcome was hidden.
    failed_commits: usize,
    tables: HashMap<String, Sharding>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl YugabyteDbGateway {
    /// Starts a gateway on a free port of `host` for the server with this socket.
    ///
    /// # Errors
    /// If no port or thread is available.
    pub fn start(host: &str, socket: &Path, behavior: Behavior) -> io::Result<Self> {
        Self::at(&format!("{host}:0"), socket, behavior)
    }

    /// Starts a gateway on this address.
    ///
    /// # Errors
    /// If the port or a thread is not available.
    pub fn at(address: &str, socket: &Path, behavior: Behavior) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let cluster = Arc::new(Cluster {
            behavior,
            state: Mutex::default(),
            storage_fails: AtomicBool::new(false),
            is_closed: AtomicBool::new(false),
        });
        let stopped = Arc::new(AtomicBool::new(false));
        let (shared, stop, socket) =
            (Arc::clone(&cluster), Arc::clone(&stopped), socket.to_owned());
        let thread = std::thread::Builder::new()
            .name("yugabytedb-gateway".to_owned())
            .spawn(move || accept(&listener, &socket, &shared, &stop))?;
        Ok(Self { address, cluster, stopped, thread: Some(thread) })
    }

    /// The port that it listens on.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// All statements sent so far, with the number of their session, in order of their arrival.
    pub fn statements(&self) -> Vec<(usize, String)> {
        locked(&self.cluster.state).statements.clone()
    }

    /// Number of concurrent changes of the catalog that were rejected.
    pub fn conflicts(&self) -> usize {
        locked(&self.cluster.state).conflicts
    }

    /// Number of commits that were answered with the error of a failed request to the storage.
    pub fn failed_commits(&self) -> usize {
        locked(&self.cluster.state).failed_commits
    }

    /// From now on, commits look like a failed request to the storage. Every second one takes effect.
    pub fn fail_storage(&self) {
        self.cluster.storage_fails.store(true, Ordering::Release);
    }
}

impl Drop for YugabyteDbGateway {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Release);
        // Wakes the accepting thread.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The sockets of one connection, and its threads.
struct Open {
    client: TcpStream,
    server: UnixStream,
    threads: Vec<JoinHandle<()>>,
}

fn accept(listener: &TcpListener, socket: &PathBuf, cluster: &Arc<Cluster>, stopped: &AtomicBool) {
    let mut open: Vec<Open> = Vec::new();
    for (id, client) in listener.incoming().enumerate() {
        if stopped.load(Ordering::Acquire) {
            break;
        }
        open.retain(|connection| !connection.threads.iter().all(JoinHandle::is_finished));
        if cluster.is_closed.load(Ordering::Acquire) {
            continue;
        }
        // If the server is down, the client's connection is closed.
        if let Ok(connection) = client.and_then(|client| connect(id, client, socket, cluster)) {
            open.push(connection);
        }
    }
    for Open { client, server, threads } in open {
        let _ = client.shutdown(Shutdown::Both);
        let _ = server.shutdown(Shutdown::Both);
        for thread in threads {
            let _ = thread.join();
        }
    }
}

fn connect(
    id: usize,
    client: TcpStream,
    socket: &PathBuf,
    cluster: &Arc<Cluster>,
) -> io::Result<Open> {
    client.set_nodelay(true)?;
    let server = UnixStream::connect(socket)?;
    let session = Arc::new(Session {
        id,
        cluster: Arc::clone(cluster),
        transaction: Mutex::new(Transaction { status: b'I', version: 0 }),
        answer: Mutex::default(),
    });
    let mut threads = Vec::new();
    for to_server in [true, false] {
        let (client, server) = (client.try_clone()?, server.try_clone()?);
        let session = Arc::clone(&session);
        threads.push(std::thread::spawn(move || {
            let _ = if to_server {
                session.forward_statements(&client, &server)
            } else {
                session.forward_answers(&server, &client)
            };
            session.end();
            let _ = client.shutdown(Shutdown::Both);
            let _ = server.shutdown(Shutdown::Both);
        }));
    }
    Ok(Open { client, server, threads })
}

struct Session {
    id: usize,
    cluster: Arc<Cluster>,
    transaction: Mutex<Transaction>,
    answer: Mutex<ExpectedAnswer>,
}

/// The transaction block of a session.
struct Transaction {
    /// As in ReadyForQuery: `I` idle, `T` in a block, `E` in a failed block.
    status: u8,
    /// Version of the catalog when it began.
    version: u64,
}

/// Changes to the next answer.
#[derive(Default)]
struct ExpectedAnswer {
    /// The error that replaces the error of [`FAILING`].
    error: Option<ErrorFields>,
    /// The explained statement.
    explained: Option<String>,
    /// The prepared statements by name.
    prepared: HashMap<String, String>,
    /// Whether the gateway closes the connection instead of sending the answer.
    is_lost: bool,
    /// Whether a commit was replaced by a rollback.
    loses_commit: bool,
}

enum Verdict {
    Forward(String),
    Fail(ErrorFields),
    Close,
}

impl Session {
    /// Forwards the messages of the client.
    fn forward_statements(
        &self,
        mut client: &TcpStream,
        mut server: &UnixStream,
    ) -> io::Result<()> {
        let startup = loop {
            let mut length = [0; 4];
            client.read_exact(&mut length)?;
            let body = body(&mut client, length)?;
            // Encryption is refused.
            if matches!(body.get(..4), Some([4, 210, 22, 47 | 48])) {
                client.write_all(b"N")?;
                continue;
            }
            break [&length[..], &body].concat();
        };
        server.write_all(&startup)?;
        loop {
            let (kind, body) = frame(&mut client)?;
            let text = |from: usize| {
                let rest = body.get(from..).unwrap_or_default();
                let end = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
                String::from_utf8_lossy(rest.get(..end).unwrap_or_default()).into_owned()
            };
            match kind {
                b'Q' => match self.judge(&text(0)) {
                    Verdict::Close => return Ok(()),
                    Verdict::Fail(error) => self.fail(&mut server, b'Q', error)?,
                    Verdict::Forward(sql) => {
                        send(&mut server, b'Q', &[sql.as_bytes(), b"\0"].concat())?;
                    }
                },
                b'P' => {
                    let name = text(0);
                    let sql = text(name.len() + 1);
                    let rest = body.get(name.len() + sql.len() + 2..).unwrap_or_default();
                    match self.judge(&sql) {
                        Verdict::Close => return Ok(()),
                        Verdict::Fail(error) => self.fail(&mut server, b'P', error)?,
                        Verdict::Forward(forwarded) => {
                            let parts = [name.as_bytes(), b"\0", forwarded.as_bytes(), b"\0", rest];
                            send(&mut server, b'P', &parts.concat())?;
                            locked(&self.answer).prepared.insert(name, sql);
                        }
                    }
                }
                // The execution of a prepared statement. The name of the portal precedes its name.
                b'B' if self.is_invalidated() => self.fail(&mut server, b'P', INVALIDATED)?,
                b'B' if self.loses_commit(&text(text(0).len() + 1)) => {
                    // The commit is replaced by a rollback, and its answer by an error.
                    let portal = text(0);
                    let values = portal.len() + text(portal.len() + 1).len() + 2;
                    let values = body.get(values..).unwrap_or_default();
                    send(&mut server, b'P', b"\0rollback\0\0\0")?;
                    let parts = [portal.as_bytes(), b"\0\0", values];
                    send(&mut server, b'B', &parts.concat())?;
                }
                _ => send(&mut server, kind, &body)?,
            }
        }
    }

    /// Makes the server fail in place of a statement, so that its transaction ends as it would there.
    fn fail(&self, server: &mut &UnixStream, kind: u8, error: ErrorFields) -> io::Result<()> {
        locked(&self.answer).error = Some(error);
        match kind {
            b'Q' => send(server, b'Q', &[FAILING.as_bytes(), b"\0"].concat()),
            _ => send(server, b'P', &[b"\0", FAILING.as_bytes(), b"\0\0\0"].concat()),
        }
    }

    /// Whether this is a commit that the storage loses.
    fn loses_commit(&self, prepared: &str) -> bool {
        let is_commit =
            locked(&self.answer).prepared.get(prepared).is_some_and(|sql| sql == "commit");
        if !is_commit || !self.cluster.storage_fails.load(Ordering::Acquire) {
            return false;
        }
        let mut state = locked(&self.cluster.state);
        state.commits += 1;
        let loses = state.commits.is_multiple_of(2);
        locked(&self.answer).loses_commit = loses;
        loses
    }

    /// Whether this is the answer to a commit that looks like a failed request.
    fn hides_commit(&self, tag: &[u8]) -> bool {
        let lost = locked(&self.answer).loses_commit && tag.starts_with(b"ROLLBACK\0");
        let fails = self.cluster.storage_fails.load(Ordering::Acquire);
        lost || fails && tag.starts_with(b"COMMIT\0")
    }

    fn is_invalidated(&self) -> bool {
        let version = locked(&self.cluster.state).version;
        let transaction = locked(&self.transaction);
        transaction.status == b'T' && transaction.version != version
    }

    fn judge(&self, sql: &str) -> Verdict {
        let release = self.cluster.behavior.release;
        let sql = sql.trim();
        let in_block = locked(&self.transaction).status != b'I';
        let invalidated = self.is_invalidated() && !sql.starts_with("rollback");
        let mut state = locked(&self.cluster.state);
        state.statements.push((self.id, sql.to_owned()));
        if release == Release::Unknown {
            return Verdict::Forward(sql.to_owned());
        }
        if let Some((which, failure)) = self.cluster.behavior.failure
            && state.is_now(which)
        {
            match failure {
                Failure::Error(error) => return Verdict::Fail(error),
                Failure::CloseBefore => return Verdict::Close,
                Failure::CloseAfter => locked(&self.answer).is_lost = true,
                Failure::Kill => {
                    self.cluster.is_closed.store(true, Ordering::Release);
                    return Verdict::Close;
                }
            }
        }
        if let Some(error) = refusal(&self.cluster.behavior, sql, in_block) {
            return Verdict::Fail(error);
        }
        if invalidated {
            return Verdict::Fail(INVALIDATED);
        }
        if changes_catalog(sql) == Some(true) {
            if state.changing.is_some() {
                state.conflicts += 1;
                return Verdict::Fail(release.conflict());
            }
            state.changing = Some(self.id);
        }
        state.note_table(sql);
        let mut answer = locked(&self.answer);
        answer.explained = sql.starts_with("explain").then(|| {
            let name = sql.split("execute \"").nth(1).and_then(|rest| rest.split('"').next());
            let prepared = name.and_then(|name| answer.prepared.get(name));
            prepared.cloned().unwrap_or_else(|| sql.to_owned())
        });
        Verdict::Forward(translated(&self.cluster.behavior, sql))
    }

    /// Forwards the messages of the server.
    fn forward_answers(&self, mut server: &UnixStream, mut client: &TcpStream) -> io::Result<()> {
        let release = self.cluster.behavior.release;
        loop {
            let (kind, mut body) = frame(&mut server)?;
            let mut kind = kind;
            match kind {
                b'S' if body.starts_with(b"server_version\0") => {
                    let version = release.server_version();
                    body = format!("server_version\0{version}\0").into_bytes();
                }
                b'E' if contains(&body, FAILING) => {
                    if let Some(error) = locked(&self.answer).error.take() {
                        body = encoded(error);
                    }
                }
                b'D' => {
                    if let Some(changed) = self.changed_plan(&body) {
                        body = changed;
                    }
                }
                // The statement that was prepared instead of the commit.
                b'1' if locked(&self.answer).loses_commit => continue,
                b'C' if self.hides_commit(&body) => {
                    locked(&self.answer).loses_commit = false;
                    kind = b'E';
                    locked(&self.cluster.state).failed_commits += 1;
                    body = encoded(LOST_REQUEST);
                }
                // A COPY waits for data of the client.
                b'Z' | b'G' if locked(&self.answer).is_lost => return Ok(()),
                b'Z' => self.ready(body.first().copied().unwrap_or(b'I')),
                _ => {}
            }
            if !locked(&self.answer).is_lost {
                send(&mut client, kind, &body)?;
            }
        }
    }

    fn changed_plan(&self, row: &[u8]) -> Option<Vec<u8>> {
        let explained = locked(&self.answer).explained.clone()?;
        // One column: its number of columns and its length precede it.
        let text = std::str::from_utf8(row.get(6..)?).ok()?;
        let state = locked(&self.cluster.state);
        let sharding = |table: &str| state.tables.get(table).copied().unwrap_or_default();
        let plan = plan(self.cluster.behavior.release, &explained, &sharding, text)?;
        let length = u32::try_from(plan.len()).ok()?;
        Some([&[0, 1][..], &length.to_be_bytes(), plan.as_bytes()].concat())
    }

    /// The server has finished a statement.
    fn ready(&self, status: u8) {
        let mut state = locked(&self.cluster.state);
        if state.changing == Some(self.id) {
            state.changing = None;
            state.version += 1;
        }
        let mut transaction = locked(&self.transaction);
        if transaction.status == b'I' && status == b'T' {
            transaction.version = state.version;
        }
        transaction.status = status;
        locked(&self.answer).explained = None;
    }

    fn end(&self) {
        let mut state = locked(&self.cluster.state);
        if state.changing == Some(self.id) {
            state.changing = None;
            state.version += 1;
        }
    }
}

impl State {
    /// Whether the last statement is this one.
    fn is_now(&self, which: Which) -> bool {
        let begins = |text| self.statements.iter().filter(move |(_, sql)| sql.starts_with(text));
        match which {
            Which::Number(ordinal) => self.statements.len() == ordinal,
            Which::First(text) => {
                let is_last = self.statements.last().is_some_and(|(_, sql)| sql.starts_with(text));
                is_last && begins(text).count() == 1
            }
        }
    }

    /// Notes what later plans depend on.
    fn note_table(&mut self, sql: &str) {
        let words: Vec<&str> = sql.split_whitespace().collect();
        let plain = |name: &str| name.rsplit('.').next().unwrap_or_default().to_owned();
        match words.as_slice() {
            ["create", "table", name, ..] => {
                let by_hash = sql.contains(" hash)");
                self.tables.insert(plain(name), Sharding { by_hash, has_secondary_index: false });
            }
            ["create", "index", ..] => {
                let table = words.iter().skip_while(|word| **word != "on").nth(1);
                let sharding = table.map(|table| self.tables.entry(plain(table)).or_default());
                if let Some(sharding) = sharding {
                    sharding.has_secondary_index = true;
                }
            }
            _ => {}
        }
    }
}

fn contains(body: &[u8], text: &str) -> bool {
    body.windows(text.len()).any(|window| window == text.as_bytes())
}

fn encoded(error: ErrorFields) -> Vec<u8> {
    let mut body = Vec::new();
    let fields = [
        (b'S', "ERROR"),
        (b'V', "ERROR"),
        (b'C', error.sqlstate),
        (b'M', error.message),
        (b'D', error.detail),
        (b'W', error.context),
    ];
    for (letter, text) in fields.iter().filter(|(_, text)| !text.is_empty()) {
        body.push(*letter);
        body.extend_from_slice(text.as_bytes());
        body.push(0);
    }
    body.push(0);
    body
}

fn frame(from: &mut impl Read) -> io::Result<(u8, Vec<u8>)> {
    let mut kind = [0];
    from.read_exact(&mut kind)?;
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    Ok((kind[0], body(from, length)?))
}

fn body(from: &mut impl Read, length: [u8; 4]) -> io::Result<Vec<u8>> {
    let length = u32::from_be_bytes(length).saturating_sub(4);
    let mut body = vec![0; usize::try_from(length).unwrap_or(0)];
    from.read_exact(&mut body)?;
    Ok(body)
}

fn send(to: &mut impl Write, kind: u8, body: &[u8]) -> io::Result<()> {
    let length = u32::try_from(body.len() + 4).unwrap_or(u32::MAX);
    to.write_all(&[&[kind][..], &length.to_be_bytes(), body].concat())
}
