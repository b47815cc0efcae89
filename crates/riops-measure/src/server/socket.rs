//! Opens sockets that are ready for the startup message: connected, and with TLS if required.

use std::io;
use std::time::{Duration, Instant};

use super::connection_error::ConnectionError;
use super::conninfo::{ConnInfo, Host, Server};
use super::stream::{Place, Stream, is_wait};
use super::tls::{self, SslMode};
use crate::host::Interrupt;

/// How often a waiting connection checks for an interrupt.
const INTERRUPT_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Whether TLS is used in one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encryption {
    Never,
    IfOffered,
    Always,
}

impl ConnInfo {
    /// Returns the attempts to make with each server, in libpq's order.
    pub(super) fn encryptions(&self, server: &Server) -> &'static [Encryption] {
        if matches!(server.host, Host::Unix(_)) || self.tls.is_none() {
            return &[Encryption::Never];
        }
        match self.ssl_mode {
            SslMode::Disable => &[Encryption::Never],
            SslMode::Allow => &[Encryption::Never, Encryption::Always],
            SslMode::Prefer => &[Encryption::IfOffered, Encryption::Never],
            SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull => &[Encryption::Always],
        }
    }
}

/// Opens a socket, with TLS as specified by `encryption`.
pub(super) fn open_stream(
    info: &ConnInfo,
    server: &Server,
    place: &Place,
    encryption: Encryption,
    deadline: Instant,
    interrupt: &Interrupt,
) -> Result<Stream, ConnectionError> {
    let unreachable = |source| ConnectionError::Connect { address: server.to_string(), source };
    let failed = |reason: String| ConnectionError::Tls { address: server.to_string(), reason };
    let mut stream = Stream::connect(info, server, place).map_err(unreachable)?;
    if let (Some(required), Place::Unix) = (&info.required_peer, place) {
        let owner = stream.peer_user().map_err(unreachable)?;
        if owner != *required {
            let (address, required) = (server.to_string(), required.clone());
            return Err(ConnectionError::WrongPeer { address, required, owner });
        }
    }
    stream.set_timeouts(INTERRUPT_POLL_INTERVAL).map_err(unreachable)?;
    let Some(tls) = info.tls.as_ref().filter(|_| encryption != Encryption::Never) else {
        return Ok(stream);
    };
    let broken = |error: io::Error| failed(tls::describe_error(&error));
    if !tls.direct {
        stream.request_tls().map_err(broken)?;
        let offered = retry_until(deadline, interrupt, &broken, || stream.offers_tls())?;
        match encryption {
            _ if offered => {}
            Encryption::IfOffered => return Ok(stream),
            _ => return Err(failed("the server does not support TLS".to_owned())),
        }
    }
    let host = match &server.host {
        Host::Tcp(host) => host.as_str(),
        Host::Unix(_) => "localhost",
    };
    stream.encrypt(tls.connect(host).map_err(|error| failed(error.to_string()))?);
    retry_until(deadline, interrupt, &broken, || stream.handshake())?;
    if tls.direct && !stream.has_agreed_on_protocol() {
        let reason = "the server did not negotiate the ALPN protocol \"postgresql\"";
        return Err(failed(reason.to_owned()));
    }
    Ok(stream)
}

/// Repeats a step that waits for the peer, until it is done or the deadline has passed.
fn retry_until<T>(
    deadline: Instant,
    interrupt: &Interrupt,
    failed: &dyn Fn(io::Error) -> ConnectionError,
    mut step: impl FnMut() -> io::Result<T>,
) -> Result<T, ConnectionError> {
    loop {
        match step() {
            Ok(done) => return Ok(done),
            Err(error) if is_wait(&error) => {
                if interrupt.is_requested() {
                    return Err(ConnectionError::Interrupted);
                }
                if Instant::now() >= deadline {
                    let text = "timeout expired (connect_timeout)";
                    return Err(failed(io::Error::new(io::ErrorKind::TimedOut, text)));
                }
            }
            Err(error) => return Err(failed(error)),
        }
    }
}
