//! Discovers the nodes, from the connection settings or from the cluster, and probes them.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::time::{Duration, Instant};

use super::{Node, Nodes, Role};
use crate::host::Interrupt;
use crate::plan::Spread;
use crate::server::connection::{Connection, ConnectionError};
use crate::server::conninfo::{ConnInfo, Host, Server};

/// Timeout for probing a node.
pub(super) const PROBE_TIMEOUT: Duration = Duration::from_secs(3);
/// Timeout for reading the list of nodes.
const LIST_TIMEOUT: Duration = Duration::from_secs(10);

/// The result of a discovery.
#[derive(Debug)]
pub struct Discovery {
    /// The nodes.
    pub nodes: Nodes,
    /// Warnings for the user.
    pub warnings: Vec<String>,
}

impl Nodes {
    /// Discovers the nodes through an open connection: those of `yb_servers()` if the server has this
    /// function, otherwise the servers of the settings. Probes each node; unavailable nodes are excluded
    /// temporarily. With `limit`, only the first nodes that the spread allows are used.
    ///
    /// # Errors
    /// [`ConnectionError`] if the list cannot be read, if no node matches the spread, or if there are fewer nodes
    /// than `limit`.
    pub fn discover(
        control: &mut Connection,
        conninfo: &ConnInfo,
        (spread, limit): (&Spread, Option<u32>),
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
            Self::require_one(limit)?;
            return single(Vec::new());
        }
        let (nodes, answered, mut warnings) = probe_all(nodes, discovered, interrupt);
        let mut databases: Vec<&String> =
            nodes.iter().filter_map(|node| node.system.as_ref()).collect();
        databases.sort_unstable();
        databases.dedup();
        if databases.len() > 1 && !discovered {
            warnings.push(
                "the hosts belong to different database clusters, but riops checks and verifies the data of only one of them; measure each of them separately, or use --spread off".to_owned(),
            );
        }
        if answered.iter().all(|answered| !answered) {
            warnings.push(format!(
                "cannot connect to any of the nodes that the cluster lists: all sessions connect to {}",
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
            && spread_over.list().iter().all(|node| node.priority(spread) == Spread::UNLISTED)
        {
            warnings.push(format!("no node matches --spread {spread}: all nodes are used equally"));
        }
        if spread_over.allowed().is_empty() {
            return Err(ConnectionError::NoNode(spread.to_string()));
        }
        if let Some(limit) = limit {
            spread_over.limit_to(limit)?;
        }
        Ok(Discovery { nodes: spread_over, warnings })
    }

    /// Checks the number of nodes that a run uses on a server with one node.
    ///
    /// # Errors
    /// [`ConnectionError::TooFewNodes`] if it is larger than 1.
    pub fn require_one(limit: Option<u32>) -> Result<(), ConnectionError> {
        match limit.filter(|&wanted| wanted > 1) {
            Some(wanted) => Err(ConnectionError::TooFewNodes { wanted, found: 1, usable: 1 }),
            None => Ok(()),
        }
    }
}

/// Connects to a node and returns its role and system identifier.
pub(super) fn probe(
    conninfo: &ConnInfo,
    interrupt: &Interrupt,
) -> Result<(Role, Option<String>), ConnectionError> {
    let mut connection = Connection::open(&with_probe_timeout(conninfo), interrupt)?;
    connection.set_deadline(Some(Instant::now() + PROBE_TIMEOUT));
    // PostgreSQL 14 and later report this parameter at connect.
    let reported = connection.session_info().parameter("in_hot_standby").map(|value| value == "on");
    let standby = match reported {
        Some(standby) => standby,
        None => connection.query_value("select pg_is_in_recovery()")?.as_deref() == Some("t"),
    };
    // A standby has the identifier of its primary. The function may be missing or not permitted.
    let system = connection.query_value("select system_identifier from pg_control_system()");
    let role = if standby { Role::Replica } else { Role::Primary };
    Ok((role, system.ok().flatten()))
}

/// Returns the same settings with a connection timeout of at most [`PROBE_TIMEOUT`].
pub(super) fn with_probe_timeout(conninfo: &ConnInfo) -> ConnInfo {
    let mut limited = conninfo.clone();
    limited.connect_timeout = limited.connect_timeout.min(PROBE_TIMEOUT);
    limited
}

/// Probes all nodes in parallel. Returns the nodes with their roles, whether each is available, and
/// warnings about unavailable nodes.
pub(super) fn probe_all(
    mut nodes: Vec<Node>,
    discovered: bool,
    interrupt: &Interrupt,
) -> (Vec<Node>, Vec<bool>, Vec<String>) {
    let probes: Vec<Result<(Role, Option<String>), ConnectionError>> =
        std::thread::scope(|scope| {
            let threads: Vec<_> =
                nodes.iter().map(|node| scope.spawn(|| probe(&node.conninfo, interrupt))).collect();
            let panicked =
                || Err(ConnectionError::Protocol("the probe thread panicked".to_owned()));
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| panicked())).collect()
        });
    let mut warnings = Vec::new();
    let mut answered = Vec::new();
    for (node, probe) in nodes.iter_mut().zip(probes) {
        answered.push(probe.is_ok());
        match probe {
            // For discovered nodes, the role from `yb_servers()` takes precedence.
            Ok((role, system)) if !discovered => (node.role, node.system) = (role, system),
            Ok(_) => {}
            Err(error) => {
                warnings.push(format!(
                    "node {} is unavailable and gets no sessions for now: {error}",
                    node.name
                ));
            }
        }
    }
    (nodes, answered, warnings)
}

/// Returns the nodes of `yb_servers()`; `None` if the server does not have this function.
pub(super) fn listed(
    control: &mut Connection,
    conninfo: &ConnInfo,
) -> Result<Option<Vec<Node>>, ConnectionError> {
    let function =
        "select 1 from pg_proc where proname = 'yb_servers' and pg_function_is_visible(oid)";
    if control.query_value(function)?.is_none() {
        return Ok(None);
    }
    control.set_deadline(Some(Instant::now() + LIST_TIMEOUT));
    let rows = control.query(
        "select host, port, num_connections, node_type, cloud, region, zone, public_ip
           from yb_servers() order by cloud, region, zone, host, port",
    );
    control.set_deadline(None);
    let rows = match rows {
        // An unrelated function of the same name.
        Err(ConnectionError::Server(_)) => return Ok(None),
        rows => rows?,
    };
    let field = |row: &[Option<String>], number: usize| {
        row.get(number).cloned().flatten().unwrap_or_default()
    };
    // If the user connected to a public address, use the public addresses of all nodes.
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

impl ConnInfo {
    /// Returns the IP addresses of all servers whose names can be resolved.
    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
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

    /// Returns the settings for each server separately.
    pub(super) fn each_server(&self) -> impl Iterator<Item = Self> {
        self.servers.iter().map(|server| {
            let mut alone = self.clone();
            alone.servers = vec![server.clone()];
            alone.load_balance = false;
            alone
        })
    }

    /// Returns whether one of the servers has this name or address.
    pub(super) fn names(&self, host: &str) -> bool {
        !host.is_empty()
            && self.servers.iter().any(|server| {
                server.host == Host::Tcp(host.to_owned())
                    || server
                        .address
                        .is_some_and(|address| host.parse() == Ok::<IpAddr, _>(address))
            })
    }
}
