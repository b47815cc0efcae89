//! The nodes of a cluster: which there are, which live, and which session goes to which.
//!
//! Nodes are the servers that the connection settings name, or those of `yb_servers()`. The spread is
//! deterministic: a session's home is its number modulo nodes, and only where that one does not answer
//! does it go elsewhere. Touched when connections are made, never for a transaction.

use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::connection::{Connection, ConnectionError};
use super::conninfo::{ConnInfo, Host, Server};
use super::interrupt::Interrupt;
use crate::plan::Spread;

/// A node that did not answer is left out this long, as by the vendor's drivers.
const LEFT_OUT: Duration = Duration::from_secs(5);
/// How often the list of nodes is read again.
const REFRESH: Duration = Duration::from_mins(5);
/// How long a look at a node may take.
const LOOK_PATIENCE: Duration = Duration::from_secs(3);
/// How long the list of the nodes may take.
const LIST_PATIENCE: Duration = Duration::from_secs(10);
/// How often the keeper of the list looks whether there is something to do.
const KEEPER_LOOK: Duration = Duration::from_millis(100);
/// The number of no node.
pub const NOWHERE: usize = usize::MAX;
/// Nodes that may join while a stage runs and still be counted.
const JOINING_MAX: usize = 4;

/// What a node is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// It takes writes.
    Primary,
    /// It answers reads: a standby, or a read replica.
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

/// The nodes that were found, and what is to be said about them.
#[derive(Debug)]
pub struct Discovery {
    /// The nodes.
    pub nodes: Nodes,
    /// What their user should hear.
    pub warnings: Vec<String>,
}

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

    /// Finds the nodes through an open connection: those of `yb_servers()` where the server has such a
    /// function, else the servers of the settings. Each is looked at; one that does not answer is left
    /// out for the moment.
    ///
    /// # Errors
    /// [`ConnectionError`] where the server cannot be asked, or where no node fits the spread.
    pub fn discover(
        control: &mut Connection,
        conninfo: &ConnInfo,
        spread: &Spread,
        writes: bool,
        interrupt: &Interrupt,
    ) -> Result<Discovery, ConnectionError> {
        let single = |warnings| Ok(Discovery { nodes: Self::single(conninfo), warnings });
        let listed = listed(control, conninfo)?;
        if *spread == Spread::Off {
            return match listed {
                Some(mut nodes) if nodes.len() > 1 => {
                    for node in &mut nodes {
                        node.addresses = node.conninfo.addresses();
                    }
                    let nodes = Self::of(conninfo, Spread::Off, (writes, true), nodes);
                    Ok(Discovery { nodes, warnings: Vec::new() })
                }
                _ => single(Vec::new()),
            };
        }
        let discovered = listed.is_some();
        let nodes = listed.unwrap_or_else(|| {
            conninfo.each_server().map(|each| Node::of(each, Role::Primary)).collect()
        });
        if nodes.len() < 2 && !discovered {
            return single(Vec::new());
        }
        let (nodes, answered, mut warnings) = looked_at(nodes, discovered, interrupt);
        let mut databases: Vec<&String> =
            nodes.iter().filter_map(|node| node.system.as_ref()).collect();
        databases.sort_unstable();
        databases.dedup();
        if databases.len() > 1 && !discovered {
            warnings.push(
                "the hosts are different databases: each has data of its own, and only one of them is looked at and proved; measure each by itself, or say --spread off".to_owned(),
            );
        }
        if answered.iter().all(|answered| !answered) {
            warnings.push(format!(
                "none of the nodes that the cluster names can be reached from here: all sessions go to {}",
                conninfo.address()
            ));
            return single(warnings);
        }
        let spread_over = Self::of(conninfo, spread.clone(), (writes, discovered), nodes);
        for (node, answered) in answered.iter().enumerate() {
            if !answered {
                spread_over.mark_failed(node);
            }
        }
        if let Spread::Topology(_) = spread
            && spread_over.list().iter().all(|node| node.priority(spread) == Spread::REST)
        {
            warnings
                .push(format!("no node stands where --spread {spread} says: all are used alike"));
        }
        if spread_over.allowed().is_empty() {
            return Err(ConnectionError::NoNode(spread.to_string()));
        }
        Ok(Discovery { nodes: spread_over, warnings })
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
        let live = self.homes_of(&entries, |entry| entry.failed_at.is_none());
        let load = |entries: &[Entry], number: usize| {
            entries.get(number).map_or(u64::MAX, |entry| match self.0.spread {
                Spread::LeastConnections => entry.sessions + entry.node.connections,
                _ => entry.sessions,
            })
        };
        let home = self.home_in(&entries, session).filter(|home| live.contains(home));
        let least = live.iter().copied().min_by_key(|&number| (load(&entries, number), number));
        let first_failed = || {
            let all = self.homes_of(&entries, |_| true);
            all.into_iter().min_by_key(|&number| entries.get(number).and_then(|e| e.failed_at))
        };
        let chosen = match self.0.spread {
            Spread::LeastConnections => least,
            _ => home.or(least),
        };
        let node = chosen.or_else(first_failed).unwrap_or(0);
        let conninfo = match entries.get_mut(node) {
            Some(entry) => {
                entry.sessions += 1;
                entry.node.conninfo.clone()
            }
            None => self.0.conninfo.clone(),
        };
        Choice { node, conninfo }
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

    /// Changes whenever a node has come back or joined.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.0.changes.load(Ordering::Relaxed)
    }

    /// Whether there is anything to keep up with.
    #[must_use]
    pub fn need_a_keeper(&self) -> bool {
        self.0.spread != Spread::Off
    }

    /// Watches over the list until `over`: nodes that failed are tried again, the cluster is asked for
    /// its nodes from time to time and after errors. `changed` is called when a node has come.
    pub fn keep(&self, over: &Interrupt, changed: &dyn Fn()) {
        let mut refreshed = Instant::now();
        while !over.requested() {
            std::thread::sleep(KEEPER_LOOK);
            let before = self.changes();
            self.try_failed_again(over);
            let wanted = self.0.refresh_wanted.load(Ordering::Relaxed);
            let wait = if wanted { LEFT_OUT } else { REFRESH };
            if refreshed.elapsed() >= wait {
                self.0.refresh_wanted.store(false, Ordering::Relaxed);
                refreshed = Instant::now();
                if self.0.discovered {
                    self.refresh(over);
                } else {
                    self.look_at_all(over);
                }
            }
            if self.changes() != before {
                changed();
            }
        }
    }

    fn try_failed_again(&self, over: &Interrupt) {
        let due: Vec<(usize, ConnInfo)> = {
            let entries = self.entries();
            let due = |entry: &Entry| entry.failed_at.is_some_and(|at| at.elapsed() >= LEFT_OUT);
            (0..)
                .zip(entries.iter())
                .filter(|(_, entry)| due(entry))
                .map(|(number, entry)| (number, entry.node.conninfo.clone()))
                .collect()
        };
        for (number, conninfo) in due {
            self.look_at(number, &conninfo, over);
        }
    }

    /// Looks at one node, and keeps what is seen: a standby that was promoted takes writes.
    fn look_at(&self, number: usize, conninfo: &ConnInfo, over: &Interrupt) {
        let look = look(conninfo, over);
        if let Some(entry) = self.entries().get_mut(number) {
            let before = (entry.failed_at.is_some(), entry.node.role);
            entry.failed_at = look.is_err().then(Instant::now);
            if let Ok((role, _)) = look
                && !self.0.discovered
            {
                entry.node.role = role;
            }
            if look_is_news(before, (entry.failed_at.is_some(), entry.node.role)) {
                self.0.changes.fetch_add(1, Ordering::Relaxed);
            }
            // Where it has come back the cluster may not have named it for a while.
            if before.0 && entry.failed_at.is_none() {
                self.0.refresh_wanted.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Looks at the nodes that were named by hand: roles may have changed hands.
    fn look_at_all(&self, over: &Interrupt) {
        for (number, node) in self.live() {
            self.look_at(number, &node, over);
        }
    }

    fn live(&self) -> Vec<(usize, ConnInfo)> {
        (0..)
            .zip(self.entries().iter())
            .filter(|(_, entry)| entry.member && entry.failed_at.is_none())
            .map(|(number, entry)| (number, entry.node.conninfo.clone()))
            .collect()
    }

    /// Asks a node that answers for all of them. Who is not named any more gets no further sessions.
    fn refresh(&self, over: &Interrupt) {
        let ask = |conninfo: &ConnInfo| {
            let mut connection = Connection::open(&quick(conninfo), over)?;
            connection.set_deadline(Some(Instant::now() + LOOK_PATIENCE));
            listed(&mut connection, &self.0.conninfo)
        };
        let mut found = None;
        for (number, conninfo) in self.live() {
            match ask(&conninfo) {
                Ok(listed) => {
                    found = listed;
                    break;
                }
                Err(_) => self.mark_failed(number),
            }
        }
        let Some(found) = found else {
            return;
        };
        let mut entries = self.entries();
        for entry in entries.iter_mut() {
            let member = found.iter().any(|node| node.name == entry.node.name);
            if member && !entry.member {
                self.0.changes.fetch_add(1, Ordering::Relaxed);
            }
            entry.member = member;
        }
        for node in found {
            if let Some(known) = entries.iter_mut().find(|entry| entry.node.name == node.name) {
                known.node.connections = node.connections;
            } else {
                entries.push(Entry { node, failed_at: None, member: true, sessions: 0 });
                self.0.changes.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// A connection that shows that a node answers, and what it is.
fn look(
    conninfo: &ConnInfo,
    interrupt: &Interrupt,
) -> Result<(Role, Option<String>), ConnectionError> {
    let mut connection = Connection::open(&quick(conninfo), interrupt)?;
    connection.set_deadline(Some(Instant::now() + LOOK_PATIENCE));
    // Servers from 14 on say it at connect.
    let told = connection.greeting().parameter("in_hot_standby").map(|value| value == "on");
    let standby = match told {
        Some(standby) => standby,
        None => connection.query_value("select pg_is_in_recovery()")?.as_deref() == Some("t"),
    };
    // Standbys have that of their primary. Not everybody tells.
    let system = connection.query_value("select system_identifier from pg_control_system()");
    let role = if standby { Role::Replica } else { Role::Primary };
    Ok((role, system.ok().flatten()))
}

/// Whether sessions may want to move: a node has come back, or another one takes writes.
fn look_is_news(before: (bool, Role), after: (bool, Role)) -> bool {
    (before.0 && !after.0) || before.1 != after.1
}

/// The same settings with little patience.
fn quick(conninfo: &ConnInfo) -> ConnInfo {
    let mut quick = conninfo.clone();
    quick.connect_timeout = quick.connect_timeout.min(LOOK_PATIENCE);
    quick
}

/// The nodes with their roles, which of them answer, and a word about those that do not.
fn looked_at(
    mut nodes: Vec<Node>,
    discovered: bool,
    interrupt: &Interrupt,
) -> (Vec<Node>, Vec<bool>, Vec<String>) {
    let looks: Vec<Result<(Role, Option<String>), ConnectionError>> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            nodes.iter().map(|node| scope.spawn(|| look(&node.conninfo, interrupt))).collect();
        let lost = || Err(ConnectionError::Protocol("a look at a node was lost".to_owned()));
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| lost())).collect()
    });
    let mut warnings = Vec::new();
    let mut answered = Vec::new();
    for (node, look) in nodes.iter_mut().zip(looks) {
        answered.push(look.is_ok());
        match look {
            // The cluster's own word counts for more.
            Ok((role, system)) if !discovered => (node.role, node.system) = (role, system),
            Ok(_) => {}
            Err(error) => {
                warnings.push(format!("node {} gets no sessions for now: {error}", node.name));
            }
        }
    }
    (nodes, answered, warnings)
}

/// The nodes that the server names; `None` where it has no such function.
fn listed(
    control: &mut Connection,
    conninfo: &ConnInfo,
) -> Result<Option<Vec<Node>>, ConnectionError> {
    let function =
        "select 1 from pg_proc where proname = 'yb_servers' and pg_function_is_visible(oid)";
    if control.query_value(function)?.is_none() {
        return Ok(None);
    }
    control.set_deadline(Some(Instant::now() + LIST_PATIENCE));
    let rows = control.query(
        "select host, port, num_connections, node_type, cloud, region, zone, public_ip
           from yb_servers() order by cloud, region, zone, host, port",
    );
    control.set_deadline(None);
    let rows = match rows {
        // Somebody else's function of that name.
        Err(ConnectionError::Server(_)) => return Ok(None),
        rows => rows?,
    };
    let field = |row: &[Option<String>], number: usize| {
        row.get(number).cloned().flatten().unwrap_or_default()
    };
    // Whoever came by a public address goes on by public addresses.
    let public = rows.iter().any(|row| conninfo.names(&field(row, 7)));
    let node = |row: Vec<Option<String>>| {
        let host = field(&row, if public { 7 } else { 0 });
        let role = match field(&row, 3).as_str() {
            "read_replica" => Role::Replica,
            _ => Role::Primary,
        };
        let port = field(&row, 1).parse().ok()?;
        let place = format!("{}.{}.{}", field(&row, 4), field(&row, 5), field(&row, 6));
        Some(Node {
            placement: (place != "..").then_some(place),
            connections: field(&row, 2).parse().unwrap_or(0),
            ..Node::of(conninfo.at(&host, port), role)
        })
    };
    Ok(Some(rows.into_iter().filter_map(node).collect()))
}

impl fmt::Display for Nodes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> =
            self.entries().iter().map(|entry| entry.node.name.clone()).collect();
        formatter.write_str(&names.join(", "))
    }
}

impl ConnInfo {
    /// The addresses of all servers, as far as their names are known.
    fn addresses(&self) -> Vec<SocketAddr> {
        let of = |server: &Server| -> Vec<SocketAddr> {
            match (&server.host, server.address) {
                (_, Some(address)) => vec![SocketAddr::new(address, server.port)],
                (Host::Tcp(host), None) => (host.as_str(), server.port)
                    .to_socket_addrs()
                    .map_or_else(|_| Vec::new(), Iterator::collect),
                (Host::Unix(_), None) => Vec::new(),
            }
        };
        self.servers.iter().flat_map(of).collect()
    }

    /// The same settings for each of the servers alone.
    fn each_server(&self) -> impl Iterator<Item = Self> {
        self.servers.iter().map(|server| {
            let mut alone = self.clone();
            alone.servers = vec![server.clone()];
            alone.load_balance = false;
            alone
        })
    }

    /// Whether one of the servers has this name or address.
    fn names(&self, host: &str) -> bool {
        !host.is_empty()
            && self.servers.iter().any(|server| {
                server.host == Host::Tcp(host.to_owned())
                    || server
                        .address
                        .is_some_and(|address| host.parse() == Ok::<IpAddr, _>(address))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nodes a, b, c in zones a, b, c, which nobody has looked at.
    fn nodes(spread: &str, roles: [Role; 3], writes: bool, discovered: bool) -> Nodes {
        let text = "host=a,b,c port=5433 user=u dbname=d sslmode=disable";
        let info = ConnInfo::parse(text, |_| None).unwrap();
        let zones = ["a", "b", "c"];
        let list = info
            .each_server()
            .zip(roles)
            .zip(zones)
            .map(|((each, role), zone)| Node {
                placement: Some(format!("aws.eu.{zone}")),
                connections: u64::from(zone == "a") * 100,
                ..Node::of(each, role)
            })
            .collect();
        Nodes::of(&info, spread.parse().unwrap(), (writes, discovered), list)
    }

    const ALL: [Role; 3] = [Role::Primary; 3];

    fn chosen(nodes: &Nodes, sessions: std::ops::Range<u64>) -> Vec<usize> {
        sessions.map(|session| nodes.choose(session).node).collect()
    }

    #[test]
    fn nine_sessions_are_spread_three_three_three_whatever_their_order() {
        let nodes = nodes("round-robin", ALL, true, false);
        assert_eq!(chosen(&nodes, 0..9), [0, 1, 2, 0, 1, 2, 0, 1, 2]);
        assert_eq!(nodes.choose(7).conninfo.servers[0].to_string(), "b:5433");
    }

    #[test]
    fn sessions_of_a_node_that_fails_are_spread_over_the_others_and_may_come_home() {
        let nodes = nodes("round-robin", ALL, true, false);
        chosen(&nodes, 0..9);
        for session in [1, 4, 7] {
            nodes.left(1);
            let home = nodes.choose(session);
            if session == 1 {
                assert_eq!(home.node, 1);
                nodes.failed(1);
            } else {
                nodes.left(home.node);
            }
        }
        assert_eq!(chosen(&nodes, 1..2), [0]);
        assert_eq!([nodes.choose(4).node, nodes.choose(7).node], [2, 0]);
        assert!(!nodes.should_move(1, 0));
        nodes.entries()[1].failed_at = None;
        assert!(nodes.should_move(1, 0) && !nodes.should_move(0, 0) && !nodes.should_move(1, 1));
    }

    #[test]
    fn where_no_node_answers_the_one_that_failed_first_is_tried_again() {
        let nodes = nodes("round-robin", ALL, true, false);
        for node in [2, 0, 1] {
            assert!(nodes.choose(0).node < 3);
            nodes.failed(node);
        }
        assert_eq!(nodes.choose(5).node, 2);
    }

    #[test]
    fn the_first_priority_with_a_node_that_answers_is_used() {
        let nodes = nodes("topology:aws.eu.b:1,aws.eu.c:2", ALL, true, true);
        assert_eq!(chosen(&nodes, 0..3), [1, 1, 1]);
        nodes.failed(1);
        assert_eq!(nodes.choose(0).node, 2);
        nodes.failed(2);
        assert_eq!(nodes.choose(0).node, 0, "then the rest of the cluster");
    }

    #[test]
    fn roles_decide_where_the_spread_or_the_work_wants_them_to() {
        let roles = [Role::Replica, Role::Primary, Role::Replica];
        let of =
            |spread, writes, discovered| chosen(&nodes(spread, roles, writes, discovered), 0..4);
        assert_eq!(of("primary", false, true), [1, 1, 1, 1]);
        assert_eq!(of("replica", false, true), [0, 2, 0, 2]);
        assert_eq!(of("round-robin", true, false), [1, 1, 1, 1], "a standby refuses writes");
        assert_eq!(of("round-robin", true, true), [0, 1, 2, 0], "a read replica passes them on");
        assert_eq!(of("round-robin", false, false), [0, 1, 2, 0]);
    }

    #[test]
    fn the_fewest_connections_win_where_that_is_wanted() {
        let nodes = nodes("least-connections", ALL, true, true);
        assert_eq!(chosen(&nodes, 0..4), [1, 2, 1, 2], "node a has 100 of somebody else's");
        assert!(!nodes.should_move(0, 1));
    }

    #[test]
    fn one_target_is_taken_as_it_is() {
        let info = ConnInfo::parse("host=a,b dbname=d user=u sslmode=disable", |_| None).unwrap();
        let nodes = Nodes::single(&info);
        assert_eq!(nodes.choose(5).conninfo.servers.len(), 2);
        assert!(!nodes.need_a_keeper());
    }
}
