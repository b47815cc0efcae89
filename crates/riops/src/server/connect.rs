//! From connection settings to a session: which server, TLS or not, who one is, is it the right one.

use std::io;
use std::time::Instant;

use rand::seq::SliceRandom;
use riops_wire::backend::Message;
use riops_wire::sqlstate::SqlState;
use riops_wire::startup::{Greeting, Startup, StartupError};

use super::connection::{Connection, ConnectionError};
use super::conninfo::{ConnInfo, Server, SessionAttrs};
use super::socket::{Encryption, open_stream};
use super::stream::{Place, order_rng, places};
use super::tls;
use crate::host::Interrupt;

impl Connection {
    /// Connects and authenticates, within the time that `info` allows for each server.
    ///
    /// # Errors
    /// [`ConnectionError`]
    pub fn open(info: &ConnInfo, interrupt: &Interrupt) -> Result<Self, ConnectionError> {
        open(info, interrupt)
    }
}

/// Opens a session on the first server that lets one in and is what is wanted.
fn open(info: &ConnInfo, interrupt: &Interrupt) -> Result<Connection, ConnectionError> {
    let mut servers: Vec<&Server> = info.servers.iter().collect();
    if info.load_balance {
        servers.shuffle(&mut order_rng());
    }
    let rounds: &[SessionAttrs] = match info.session_attrs {
        SessionAttrs::PreferStandby => &[SessionAttrs::Standby, SessionAttrs::Any],
        ref wanted => std::slice::from_ref(wanted),
    };
    let mut failures: Vec<ConnectionError> = Vec::new();
    for wanted in rounds {
        for server in &servers {
            match open_on(info, server, *wanted, interrupt) {
                Ok(connection) => return Ok(connection),
                // Who is refused by name is refused everywhere.
                Err(error) if error.is_final() => return Err(error),
                Err(error) => failures.push(error),
            }
        }
    }
    match failures.pop() {
        Some(last) if failures.is_empty() => Err(last),
        Some(last) => {
            failures.push(last);
            Err(ConnectionError::NoServer(failures))
        }
        None => Err(ConnectionError::Protocol("no server was named".to_owned())),
    }
}

fn open_on(
    info: &ConnInfo,
    server: &Server,
    wanted: SessionAttrs,
    interrupt: &Interrupt,
) -> Result<Connection, ConnectionError> {
    let unreachable = |source| ConnectionError::Connect { address: server.to_string(), source };
    let mut last = None;
    for place in places(info, server).map_err(unreachable)? {
        for encryption in info.encryptions(server) {
            match attempt(info, server, &place, *encryption, interrupt) {
                Ok(mut connection) => {
                    // Somebody who did not ask for it hears why the session is not encrypted.
                    if let Some(ConnectionError::Tls { reason, .. }) = &last {
                        connection.note_plain(reason);
                    }
                    let mut connection = accept(connection, wanted)?;
                    connection.set_deadline(None);
                    return Ok(connection);
                }
                Err(error) if another_encryption_may_help(*encryption, &error) => {
                    last = Some(error);
                }
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

/// The handshake failed, or the server has no rule for sessions with (or without) TLS.
fn another_encryption_may_help(tried: Encryption, error: &ConnectionError) -> bool {
    match error {
        ConnectionError::Tls { .. } => true,
        ConnectionError::Startup { source: StartupError::Server(error), .. } => {
            error.sqlstate == SqlState::INVALID_AUTHORIZATION
                // What poolers answer where they want TLS, and also to a wrong password: that is no
                // reason to say it again without TLS.
                || tried == Encryption::Never && error.sqlstate == SqlState::PROTOCOL_VIOLATION
        }
        _ => false,
    }
}

/// One attempt; the deadline still counts for the questions that decide about the session.
fn attempt(
    info: &ConnInfo,
    server: &Server,
    place: &Place,
    encryption: Encryption,
    interrupt: &Interrupt,
) -> Result<Connection, ConnectionError> {
    let deadline = Instant::now() + info.connect_timeout;
    let stream = open_stream(info, server, place, encryption, deadline, interrupt)?;
    let mut connection = Connection::on(stream, info, server, place, interrupt);
    connection.set_deadline(Some(deadline));
    start(&mut connection, info, server).map_err(|error| match error {
        // With TLS 1.3 a server says only now what it thinks of the client's certificate.
        ConnectionError::Io(error) if error.kind() == io::ErrorKind::InvalidData => {
            ConnectionError::Tls { address: server.to_string(), reason: tls::explained(&error) }
        }
        other => other,
    })?;
    Ok(connection)
}

/// The conversation up to the first ReadyForQuery.
fn start(
    connection: &mut Connection,
    info: &ConnInfo,
    server: &Server,
) -> Result<(), ConnectionError> {
    let refused = |source| ConnectionError::Startup {
        address: server.to_string(),
        user: info.user.clone(),
        database: info.database.clone(),
        source,
    };
    let (encrypted, end_point) = connection.channel();
    let credentials = info.credentials(server, encrypted, end_point);
    let mut startup = Startup::begin(&credentials, connection.out()).map_err(refused)?;
    loop {
        connection.flush()?;
        let (frame, out) = connection.next_frame()?;
        if startup.receive(&Message::decode(frame)?, out).map_err(refused)? {
            let greeting: Greeting = startup.into_greeting();
            connection.greet(greeting);
            return Ok(());
        }
    }
}

/// Hands the connection out where the server is what is wanted.
fn accept(mut connection: Connection, wanted: SessionAttrs) -> Result<Connection, ConnectionError> {
    let parameter = |connection: &Connection, name: &str| {
        connection.greeting().parameter(name).map(|value| value == "on")
    };
    let asked = |connection: &mut Connection, sql: &str| -> Result<bool, ConnectionError> {
        Ok(matches!(connection.query_value(sql)?.as_deref(), Some("on" | "t")))
    };
    let fits = match wanted {
        SessionAttrs::Any | SessionAttrs::PreferStandby => true,
        SessionAttrs::ReadWrite | SessionAttrs::ReadOnly => {
            // Servers from 14 on say it at connect, and a standby is never written to.
            let told = parameter(&connection, "default_transaction_read_only")
                .zip(parameter(&connection, "in_hot_standby"));
            let read_only = match told {
                Some((read_only, standby)) => read_only || standby,
                None => asked(&mut connection, "show transaction_read_only")?,
            };
            read_only == (wanted == SessionAttrs::ReadOnly)
        }
        SessionAttrs::Primary | SessionAttrs::Standby => {
            let standby = match parameter(&connection, "in_hot_standby") {
                Some(standby) => standby,
                None => asked(&mut connection, "select pg_is_in_recovery()")?,
            };
            standby == (wanted == SessionAttrs::Standby)
        }
    };
    if fits {
        return Ok(connection);
    }
    Err(ConnectionError::SessionAttrs {
        address: connection.address().to_owned(),
        wanted: match wanted {
            SessionAttrs::ReadWrite => "read-write",
            SessionAttrs::ReadOnly => "read-only",
            SessionAttrs::Primary => "primary",
            _ => "standby",
        },
    })
}
