//! Opening of sessions: connect, apply the settings, prepare the statements, check the plans.
//!
//! Everything here blocks and must not run in a worker's loop. Workers open their sessions before the loop
//! starts; connector threads reopen them while it runs.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rand::RngExt;
use riops_wire::frame::FrameBuffer;

use super::findings::{AccessFinding, Moment};
use super::tally::Backend;
use crate::host::Interrupt;
use crate::server::nodes::Choice;
use crate::server::{Connection, ConnectionError, Dialect, Nodes, Stream};
use crate::workload::access::{Access, Finding};
use crate::workload::keys::{Purpose, stream};
use crate::workload::transaction::Statements;
use riops_model::plan::{Plan, Protocol};
use riops_model::units::{Nanos, Span};

/// Maximum number of concurrent reconnects.
const CONNECTORS_MAX: usize = 64;
/// Backoff after the first failed connection attempt; doubles with each further one.
const BACKOFF_MIN: Duration = Duration::from_millis(10);
/// Maximum backoff.
const BACKOFF_MAX: Duration = Duration::from_secs(1);

/// Instructions for opening a session, used for the first connection and for every reconnect.
#[derive(Debug)]
pub(super) struct SessionSetup {
    pub(super) settings: Vec<String>,
    pub(super) statements: Arc<Statements>,
    /// Whether the start time of the backend is needed.
    pub(super) identifies_backend: bool,
    pub(super) checks: Vec<AccessCheck>,
}

/// Check of the access path of a statement.
#[derive(Debug)]
pub(super) struct AccessCheck {
    /// Statement with its expected access path.
    pub(super) access: Access,
    /// EXPLAIN of the statement.
    pub(super) explain: String,
}

impl AccessCheck {
    /// Executes the EXPLAIN.
    pub(super) fn run(&self, connection: &mut Connection) -> Result<Finding, ConnectionError> {
        let lines = connection.query(&self.explain)?;
        let json: String = lines.into_iter().flatten().flatten().collect();
        Ok(self.access.judge(&json))
    }
}

/// Parts of a connection that is ready for its first transaction.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) stream: Stream,
    pub(super) received: FrameBuffer,
    pub(super) findings: Vec<AccessFinding>,
    /// Process id of the backend.
    pub(super) process: i32,
    /// The backend with its start time, if it is needed.
    pub(super) backend: Option<Backend>,
    /// Time to open the connection; for a reconnect, from the request.
    pub(super) took: Nanos,
    /// Number of the node, from 0.
    pub(super) node: usize,
    pub(super) dialect: Dialect,
}

/// A blocking connection on which everything that precedes the first transaction has run.
pub(super) struct Prepared {
    pub(super) connection: Connection,
    pub(super) findings: Vec<AccessFinding>,
    /// Number of the node, from 0.
    pub(super) node: usize,
}

/// Opens a session on the first node that accepts it, its home node first.
pub(super) fn open_on_any_node(
    setup: &SessionSetup,
    session: u64,
    check_plans: bool,
    nodes: &Nodes,
    interrupt: &Interrupt,
) -> Result<Opened, ConnectionError> {
    on_any_node(nodes, session, |choice| {
        let start = Instant::now();
        let Prepared { mut connection, findings, node } =
            prepare(setup, check_plans, nodes, choice, interrupt)?;
        let process = connection.session_info().process;
        let dialect = connection.dialect();
        let backend = if setup.identifies_backend { Backend::read(&mut connection)? } else { None };
        let (stream, received) = connection.into_parts();
        stream.set_nonblocking(true).map_err(ConnectionError::Io)?;
        let took = start.elapsed().into();
        Ok(Opened { stream, received, findings, process, backend, took, node, dialect })
    })
}

/// The same for a session with a blocking connection.
pub(super) fn prepare_on_any_node(
    setup: &SessionSetup,
    session: u64,
    nodes: &Nodes,
    interrupt: &Interrupt,
) -> Result<Prepared, ConnectionError> {
    on_any_node(nodes, session, |choice| prepare(setup, true, nodes, choice, interrupt))
}

/// Tries each node once until an attempt succeeds.
fn on_any_node<T>(
    nodes: &Nodes,
    session: u64,
    attempt: impl Fn(&Choice) -> Result<T, ConnectionError>,
) -> Result<T, ConnectionError> {
    let mut tried = Vec::new();
    loop {
        let choice = nodes.choose(session);
        tried.push(choice.node);
        let error = match attempt(&choice) {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        if error.is_final() {
            nodes.session_closed(choice.node);
            return Err(error);
        }
        nodes.failed(choice.node);
        // The next choice has failed already.
        if tried.contains(&nodes.next(session)) {
            return Err(error);
        }
    }
}

/// Opens a connection and runs everything that precedes the first transaction. The connect timeout applies to connecting
/// and to each statement.
fn prepare(
    setup: &SessionSetup,
    check_plans: bool,
    nodes: &Nodes,
    choice: &Choice,
    interrupt: &Interrupt,
) -> Result<Prepared, ConnectionError> {
    let target = &choice.conninfo;
    let mut connection = Connection::open_measured(target, interrupt)?;
    let reset_deadline = |connection: &mut Connection| {
        connection.set_deadline(Some(Instant::now() + target.connect_timeout));
    };
    if !setup.settings.is_empty() {
        reset_deadline(&mut connection);
        connection.execute(&setup.settings.join("; "))?;
    }
    if setup.statements.protocol == Protocol::Prepared {
        for statement in setup.statements.iter() {
            reset_deadline(&mut connection);
            connection.prepare(&statement.name, &statement.sql, &statement.parameter_types)?;
        }
    }
    let mut findings = Vec::new();
    for check in setup.checks.iter().filter(|_| check_plans) {
        reset_deadline(&mut connection);
        findings.push(AccessFinding {
            statement: check.access.statement.clone(),
            moment: Moment::Before,
            finding: check.run(&mut connection)?,
            sessions: 1,
        });
    }
    connection.set_deadline(None);
    let node = nodes.node_of(&mut connection, choice.node)?;
    Ok(Prepared { connection, findings, node })
}

/// A request for a new connection of a session.
pub(super) struct ConnectRequest {
    /// The position of the session at its worker.
    pub(super) index: usize,
    /// The session's number in the stage.
    pub(super) session: u64,
    /// Number of the node of the previous connection.
    pub(super) left: usize,
    pub(super) setup: Arc<SessionSetup>,
    /// Whether riops closed the previous connection on purpose.
    pub(super) planned: bool,
    /// Time of the request. The reported connect time includes the wait for a free connector.
    pub(super) requested_at: Instant,
    /// Channel for the result.
    pub(super) reply: Sender<Reopened>,
    pub(super) waker: Arc<mio::Waker>,
}

/// Result of a [`ConnectRequest`].
pub(super) struct Reopened {
    pub(super) index: usize,
    pub(super) planned: bool,
    pub(super) result: Result<Opened, ConnectionError>,
}

/// Threads that open connections on behalf of the workers, which must not block. Each request starts one
/// more thread, up to the maximum. The threads exit when all senders of requests are dropped.
#[derive(Clone)]
pub(super) struct Connectors {
    requests: Sender<ConnectRequest>,
    pool: Arc<Pool>,
}

struct Pool {
    queue: Mutex<Receiver<ConnectRequest>>,
    threads: Mutex<usize>,
    nodes: Nodes,
    /// Requested when the stage has ended.
    shutdown: Interrupt,
    seed: u64,
    /// Time after which a failed attempt is not repeated.
    timeout: Duration,
}

impl Connectors {
    pub(super) fn new(nodes: &Nodes, shutdown: &Interrupt, plan: &Plan) -> Self {
        let (requests, queue) = channel();
        let pool = Pool {
            queue: Mutex::new(queue),
            threads: Mutex::new(0),
            nodes: nodes.clone(),
            shutdown: shutdown.clone(),
            seed: plan.seed,
            timeout: Span::of_seconds(plan.errors.reconnect_timeout_s).0,
        };
        Self { requests, pool: Arc::new(pool) }
    }

    /// Queues a request for a connection. The result is sent to the request's `reply` channel, followed by
    /// a call of its waker.
    pub(super) fn request(&self, request: ConnectRequest) -> std::io::Result<()> {
        if let Ok(mut threads) = self.pool.threads.lock()
            && *threads < CONNECTORS_MAX
        {
            let pool = Arc::clone(&self.pool);
            let connector = *threads as u64;
            std::thread::Builder::new()
                .name(format!("riops-connector-{connector}"))
                .spawn(move || pool.work(connector))?;
            *threads += 1;
        }
        self.requests.send(request).map_err(|_| std::io::ErrorKind::BrokenPipe.into())
    }
}

impl Pool {
    fn work(&self, connector: u64) {
        // The workers use the stream numbers from 0.
        let mut rng = stream(self.seed, Purpose::Backoff, u64::from(u32::MAX) + connector);
        loop {
            let Ok(Ok(request)) = self.queue.lock().map(|queue| queue.recv()) else {
                return;
            };
            let result = self
                .open_with_retries(&request, &mut rng)
                .map(|opened| Opened { took: request.requested_at.elapsed().into(), ..opened });
            // Sending fails only if the worker has exited.
            let (index, planned) = (request.index, request.planned);
            let _ = request.reply.send(Reopened { index, planned, result });
            let _ = request.waker.wake();
        }
    }

    fn open_with_retries(
        &self,
        request: &ConnectRequest,
        rng: &mut impl rand::Rng,
    ) -> Result<Opened, ConnectionError> {
        self.nodes.session_closed(request.left);
        let deadline = Instant::now() + self.timeout;
        let mut backoff = BACKOFF_MIN;
        loop {
            match open_on_any_node(
                &request.setup,
                request.session,
                // An EXPLAIN costs more than the few transactions of a short-lived connection.
                !request.planned,
                &self.nodes,
                &self.shutdown,
            ) {
                Err(error) if !error.is_final() && Instant::now() < deadline => {
                    // Jitter: sessions that lost their connections together must not reconnect together.
                    let wait = backoff.mul_f64(rng.random_range(0.5..1.5));
                    let left = deadline.saturating_duration_since(Instant::now());
                    std::thread::sleep(wait.min(left));
                    backoff = (backoff * 2).min(BACKOFF_MAX);
                    if self.shutdown.is_requested() {
                        return Err(ConnectionError::Interrupted);
                    }
                }
                other => return other,
            }
        }
    }
}
