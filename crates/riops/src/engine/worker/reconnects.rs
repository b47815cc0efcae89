//! New connections for sessions, from threads that may block.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use super::super::opening::{ConnectRequest, Connectors, Reopened};
use super::super::session::Session;
use crate::server::Nodes;

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
    pub(super) fn request(
        &self,
        number: usize,
        session: &Session,
        planned: bool,
    ) -> io::Result<()> {
        self.connectors.request(ConnectRequest {
            number,
            session: session.number,
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
        self.rebalance && self.nodes.should_move(session.number, session.node)
    }
}
