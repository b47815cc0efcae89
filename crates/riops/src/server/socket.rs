//! A socket on which the startup message can be sent: connected, with TLS where that is wanted.

use std::io;
use std::time::{Duration, Instant};

use super::connection_error::ConnectionError;
use super::conninfo::{ConnInfo, Host, Server};
use super::stream::{Place, Stream, is_wait};
use super::tls::{self, SslMode};
use crate::host::Interrupt;

/// How often a waiting connection looks whether the user has lost patience.
const INTERRUPT_CHECK: Duration = Duration::from_millis(100);

/// Whether TLS is used in one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encryption {
    Never,
    IfOffered,
    Always,
}

impl ConnInfo {
    /// What is tried one after the other with each server, as libpq does.
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

/// A socket, with TLS where that is wanted.
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
    stream.set_timeouts(INTERRUPT_CHECK).map_err(unreachable)?;
    let Some(tls) = info.tls.as_ref().filter(|_| encryption != Encryption::Never) else {
        return Ok(stream);
    };
    let broken = |error: io::Error| failed(tls::explained(&error));
    if !tls.direct {
        stream.request_tls().map_err(broken)?;
        let offered = waiting(deadline, interrupt, &broken, || stream.offers_tls())?;
        match encryption {
            _ if offered => {}
            Encryption::IfOffered => return Ok(stream),
            _ => return Err(failed("the server does not offer it".to_owned())),
        }
    }
    let host = match &server.host {
        Host::Tcp(host) => host.as_str(),
        Host::Unix(_) => "localhost",
    };
    stream.encrypt(tls.connect(host).map_err(|error| failed(error.to_string()))?);
    waiting(deadline, interrupt, &broken, || stream.shake_hands())?;
    if tls.direct && !stream.agreed_on_protocol() {
        return Err(failed("the server did not agree on the protocol postgresql".to_owned()));
    }
    Ok(stream)
}

/// A second socket of the same kind to the same place, for a request to cancel.
pub(super) fn second_stream(
    info: &ConnInfo,
    server: &Server,
    place: &Place,
    encrypted: bool,
) -> Result<Stream, ConnectionError> {
    let encryption = if encrypted { Encryption::Always } else { Encryption::Never };
    let deadline = Instant::now() + info.connect_timeout;
    // The user wants to end: that is why there is something to cancel.
    open_stream(info, server, place, encryption, deadline, &Interrupt::new())
}

/// Repeats a step that may have to wait for the peer.
fn waiting<T>(
    deadline: Instant,
    interrupt: &Interrupt,
    failed: &dyn Fn(io::Error) -> ConnectionError,
    mut step: impl FnMut() -> io::Result<T>,
) -> Result<T, ConnectionError> {
    loop {
        match step() {
            Ok(done) => return Ok(done),
            Err(error) if is_wait(&error) => {
                if interrupt.requested() {
                    return Err(ConnectionError::Interrupted);
                }
                if Instant::now() >= deadline {
                    return Err(failed(io::Error::new(
                        io::ErrorKind::TimedOut,
                        "no answer in time (connect_timeout)",
                    )));
                }
            }
            Err(error) => return Err(failed(error)),
        }
    }
}
