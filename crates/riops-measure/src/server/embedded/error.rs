//! Errors of the embedded server.

use std::io;
use std::path::PathBuf;

use crate::server::connection::ConnectionError;

/// Why the embedded server cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddedError {
    /// None of the candidates for the cache directory can be used.
    #[error(
        "no usable directory for the embedded server (tried {0}); set RIOPS_CACHE_DIR to a writable directory"
    )]
    NoCacheDir(String),
    /// An operation on a file or directory failed.
    #[error("cannot {action} \"{path}\": {source}{}", file_hint(.source))]
    File {
        /// The operation, a verb phrase that follows "cannot".
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// No operating system user can run the server.
    #[error(
        "cannot choose an operating system user for the embedded server: {0}; specify an unprivileged user with --server-user (as root), run riops as an unprivileged user, or use another server with --database"
    )]
    NoAccount(String),
    /// The server's user has no access to a directory.
    #[error(
        "the user {account}, who runs the embedded server, has no access to directory \"{folder}\"; choose another directory with RIOPS_CACHE_DIR or --server-data"
    )]
    NotTraversable {
        /// Name of the server's user.
        account: String,
        /// The first directory on the path without search permission.
        folder: PathBuf,
    },
    /// The server cannot be started as requested.
    #[error("{0}")]
    NoServer(String),
    /// The download failed.
    #[error(
        "cannot download PostgreSQL {version}: {cause}\n  hint: check the network and the proxy settings (HTTPS_PROXY) and try again,\n  or use an installed server (--server-dir {server_dir}),\n  or use a running server (--database postgresql://…)"
    )]
    Download {
        /// The version.
        version: &'static str,
        /// The cause.
        cause: String,
        /// Directory of an installed server, otherwise an example.
        server_dir: String,
    },
    /// A program of the server failed.
    #[error("{program} failed: {cause}{}", log_hint(.log))]
    Program {
        /// Name of the program.
        program: &'static str,
        /// Exit status or error message.
        cause: String,
        /// Last lines of its output.
        log: String,
    },
    /// The running server has other settings.
    #[error(
        "the embedded server is already running with {running}, not {requested}; stop it first with `riops server stop`"
    )]
    SettingsConflict {
        /// The setting of the running server.
        running: String,
        /// The requested value.
        requested: String,
    },
    /// A file or directory that riops would overwrite, stop or remove was not created by it.
    #[error(
        "\"{0}\" was not created by riops: choose another directory with --server-data, or move it away"
    )]
    Foreign(PathBuf),
    /// The data directory is a copy, or of a riops that did not mark it.
    #[error(
        "data directory \"{0}\" is a copy, or of an earlier riops: start it once with `riops server start`, which binds it to this directory"
    )]
    Unbound(PathBuf),
    /// A server that riops did not start uses the data directory.
    #[error(
        "process {pid} is a server on \"{data}\" that riops did not start: stop it with pg_ctl first"
    )]
    ForeignServer {
        /// The data directory.
        data: PathBuf,
        /// Process id of the postmaster.
        pid: i32,
    },
    /// Another process uses the server.
    #[error(
        "the embedded server is in use by another riops process; wait for it to finish, or use --force"
    )]
    InUse,
    /// The server did not stop, not even on SIGKILL.
    #[error(
        "cannot stop the embedded server: processes {} are still running; end them as their user or as root, or wait for their I/O to finish",
        .0.iter().map(i32::to_string).collect::<Vec<_>>().join(", ")
    )]
    StillRunning(Vec<i32>),
    /// The server is not running.
    #[error("the embedded server is not running; start it with `riops server start`")]
    NotRunning,
    /// The path of the socket exceeds the limit of the operating system.
    #[error("the socket directory \"{0}\" exceeds the maximum length of a socket path")]
    SocketPath(PathBuf),
    /// Connecting to the server failed.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// The user interrupted the operation.
    #[error("interrupted")]
    Interrupted,
}

fn file_hint(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::StorageFull => {
            "; free some disk space, or choose another directory with RIOPS_CACHE_DIR or --server-data"
        }
        io::ErrorKind::PermissionDenied
        | io::ErrorKind::ReadOnlyFilesystem
        | io::ErrorKind::NotADirectory => {
            "; choose another directory with RIOPS_CACHE_DIR or --server-data"
        }
        _ => "",
    }
}

fn log_hint(log: &str) -> String {
    if log.is_empty() {
        return String::new();
    }
    let lines: Vec<_> = log.lines().map(|line| format!("\n    {line}")).collect();
    format!("\n  last output:{}", lines.concat())
}

pub(super) type Result<T> = std::result::Result<T, EmbeddedError>;
