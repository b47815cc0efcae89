//! A PostgreSQL server of riops's own, for everybody who has no other at hand.
//!
//! The life of the server does not hang on the life of one riops. Whoever uses it holds a shared
//! lock on `users.lock`; a small keeper process is the server's parent and waits for the moment in
//! which nobody holds that lock any more, however they went, and then stops the server. A lock is
//! the one thing that the kernel gives back even after SIGKILL.
//!
//! Files of one server, in its home folder: `data/` and `socket/` (the server's), `state.json`
//! (address and password of the running server), `users.lock`, `start.lock`, `persistent` (made
//! by `riops server start`: stay when nobody is left), `leaving` (somebody left in good order:
//! take the time for a clean shutdown), `server.log`.

mod account;
mod binaries;
mod cluster;
#[cfg(feature = "embedded")]
mod download;
mod keeper;
mod places;
mod postmaster;

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use account::Account;
pub use keeper::{KeeperSpec, run as run_keeper};
pub use postmaster::ShutdownMode;

use super::connection::ConnectionError;
use super::conninfo::ConnInfo;
use crate::host::Interrupt;
use binaries::Binaries;

/// The superuser of the embedded server.
pub const USER: &str = "riops";
/// Its database.
pub const DATABASE: &str = "postgres";

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

type Result<T> = std::result::Result<T, EmbeddedError>;

/// Wraps an error of the file system with what was tried on what.
fn file<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> EmbeddedError + 'a {
    move |source| EmbeddedError::File { action, path: path.to_owned(), source }
}

/// What the user decided about the embedded server.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The folder with `bin/postgres`, or that `bin` itself; otherwise the downloaded one.
    pub server_dir: Option<PathBuf>,
    /// The home folder of the server.
    pub data: Option<PathBuf>,
    /// The folder for downloads, and for homes where none is given.
    pub cache: Option<PathBuf>,
    /// The user that the server runs as, where riops runs as root.
    pub user: Option<String>,
    /// A fixed port, instead of a free one.
    pub port: Option<u16>,
    /// The address to listen on, instead of 127.0.0.1: several servers make a cluster.
    pub address: Option<String>,
    /// Settings by name, on top of those fit for a benchmark.
    pub settings: Vec<(String, String)>,
}

fn loopback() -> String {
    "127.0.0.1".to_owned()
}

/// What is known of a running server; kept beside its data for whoever comes next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// The postmaster's process.
    pub pid: i32,
    /// Its port.
    pub port: u16,
    /// Its address.
    #[serde(default = "loopback")]
    pub address: String,
    /// The folder of its socket.
    pub socket_dir: PathBuf,
    /// The superuser's password, for TCP.
    pub password: String,
    /// Where its programs are.
    pub bin_dir: PathBuf,
    /// What `postgres --version` says.
    pub version: String,
    /// The settings that it was started with.
    pub settings: Vec<(String, String)>,
}

/// The folders and files of one server.
#[derive(Debug, Clone)]
pub struct Home {
    folder: PathBuf,
}

impl Home {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The server's data.
    #[must_use]
    pub fn data(&self) -> PathBuf {
        self.path("data")
    }

    /// What the server logs.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.path("server.log")
    }

    /// The home folder itself.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn open_lock(&self, name: &str) -> Result<File> {
        let path = self.path(name);
        File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .open(&path)
            .map_err(file("open", &path))
    }

    fn read_state(&self) -> Option<State> {
        serde_json::from_slice(&fs::read(self.path("state.json")).ok()?).ok()
    }

    /// The state of the server, where it is running.
    fn running(&self) -> Option<State> {
        let state = self.read_state()?;
        postmaster::is_running(&self.data(), state.pid).then_some(state)
    }

    fn is_persistent(&self) -> bool {
        self.path("persistent").exists()
    }
}

/// The embedded server in use by this process. Dropping it leaves the server in good order, and
/// stops it where nobody else uses it.
#[derive(Debug)]
pub struct Embedded {
    home: Home,
    state: State,
    users: Option<File>,
}

impl Embedded {
    /// Uses the running server, or starts one: downloads it, makes its data folder and recovers
    /// what an earlier crash left, as far as each is needed. `keeper` is the program that becomes
    /// the server's keeper when it is called with `server keep`; `notify` takes notices for the
    /// user.
    ///
    /// # Errors
    /// [`EmbeddedError`]
    pub fn acquire(
        options: &Options,
        keeper: &Path,
        interrupt: &Interrupt,
        notify: &dyn Fn(&str),
    ) -> Result<Self> {
        let account = Account::choose(options.user.as_deref())?;
        let binaries = Binaries::find(options, &account, interrupt, notify)?;
        let home = places::home(options, &binaries, &account)?;
        let users = home.open_lock("users.lock")?;
        // Blocks only while a keeper stops the server.
        users.lock_shared().map_err(file("lock", &home.path("users.lock")))?;
        let starting = home.open_lock("start.lock")?;
        if !try_lock(&starting, &home.path("start.lock"))? {
            notify("another riops is starting the embedded server: waiting for it");
            starting.lock().map_err(file("lock", &home.path("start.lock")))?;
        }
        let account = match options.user {
            None => Account::owner_of(&home.data()).unwrap_or(account),
            Some(_) => account,
        };
        let state = match home.running() {
            Some(state) => {
                check_settings(&state, options)?;
                state
            }
            None => cluster::start(&home, &binaries, &account, options, keeper, interrupt, notify)?,
        };
        remove_marker(&home.path("leaving"))?;
        Ok(Self { home, state, users: Some(users) })
    }

    /// How to connect through the socket.
    #[must_use]
    pub fn conninfo(&self) -> ConnInfo {
        self.state.conninfo()
    }

    /// What is known of the server.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Its folders.
    #[must_use]
    pub fn home(&self) -> &Home {
        &self.home
    }

    /// Lets the server run on when nobody uses it any more, until `stop`.
    ///
    /// # Errors
    /// [`EmbeddedError::File`]
    pub fn make_persistent(&self) -> Result<()> {
        let path = self.home.path("persistent");
        fs::write(&path, b"").map_err(file("write", &path))
    }

    /// Stops using the server; the last one to leave stops it, unless it is to stay.
    ///
    /// # Errors
    /// [`EmbeddedError`] where the server does not stop.
    pub fn leave(mut self) -> Result<()> {
        self.release()
    }

    fn release(&mut self) -> Result<()> {
        let Some(users) = self.users.take() else {
            return Ok(());
        };
        if self.home.is_persistent() {
            return Ok(());
        }
        // Whoever stops the server from now on, the keeper included, may take its time.
        let leaving = self.home.path("leaving");
        fs::write(&leaving, b"").map_err(file("write", &leaving))?;
        let lock_path = self.home.path("users.lock");
        users.unlock().map_err(file("unlock", &lock_path))?;
        if users.try_lock().is_ok() {
            postmaster::stop(&self.home.data(), self.state.pid, ShutdownMode::Fast);
        } else if users.try_lock_shared().is_err() {
            // The keeper was quicker: it stops the server and then lets go.
            users.lock_shared().map_err(file("lock", &lock_path))?;
        }
        Ok(())
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        // An error here has no one to hear it; the keeper stops the server in any case.
        let _ = self.release();
    }
}

impl State {
    /// How to connect through the socket.
    #[must_use]
    pub fn conninfo(&self) -> ConnInfo {
        ConnInfo::unix(&self.socket_dir, self.port, USER, DATABASE)
    }

    /// The address of the socket as any client takes it.
    #[must_use]
    pub fn url(&self) -> String {
        let folder = self.socket_dir.display().to_string();
        let encoded =
            percent_encoding::utf8_percent_encode(&folder, percent_encoding::NON_ALPHANUMERIC);
        format!("postgresql://{USER}@/{DATABASE}?host={encoded}&port={}", self.port)
    }

    /// The TCP address as any client takes it, with the password.
    #[must_use]
    pub fn url_tcp(&self) -> String {
        let Self { password, address, port, .. } = self;
        format!("postgresql://{USER}:{password}@{address}:{port}/{DATABASE}")
    }
}

/// Whether the lock was free; a file system without locks is an error.
fn try_lock(lock: &File, path: &Path) -> Result<bool> {
    match lock.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(source)) => Err(file("lock", path)(source)),
    }
}

/// What is not there need not be removed.
fn absent(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn remove_marker(path: &Path) -> Result<()> {
    absent(fs::remove_file(path)).map_err(file("remove", path))
}

/// A running server keeps its settings: asking for others must not be ignored.
fn check_settings(state: &State, options: &Options) -> Result<()> {
    if let Some(port) = options.port.filter(|&port| port != state.port) {
        return Err(EmbeddedError::OtherSettings {
            running: format!("port {}", state.port),
            wanted: port.to_string(),
        });
    }
    for (name, wanted) in &options.settings {
        let found = state.settings.iter().rev().find(|(known, _)| known == name);
        let running = found.map_or("its default", |(_, value)| value.as_str());
        if running != wanted {
            return Err(EmbeddedError::OtherSettings {
                running: format!("{name}={running}"),
                wanted: wanted.clone(),
            });
        }
    }
    Ok(())
}

/// What `riops server status` tells.
#[derive(Debug, Clone)]
pub struct Status {
    /// Its folders.
    pub home: Home,
    /// The running server; `None` where it is stopped.
    pub running: Option<State>,
    /// Whether it stays when nobody uses it.
    pub persistent: bool,
    /// Whether a riops uses it now.
    pub in_use: bool,
}

/// Looks at the server without starting it. `None` where it has never been started.
///
/// # Errors
/// [`EmbeddedError`]
pub fn status(options: &Options) -> Result<Option<Status>> {
    let account = Account::choose(options.user.as_deref())?;
    let Some(home) = places::existing_home(options, &account)? else {
        return Ok(None);
    };
    let users = home.open_lock("users.lock")?;
    let in_use = users.try_lock().is_err();
    Ok(Some(Status { running: home.running(), persistent: home.is_persistent(), in_use, home }))
}

/// Stops the server. With `force` also where another riops uses it. Returns whether one ran.
///
/// # Errors
/// [`EmbeddedError::InUse`]
pub fn stop(options: &Options, force: bool) -> Result<bool> {
    let account = Account::choose(options.user.as_deref())?;
    match places::existing_home(options, &account)? {
        Some(home) => stop_home(&home, force).map(|(ran, _lock)| ran),
        None => Ok(false),
    }
}

/// Also returns the lock that keeps others from starting it again, where it could be had.
fn stop_home(home: &Home, force: bool) -> Result<(bool, Option<File>)> {
    let users = home.open_lock("users.lock")?;
    let alone = users.try_lock().is_ok();
    if !alone && !force {
        return Err(EmbeddedError::InUse);
    }
    remove_marker(&home.path("persistent"))?;
    let running = home.running();
    if let Some(state) = &running {
        postmaster::stop(&home.data(), state.pid, ShutdownMode::Fast);
    }
    Ok((running.is_some(), alone.then_some(users)))
}

/// Stops the server and removes all its data. Returns whether there were any.
///
/// # Errors
/// [`EmbeddedError`]
pub fn reset(options: &Options, force: bool) -> Result<bool> {
    let account = Account::choose(options.user.as_deref())?;
    let Some(home) = places::existing_home(options, &account)? else {
        return Ok(false);
    };
    let (_, _lock) = stop_home(&home, force)?;
    postmaster::end_leftovers(&home.data());
    let data = home.data();
    let existed = data.exists();
    for folder in [data, home.path("data.new")] {
        absent(fs::remove_dir_all(&folder)).map_err(file("remove", &folder))?;
    }
    Ok(existed)
}
