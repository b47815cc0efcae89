//! Finding the nodes: those that are named, or that the cluster names, and what each says of itself.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::time::{Duration, Instant};

use super::{Node, Nodes, Role};
use crate::host::Interrupt;
use crate::plan::Spread;
use crate::server::connection::{Connection, ConnectionError};
use crate::server::conninfo::{ConnInfo, Host, Server};

/// How long a look at a node may take.
pub(super) const LOOK_PATIENCE: Duration = Duration::from_secs(3);
/// How long the list of the nodes may take.
const LIST_PATIENCE: Duration = Duration::from_secs(10);

/// The nodes that were found, and what is to be said about them.
#[derive(Debug)]
pub struct Discovery {
    /// The nodes.
    pub nodes: Nodes,
    /// What their user should hear.
    pub warnings: Vec<String>,
}

impl Nodes {
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
}

/// A connection that shows that a node answers, and what it is.
pub(super) fn look(
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

/// The same settings with little patience.
pub(super) fn quick(conninfo: &ConnInfo) -> ConnInfo {
    let mut quick = conninfo.clone();
    quick.connect_timeout = quick.connect_timeout.min(LOOK_PATIENCE);
    quick
}

/// The nodes with their roles, which of them answer, and a word about those that do not.
pub(super) fn looked_at(
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
pub(super) fn listed(
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

impl ConnInfo {
    /// The addresses of all servers, as far as their names are known.
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

    /// The same settings for each of the servers alone.
    pub(super) fn each_server(&self) -> impl Iterator<Item = Self> {
        self.servers.iter().map(|server| {
            let mut alone = self.clone();
            alone.servers = vec![server.clone()];
            alone.load_balance = false;
            alone
        })
    }

    /// Whether one of the servers has this name or address.
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
