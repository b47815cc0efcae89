//! A socket to a server, plain or with TLS: connecting, reading, writing.
//!
//! The same type serves the blocking connection and the engine's poll loop: what cannot be done now
//! is `WouldBlock`, with TLS too.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::{AsRawFd, RawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rand::rngs::SysRng;
use rand::seq::SliceRandom;
use rand::{SeedableRng, TryRng};
use rand_xoshiro::SplitMix64;
use riops_wire::frontend::SSL_REQUEST;
use rustix::net::sockopt;
use rustls::ClientConnection;

use super::conninfo::{ConnInfo, Host, Keepalive, Server};
use super::tls::server_end_point;

/// Where a connection was made to: enough to make a second one there.
#[derive(Debug, Clone)]
pub(super) enum Place {
    Unix,
    Tcp(SocketAddr),
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// A socket to a server.
#[derive(Debug)]
pub struct Stream {
    socket: Socket,
    tls: Option<Box<ClientConnection>>,
}

/// A generator for the order of servers and addresses, which no seed of a run shall decide: the
/// next riops has to choose another one.
pub(super) fn order_rng() -> SplitMix64 {
    SplitMix64::seed_from_u64(SysRng.try_next_u64().unwrap_or(0))
}

/// Whether an operation has to be tried again later.
pub(super) fn is_wait(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}

/// The places of a server: one for a socket, all addresses of a name.
pub(super) fn places(info: &ConnInfo, server: &Server) -> io::Result<Vec<Place>> {
    let host = match (&server.host, server.address) {
        (Host::Unix(_), _) => return Ok(vec![Place::Unix]),
        (Host::Tcp(_), Some(address)) => {
            return Ok(vec![Place::Tcp(SocketAddr::new(address, server.port))]);
        }
        (Host::Tcp(host), None) => host,
    };
    let mut places: Vec<_> =
        (host.as_str(), server.port).to_socket_addrs()?.map(Place::Tcp).collect();
    if places.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address"));
    }
    if info.load_balance {
        places.shuffle(&mut order_rng());
    }
    Ok(places)
}

impl Stream {
    /// Opens a plain socket.
    pub(super) fn connect(info: &ConnInfo, server: &Server, place: &Place) -> io::Result<Self> {
        let socket = match place {
            Place::Unix => Socket::Unix(connect_unix(server)?),
            Place::Tcp(address) => {
                let stream = TcpStream::connect_timeout(address, info.connect_timeout)?;
                // A request is one small write: waiting for more would cost 40 ms.
                stream.set_nodelay(true)?;
                watch_over(&stream, &info.keepalive)?;
                Socket::Tcp(stream)
            }
        };
        Ok(Self { socket, tls: None })
    }

    /// Asks the server for TLS.
    pub(super) fn request_tls(&mut self) -> io::Result<()> {
        // Eight bytes fit into the buffer of a new socket.
        self.write_all(&SSL_REQUEST)
    }

    /// The server's answer to it, one byte.
    pub(super) fn offers_tls(&mut self) -> io::Result<bool> {
        let mut answer = [0];
        match (self.read(&mut answer)?, answer) {
            (0, _) => Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the server closed the connection when it was asked for TLS",
            )),
            (_, [b'S']) => Ok(true),
            (_, [b'N']) => Ok(false),
            // `E` begins an error of a server that is too old or has no process to spare.
            (_, [other]) => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("the server answered {:?} to the request for TLS", char::from(other)),
            )),
        }
    }

    /// Goes on with TLS, without having said anything of it yet.
    pub(super) fn encrypt(&mut self, tls: ClientConnection) {
        self.tls = Some(Box::new(tls));
    }

    /// Goes on with the handshake until it is over.
    pub(super) fn shake_hands(&mut self) -> io::Result<()> {
        let Some(tls) = &mut self.tls else {
            return Ok(());
        };
        while tls.is_handshaking() {
            send_tls(tls, &mut self.socket)?;
            if tls.is_handshaking() && tls.wants_read() {
                receive_tls(tls, &mut self.socket)?;
            }
        }
        send_tls(tls, &mut self.socket)
    }

    /// Whether nobody on the way can listen.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// Whether the server chose the protocol `postgresql`, as TLS without a request demands.
    pub(super) fn agreed_on_protocol(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.alpn_protocol() == Some(b"postgresql"))
    }

    /// The version of TLS and the cipher suite, for people.
    #[must_use]
    pub fn encryption(&self) -> Option<String> {
        let tls = self.tls.as_ref()?;
        let version =
            tls.protocol_version()?.as_str()?.replace('_', ".").replace("TLSv1.", "TLS 1.");
        let suite = tls.negotiated_cipher_suite()?.suite();
        Some(format!("{version}, {}", suite.as_str().unwrap_or("unknown cipher")))
    }

    /// The hash of the server's certificate that SCRAM binds to.
    pub(super) fn server_end_point(&self) -> Option<Vec<u8>> {
        server_end_point(self.tls.as_ref()?.peer_certificates()?.first()?)
    }

    /// Switches between blocking and non-blocking.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        match &self.socket {
            Socket::Tcp(stream) => stream.set_nonblocking(nonblocking),
            Socket::Unix(stream) => stream.set_nonblocking(nonblocking),
        }
    }

    pub(super) fn set_timeouts(&self, timeout: Duration) -> io::Result<()> {
        match &self.socket {
            Socket::Tcp(stream) => {
                stream.set_write_timeout(Some(timeout))?;
                stream.set_read_timeout(Some(timeout))
            }
            Socket::Unix(stream) => {
                stream.set_write_timeout(Some(timeout))?;
                stream.set_read_timeout(Some(timeout))
            }
        }
    }

    /// Says goodbye on the level of TLS, as far as the socket takes it.
    pub fn close(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.send_close_notify();
            let _ = send_tls(tls, &mut self.socket);
        }
    }
}

fn connect_unix(server: &Server) -> io::Result<UnixStream> {
    let path = server.socket_path().unwrap_or_default();
    match path.to_str().and_then(|path| path.strip_prefix('@')) {
        Some(name) => {
            let address = std::os::unix::net::SocketAddr::from_abstract_name(name)?;
            UnixStream::connect_addr(&address)
        }
        None => UnixStream::connect(path),
    }
}

fn watch_over(stream: &TcpStream, keepalive: &Keepalive) -> io::Result<()> {
    sockopt::set_socket_keepalive(stream, keepalive.enabled)?;
    if let Some(idle) = keepalive.idle {
        sockopt::set_tcp_keepidle(stream, idle)?;
    }
    if let Some(interval) = keepalive.interval {
        sockopt::set_tcp_keepintvl(stream, interval)?;
    }
    if let Some(count) = keepalive.count {
        sockopt::set_tcp_keepcnt(stream, count)?;
    }
    if let Some(timeout) = keepalive.user_timeout {
        let milliseconds = u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX);
        sockopt::set_tcp_user_timeout(stream, milliseconds)?;
    }
    Ok(())
}

/// Sends the records that wait to be sent.
fn send_tls(tls: &mut ClientConnection, socket: &mut Socket) -> io::Result<()> {
    while tls.wants_write() {
        tls.write_tls(socket)?;
    }
    Ok(())
}

/// Reads once from the socket and decrypts what came.
fn receive_tls(tls: &mut ClientConnection, socket: &mut Socket) -> io::Result<()> {
    let closed = tls.read_tls(socket)? == 0;
    if let Err(error) = tls.process_new_packets() {
        // The peer learns what is wrong with it, as far as the socket takes it.
        let _ = send_tls(tls, socket);
        return Err(io::Error::new(io::ErrorKind::InvalidData, error));
    }
    if closed && tls.is_handshaking() {
        return Err(io::Error::new(
            io::ErrorKind::UnexpectedEof,
            "the server closed the connection during the TLS handshake",
        ));
    }
    Ok(())
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else {
            return self.socket.read(buffer);
        };
        loop {
            match tls.reader().read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // A peer that goes without a goodbye has gone all the same.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                other => return other,
            }
            receive_tls(tls, &mut self.socket)?;
        }
    }
}

impl Write for Stream {
    /// With TLS the bytes count as written when they are encrypted; [`Self::flush`] tells whether
    /// the socket has taken them.
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else {
            return self.socket.write(buffer);
        };
        send_tls(tls, &mut self.socket)?;
        let count = tls.writer().write(buffer)?;
        match send_tls(tls, &mut self.socket) {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(count),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.tls {
            Some(tls) => send_tls(tls, &mut self.socket),
            None => Ok(()),
        }
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(buffer),
            Self::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(buffer),
            Self::Unix(stream) => stream.write(buffer),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsRawFd for Stream {
    fn as_raw_fd(&self) -> RawFd {
        match &self.socket {
            Socket::Tcp(stream) => stream.as_raw_fd(),
            Socket::Unix(stream) => stream.as_raw_fd(),
        }
    }
}
