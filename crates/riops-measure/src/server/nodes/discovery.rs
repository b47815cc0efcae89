//! Discovers the nodes, from the connection settings or from the cluster, and probes them.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::{Duration, Instant};

use super::{Node, Nodes};
use crate::host::Interrupt;
use crate::server::capabilities::optional;
use crate::server::connection::{Connection, ConnectionError};
use crate::server::conninfo::{ConnInfo, Host};
use riops_model::plan::Spread;
use riops_model::record::Role;

/// Timeout for probing a node.
const PROBE_TIMEOUT: Duration = Duration::from_secs(3);
/// Timeout for the first probe of a node of YugabyteDB: its first connection reads the whole catalog from another
/// node.
const COLD_PROBE_TIMEOUT: Duration = Duration::from_secs(15);
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
    /// Discovers the nodes through an open connection: from `yb_servers()` if the server has this function, otherwise
    /// from the servers of the settings. Probes each node; unavailable nodes are excluded temporarily. With `limit`,
    /// only the first nodes that the spread allows are used.
    ///
    /// # Errors
    /// [`ConnectionError`] if the list cannot be read, if no node matches the spread, or if there are fewer nodes
    /// than `limit`.
    pub fn discover(
        control: &mut Connection,
        conninfo: &ConnInfo,
        spread: &Spread,
        limit: Option<u32>,
        writes: bool,
        interrupt: &Interrupt,
    ) -> Result<Discovery, ConnectionError> {
        let single = |warnings| Ok(Discovery { nodes: Self::single(conninfo), warnings });
        let listed = listed(control, conninfo)?;
        if *spread == Spread::Off {
            return match listed {
                Some(mut nodes) if nodes.len() > 1 => {
                    for node in &mut nodes {
                        let servers = node.conninfo.servers.iter();
                        let addresses = servers.filter_map(|server| server.addresses().ok());
                        node.addresses = addresses.flatten().collect();
                    }
                    let nodes = Self::new(conninfo, Spread::Off, writes, nodes, true);
                    Ok(Discovery { nodes, warnings: Vec::new() })
                }
                _ => single(Vec::new()),
            };
        }
        let discovered = listed.is_some();
        let nodes = listed.unwrap_or_else(|| {
            conninfo.each_server().map(|server| Node::new(server, Role::Primary)).collect()
        });
        if nodes.len() < 2 && !discovered {
            Self::require_one(limit)?;
            return single(Vec::new());
        }
        let (mut candidates, mut warnings) = probe_all(nodes, discovered, interrupt);
        if *spread == Spread::LeastConnections {
            warnings.extend(count_sessions(&mut candidates));
        }
        let (nodes, answered): (Vec<Node>, Vec<bool>) =
            candidates.into_iter().map(|(node, probed)| (node, probed.is_some())).unzip();
        let databases: BTreeSet<_> = nodes.iter().filter_map(|node| node.system.as_ref()).collect();
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
        let spread_over = Self::new(conninfo, spread.clone(), writes, nodes, discovered);
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
            Some(wanted) => Err(ConnectionError::TooFewNodes { wanted, nodes: 1, usable: 1 }),
            None => Ok(()),
        }
    }
}

/// The properties of a node that accepts connections.
#[derive(Debug)]
pub(super) struct Probed {
    pub(super) role: Role,
    /// System identifier of its database cluster, if it is visible.
    pub(super) system: Option<String>,
    /// Number of client sessions, if they are visible.
    pub(super) sessions: Option<u64>,
}

/// Connects to a node that may be `cold`: that has had no connection yet.
pub(super) fn probe(
    conninfo: &ConnInfo,
    cold: bool,
    interrupt: &Interrupt,
) -> Result<Probed, ConnectionError> {
    let mut connection = open_to_probe(conninfo, cold, interrupt)?;
    let standby = connection.is_standby()?;
    // A standby has the identifier of its primary. The function may be missing or not permitted.
    let system = connection.query_value("select system_identifier from pg_control_system()");
    let sessions = connection
        // Only these columns are visible without a privilege. Background processes have no database.
        .query_value("select count(*) from pg_stat_activity where datid is not null");
    Ok(Probed {
        role: if standby { Role::Replica } else { Role::Primary },
        system: system.ok().flatten(),
        sessions: sessions.ok().flatten().and_then(|count| count.parse().ok()),
    })
}

/// Opens a connection that is used for a short time only.
pub(super) fn open_to_probe(
    conninfo: &ConnInfo,
    cold: bool,
    interrupt: &Interrupt,
) -> Result<Connection, ConnectionError> {
    let limited = limited(conninfo, cold);
    let mut connection = Connection::open(&limited, interrupt)?;
    connection.set_deadline(Some(Instant::now() + limited.connect_timeout));
    Ok(connection)
}

/// Returns the settings with a timeout for short connections.
pub(super) fn limited(conninfo: &ConnInfo, cold: bool) -> ConnInfo {
    let timeout = if cold { COLD_PROBE_TIMEOUT } else { PROBE_TIMEOUT };
    let mut limited = conninfo.clone();
    limited.connect_timeout = limited.connect_timeout.min(timeout);
    limited
}

/// Counts the sessions of the nodes if the list has no numbers: releases of YugabyteDB report 0 for each node. Returns
/// a warning if they are not visible.
pub(super) fn count_sessions(candidates: &mut [Candidate]) -> Option<String> {
    if candidates.iter().any(|(node, _)| node.connections > 0) {
        return None;
    }
    let mut unknown = Vec::new();
    for (node, probed) in candidates {
        match probed.as_ref().map(|probed| probed.sessions) {
            // The connection of the probe does not count.
            Some(Some(count)) => node.connections = count.saturating_sub(1),
            Some(None) => unknown.push(node.name.as_str()),
            None => {}
        }
    }
    (!unknown.is_empty()).then(|| {
        format!(
            "--spread least-connections: the number of connections of {} is unknown and counts as 0",
            unknown.join(", ")
        )
    })
}

/// A node with its properties, if it accepts connections.
pub(super) type Candidate = (Node, Option<Probed>);

/// Probes all nodes in parallel. Returns warnings about unavailable nodes too.
fn probe_all(
    nodes: Vec<Node>,
    discovered: bool,
    interrupt: &Interrupt,
) -> (Vec<Candidate>, Vec<String>) {
    let results: Vec<Result<Probed, ConnectionError>> = std::thread::scope(|scope| {
        let probe = |node| scope.spawn(move || probe(node, discovered, interrupt));
        let threads: Vec<_> = nodes.iter().map(|node| probe(&node.conninfo)).collect();
        let panicked = || Err(ConnectionError::Protocol("the probe thread panicked".to_owned()));
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| panicked())).collect()
    });
    let mut warnings = Vec::new();
    let candidate = |(mut node, result): (Node, Result<Probed, ConnectionError>)| {
        match &result {
            // For discovered nodes, the role from `yb_servers()` takes precedence.
            Ok(_) if discovered => {}
            Ok(probed) => (node.role, node.system) = (probed.role, probed.system.clone()),
            Err(error) => warnings.push(format!(
                "node {} is unavailable and gets no sessions for now: {error}",
                node.name
            )),
        }
        (node, result.ok())
    };
    let candidates = nodes.into_iter().zip(results).map(candidate).collect();
    (candidates, warnings)
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
    // An unrelated function of the same name.
    let Some(rows) = optional(rows)? else {
        return Ok(None);
    };
    let field = |row: &[Option<String>], column: usize| {
        row.get(column).cloned().flatten().unwrap_or_default()
    };
    // If the user connected to a public address, use the public addresses of all nodes.
    let public = rows.iter().any(|row| conninfo.contains_host(&field(row, 7)));
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
            ..Node::new(conninfo.at(&host, port), role)
        })
    };
    Ok(Some(rows.into_iter().filter_map(node).collect()))
}

impl ConnInfo {
    /// Returns the settings for each server separately.
    pub(super) fn each_server(&self) -> impl Iterator<Item = Self> {
        self.servers.iter().map(|server| self.with_server(server.clone()))
    }

    /// Returns whether one of the servers has this name or address.
    pub(super) fn contains_host(&self, host: &str) -> bool {
        !host.is_empty()
            && self.servers.iter().any(|server| {
                server.host == Host::Tcp(host.to_owned())
                    || server
                        .address
                        .is_some_and(|address| host.parse() == Ok::<IpAddr, _>(address))
            })
    }
}
