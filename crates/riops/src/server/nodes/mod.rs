//! The nodes of a cluster: which there are, which live, and which session goes to which.
//!
//! Nodes are the servers that the connection settings name, or those of `yb_servers()`. The spread is
//! deterministic: a session's home is its number modulo nodes, and only where that one does not answer
//! does it go elsewhere. Touched when connections are made, never for a transaction.

mod keeper;
mod look;

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::connection::{Connection, ConnectionError};
use super::conninfo::{ConnInfo, Host};
use crate::plan::Spread;
pub use look::Discovery;

/// A node that did not answer is left out this long, as by the vendor's drivers.
const LEFT_OUT: Duration = Duration::from_secs(5);
/// The number of no node.
pub const NOWHERE: usize = usize::MAX;
/// Nodes that may join while a stage runs and still be counted.
const JOINING_MAX: usize = 4;

/// What a node is for.
// Records store these spellings: each is a name of its own, which does not change with the variant's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Role {
    /// It takes writes.
    #[serde(rename = "primary")]
    Primary,
    /// It answers reads: a standby, or a read replica.
    #[serde(rename = "replica")]
    Replica,
}

/// One node.
#[derive(Debug, Clone)]
pub struct Node {
    /// How it is reached.
    conninfo: ConnInfo,
    /// Its addresses, where only they tell which node a session is on.
    addresses: Vec<SocketAddr>,
    /// Whether the spread lets sessions go to it.
    pub allowed: bool,
    /// Whether it did not answer when somebody tried last.
    pub down: bool,
    /// Host and port.
    pub name: String,
    /// Host alone.
    pub host: String,
    /// What it is for.
    pub role: Role,
    /// `cloud.region.zone`, where the cluster says so.
    pub placement: Option<String>,
    /// Connections that it had when somebody looked.
    connections: u64,
    /// Which database cluster it belongs to, where it says so.
    system: Option<String>,
}

impl Node {
    fn of(conninfo: ConnInfo, role: Role) -> Self {
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
        let mut parts = self.placement.as_deref().unwrap_or("").split('.');
        let mut part = || parts.next().unwrap_or("");
        spread.priority((part(), part(), part()))
    }
}

#[derive(Debug, Clone)]
struct Entry {
    node: Node,
    /// When it did not answer last.
    failed_at: Option<Instant>,
    /// Whether the cluster still names it.
    member: bool,
    /// Sessions of riops on it.
    sessions: u64,
}

#[derive(Debug)]
struct Inner {
    /// As they were given.
    conninfo: ConnInfo,
    spread: Spread,
    /// Whether the sessions change rows.
    writes: bool,
    /// Whether the nodes are those of `yb_servers()`.
    discovered: bool,
    /// Whether sessions go wherever the settings lead, and say afterwards where they are.
    by_address: bool,
    entries: Mutex<Vec<Entry>>,
    /// Counts the returns and arrivals of nodes.
    changes: AtomicU64,
    refresh_wanted: AtomicBool,
}

/// All nodes of a target. Cheap to clone: all clones are one.
#[derive(Debug, Clone)]
pub struct Nodes(Arc<Inner>);

/// Where a session goes.
#[derive(Debug, Clone)]
pub struct Choice {
    /// The node's number, from 0.
    pub node: usize,
    /// How it is reached.
    pub conninfo: ConnInfo,
}

impl Nodes {
    /// One target that is taken as it is, wherever its settings lead.
    #[must_use]
    pub fn single(conninfo: &ConnInfo) -> Self {
        let node = Node { name: conninfo.address(), ..Node::of(conninfo.clone(), Role::Primary) };
        Self::of(conninfo, Spread::Off, (false, false), vec![node])
    }

    fn of(
        conninfo: &ConnInfo,
        spread: Spread,
        (writes, discovered): (bool, bool),
        nodes: Vec<Node>,
    ) -> Self {
        let entry = |node| Entry { node, failed_at: None, member: true, sessions: 0 };
        Self(Arc::new(Inner {
            conninfo: conninfo.clone(),
            by_address: spread == Spread::Off && nodes.len() > 1,
            spread,
            writes,
            discovered,
            entries: Mutex::new(nodes.into_iter().map(entry).collect()),
            changes: AtomicU64::new(0),
            refresh_wanted: AtomicBool::new(false),
        }))
    }

    fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        // Nothing panics while it holds the lock.
        self.0.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether they were found by `yb_servers()`.
    #[must_use]
    pub fn are_discovered(&self) -> bool {
        self.0.discovered
    }

    /// Which session goes where.
    #[must_use]
    pub fn spread(&self) -> &Spread {
        &self.0.spread
    }

    /// The nodes, in the order of their numbers.
    #[must_use]
    pub fn list(&self) -> Vec<Node> {
        let allowed = self.allowed();
        (0..)
            .zip(self.entries().iter())
            .map(|(number, entry)| Node {
                allowed: allowed.contains(&number),
                down: entry.failed_at.is_some(),
                ..entry.node.clone()
            })
            .collect()
    }

    /// Numbers of the nodes that sessions may go to, whether they answer or not.
    #[must_use]
    pub fn allowed(&self) -> Vec<usize> {
        let entries = self.entries();
        match self.0.spread {
            Spread::Off => (0..entries.len()).collect(),
            _ => self.homes_of(&entries, |_| true),
        }
    }

    /// Forgets where the sessions of the stage before were, and tries nodes again that failed in it.
    pub fn begin_stage(&self) {
        for entry in self.entries().iter_mut() {
            entry.sessions = 0;
            entry.failed_at = entry.failed_at.filter(|at| at.elapsed() < LEFT_OUT);
        }
    }

    /// How many there are, and may be while a stage runs.
    #[must_use]
    pub fn most(&self) -> usize {
        let known = self.entries().len();
        if self.0.discovered { known + JOINING_MAX } else { known }
    }

    /// Numbers of the nodes that the spread allows, those of the first priority.
    fn homes_of(&self, entries: &[Entry], also: impl Fn(&Entry) -> bool) -> Vec<usize> {
        let fits = |entry: &Entry| {
            let role = match self.0.spread {
                Spread::Primary => entry.node.role == Role::Primary,
                Spread::Replica => entry.node.role == Role::Replica,
                // A standby refuses writes; a read replica of YugabyteDB passes them on.
                _ => self.0.discovered || !self.0.writes || entry.node.role == Role::Primary,
            };
            role && entry.member && also(entry)
        };
        let priority = |entry: &Entry| entry.node.priority(&self.0.spread);
        let best = entries.iter().filter(|entry| fits(entry)).map(priority).min();
        (0..)
            .zip(entries)
            .filter(|(_, entry)| fits(entry) && Some(priority(entry)) == best)
            .map(|(number, _)| number)
            .collect()
    }

    /// Where the session of this number goes now; it counts as being there. Home where that answers,
    /// else the node with the fewest sessions; where none answers, the one that failed first is
    /// tried again.
    #[must_use]
    pub fn choose(&self, session: u64) -> Choice {
        if self.0.spread == Spread::Off {
            return Choice { node: 0, conninfo: self.0.conninfo.clone() };
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

    /// Where [`Self::choose`] would send the session now.
    #[must_use]
    pub fn next(&self, session: u64) -> usize {
        match self.0.spread {
            Spread::Off => 0,
            _ => self.next_of(&self.entries(), session),
        }
    }

    fn next_of(&self, entries: &[Entry], session: u64) -> usize {
        let live = self.homes_of(entries, |entry| entry.failed_at.is_none());
        let load = |entries: &[Entry], number: usize| {
            entries.get(number).map_or(u64::MAX, |entry| match self.0.spread {
                Spread::LeastConnections => entry.sessions + entry.node.connections,
                _ => entry.sessions,
            })
        };
        let home = self.home_in(entries, session).filter(|home| live.contains(home));
        let least = live.iter().copied().min_by_key(|&number| (load(entries, number), number));
        let first_failed = || {
            let all = self.homes_of(entries, |_| true);
            all.into_iter().min_by_key(|&number| entries.get(number).and_then(|e| e.failed_at))
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

    /// The node that a session has come to, where only the server itself can say so; [`NOWHERE`] where
    /// it is none of those that are known.
    ///
    /// # Errors
    /// [`ConnectionError`]
    pub fn node_of(
        &self,
        connection: &mut Connection,
        chosen: usize,
    ) -> Result<usize, ConnectionError> {
        if !self.0.by_address {
            return Ok(chosen);
        }
        let rows = connection.query("select host(inet_server_addr()), inet_server_port()")?;
        let address = match rows.concat().as_slice() {
            [Some(host), Some(port)] => host
                .parse()
                .ok()
                .zip(port.parse().ok())
                .map(|(host, port)| SocketAddr::new(host, port)),
            _ => None,
        };
        let is_there =
            |entry: &Entry| address.is_some_and(|address| entry.node.addresses.contains(&address));
        Ok(self.entries().iter().position(is_there).unwrap_or(NOWHERE))
    }

    /// Whether a session that is on `node` has a home that answers and is another one.
    #[must_use]
    pub fn should_move(&self, session: u64, node: usize) -> bool {
        let entries = self.entries();
        let home = self.home_in(&entries, session);
        self.0.spread != Spread::LeastConnections
            && home.is_some_and(|home| {
                home != node && entries.get(home).is_some_and(|entry| entry.failed_at.is_none())
            })
    }

    /// A session has left a node.
    pub fn left(&self, node: usize) {
        if let Some(entry) = self.entries().get_mut(node) {
            entry.sessions = entry.sessions.saturating_sub(1);
        }
    }

    /// A session that was to go to a node could not.
    pub fn failed(&self, node: usize) {
        self.left(node);
        self.mark_failed(node);
        self.0.refresh_wanted.store(true, Ordering::Relaxed);
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
