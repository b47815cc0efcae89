//! A socket to a server, with or without TLS: connects, reads and writes.
//!
//! The blocking connection and the engine's poll loop use the same type. An operation that would
//! block returns `WouldBlock`, also with TLS.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rand::rngs::SysRng;
use rand::seq::SliceRandom;
use rand::{SeedableRng, TryRng};
use rand_xoshiro::SplitMix64;
use riops_wire::frame::{FULL_READS, READ_BYTES_MAX};
use riops_wire::frontend::SSL_REQUEST;
use rustix::io::ioctl_fionbio;
use rustix::net::sockopt::{self, Timeout, set_socket_timeout};
use rustix::net::{
    RecvFlags, SendFlags, Shutdown, SocketAddrAny, getpeername, getsockname, recv, send, shutdown,
};
use rustls::ClientConnection;

use super::conninfo::{ConnInfo, Host, Keepalive, Server};
use super::tls::server_end_point;
#[cfg(target_os = "linux")]
use crate::host::user_name;

/// Resolved address of a server, sufficient for a second connection to it.
#[derive(Debug, Clone)]
pub(super) enum Place {
    Unix,
    Tcp(SocketAddr),
}

#[derive(Debug)]
struct Socket(OwnedFd);

/// A socket to a server.
#[derive(Debug)]
pub struct Stream {
    socket: Socket,
    tls: Option<Box<TlsState>>,
}

#[derive(Debug)]
struct TlsState {
    connection: ClientConnection,
    encrypted: Encrypted,
}

/// Bytes from the socket that the TLS library has not taken yet. The library reads 4 KiB at a time, which
/// costs a large reply many system calls.
#[derive(Debug, Default)]
struct Encrypted {
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    /// Number of consecutive reads that filled the buffer.
    full_reads: u8,
    /// Whether the last read emptied the socket, the poller has reported no bytes since then, and the stream has not ended.
    socket_is_empty: bool,
}

/// Initial size of the buffer of encrypted bytes. Records of PostgreSQL contain up to 8 KiB.
const ENCRYPTED_BYTES: usize = 8 * 1024;

/// Returns a random generator for the order of servers and addresses. It does not use the random
/// seed of a run, so that several riops processes choose different orders.
pub(super) fn order_rng() -> SplitMix64 {
    SplitMix64::seed_from_u64(SysRng.try_next_u64().unwrap_or(0))
}

/// Returns whether an operation must be retried later.
pub(super) fn is_wait(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}

/// Returns the addresses of a server: one for a Unix socket, otherwise all addresses of the host.
pub(super) fn places(info: &ConnInfo, server: &Server) -> io::Result<Vec<Place>> {
    if matches!(server.host, Host::Unix(_)) {
        return Ok(vec![Place::Unix]);
    }
    let mut places: Vec<_> = server.addresses()?.into_iter().map(Place::Tcp).collect();
    if places.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "the host name has no address"));
    }
    if info.load_balance {
        places.shuffle(&mut order_rng());
    }
    Ok(places)
}

impl Stream {
    /// Opens a socket without TLS.
    pub(super) fn connect(info: &ConnInfo, server: &Server, place: &Place) -> io::Result<Self> {
        let socket = match place {
            Place::Unix => connect_unix(server)?.into(),
            Place::Tcp(address) => {
                let stream = TcpStream::connect_timeout(address, info.connect_timeout)?;
                // A request is one small write. Nagle's algorithm could delay it by 40 ms.
                stream.set_nodelay(true)?;
                set_keepalive(&stream, &info.keepalive)?;
                stream.into()
            }
        };
        Ok(Self { socket: Socket(socket), tls: None })
    }

    /// Sends an `SSLRequest`.
    pub(super) fn request_tls(&mut self) -> io::Result<()> {
        // Eight bytes fit into the buffer of a new socket.
        self.write_all(&SSL_REQUEST)
    }

    /// Reads the response to the `SSLRequest`, one byte. Returns whether the server supports TLS.
    pub(super) fn offers_tls(&mut self) -> io::Result<bool> {
        let mut answer = [0];
        match (self.read(&mut answer)?, answer) {
            (0, _) => Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the server closed the connection after the TLS request",
            )),
            (_, [b'S']) => Ok(true),
            (_, [b'N']) => Ok(false),
            // `E` starts an error message: the server is too old or cannot start a backend.
            (_, [other]) => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("invalid response to the TLS request: {:?}", char::from(other)),
            )),
        }
    }

    /// Switches the socket to TLS. The handshake has not started yet.
    pub(super) fn encrypt(&mut self, connection: ClientConnection) {
        self.tls = Some(Box::new(TlsState { connection, encrypted: Encrypted::default() }));
    }

    /// Continues the handshake until it is complete.
    pub(super) fn handshake(&mut self) -> io::Result<()> {
        let Some(TlsState { connection: tls, encrypted }) = self.tls.as_deref_mut() else {
            return Ok(());
        };
        while tls.is_handshaking() {
            send_tls(tls, &mut self.socket)?;
            if tls.is_handshaking() && tls.wants_read() {
                encrypted.receive(tls, &mut self.socket)?;
            }
        }
        send_tls(tls, &mut self.socket)
    }

    /// Returns whether the connection is encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    /// Returns whether the packets pass through a network interface other than loopback.
    pub(super) fn is_over_network(&self) -> bool {
        let ip = |address: SocketAddrAny| Some(SocketAddr::try_from(address).ok()?.ip());
        let local = getsockname(self).ok().and_then(ip);
        // The kernel chooses the address of the server for both ends if it is one of this machine.
        local.is_some_and(|local| {
            getpeername(self).ok().flatten().and_then(ip).is_some_and(|peer| peer != local)
        })
    }

    /// Returns whether the server chose the ALPN protocol `postgresql`, which is mandatory for
    /// `sslnegotiation=direct`.
    pub(super) fn has_agreed_on_protocol(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.connection.alpn_protocol() == Some(b"postgresql"))
    }

    /// Returns the TLS version and the cipher suite for display; `None` without TLS.
    pub fn encryption(&self) -> Option<String> {
        let tls = &self.tls.as_ref()?.connection;
        let version =
            tls.protocol_version()?.as_str()?.replace('_', ".").replace("TLSv1.", "TLS 1.");
        let suite = tls.negotiated_cipher_suite()?.suite();
        Some(format!("{version}, {}", suite.as_str().unwrap_or("unknown cipher")))
    }

    /// Returns the hash of the server's certificate for SCRAM channel binding.
    pub(super) fn server_end_point(&self) -> Option<Vec<u8>> {
        server_end_point(self.tls.as_ref()?.connection.peer_certificates()?.first()?)
    }

    /// Returns whether another read may return more bytes at once, after a read of `count` bytes into
    /// `space` bytes. A short read has emptied the socket, so the read that would return `WouldBlock` is
    /// not needed; an edge-triggered poller reports the bytes that arrive later.
    pub fn may_have_more(&self, count: usize, space: usize) -> bool {
        // After a short read of a TLS stream no decrypted bytes remain. Encrypted ones may.
        count == space || self.tls.as_ref().is_some_and(|tls| !tls.encrypted.is_exhausted())
    }

    /// Notes that the poller reported more bytes before the last ones were read to their end: a read that returns bytes which
    /// were received before says nothing about the socket.
    pub fn note_readable(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.encrypted.socket_is_empty = false;
        }
    }

    /// Returns the user that runs the server at the other end of a Unix socket.
    #[cfg(target_os = "linux")]
    pub(super) fn peer_user(&self) -> io::Result<String> {
        let uid = sockopt::socket_peercred(self)?.uid.as_raw();
        let unknown =
            || io::Error::other(format!("user {uid} of the server is not in /etc/passwd"));
        user_name(uid).ok_or_else(unknown)
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn peer_user(&self) -> io::Result<String> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "requirepeer requires Linux"))
    }

    /// Switches between blocking and non-blocking mode.
    ///
    /// # Errors
    /// The error of the operating system.
    pub fn set_nonblocking(&self, nonblocking: bool) -> io::Result<()> {
        Ok(ioctl_fionbio(self, nonblocking)?)
    }

    pub(super) fn set_timeouts(&self, timeout: Duration) -> io::Result<()> {
        set_socket_timeout(self, Timeout::Send, Some(timeout))?;
        Ok(set_socket_timeout(self, Timeout::Recv, Some(timeout))?)
    }

    /// Sends the TLS `close_notify` alert, if the socket is writable, and shuts the connection down.
    pub fn close(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.connection.send_close_notify();
            let _ = send_tls(&mut tls.connection, &mut self.socket);
        }
        let _ = shutdown(&self.socket, Shutdown::Both);
    }
}

fn connect_unix(server: &Server) -> io::Result<UnixStream> {
    let path = server.socket_path().unwrap_or_default();
    match path.to_str().and_then(|path| path.strip_prefix('@')) {
        Some(name) => connect_abstract(name),
        None => UnixStream::connect(path),
    }
}

#[cfg(target_os = "linux")]
fn connect_abstract(name: &str) -> io::Result<UnixStream> {
    use std::os::linux::net::SocketAddrExt;
    UnixStream::connect_addr(&std::os::unix::net::SocketAddr::from_abstract_name(name)?)
}

#[cfg(not(target_os = "linux"))]
fn connect_abstract(_: &str) -> io::Result<UnixStream> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "abstract sockets require Linux"))
}

/// No signal if the peer has closed the connection. Where the flag does not exist, Rust's runtime ignores the signal.
#[cfg(target_os = "linux")]
const SEND_FLAGS: SendFlags = SendFlags::NOSIGNAL;
#[cfg(not(target_os = "linux"))]
const SEND_FLAGS: SendFlags = SendFlags::empty();

fn set_keepalive(stream: &TcpStream, keepalive: &Keepalive) -> io::Result<()> {
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
    // As in libpq, without effect on other systems.
    #[cfg(target_os = "linux")]
    if let Some(timeout) = keepalive.user_timeout {
        let milliseconds = u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX);
        sockopt::set_tcp_user_timeout(stream, milliseconds)?;
    }
    Ok(())
}

/// Sends the pending TLS records.
fn send_tls(tls: &mut ClientConnection, socket: &mut Socket) -> io::Result<()> {
    while tls.wants_write() {
        tls.write_tls(socket)?;
    }
    Ok(())
}

impl Encrypted {
    /// Reads from the socket, unless bytes of the last read are left, and decrypts a part of them.
    fn receive(&mut self, tls: &mut ClientConnection, socket: &mut Socket) -> io::Result<()> {
        if self.start == self.end {
            self.fill(socket)?;
        }
        let mut rest = self.bytes.get(self.start..self.end).unwrap_or_default();
        let taken = tls.read_tls(&mut rest)?;
        self.start += taken;
        let state = match tls.process_new_packets() {
            Ok(state) => state,
            Err(error) => {
                // Send the TLS alert to the peer, if the socket is writable.
                let _ = send_tls(tls, socket);
                return Err(io::Error::new(io::ErrorKind::InvalidData, error));
            }
        };
        if taken == 0 && tls.is_handshaking() {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the server closed the connection during the TLS handshake",
            ));
        }
        // The end of the stream is still to be read, without another event.
        self.socket_is_empty &= !state.peer_has_closed();
        Ok(())
    }

    /// Reads once from the socket; grows like the buffer of decrypted bytes.
    fn fill(&mut self, socket: &mut Socket) -> io::Result<()> {
        if self.bytes.is_empty() {
            self.bytes.resize(ENCRYPTED_BYTES, 0);
        } else if self.full_reads >= FULL_READS && self.bytes.len() < READ_BYTES_MAX {
            self.bytes.resize(READ_BYTES_MAX, 0);
        }
        (self.start, self.end) = (0, 0);
        self.end = socket.read(&mut self.bytes)?;
        let is_full = self.end == self.bytes.len();
        self.full_reads = if is_full { self.full_reads.saturating_add(1) } else { 0 };
        // A read that did not fill the buffer has emptied the socket (epoll(7)).
        self.socket_is_empty = !is_full && self.end > 0;
        Ok(())
    }

    fn is_exhausted(&self) -> bool {
        self.start == self.end && self.socket_is_empty
    }
}

impl Read for Stream {
    #[inline]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(TlsState { connection: tls, encrypted }) = self.tls.as_deref_mut() else {
            return self.socket.read(buffer);
        };
        loop {
            match tls.reader().read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // The peer closed the connection without `close_notify`: treat it as end of file.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                other => return other,
            }
            encrypted.receive(tls, &mut self.socket)?;
        }
    }
}

impl Write for Stream {
    /// With TLS, bytes count as written when they are encrypted. [`Self::flush`] returns an error if
    /// the socket has not accepted all of them.
    #[inline]
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let Some(TlsState { connection: tls, .. }) = self.tls.as_deref_mut() else {
            return self.socket.write(buffer);
        };
        send_tls(tls, &mut self.socket)?;
        let count = tls.writer().write(buffer)?;
        match send_tls(tls, &mut self.socket) {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(count),
        }
    }

    #[inline]
    fn flush(&mut self) -> io::Result<()> {
        match &mut self.tls {
            Some(tls) => send_tls(&mut tls.connection, &mut self.socket),
            None => Ok(()),
        }
    }
}

// Without libc, whose calls are cancellation points with locks around each.
impl Read for Socket {
    #[inline]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (count, _) = recv(self.as_fd(), buffer, RecvFlags::empty())?;
        Ok(count)
    }
}

impl Write for Socket {
    #[inline]
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        Ok(send(self.as_fd(), buffer, SEND_FLAGS)?)
    }

    #[inline]
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl AsRawFd for Stream {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
