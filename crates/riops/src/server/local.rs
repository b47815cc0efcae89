//! Whether the server runs on this machine.
//!
//! An address says little: a tunnel (`ssh -L`, `kubectl port-forward`) is at a loopback address of this
//! machine, and the server behind it at a loopback address of another one. So the two ends of the connection
//! must be the same, and the process of the session must be visible.

use std::fs;
use std::net::{IpAddr, UdpSocket};

use super::connection::{Connection, ConnectionError};
use super::stream::NearEnd;

/// A server on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalServer {
    /// The first process of the server, the parent of its sessions.
    pub process: i32,
}

/// The same connection as the server sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FarEnd {
    /// Address and port of the client; `None` for a Unix socket.
    client: Option<(IpAddr, u16)>,
    /// Address of the server; `None` for a Unix socket.
    server: Option<IpAddr>,
    /// Process of the session.
    process: i32,
}

/// Returns the server of this connection if it runs on this machine.
///
/// # Errors
/// [`ConnectionError`] if the connection fails.
pub fn local_server(connection: &mut Connection) -> Result<Option<LocalServer>, ConnectionError> {
    let Ok(near) = connection.near_end() else {
        return Ok(None);
    };
    let sql = "select host(inet_client_addr()), inet_client_port(), host(inet_server_addr()), pg_backend_pid()";
    let row = match connection.query(sql) {
        Ok(rows) => rows.into_iter().next().unwrap_or_default(),
        Err(ConnectionError::Server(_)) => return Ok(None),
        Err(error) => return Err(error),
    };
    let stat = |process: i32| fs::read_to_string(format!("/proc/{process}/stat")).ok();
    Ok(far_end(&row).filter(|far| far.server.is_none_or(is_own_address)).and_then(|far| {
        let process = parent_of_backend(&stat(far.process)?)?;
        is_same(near, far, process).then_some(LocalServer { process })
    }))
}

fn far_end(row: &[Option<String>]) -> Option<FarEnd> {
    let [client, port, server, process] = row else {
        return None;
    };
    let address = |text: &Option<String>| text.as_ref().map(|text| text.parse::<IpAddr>());
    let client = address(client).transpose().ok()?;
    Some(FarEnd {
        client: match client {
            Some(client) => Some((client, port.as_ref()?.parse().ok()?)),
            None => None,
        },
        server: address(server).transpose().ok()?,
        process: process.as_ref()?.parse().ok()?,
    })
}

/// Returns whether both ends are those of one connection. `listener` is the first process of the server.
fn is_same(near: NearEnd, far: FarEnd, listener: i32) -> bool {
    match (near, far.client) {
        (NearEnd::Tcp(own), Some((address, port))) => {
            own.ip().to_canonical() == address.to_canonical() && own.port() == port
        }
        (NearEnd::Unix(peer), None) => peer.is_none_or(|peer| peer == listener),
        _ => false,
    }
}

/// Only addresses of this machine can be bound.
fn is_own_address(address: IpAddr) -> bool {
    address.is_loopback() || UdpSocket::bind((address, 0)).is_ok()
}

/// Returns the parent of a process with this /proc/PID/stat if it is a PostgreSQL server. In another PID
/// namespace, the process with this id is another program, or none.
fn parent_of_backend(stat: &str) -> Option<i32> {
    let (before, after) = stat.rsplit_once(") ")?;
    let (_, name) = before.split_once('(')?;
    let is_server = ["postgres", "postmaster"].iter().any(|server| name.contains(server));
    after.split(' ').nth(1)?.parse().ok().filter(|_| is_server)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTENER: i32 = 100;

    fn far(row: [Option<&str>; 4]) -> FarEnd {
        far_end(&row.map(|value| value.map(str::to_owned))).unwrap()
    }

    #[test]
    fn both_ends_of_a_tcp_connection_must_have_the_same_address_and_port() {
        let far = far([Some("127.0.0.1"), Some("40001"), Some("127.0.0.1"), Some("101")]);
        let near = |text: &str| NearEnd::Tcp(text.parse().unwrap());
        assert!(is_same(near("127.0.0.1:40001"), far, LISTENER));
        assert!(is_same(near("[::ffff:127.0.0.1]:40001"), far, LISTENER));
        // A tunnel: the server sees the socket of the program at its other end.
        assert!(!is_same(near("127.0.0.1:40002"), far, LISTENER));
        assert!(!is_same(near("10.0.0.7:40001"), far, LISTENER));
        assert!(!is_same(NearEnd::Unix(Some(LISTENER)), far, LISTENER));
    }

    #[test]
    fn the_listener_of_a_unix_socket_must_be_the_parent_of_the_session() {
        let far = far([None, None, None, Some("101")]);
        assert!(is_same(NearEnd::Unix(Some(LISTENER)), far, LISTENER));
        assert!(is_same(NearEnd::Unix(None), far, LISTENER));
        // A pooler or a forwarded socket.
        assert!(!is_same(NearEnd::Unix(Some(7)), far, LISTENER));
    }

    #[test]
    fn the_process_of_the_session_must_be_a_postgresql_server() {
        assert_eq!(parent_of_backend("101 (postgres) S 100 101 101 0"), Some(LISTENER));
        assert_eq!(parent_of_backend("101 (nginx) S 100 101 101 0"), None);
        assert_eq!(parent_of_backend(""), None);
        assert!(is_own_address(IpAddr::from([127, 0, 0, 1])));
        assert!(!is_own_address(IpAddr::from([192, 0, 2, 1])));
    }
}
