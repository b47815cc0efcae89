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
mod cache;
mod cluster;
#[cfg(feature = "embedded")]
mod download;
mod error;
mod files;
mod home;
mod installed;
mod keeper;
mod options;
mod places;
mod postmaster;
mod state;

use std::fs::{self, File};
use std::path::Path;

pub use account::Account;
pub use error::EmbeddedError;
pub use home::Home;
pub use keeper::{KeeperSpec, run as run_keeper};
pub use options::Options;
pub use postmaster::ShutdownMode;
pub use state::{DATABASE, State, USER};

use super::conninfo::ConnInfo;
use crate::host::Interrupt;
use binaries::Binaries;
use error::Result;
use files::{absent, file, remove_marker, try_lock};

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
