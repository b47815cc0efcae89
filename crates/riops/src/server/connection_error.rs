//! Why a connection or a statement failed, in words for people.

use std::io;

use riops_wire::backend::{self, ServerError};
use riops_wire::frame::FrameError;
use riops_wire::frontend::EncodeError;
use riops_wire::sqlstate::SqlState;
use riops_wire::startup::StartupError;

/// Why a connection or a statement failed.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    /// No connection to the address.
    #[error("cannot connect to {address}: {source}{}", connect_hint(.source))]
    Connect {
        /// Where to.
        address: String,
        /// Why not.
        source: io::Error,
    },
    /// Connected, but no session.
    #[error("no session on {address} for user {user} in database {database}: {source}{}", startup_hint(.source))]
    Startup {
        /// Where.
        address: String,
        /// Who.
        user: String,
        /// Where to.
        database: String,
        /// Why not.
        source: StartupError,
    },
    /// Connected, but no TLS.
    #[error("no TLS with {address}: {reason}")]
    Tls {
        /// Where.
        address: String,
        /// Why not.
        reason: String,
    },
    /// The server is not what `target_session_attrs` asks for.
    #[error("{address} is not what target_session_attrs={wanted} asks for")]
    SessionAttrs {
        /// Where.
        address: String,
        /// What was asked for.
        wanted: &'static str,
    },
    /// None of several servers let a session in.
    #[error("no server lets a session in: {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    NoServer(Vec<ConnectionError>),
    /// No node of the cluster is what the spread asks for.
    #[error("no node of the cluster is what --spread {0} asks for")]
    NoNode(String),
    /// The server reports an error.
    #[error("{0}")]
    Server(Box<ServerError>),
    /// The connection broke.
    #[error("the server closed the connection{}", farewell(.0.as_deref()))]
    Closed(Option<Box<ServerError>>),
    /// Reading or writing failed.
    #[error("the connection to the server broke: {0}")]
    Io(#[source] io::Error),
    /// What the server sends is not the protocol.
    #[error("the server does not follow the protocol: {0}")]
    Protocol(String),
    /// The user asked to end.
    #[error("interrupted")]
    Interrupted,
}

impl ConnectionError {
    /// Whether trying again, here or at another server, cannot help: the user has to change
    /// something, or wants to end.
    #[must_use]
    pub fn is_final(&self) -> bool {
        match self {
            Self::Startup { source: StartupError::Server(error), .. } | Self::Server(error) => {
                !error.sqlstate.may_pass()
            }
            Self::Startup { .. } | Self::Interrupted | Self::NoNode(_) => true,
            _ => false,
        }
    }

    /// The server's code, where it sent one; class 08 stands for everything around a connection.
    #[must_use]
    pub fn sqlstate(&self) -> SqlState {
        match self {
            Self::Startup { source: StartupError::Server(error), .. }
            | Self::Server(error)
            | Self::Closed(Some(error)) => error.sqlstate,
            Self::Protocol(_) => SqlState::PROTOCOL_VIOLATION,
            Self::Closed(None) | Self::Io(_) => SqlState::CONNECTION_FAILURE,
            _ => SqlState::CANNOT_CONNECT,
        }
    }
}

fn connect_hint(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::ConnectionRefused => "; is the server running, and is the port right?",
        io::ErrorKind::NotFound => "; is the server running, and is this its socket folder?",
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
            "; the server did not answer in time (connect_timeout)"
        }
        _ => "",
    }
}

fn startup_hint(source: &StartupError) -> &'static str {
    match source {
        StartupError::PasswordMissing => {
            "; set PGPASSWORD, put it into ~/.pgpass, or into the connection string"
        }
        StartupError::Server(error) => match error.sqlstate {
            SqlState::INVALID_PASSWORD => "; is the password right?",
            SqlState::TOO_MANY_CONNECTIONS => {
                "; use fewer sessions, or raise max_connections (embedded server: --server-set max_connections=N)"
            }
            SqlState::INVALID_CATALOG_NAME => "; create the database first, or name another",
            _ => "",
        },
        _ => "",
    }
}

fn farewell(error: Option<&ServerError>) -> String {
    error.map_or_else(String::new, |error| format!(": {error}"))
}

impl From<FrameError> for ConnectionError {
    fn from(error: FrameError) -> Self {
        Self::Protocol(error.to_string())
    }
}

impl From<backend::DecodeError> for ConnectionError {
    fn from(error: backend::DecodeError) -> Self {
        Self::Protocol(error.to_string())
    }
}

impl From<EncodeError> for ConnectionError {
    fn from(error: EncodeError) -> Self {
        Self::Protocol(error.to_string())
    }
}
