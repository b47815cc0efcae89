//! One server of the connection settings.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

/// PostgreSQL's default port.
pub const DEFAULT_PORT: u16 = 5432;

/// The host part of a server's address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    /// Directory of a Unix socket; a path that starts with `@` is in the abstract namespace.
    Unix(PathBuf),
    /// Host name or IP address.
    Tcp(String),
}

/// One server of the connection settings.
#[derive(Clone, PartialEq, Eq)]
pub struct Server {
    /// Host; with TLS, the name that the certificate must match.
    pub host: Host,
    /// `hostaddr`: IP address to use instead of resolving the host name.
    pub address: Option<IpAddr>,
    /// Port, also part of the socket's file name.
    pub port: u16,
    /// Password for this server, from the password file.
    pub(super) password: Option<String>,
}

impl Server {
    /// Returns the path of the server's Unix socket; `None` for TCP.
    pub fn socket_path(&self) -> Option<PathBuf> {
        match &self.host {
            Host::Unix(folder) => Some(folder.join(format!(".s.PGSQL.{}", self.port))),
            Host::Tcp(_) => None,
        }
    }

    /// Returns the addresses of the host; none for a Unix socket.
    ///
    /// # Errors
    /// The name of the host cannot be resolved.
    pub(in super::super) fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        Ok(match (&self.host, self.address) {
            (_, Some(address)) => vec![SocketAddr::new(address, self.port)],
            (Host::Tcp(host), None) => (host.as_str(), self.port).to_socket_addrs()?.collect(),
            (Host::Unix(_), None) => Vec::new(),
        })
    }

    /// Returns whether the server runs on this machine, according to its address.
    pub(super) fn is_local(&self) -> bool {
        match &self.host {
            Host::Unix(_) => true,
            Host::Tcp(host) => {
                let address = self.address.or_else(|| host.parse().ok());
                address.map_or_else(|| host == "localhost", |address| address.is_loopback())
            }
        }
    }
}

impl fmt::Display for Server {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Unix(_) => {
                write!(formatter, "{}", self.socket_path().unwrap_or_default().display())
            }
            Host::Tcp(host) if host.contains(':') => write!(formatter, "[{host}]:{}", self.port),
            Host::Tcp(host) => write!(formatter, "{host}:{}", self.port),
        }
    }
}

impl fmt::Debug for Server {
    // The password is never printed.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Server({self})")
    }
}
