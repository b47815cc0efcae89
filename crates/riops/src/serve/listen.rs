//! The address that a server listens on, and the host names under which it may be used.

use std::fmt;
use std::net::{IpAddr, SocketAddr, TcpListener, ToSocketAddrs};
use std::str::FromStr;

use super::error::ServeError;

/// An address to listen on, as typed: name or IP address, and port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenAddress {
    /// Without brackets, in lower case.
    host: String,
    port: u16,
}

impl FromStr for ListenAddress {
    type Err = ServeError;

    fn from_str(text: &str) -> Result<Self, ServeError> {
        let wrong = || ServeError::NotAnAddress(text.to_owned());
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        let port = port.parse().map_err(|_| wrong())?;
        let host = match host.strip_prefix('[').map(|inner| inner.strip_suffix(']')) {
            Some(Some(inner)) if inner.parse::<std::net::Ipv6Addr>().is_ok() => inner,
            None if !host.is_empty() && !host.contains([':', '/', ' ', '@']) => host,
            _ => return Err(wrong()),
        };
        Ok(Self { host: host.to_ascii_lowercase(), port })
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (host, port) = (&self.host, self.port);
        if host.contains(':') {
            write!(formatter, "[{host}]:{port}")
        } else {
            write!(formatter, "{host}:{port}")
        }
    }
}

impl ListenAddress {
    /// Returns whether only this machine can connect.
    pub fn is_local(&self) -> bool {
        let addresses = (self.host.as_str(), self.port).to_socket_addrs();
        addresses.is_ok_and(|mut resolved| resolved.all(|address| address.ip().is_loopback()))
    }

    /// Opens the port. Returns the listener and its address, with the port that was chosen for port 0.
    pub(super) fn bind(&self) -> Result<(TcpListener, SocketAddr), ServeError> {
        let failed = |source| ServeError::Listen { address: self.to_string(), source };
        let listener = TcpListener::bind((self.host.as_str(), self.port)).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok((listener, address))
    }

    /// Returns the host names of this server.
    pub(super) fn hosts(&self) -> Hosts {
        let is_unspecified =
            self.host.parse().is_ok_and(|address: IpAddr| address.is_unspecified());
        Hosts { own: self.host.clone(), any_address: is_unspecified }
    }

    /// Returns the URL of this server, for a listener with this address.
    pub(super) fn url(&self, bound: SocketAddr) -> String {
        let host = if bound.ip().is_unspecified() { "localhost" } else { &self.host };
        format!("http://{}/", Self { host: host.to_owned(), port: bound.port() })
    }
}

/// The host names in URLs of a server. A page of another site whose name resolves to this machine (DNS rebinding) has
/// another name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hosts {
    own: String,
    /// Whether any IP address is accepted: an address cannot be rebound.
    any_address: bool,
}

impl Hosts {
    /// Returns whether the server may be used under the name in this `Host` header. The port is not compared: with
    /// port forwarding it differs.
    pub(super) fn is_allowed(&self, header: &str) -> bool {
        let name = match header.strip_prefix('[') {
            Some(rest) => match rest.split_once(']') {
                Some((address, port)) if is_port(port) => address,
                _ => return false,
            },
            None => match header.split_once(':') {
                Some((name, port)) if port.parse::<u16>().is_ok() => name,
                Some(_) => return false,
                None => header,
            },
        };
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        let is_local = ["localhost", "127.0.0.1", "::1"].contains(&name.as_str());
        let is_address = || name.parse::<IpAddr>().is_ok();
        is_local || name == self.own || self.any_address && is_address()
    }
}

fn is_port(text: &str) -> bool {
    text.is_empty() || text.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> ListenAddress {
        text.parse().unwrap()
    }

    #[test]
    fn addresses_are_read_with_their_port() {
        for text in ["127.0.0.1:8080", "[::1]:0", "bench.example:9464", "0.0.0.0:65535"] {
            assert_eq!(address(text).to_string(), text);
        }
        for text in
            ["", "8080", ":8080", "localhost", "::1:80", "[::1]", "a:b:1", "h:70000", "http://h:1"]
        {
            assert!(text.parse::<ListenAddress>().is_err(), "{text}");
        }
    }

    #[test]
    fn only_own_names_are_allowed() {
        let hosts = address("127.0.0.1:8080").hosts();
        for host in [
            "localhost",
            "localhost:8080",
            "LOCALHOST:1",
            "127.0.0.1:9",
            "[::1]",
            "[::1]:8080",
            "localhost.",
        ] {
            assert!(hosts.is_allowed(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "evil.example:8080",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "192.0.2.1",
            "localhost:",
            "localhost:x",
            "[::1",
            "[::1]x",
            "user@localhost",
            "localhost/",
            "localhost evil",
        ] {
            assert!(!hosts.is_allowed(host), "{host}");
        }
        assert!(address("bench.example:80").hosts().is_allowed("Bench.Example:80"));
    }

    #[test]
    fn on_all_interfaces_any_address_is_allowed_but_no_other_name() {
        let hosts = address("0.0.0.0:8080").hosts();
        assert!(hosts.is_allowed("192.0.2.7:8080") && hosts.is_allowed("[2001:db8::1]:8080"));
        assert!(!hosts.is_allowed("evil.example:8080"));
    }

    #[test]
    fn a_used_port_is_refused_with_a_hint() {
        let (_listener, bound) = address("127.0.0.1:0").bind().unwrap();
        let error = address(&bound.to_string()).bind().unwrap_err().to_string();
        assert!(
            error.contains(&bound.to_string()) && error.contains("another program uses"),
            "{error}"
        );
    }
}
