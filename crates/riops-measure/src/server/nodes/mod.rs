//! The nodes of a cluster, their availability, and the assignment of sessions to nodes.
//!
//! Nodes are the servers in the connection settings, or the servers that `yb_servers()` lists. The assignment is
//! deterministic: the home node of a session is its number modulo the number of nodes. A session uses another node only
//! if its home node is unavailable. Nodes are assigned when connections are opened, never in the transaction loop.

mod discovery;
mod keeper;

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::connection::{Connection, ConnectionError};
use super::conninfo::{ConnInfo, Host};
pub use discovery::Discovery;
use riops_model::plan::Spread;
use riops_model::record::Role;

/// An unavailable node is excluded for this time, as in Yugabyte's smart drivers.
const RETRY_AFTER: Duration = Duration::from_secs(5);
/// Number of a session's node if the node is unknown.
pub const UNKNOWN_NODE: usize = usize::MAX;
/// Maximum number of nodes that join during a stage and are still counted.
const JOINING_MAX: usize = 4;

/// One node.
#[derive(Debug, Clone)]
pub struct Node {
    /// Connection settings.
    pub conninfo: ConnInfo,
    /// IP addresses, if they are needed to determine the node of a session.
    addresses: Vec<SocketAddr>,
    /// Whether the spread allows sessions on this node.
    pub allowed: bool,
    /// Whether the last connection attempt failed.
    pub down: bool,
    /// Host and port.
    pub name: String,
    /// Host without port.
    pub host: String,
    /// Role.
    pub role: Role,
    /// `cloud.region.zone`, if the cluster reports it.
    pub placement: Option<String>,
    /// Number of connections when the node was last listed.
    connections: u64,
    /// System identifier of the database cluster, if the node reports it.
    system: Option<String>,
}

impl Node {
    fn new(conninfo: ConnInfo, role: Role) -> Self {
        let name = conninfo.servers.first().map(ToString::to_string).unwrap_or_default();
        let host = match conninfo.servers.first().map(|server| &server.host) {
            Some(Host::Tcp(host)) => host.clone(),
            _ => String::new(),
        };
        Self {
            conninfo,
            addresses: Vec::new(),
            allowed: true,
            down: false,
            name,
            host,
            role,
            placement: None,
            connections: 0,
            system: None,
        }
    }

    fn priority(&self, spread: &Spread) -> u8 {
        spread.priority(self.placement.as_deref().unwrap_or(""))
    }
}

#[derive(Debug, Clone)]
struct Entry {
    node: Node,
    /// Time of the last failure; `None` if the node is available.
    failed_at: Option<Instant>,
    /// Whether the cluster still lists the node.
    member: bool,
    /// Number of riops sessions on the node.
    sessions: u64,
}

#[derive(Debug)]
struct Inner {
    /// The settings given by the user.
    conninfo: ConnInfo,
    spread: Spread,
    /// Whether the sessions change rows.
    writes: bool,
    /// Whether `yb_servers()` lists the nodes.
    discovered: bool,
    /// Whether only the first nodes are used, so that no node may join.
    is_limited: AtomicBool,
    /// Whether sessions connect with the user's settings and their node is determined afterwards.
    by_address: bool,
    entries: Mutex<Vec<Entry>>,
    /// Number of times that a node returned, joined or changed its role.
    changes: AtomicU64,
    refresh_requested: AtomicBool,
}

/// All nodes of a target. Clones share the same state.
#[derive(Debug, Clone)]
pub struct Nodes(Arc<Inner>);

/// The node chosen for a session.
#[derive(Debug, Clone)]
pub struct Choice {
    /// Number of the node, from 0.
    pub node: usize,
    /// Connection settings of the node.
    pub conninfo: ConnInfo,
}

impl Nodes {
    /// Returns a single node with the user's connection settings, which may list several servers.
    pub fn single(conninfo: &ConnInfo) -> Self {
        let node = Node { name: conninfo.address(), ..Node::new(conninfo.clone(), Role::Primary) };
        Self::new(conninfo, Spread::Off, false, vec![node], false)
    }

    fn new(
        conninfo: &ConnInfo,
        spread: Spread,
        writes: bool,
        nodes: Vec<Node>,
        discovered: bool,
    ) -> Self {
        let entry = |node| Entry { node, failed_at: None, member: true, sessions: 0 };
        Self(Arc::new(Inner {
            conninfo: conninfo.clone(),
            by_address: spread == Spread::Off && nodes.len() > 1,
            spread,
            writes,
            discovered,
            is_limited: AtomicBool::new(false),
            entries: Mutex::new(nodes.into_iter().map(entry).collect()),
            changes: AtomicU64::new(0),
            refresh_requested: AtomicBool::new(false),
        }))
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        // No code panics while it holds the lock.
        self.0.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether the nodes were discovered with `yb_servers()`.
    pub fn are_discovered(&self) -> bool {
        self.0.discovered
    }

    /// Returns the nodes in the order of their numbers.
    pub fn list(&self) -> Vec<Node> {
        let allowed = self.allowed();
        (0..)
            .zip(self.entries().iter())
            .map(|(position, entry)| Node {
                allowed: allowed.contains(&position),
                down: entry.failed_at.is_some(),
                ..entry.node.clone()
            })
            .collect()
    }

    /// Returns the numbers of the nodes that the spread allows, including unavailable ones.
    pub fn allowed(&self) -> Vec<usize> {
        let entries = self.entries();
        match self.0.spread {
            Spread::Off => (0..entries.len()).collect(),
            _ => self.homes_of(&entries, |_| true),
        }
    }

    /// Resets the session counts of the previous stage, and makes nodes available again whose
    /// exclusion has expired.
    pub fn begin_stage(&self) {
        for entry in self.entries().iter_mut() {
            entry.sessions = 0;
            entry.failed_at = entry.failed_at.filter(|at| at.elapsed() < RETRY_AFTER);
        }
    }

    /// Returns the maximum number of nodes during a stage, including nodes that may join.
    pub fn max_nodes(&self) -> usize {
        let known = self.entries().len();
        if self.may_grow() { known + JOINING_MAX } else { known }
    }

    /// Returns whether nodes that join the cluster get sessions.
    fn may_grow(&self) -> bool {
        self.0.discovered && !self.0.is_limited.load(Ordering::Relaxed)
    }

    /// Keeps only the first nodes that the spread allows, in the order of the list.
    ///
    /// # Errors
    /// [`ConnectionError::TooFewNodes`] if there are fewer.
    fn limit_to(&self, wanted: u32) -> Result<(), ConnectionError> {
        let mut entries = self.entries();
        let mut usable = self.homes_of(&entries, |_| true);
        let count = usize::try_from(wanted).unwrap_or(usize::MAX);
        if usable.len() < count {
            let (nodes, usable) = (entries.len(), usable.len());
            return Err(ConnectionError::TooFewNodes { wanted, nodes, usable });
        }
        usable.truncate(count);
        let mut positions = 0..;
        entries.retain(|_| positions.next().is_some_and(|position| usable.contains(&position)));
        self.0.is_limited.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Returns the numbers of the nodes that the spread allows and `filter` accepts, with the best
    /// priority among these.
    fn homes_of(&self, entries: &[Entry], filter: impl Fn(&Entry) -> bool) -> Vec<usize> {
        let matches = |entry: &Entry| {
            let role = match self.0.spread {
                Spread::Primary => entry.node.role == Role::Primary,
                Spread::Replica => entry.node.role == Role::Replica,
                // A standby rejects writes; a read replica of YugabyteDB forwards them.
                _ => self.0.discovered || !self.0.writes || entry.node.role == Role::Primary,
            };
            role && entry.member && filter(entry)
        };
        let priority = |entry: &Entry| entry.node.priority(&self.0.spread);
        let best = entries.iter().filter(|entry| matches(entry)).map(priority).min();
        (0..)
            .zip(entries)
            .filter(|(_, entry)| matches(entry) && Some(priority(entry)) == best)
            .map(|(position, _)| position)
            .collect()
    }

    /// Chooses the node for the session with this number, and counts the session on it: the home node if it is
    /// available, otherwise the node with the fewest sessions. If no node is available, chooses the node that failed
    /// first.
    pub fn choose(&self, session: u64) -> Choice {
        if self.0.spread == Spread::Off {
            return Choice { node: self.next(session), conninfo: self.0.conninfo.clone() };
        }
        let mut entries = self.entries();
        let node = self.next_of(&entries, session);
        let conninfo = match entries.get_mut(node) {
            Some(entry) => {
                entry.sessions += 1;
                entry.node.conninfo.clone()
            }
            None => self.0.conninfo.clone(),
        };
        Choice { node, conninfo }
    }

    /// Returns the node that [`Self::choose`] would choose now, without counting the session.
    pub fn next(&self, session: u64) -> usize {
        match self.0.spread {
            // libpq's rules choose one of them, which is known when the session is open.
            Spread::Off if self.0.by_address => UNKNOWN_NODE,
            Spread::Off => 0,
            _ => self.next_of(&self.entries(), session),
        }
    }

    fn next_of(&self, entries: &[Entry], session: u64) -> usize {
        let live = self.homes_of(entries, |entry| entry.failed_at.is_none());
        let load = |entries: &[Entry], position: usize| {
            entries.get(position).map_or(u64::MAX, |entry| match self.0.spread {
                Spread::LeastConnections => entry.sessions + entry.node.connections,
                _ => entry.sessions,
            })
        };
        let home = self.home_in(entries, session).filter(|home| live.contains(home));
        let least =
            live.iter().copied().min_by_key(|&position| (load(entries, position), position));
        let first_failed = || {
            let all = self.homes_of(entries, |_| true);
            all.into_iter().min_by_key(|&position| entries.get(position).and_then(|e| e.failed_at))
        };
        let chosen = match self.0.spread {
            Spread::LeastConnections => least,
            _ => home.or(least),
        };
        chosen.or_else(first_failed).unwrap_or(0)
    }

    fn home_in(&self, entries: &[Entry], session: u64) -> Option<usize> {
        let homes = self.homes_of(entries, |_| true);
        let position = session % (homes.len() as u64).max(1);
        homes.get(usize::try_from(position).ok()?).copied()
    }

    /// Returns the node of an open session. Queries the server's address if the connection settings do
    /// not determine the node; [`UNKNOWN_NODE`] if the address belongs to no known node.
    ///
    /// # Errors
    /// [`ConnectionError`] if the query fails.
    pub fn node_of(
        &self,
        connection: &mut Connection,
        chosen: usize,
    ) -> Result<usize, ConnectionError> {
        if !self.0.by_address {
            return Ok(chosen);
        }
        let rows = connection.query("select host(inet_server_addr()), inet_server_port()")?;
        let address = |row: &[Option<String>]| match row {
            [Some(host), Some(port)] => {
                Some(SocketAddr::new(host.parse().ok()?, port.parse().ok()?))
            }
            _ => None,
        };
        let address = address(&rows.concat());
        let has_address =
            |entry: &Entry| address.is_some_and(|address| entry.node.addresses.contains(&address));
        Ok(self.entries().iter().position(has_address).unwrap_or(UNKNOWN_NODE))
    }

    /// Returns whether the home node of a session on `node` is available and is another node.
    pub fn should_move(&self, session: u64, node: usize) -> bool {
        let entries = self.entries();
        let home = self.home_in(&entries, session);
        self.0.spread != Spread::LeastConnections
            && home.is_some_and(|home| {
                home != node && entries.get(home).is_some_and(|entry| entry.failed_at.is_none())
            })
    }

    /// Records that a session on a node was closed.
    pub fn session_closed(&self, node: usize) {
        if let Some(entry) = self.entries().get_mut(node) {
            entry.sessions = entry.sessions.saturating_sub(1);
        }
    }

    /// Records that a session could not be opened on a node.
    pub fn failed(&self, node: usize) {
        self.session_closed(node);
        self.mark_failed(node);
        self.0.refresh_requested.store(true, Ordering::Relaxed);
    }

    fn mark_failed(&self, node: usize) {
        if let Some(entry) = self.entries().get_mut(node) {
            entry.failed_at = Some(Instant::now());
        }
    }
}

impl fmt::Display for Nodes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> =
            self.entries().iter().map(|entry| entry.node.name.clone()).collect();
        formatter.write_str(&names.join(", "))
    }
}

#[cfg(test)]
mod tests;
