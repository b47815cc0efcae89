//! Opens a session from connection settings: chooses the server and the encryption, authenticates,
//! and checks `target_session_attrs`.

use std::io;
use std::time::Instant;

use rand::seq::SliceRandom;
use riops_wire::backend::Message;
use riops_wire::sqlstate::SqlState;
use riops_wire::startup::{Startup, StartupError};

use super::connection::{Connection, ConnectionError};
use super::connection_error::is_closed;
use super::conninfo::{ConnInfo, Server, SessionAttrs};
use super::own_settings::Purpose;
use super::socket::{Encryption, open_stream};
use super::stream::{Place, order_rng, places};
use super::tls;
use crate::host::Interrupt;

impl Connection {
    /// Opens a connection for the statements of riops itself: defaults of the role or the database neither end them nor
    /// change what they return. The timeout in `info` applies to each server.
    ///
    /// # Errors
    /// [`ConnectionError`] if no server accepts the connection, or the user interrupts.
    pub fn open(info: &ConnInfo, interrupt: &Interrupt) -> Result<Self, ConnectionError> {
        Self::open_for(Purpose::Control, info, interrupt)
    }

    /// Opens a session that is measured, with the defaults of the role and the database.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_measured(info: &ConnInfo, interrupt: &Interrupt) -> Result<Self, ConnectionError> {
        Self::open_for(Purpose::Measured, info, interrupt)
    }

    fn open_for(
        purpose: Purpose,
        info: &ConnInfo,
        interrupt: &Interrupt,
    ) -> Result<Self, ConnectionError> {
        let mut servers: Vec<&Server> = info.servers.iter().collect();
        if info.load_balance {
            servers.shuffle(&mut order_rng());
        }
        let rounds: &[SessionAttrs] = match info.session_attrs {
            SessionAttrs::PreferStandby => &[SessionAttrs::Standby, SessionAttrs::Any],
            ref required => std::slice::from_ref(required),
        };
        let mut failures: Vec<ConnectionError> = Vec::new();
        for required in rounds {
            for server in &servers {
                match open_on(purpose, info, server, *required, interrupt) {
                    Ok(connection) => return Ok(connection),
                    // Other servers would reject the same credentials.
                    Err(error) if error.is_final() => return Err(error),
                    Err(error) => failures.push(error),
                }
            }
        }
        if failures.len() > 1 {
            return Err(ConnectionError::NoServer(failures));
        }
        let unspecified = || ConnectionError::Protocol("no server specified".to_owned());
        Err(failures.pop().unwrap_or_else(unspecified))
    }
}

fn open_on(
    purpose: Purpose,
    info: &ConnInfo,
    server: &Server,
    required: SessionAttrs,
    interrupt: &Interrupt,
) -> Result<Connection, ConnectionError> {
    let unreachable = |source| ConnectionError::Connect { address: server.to_string(), source };
    let mut last = None;
    for place in places(info, server).map_err(unreachable)? {
        for encryption in info.encryptions(server) {
            match attempt(info, server, &place, *encryption, interrupt) {
                Ok(mut connection) => {
                    // The reason why TLS failed is reported to the user.
                    if let Some(ConnectionError::Tls { reason, .. }) = last
                        && !connection.stream.is_encrypted()
                    {
                        connection.unencrypted_reason = Some(reason);
                    }
                    connection.pin_settings(purpose)?;
                    let mut connection = check_session_attrs(connection, required)?;
                    connection.set_deadline(None);
                    return Ok(connection);
                }
                Err(error) if can_retry_with_another_encryption(*encryption, &error) => {
                    last = Some(error);
                }
                // As in libpq, the server has answered: its other addresses are not tried.
                Err(error @ ConnectionError::Startup { .. }) => return Err(error),
                Err(error) if error.is_final() => return Err(error),
                Err(error) => {
                    last = Some(error);
                    break;
                }
            }
        }
    }
    Err(last.unwrap_or_else(|| unreachable(io::ErrorKind::NotFound.into())))
}

/// Returns whether an attempt with or without TLS may succeed: the handshake failed, or the server
/// has no `pg_hba.conf` entry for this kind of connection.
fn can_retry_with_another_encryption(tried: Encryption, error: &ConnectionError) -> bool {
    match error {
        ConnectionError::Tls { .. } => true,
        ConnectionError::Startup { source: StartupError::Server(error), .. } => {
            error.sqlstate == SqlState::INVALID_AUTHORIZATION
                // Poolers send this code if they require TLS, but also for a wrong password. A wrong
                // password must not be sent again without TLS.
                || tried == Encryption::Never && error.sqlstate == SqlState::PROTOCOL_VIOLATION
        }
        _ => false,
    }
}

/// Makes one attempt. The deadline also applies to the queries that check the session attributes.
fn attempt(
    info: &ConnInfo,
    server: &Server,
    place: &Place,
    encryption: Encryption,
    interrupt: &Interrupt,
) -> Result<Connection, ConnectionError> {
    let deadline = Instant::now() + info.connect_timeout;
    let stream = open_stream(info, server, place, encryption, deadline, interrupt)?;
    let mut connection = Connection::from_stream(stream, info, server, place, interrupt);
    connection.set_deadline(Some(deadline));
    start(&mut connection, info, server).map_err(|error| match error {
        // With TLS 1.3 a server rejects a client certificate only after the handshake.
        ConnectionError::Io(error) if error.kind() == io::ErrorKind::InvalidData => {
            let reason = tls::describe_error(&error);
            ConnectionError::Tls { address: server.to_string(), reason }
        }
        // A proxy that has no connection left closes it at once.
        ConnectionError::Closed(None) => {
            let text = "the server closed the connection";
            let source = io::Error::new(io::ErrorKind::ConnectionAborted, text);
            ConnectionError::Connect { address: server.to_string(), source }
        }
        ConnectionError::Io(source) if is_closed(&source) => {
            ConnectionError::Connect { address: server.to_string(), source }
        }
        other => other,
    })?;
    Ok(connection)
}

/// Exchanges the startup messages up to the first ReadyForQuery.
fn start(
    connection: &mut Connection,
    info: &ConnInfo,
    server: &Server,
) -> Result<(), ConnectionError> {
    let rejected = |source| ConnectionError::Startup {
        address: server.to_string(),
        user: info.user.clone(),
        database: info.database.clone(),
        source,
    };
    let stream = &connection.stream;
    let credentials = info.credentials(server, stream.is_encrypted(), stream.server_end_point());
    let mut startup = Startup::begin(&credentials, &mut connection.out).map_err(rejected)?;
    loop {
        connection.flush()?;
        let (frame, out) = connection.next_frame()?;
        if startup.receive(&Message::decode(frame)?, out).map_err(rejected)? {
            connection.set_session_info(startup.session_info);
            return Ok(());
        }
    }
}

/// Returns the connection if its server satisfies `target_session_attrs`.
fn check_session_attrs(
    mut connection: Connection,
    required: SessionAttrs,
) -> Result<Connection, ConnectionError> {
    let satisfied = match required {
        SessionAttrs::Any | SessionAttrs::PreferStandby => true,
        SessionAttrs::ReadWrite | SessionAttrs::ReadOnly => {
            let parameter = |name| connection.session_info().parameter(name);
            // PostgreSQL 14 and later report both parameters at connect. A standby is read-only.
            let reported =
                parameter("default_transaction_read_only").zip(parameter("in_hot_standby"));
            let read_only = if let Some((read_only, standby)) = reported {
                read_only == "on" || standby == "on"
            } else {
                connection.is_read_only()?
            };
            read_only == (required == SessionAttrs::ReadOnly)
        }
        SessionAttrs::Primary | SessionAttrs::Standby => {
            connection.is_standby()? == (required == SessionAttrs::Standby)
        }
    };
    if satisfied {
        return Ok(connection);
    }
    let address = connection.address().to_owned();
    Err(ConnectionError::SessionAttrs { address, required: required.name() })
}
