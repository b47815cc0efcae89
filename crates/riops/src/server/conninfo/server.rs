//! One of the servers that may be connected to.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

/// PostgreSQL's port.
pub const DEFAULT_PORT: u16 = 5432;

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    /// A folder with a socket in it; one that starts with `@` is in the abstract namespace.
    Unix(PathBuf),
    /// A name or an address.
    Tcp(String),
}

/// One of the servers that may be connected to.
#[derive(Clone, PartialEq, Eq)]
pub struct Server {
    /// Where it listens; with TLS this is the name that its certificate has to have.
    pub host: Host,
    /// The address to use instead of asking for the name's.
    pub address: Option<IpAddr>,
    /// Its port, which is also part of the socket's name.
    pub port: u16,
    /// The password for it, from the password file.
    pub(super) password: Option<String>,
}

impl Server {
    /// The file of its socket.
    #[must_use]
    pub fn socket_path(&self) -> Option<PathBuf> {
        match &self.host {
            Host::Unix(folder) => Some(folder.join(format!(".s.PGSQL.{}", self.port))),
            Host::Tcp(_) => None,
        }
    }

    /// Whether it runs on this machine, as far as the address tells.
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
        match (&self.host, self.socket_path()) {
            (_, Some(path)) => write!(formatter, "{}", path.display()),
            (Host::Tcp(host), _) if host.contains(':') => {
                write!(formatter, "[{host}]:{}", self.port)
            }
            (Host::Tcp(host), _) => write!(formatter, "{host}:{}", self.port),
            (Host::Unix(_), None) => Ok(()),
        }
    }
}

impl fmt::Debug for Server {
    // The password is never printed.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Server({self})")
    }
}
