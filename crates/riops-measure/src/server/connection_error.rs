//! Errors of connections and statements, with hints for the user.

use std::io;

use riops_wire::backend::{self, ServerError};
use riops_wire::frame::FrameError;
use riops_wire::frontend::EncodeError;
use riops_wire::sqlstate::SqlState;
use riops_wire::startup::StartupError;

use riops_model::units::format::number_of;
use riops_model::units::text::one_line;

/// Why a connection or a statement failed.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    /// The server cannot be reached.
    #[error("cannot connect to {address}: {source}{}", connect_hint(.source))]
    Connect {
        /// Address of the server.
        address: String,
        /// The cause.
        source: io::Error,
    },
    /// The startup of the session failed, for example the authentication.
    #[error(
        "{} {address} for user \"{user}\", database \"{database}\": {}{}",
        startup_failure(.source),
        one_line(&.source.to_string()),
        startup_hint(.source)
    )]
    Startup {
        /// Address of the server.
        address: String,
        /// Role name.
        user: String,
        /// Database name.
        database: String,
        /// The cause.
        source: StartupError,
    },
    /// TLS cannot be used on the connection.
    #[error("cannot establish TLS with {address}: {reason}")]
    Tls {
        /// Address of the server.
        address: String,
        /// The cause.
        reason: String,
    },
    /// Another user than `requirepeer` runs the server.
    #[error("requirepeer={required}, but {address} is run by the user \"{owner}\"")]
    WrongPeer {
        /// Path of the socket.
        address: String,
        /// The required user.
        required: String,
        /// The user that runs the server.
        owner: String,
    },
    /// The server does not satisfy `target_session_attrs`.
    #[error("{address} does not satisfy target_session_attrs={required}")]
    SessionAttrs {
        /// Address of the server.
        address: String,
        /// The required value.
        required: &'static str,
    },
    /// None of several servers accepted the connection.
    #[error("no server accepted the connection: {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    NoServer(Vec<ConnectionError>),
    /// No node of the cluster matches `--spread`.
    #[error("no node of the cluster matches --spread {0}")]
    NoNode(String),
    /// The server has fewer nodes than `--nodes` requires.
    #[error(
        "--nodes {wanted}: the server has {}{}",
        number_of(*.nodes as u64, "node"),
        usable_text(*.nodes, *.usable)
    )]
    TooFewNodes {
        /// Required number of nodes.
        wanted: u32,
        /// Number of nodes.
        nodes: usize,
        /// Number of nodes that `--spread` allows and that accept the statements of the run.
        usable: usize,
    },
    /// The server returned an error.
    #[error("{}", one_line(&.0.to_string()))]
    Server(Box<ServerError>),
    /// The server closed the connection.
    #[error("the server closed the connection{}", closing_reason(.0.as_deref()))]
    Closed(Option<Box<ServerError>>),
    /// Reading or writing failed.
    #[error("lost the connection to the server: {0}")]
    Io(#[source] io::Error),
    /// The server does not reply to a statement: it does not respond on another connection either, or the reply was lost.
    #[error("no reply to `{statement}` for {seconds} s: {source}")]
    NoReply {
        /// The start of the statement.
        statement: String,
        /// How long the server has been silent, in seconds.
        seconds: u64,
        /// Result of another connection to the server.
        source: Box<ConnectionError>,
    },
    /// The server sent an invalid or unexpected message.
    #[error("protocol error: {0}")]
    Protocol(String),
    /// The user interrupted the operation.
    #[error("interrupted")]
    Interrupted,
}

impl ConnectionError {
    /// Returns whether another attempt, on this or another server, would fail as well: the user must
    /// change something, or has interrupted.
    pub fn is_final(&self) -> bool {
        match self {
            Self::Startup { source: StartupError::Server(error), .. } | Self::Server(error) => {
                !error.sqlstate.is_transient()
            }
            Self::Startup { .. }
            | Self::WrongPeer { .. }
            | Self::Interrupted
            | Self::NoNode(_)
            | Self::TooFewNodes { .. } => true,
            _ => false,
        }
    }

    /// Returns whether there are too many connections, the server did not respond in time, or it closed the connection
    /// before the session began: a pool lets a client wait until it has a connection for it, and a proxy closes it.
    pub fn is_for_want_of_connections(&self) -> bool {
        match self {
            Self::Connect { source, .. } => {
                source.kind() == io::ErrorKind::TimedOut || is_closed(source)
            }
            Self::Io(source) => source.kind() == io::ErrorKind::TimedOut,
            Self::NoServer(errors) => errors.iter().any(Self::is_for_want_of_connections),
            _ => self.server_error().is_some_and(ServerError::is_connection_limit),
        }
    }

    /// Returns whether the server requests a password and none was found.
    pub fn is_password_missing(&self) -> bool {
        matches!(self, Self::Startup { source: StartupError::PasswordMissing, .. })
    }

    /// Returns whether the server refused a statement or the connection because the role lacks a privilege.
    pub fn is_privilege_missing(&self) -> bool {
        self.sqlstate() == SqlState::INSUFFICIENT_PRIVILEGE
    }

    /// Returns the error that the server sent, if there is one.
    fn server_error(&self) -> Option<&ServerError> {
        match self {
            Self::Startup { source: StartupError::Server(error), .. }
            | Self::Server(error)
            | Self::Closed(Some(error)) => Some(error),
            _ => None,
        }
    }

    /// Returns the server's SQLSTATE if it sent one, otherwise one of class 08 (connection exception).
    pub fn sqlstate(&self) -> SqlState {
        if let Some(error) = self.server_error() {
            return error.sqlstate;
        }
        match self {
            Self::Protocol(_) => SqlState::PROTOCOL_VIOLATION,
            Self::Closed(None) | Self::Io(_) | Self::NoReply { .. } => SqlState::CONNECTION_FAILURE,
            _ => SqlState::CANNOT_CONNECT,
        }
    }
}

/// Whether an error of a socket is that the server closed the connection.
pub(super) fn is_closed(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::UnexpectedEof
    )
}

fn usable_text(nodes: usize, usable: usize) -> String {
    if nodes == usable {
        return String::new();
    }
    let allowed = number_of(usable as u64, "node");
    format!(", but --spread and the statements of the run allow only {allowed}")
}

fn connect_hint(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::ConnectionRefused => "; is the server running on this host and port?",
        io::ErrorKind::NotFound => "; is the server running, and is this its socket directory?",
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
            "; the server did not respond in time (connect_timeout)"
        }
        _ => "",
    }
}

/// The server rejects a connection; all other causes are on the client's side.
fn startup_failure(source: &StartupError) -> &'static str {
    match source {
        StartupError::Server(_) => "connection rejected by",
        _ => "cannot log in to",
    }
}

fn startup_hint(source: &StartupError) -> &'static str {
    match source {
        StartupError::PasswordMissing => {
            "; set PGPASSWORD, or add the password to ~/.pgpass or to the connection string"
        }
        StartupError::Server(error) => match error.sqlstate {
            SqlState::INVALID_PASSWORD => "; check the user name and the password",
            SqlState::TOO_MANY_CONNECTIONS => {
                "; use fewer sessions, or increase max_connections (embedded server: --server-set max_connections=N)"
            }
            SqlState::INVALID_CATALOG_NAME => {
                "; create the database first, or connect to another one"
            }
            _ if error.is_connection_limit() => {
                "; use fewer sessions, or increase the limit of the pooler"
            }
            _ => "",
        },
        _ => "",
    }
}

fn closing_reason(error: Option<&ServerError>) -> String {
    error.map_or_else(String::new, |error| format!(": {}", one_line(&error.to_string())))
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
