//! When transactions that wait for their retry or sleep continue.
//! Also the new connections of sessions that lost theirs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use rand::RngExt;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::super::in_flight::InFlight;
use super::super::opening::{ConnectRequest, Connectors, Reopened};
use super::super::session::Session;
use crate::server::Nodes;
use riops_model::units::Nanos;

/// Backoff before the first retry of a transaction; doubles with each further one.
const BACKOFF_MIN: Nanos = Nanos(1_000_000);
/// Maximum backoff.
const BACKOFF_MAX: Nanos = Nanos(100_000_000);

pub(in crate::engine) struct Retries {
    /// The end of each wait, with the position of the session and the id of its transaction, which may have been lost since then.
    waiting: BinaryHeap<Reverse<(Nanos, usize, u64)>>,
    rng: Xoshiro256PlusPlus,
    /// Whether a transaction is retried without a backoff.
    at_once: bool,
}

impl Retries {
    pub(in crate::engine) fn new(rng: Xoshiro256PlusPlus, at_once: bool) -> Self {
        Self { waiting: BinaryHeap::new(), rng, at_once }
    }

    /// Postpones the next attempt of a transaction by its backoff.
    pub(super) fn postpone(
        &mut self,
        index: usize,
        session: &mut Session,
        flight: Box<InFlight>,
        now: Nanos,
    ) {
        if self.at_once {
            self.wake_at(now, index, flight.id);
            return session.postponed.push_back(flight);
        }
        let doubled = BACKOFF_MIN.0.saturating_mul(1 << flight.retries.min(20)) / 2;
        let backoff = doubled.min(BACKOFF_MAX.0);
        // Jitter: transactions that conflicted must not be retried at the same time.
        let due = now.after(Nanos(self.rng.random_range(backoff / 2..=backoff + backoff / 2)));
        self.wake_at(due, index, flight.id);
        session.postponed.push_back(flight);
    }

    /// Postpones it again: its session has no connection yet.
    pub(super) fn postpone_again(&mut self, index: usize, transaction: u64, now: Nanos) {
        self.wake_at(now.after(BACKOFF_MAX), index, transaction);
    }

    /// Continues a transaction of a session at this time.
    pub(super) fn wake_at(&mut self, due: Nanos, index: usize, transaction: u64) {
        self.waiting.push(Reverse((due, index, transaction)));
    }

    /// Returns the position of a session and the id of its transaction whose wait is over.
    pub(super) fn pop_due(&mut self, now: Nanos) -> Option<(usize, u64)> {
        self.due().filter(|due| *due <= now)?;
        self.waiting.pop().map(|Reverse((_, index, transaction))| (index, transaction))
    }

    /// Returns the end of the next wait.
    pub(super) fn due(&self) -> Option<Nanos> {
        self.waiting.peek().map(|Reverse((due, ..))| *due)
    }
}

// New connections for sessions, from threads that may block.

pub(in crate::engine) struct Reconnects {
    connectors: Connectors,
    reply: Sender<Reopened>,
    /// The results of the requests.
    pub(super) reopened: Receiver<Reopened>,
    waker: Arc<mio::Waker>,
    nodes: Nodes,
    /// Node change counter at the last rebalancing.
    nodes_seen: u64,
    /// Whether sessions return to their home nodes when these are available again.
    rebalance: bool,
}

impl Reconnects {
    pub(in crate::engine) fn new(
        connectors: Connectors,
        nodes: Nodes,
        waker: Arc<mio::Waker>,
        rebalance: bool,
    ) -> Self {
        let (reply, reopened) = channel();
        Self { connectors, reply, reopened, waker, nodes_seen: nodes.changes(), nodes, rebalance }
    }

    /// Requests a new connection. `planned`: riops closed the previous one on purpose.
    pub(super) fn request(&self, index: usize, session: &Session, planned: bool) -> io::Result<()> {
        self.connectors.request(ConnectRequest {
            index,
            session: session.id,
            left: session.node,
            setup: Arc::clone(&session.setup),
            planned,
            requested_at: Instant::now(),
            reply: self.reply.clone(),
            waker: Arc::clone(&self.waker),
        })
    }

    /// Returns whether nodes have joined, left or come back since the last call.
    pub(super) fn have_nodes_changed(&mut self) -> bool {
        let changes = self.nodes.changes();
        std::mem::replace(&mut self.nodes_seen, changes) != changes
    }

    /// Returns whether a session must reconnect to its home node.
    pub(super) fn should_move(&self, session: &Session) -> bool {
        self.rebalance && self.nodes.should_move(session.id, session.node)
    }
}
