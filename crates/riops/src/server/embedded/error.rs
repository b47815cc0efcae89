//! Why there is no embedded server.

use std::io;
use std::path::PathBuf;

use crate::server::connection::ConnectionError;

/// Why there is no embedded server. Each says what to do.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddedError {
    /// No folder can hold the server.
    #[error(
        "no folder for the embedded server: {0}; set RIOPS_CACHE_DIR to a folder that you may write"
    )]
    NoPlace(String),
    /// A folder or a file cannot be used.
    #[error("cannot {action} {path}: {source}{}", file_hint(.source))]
    File {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
    /// Root has to name somebody else.
    #[error(
        "PostgreSQL refuses to run as root, and {0}; name an ordinary user with --server-user, run riops as one, or name another target with --database"
    )]
    NoAccount(String),
    /// The server's user cannot get there.
    #[error(
        "the user {account} cannot enter {folder}, which the server needs; choose another folder with RIOPS_CACHE_DIR or --server-data"
    )]
    NotTraversable {
        /// The server's user.
        account: String,
        /// The first folder that is closed to it.
        folder: PathBuf,
    },
    /// No server to run.
    #[error("{0}")]
    NoServer(String),
    /// The download failed.
    #[error(
        "cannot download PostgreSQL {version}: {cause}\n  what to do: check the network and the proxy settings (HTTPS_PROXY) and try again;\n  or use a server that is installed here (--server-dir {found});\n  or name a running one (--database postgresql://…)"
    )]
    Download {
        /// Which version.
        version: &'static str,
        /// Why.
        cause: String,
        /// The folder of an installed server, or an example.
        found: String,
    },
    /// A program of the server failed.
    #[error("{program} failed: {cause}{}", log_hint(.log))]
    Program {
        /// Its name.
        program: &'static str,
        /// How it ended.
        cause: String,
        /// The end of what it said.
        log: String,
    },
    /// It runs with other settings.
    #[error(
        "the embedded server is already running with {running}, not {wanted}; stop it first (riops server stop)"
    )]
    OtherSettings {
        /// Settings of the running one.
        running: String,
        /// Settings asked for.
        wanted: String,
    },
    /// Others use it.
    #[error("the embedded server is in use by another riops; wait for it, or use --force")]
    InUse,
    /// There is none.
    #[error("the embedded server is not running; start it with: riops server start")]
    NotRunning,
    /// The address of the socket is too long for the system.
    #[error("no folder is short enough for the server's socket: {0}")]
    SocketPath(PathBuf),
    /// Connecting to it failed.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// The user asked to end.
    #[error("interrupted")]
    Interrupted,
}

fn file_hint(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::StorageFull => {
            "; free some space, or choose another folder with RIOPS_CACHE_DIR or --server-data"
        }
        io::ErrorKind::PermissionDenied
        | io::ErrorKind::ReadOnlyFilesystem
        | io::ErrorKind::NotADirectory => {
            "; choose another folder with RIOPS_CACHE_DIR or --server-data"
        }
        _ => "",
    }
}

fn log_hint(log: &str) -> String {
    if log.is_empty() { String::new() } else { format!("\n  it said:\n{}", indented(log)) }
}

fn indented(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(|line| format!("    {line}")).collect();
    lines.join("\n")
}

pub(super) type Result<T> = std::result::Result<T, EmbeddedError>;
