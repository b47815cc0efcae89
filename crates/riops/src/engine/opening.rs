//! From a recipe to a session that is ready: connect, settings, statements, a look at the plans.
//!
//! Blocking, and therefore never on a worker's loop: the workers open their sessions before it, and
//! the connectors open them anew beside it.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rand::RngExt;
use riops_wire::frame::FrameBuffer;

use super::findings::{AccessFinding, Moment, note};
use crate::host::Interrupt;
use crate::plan::Protocol;
use crate::server::nodes::Choice;
use crate::server::{ConnInfo, Connection, ConnectionError, Nodes, Stream};
use crate::units::Nanos;
use crate::workload::access::Access;
use crate::workload::keys::{Purpose, stream};
use crate::workload::transaction::Statements;

/// Connections that are made anew at the same time.
const CONNECTORS_MAX: usize = 64;
/// The pause after the first vain attempt to connect; it doubles with each.
const PAUSE_FIRST: Duration = Duration::from_millis(10);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// How a session is made ready, the first time and after each loss.
#[derive(Debug)]
pub(super) struct Recipe {
    pub(super) settings: Vec<String>,
    pub(super) statements: Arc<Statements>,
    /// The promises of its statements, with the SQL that shows whether they are kept.
    pub(super) checks: Vec<(Access, String)>,
}

/// The parts of a connection that is ready for its first transaction.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) stream: Stream,
    pub(super) received: FrameBuffer,
    pub(super) findings: Vec<AccessFinding>,
    /// The server's process.
    pub(super) process: i32,
    /// How long it took; with an order, from when it was given.
    pub(super) took: Nanos,
    /// On which node, from 0.
    pub(super) node: usize,
}

/// Opens a session on the first node that lets it in, its home before all others.
pub(super) fn open_somewhere(
    recipe: &Recipe,
    session: u64,
    look: bool,
    nodes: &Nodes,
    interrupt: &Interrupt,
) -> Result<Opened, ConnectionError> {
    somewhere(nodes, session, |choice| open(recipe, look, nodes, choice, interrupt))
}

/// Tries node after node, each once.
fn somewhere<T>(
    nodes: &Nodes,
    session: u64,
    mut attempt: impl FnMut(&Choice) -> Result<T, ConnectionError>,
) -> Result<T, ConnectionError> {
    let mut tried = Vec::new();
    loop {
        let choice = nodes.choose(session);
        tried.push(choice.node);
        match attempt(&choice) {
            Ok(done) => return Ok(done),
            Err(error) => {
                if error.is_final() {
                    nodes.left(choice.node);
                } else {
                    nodes.failed(choice.node);
                }
                // What would be next has failed already.
                if error.is_final() || tried.contains(&nodes.next(session)) {
                    return Err(error);
                }
            }
        }
    }
}

/// The same for a session that blocks, which remembers its node in `place`.
pub(super) fn make_ready_somewhere(
    recipe: &Recipe,
    nodes: &Nodes,
    (session, node): (u64, &mut usize),
    interrupt: &Interrupt,
) -> Result<(Connection, Vec<AccessFinding>), ConnectionError> {
    somewhere(nodes, session, |choice| {
        *node = choice.node;
        make_ready(recipe, true, &choice.conninfo, interrupt)
    })
}

/// Opens a session, within the time that the target allows for connecting and for the rest.
fn open(
    recipe: &Recipe,
    look: bool,
    nodes: &Nodes,
    choice: &Choice,
    interrupt: &Interrupt,
) -> Result<Opened, ConnectionError> {
    let start = Instant::now();
    let (mut connection, findings) = make_ready(recipe, look, &choice.conninfo, interrupt)?;
    let node = nodes.node_of(&mut connection, choice.node)?;
    let process = connection.greeting().process;
    let (stream, received) = connection.into_parts();
    stream.set_nonblocking(true).map_err(ConnectionError::Io)?;
    Ok(Opened { stream, received, findings, process, took: start.elapsed().into(), node })
}

/// A connection on which all is said that has to be said before the first transaction.
fn make_ready(
    recipe: &Recipe,
    look: bool,
    target: &ConnInfo,
    interrupt: &Interrupt,
) -> Result<(Connection, Vec<AccessFinding>), ConnectionError> {
    let mut connection = Connection::open(target, interrupt)?;
    // Each statement has the time that connecting has.
    let wait_no_longer = |connection: &mut Connection| {
        connection.set_deadline(Some(Instant::now() + target.connect_timeout));
    };
    if !recipe.settings.is_empty() {
        wait_no_longer(&mut connection);
        connection.execute(&recipe.settings.join("; "))?;
    }
    if recipe.statements.protocol() == Protocol::Prepared {
        for statement in recipe.statements.iter() {
            wait_no_longer(&mut connection);
            connection.prepare(&statement.name, &statement.sql, &statement.parameter_types)?;
        }
    }
    let mut findings = Vec::new();
    if look {
        findings = look_at_plans(recipe, &mut connection, Moment::Before, wait_no_longer)?;
    }
    connection.set_deadline(None);
    Ok((connection, findings))
}

/// What the session would do now.
pub(super) fn look_at_plans(
    recipe: &Recipe,
    connection: &mut Connection,
    moment: Moment,
    before_each: impl Fn(&mut Connection),
) -> Result<Vec<AccessFinding>, ConnectionError> {
    let mut findings = Vec::new();
    for (access, explain) in &recipe.checks {
        before_each(connection);
        let lines = connection.query(explain)?;
        let json: String = lines.into_iter().flatten().flatten().collect();
        note(&mut findings, &access.statement, moment, access.judge(&json), 1);
    }
    Ok(findings)
}

/// The wish for a new connection of a session.
pub(super) struct Order {
    /// The session's number at its worker.
    pub(super) number: usize,
    /// Its number in the stage.
    pub(super) session: u64,
    /// The node that it has left.
    pub(super) left: usize,
    pub(super) recipe: Arc<Recipe>,
    /// Whether to look at the plans.
    pub(super) look: bool,
    /// Whether the old connection was given up on purpose.
    pub(super) planned: bool,
    /// Until when to try again.
    pub(super) patience: Duration,
    /// When it was asked for: waiting for a free connector is part of how long it takes.
    pub(super) ordered: Instant,
    /// Who is told.
    pub(super) reply: Sender<Reopened>,
    pub(super) waker: Arc<mio::Waker>,
}

/// What became of it.
pub(super) struct Reopened {
    pub(super) number: usize,
    pub(super) planned: bool,
    pub(super) result: Result<Opened, ConnectionError>,
}

/// Threads that connect, so that no worker has to wait for it. They are started with the first
/// order and end when nobody can order any more.
#[derive(Clone)]
pub(super) struct Connectors {
    orders: Sender<Order>,
    pool: Arc<Pool>,
}

struct Pool {
    queue: Mutex<Receiver<Order>>,
    threads: Mutex<usize>,
    nodes: Nodes,
    /// Set when the stage is over.
    over: Interrupt,
    seed: u64,
}

impl Connectors {
    pub(super) fn new(nodes: &Nodes, over: &Interrupt, seed: u64) -> Self {
        let (orders, queue) = channel();
        let pool = Pool {
            queue: Mutex::new(queue),
            threads: Mutex::new(0),
            nodes: nodes.clone(),
            over: over.clone(),
            seed,
        };
        Self { orders, pool: Arc::new(pool) }
    }

    /// Asks for a connection; the answer comes to the order's sender, with a call of its waker.
    pub(super) fn order(&self, order: Order) -> std::io::Result<()> {
        if let Ok(mut threads) = self.pool.threads.lock()
            && *threads < CONNECTORS_MAX
        {
            let pool = Arc::clone(&self.pool);
            let number = *threads as u64;
            std::thread::Builder::new()
                .name(format!("riops-connector-{number}"))
                .spawn(move || pool.work(number))?;
            *threads += 1;
        }
        self.orders.send(order).map_err(|_| std::io::ErrorKind::BrokenPipe.into())
    }
}

impl Pool {
    fn work(&self, number: u64) {
        // The workers have the numbers from 0.
        let mut rng = stream(self.seed, Purpose::Backoff, u64::from(u32::MAX) + number);
        loop {
            let Ok(Ok(order)) = self.queue.lock().map(|queue| queue.recv()) else {
                return;
            };
            let result = self
                .keep_trying(&order, &mut rng)
                .map(|opened| Opened { took: order.ordered.elapsed().into(), ..opened });
            // Where nobody listens any more, nobody needs it.
            let (number, planned) = (order.number, order.planned);
            let _ = order.reply.send(Reopened { number, planned, result });
            let _ = order.waker.wake();
        }
    }

    fn keep_trying(
        &self,
        order: &Order,
        rng: &mut impl rand::Rng,
    ) -> Result<Opened, ConnectionError> {
        self.nodes.left(order.left);
        let deadline = Instant::now() + order.patience;
        let mut pause = PAUSE_FIRST;
        loop {
            match open_somewhere(&order.recipe, order.session, order.look, &self.nodes, &self.over)
            {
                Err(error) if !error.is_final() && Instant::now() < deadline => {
                    // Sessions that broke together shall not come back together.
                    let wait = pause.mul_f64(rng.random_range(0.5..1.5));
                    let left = deadline.saturating_duration_since(Instant::now());
                    std::thread::sleep(wait.min(left));
                    pause = (pause * 2).min(PAUSE_MAX);
                    if self.over.requested() {
                        return Err(ConnectionError::Interrupted);
                    }
                }
                other => return other,
            }
        }
    }
}
