//! An embedded PostgreSQL server, used when no other server is specified.
//!
//! Several riops processes can share one server, so it must not depend on the process that started
//! it. Every riops process that uses the server holds a shared lock on `users.lock`. A small keeper
//! process is the server's parent: it waits for an exclusive lock on that file, and stops the server
//! when it gets it. The kernel releases a lock even if its holder is killed with SIGKILL.
//!
//! Files in the home directory of a server: `data/` and `socket/` (the server's), `state.json`
//! (address and password of the running server), `users.lock`, `start.lock`, `persistent` (created
//! by `riops server start`: keep running without users), `leaving` (a user exited normally, so
//! there is time for a clean shutdown), `server.log`, `initdb.riops/` and `initdb.lock` (see `work`).
//!
//! # Life of the server
//!
//! `server/embedded` downloads PostgreSQL once (with the checksum pinned in `download`) or uses an installed one,
//! creates a data directory, and starts and stops the server. The life of the server does not depend on a single
//! riops process:
//!
//! - Every user of the server holds a shared lock on `users.lock`.
//! - The **keeper** (`riops server keep`, a process in its own session) is the parent process of the server and
//!   waits for the exclusive lock. When it gets the lock, no process uses the server any more, regardless of how
//!   they ended, and the keeper stops the server. The shutdown is fast, with a checkpoint, if the last user
//!   exited normally (`leaving`), and immediate if it was killed. While the file `persistent` exists (created by
//!   `server start`), the keeper leaves the server running.
//! - `mark` proves that riops initialized a data directory: nothing else is stopped, overwritten or removed.
//! - If the keeper is killed, the parent-death signal of the kernel stops the server. This is unsafe
//!   code, because the signal can only be set between fork and exec.
//! - A process is identified as the server only if it is a postgres process and its working directory is the data
//!   directory. In containers where the working directory is not visible, its command line, or its parent's command
//!   line, must name the data directory.
//!
//! `state` renames the superuser of a data directory that an earlier riops initialized.
//!
//! If riops runs as root, the server runs as an unprivileged user (`account`), and every directory on the path
//! must be accessible to that user (`places`).

mod account;
mod binaries;
mod cache;
mod cluster;
#[cfg(test)]
mod crash_tests;
#[cfg(feature = "embedded")]
mod download;
mod error;
mod files;
mod home;
mod keeper;
mod mark;
mod options;
mod places;
mod postmaster;
mod state;
mod work;

use std::fs::File;
use std::path::{Path, PathBuf};

pub use account::Account;
pub use cluster::enable_statement_statistics;
pub use error::EmbeddedError;
pub use home::Home;
pub use keeper::{KeeperSpec, run as run_keeper};
pub use options::Options;
pub use postmaster::ShutdownMode;
pub use state::{DATABASE, State, USER};

use crate::host::Interrupt;
use binaries::Binaries;
use error::Result;
use files::{await_lock, file, remove_marker, write_private};
use work::WorkDirectory;

/// The embedded server in use by this process. Dropping it releases the server, and stops it
/// cleanly if no other process uses it.
#[derive(Debug)]
pub struct Embedded {
    home: Home,
    state: State,
    users: Option<File>,
    interrupt: Interrupt,
}

impl Embedded {
    /// Uses the running server, or starts one. If necessary, downloads the server, creates its data
    /// directory and cleans up after a crash. `keeper` is the program that becomes the keeper
    /// process when it is called with `server keep`; `notify` receives notices for the user.
    ///
    /// # Errors
    /// [`EmbeddedError`] if the server cannot be downloaded, initialized or started, or is running
    /// with other settings.
    pub fn acquire(
        options: &Options,
        keeper: &Path,
        interrupt: &Interrupt,
        notify: &dyn Fn(&str),
    ) -> Result<Self> {
        let account = Account::choose(options.user.as_deref())?;
        let binaries = Binaries::find(options, &account, interrupt, notify)?;
        let home = places::home(options, &binaries, &account)?;
        mark::require_usable(&home)?;
        let users = home.open_lock("users.lock")?;
        // Waits only while a keeper stops the server.
        await_lock(interrupt, &home.path("users.lock"), || users.try_lock_shared(), &|| {})?;
        let starting = home.open_lock("start.lock")?;
        await_lock(interrupt, &home.path("start.lock"), || starting.try_lock(), &|| {
            notify("waiting for another riops process to start the embedded server");
        })?;
        let account = match options.user {
            None => Account::owner_of(&home.data()).unwrap_or(account),
            Some(_) => account,
        };
        let state = match home.running() {
            Some(state) => {
                require_same_binaries(&state, options, &binaries.bin)?;
                check_settings(&state, options)?;
                state
            }
            None => cluster::start(&home, &binaries, &account, options, keeper, interrupt, notify)?,
        };
        remove_marker(&home.path("leaving"))?;
        Ok(Self { home, state, users: Some(users), interrupt: interrupt.clone() })
    }

    /// Returns the state of the running server.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// Keeps the server running without users, until `stop`.
    ///
    /// # Errors
    /// [`EmbeddedError::File`] if the marker file cannot be written.
    pub fn make_persistent(&self) -> Result<()> {
        write_private(&self.home.path("persistent"), b"")
    }

    /// Releases the server. The last user stops it, unless it is persistent.
    ///
    /// # Errors
    /// [`EmbeddedError::File`] if the marker file cannot be written or the lock fails.
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
        // From now on the server can be shut down cleanly, also by the keeper.
        write_private(&self.home.path("leaving"), b"")?;
        let lock_path = self.home.path("users.lock");
        users.unlock().map_err(file("unlock", &lock_path))?;
        if users.try_lock().is_ok() {
            let (data, pid) = (self.home.data(), self.state.pid);
            postmaster::stop(&data, pid, ShutdownMode::Fast, &self.interrupt)?;
        } else {
            // If the keeper got the lock first, it releases the lock after it has stopped the server.
            postmaster::await_shutdown(&self.interrupt, || users.try_lock_shared().is_ok());
        }
        Ok(())
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        // Drop cannot report an error, and the keeper stops the server in any case.
        let _ = self.release();
    }
}

/// Rejects a running server of another installation than the chosen one: all of a major version have one data directory.
fn require_same_binaries(state: &State, options: &Options, bin: &Path) -> Result<()> {
    let real = |folder: &Path| folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    if options.server_dir.is_none() || real(&state.bin_dir) == real(bin) {
        return Ok(());
    }
    let running = format!("the programs of {}", state.bin_dir.display());
    Err(EmbeddedError::SettingsConflict { running, requested: bin.display().to_string() })
}

/// Rejects settings that differ from the settings of the running server, instead of ignoring them.
fn check_settings(state: &State, options: &Options) -> Result<()> {
    if let Some(port) = options.port.filter(|&port| port != state.port) {
        let (running, requested) = (format!("port {}", state.port), port.to_string());
        return Err(EmbeddedError::SettingsConflict { running, requested });
    }
    for (name, requested) in &options.settings {
        let setting = state.settings.iter().rev().find(|(known, _)| known == name);
        let running = setting.map_or("its default", |(_, value)| value.as_str());
        if running != requested {
            let (running, requested) = (format!("{name}={running}"), requested.clone());
            return Err(EmbeddedError::SettingsConflict { running, requested });
        }
    }
    Ok(())
}

/// The status that `riops server status` reports.
#[derive(Debug, Clone)]
pub struct Status {
    /// The server's home directory.
    pub home: Home,
    /// The running server; `None` if it is stopped.
    pub running: Option<State>,
    /// Whether it keeps running without users.
    pub persistent: bool,
    /// Whether a riops process is using it.
    pub in_use: bool,
}

/// Returns the directory of downloads and builds, which the server's user can read. Creates it.
///
/// # Errors
/// [`EmbeddedError`] if the server's user cannot be determined, or no directory is suitable.
pub fn cache_directory(options: &Options) -> Result<PathBuf> {
    cache::cache(options, &Account::choose(options.user.as_deref())?)
}

/// Returns the status of the server without starting it; `None` if it has never been started.
///
/// # Errors
/// [`EmbeddedError`] if the server's user cannot be determined or its files cannot be accessed.
pub fn status(options: &Options) -> Result<Option<Status>> {
    let Some(home) = places::existing_home(options)? else {
        return Ok(None);
    };
    let users = home.open_lock("users.lock")?;
    let in_use = users.try_lock().is_err();
    Ok(Some(Status { running: home.running(), persistent: home.is_persistent(), in_use, home }))
}

/// Stops the server; with `force`, even if another riops process is using it. Returns whether it was
/// running.
///
/// # Errors
/// [`EmbeddedError::InUse`] without `force`, if another riops process is using the server, or
/// [`EmbeddedError::StillRunning`] if it did not stop.
pub fn stop(options: &Options, force: bool, interrupt: &Interrupt) -> Result<bool> {
    match places::existing_home(options)? {
        Some(home) => stop_home(&home, force, interrupt).map(|(ran, _lock)| ran),
        None => Ok(false),
    }
}

/// Also returns the lock that prevents other processes from starting the server, if it was acquired.
fn stop_home(home: &Home, force: bool, interrupt: &Interrupt) -> Result<(bool, Option<File>)> {
    let users = home.open_lock("users.lock")?;
    let alone = users.try_lock().is_ok();
    if !alone && !force {
        return Err(EmbeddedError::InUse);
    }
    home.require_no_other_server()?;
    remove_marker(&home.path("persistent"))?;
    let data = home.data();
    // `state.json` may be lost; the server's own file has the process as well.
    let running = home.running().map(|state| state.pid).or_else(|| {
        let pid_file = postmaster::pid_file(&data)?;
        postmaster::is_running(&data, pid_file.pid).then_some(pid_file.pid)
    });
    if let Some(pid) = running {
        postmaster::stop(&data, pid, ShutdownMode::Fast, interrupt)?;
    }
    Ok((running.is_some(), alone.then_some(users)))
}

/// Returns the data directory that [`reset`] would remove; `None` if there is none.
///
/// # Errors
/// [`EmbeddedError::Foreign`] if riops did not initialize it.
pub fn data_to_reset(options: &Options) -> Result<Option<PathBuf>> {
    let home = places::existing_home(options)?;
    if let Some(home) = &home {
        mark::require_removable(home)?;
    }
    let has_data = |home: &Home| home.data().exists() || WorkDirectory::is_left(home);
    Ok(home.filter(has_data).map(|home| home.data()))
}

/// Stops the server and removes its data.
///
/// # Errors
/// [`EmbeddedError`] as in [`stop`] and [`data_to_reset`]; the data are then kept. [`EmbeddedError::File`] if the data
/// cannot be removed.
pub fn reset(options: &Options, force: bool, interrupt: &Interrupt) -> Result<()> {
    let Some(home) = places::existing_home(options)? else {
        return Ok(());
    };
    mark::require_removable(&home)?;
    let (_, _lock) = stop_home(&home, force, interrupt)?;
    // Stopping takes time: the directory may have been replaced.
    mark::require_removable(&home)?;
    postmaster::kill_leftovers(&home.data())?;
    remove_data(&home, interrupt)
}

/// Removes the data directory, and what a killed process has left of an earlier one.
fn remove_data(home: &Home, interrupt: &Interrupt) -> Result<()> {
    let data = home.data();
    // Moved first: without some of its files, it would not be recognized after an interruption.
    let work = WorkDirectory::create(home, interrupt)?;
    if data.exists() {
        work.take(&data)?;
    }
    work.remove()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_running_server_of_another_installation_is_not_used() {
        let text = r#"{"pid": 1, "port": 5432, "socket_dir": "/tmp", "password": "p", "bin_dir": "/a/bin",
            "version": "18.6", "settings": []}"#;
        let state: State = serde_json::from_str(text).unwrap();
        let chosen = Options { server_dir: Some("/a".into()), ..Options::default() };
        assert!(require_same_binaries(&state, &chosen, Path::new("/a/bin")).is_ok());
        let error = require_same_binaries(&state, &chosen, Path::new("/b/bin")).unwrap_err();
        assert!(error.to_string().contains("the programs of /a/bin, not /b/bin"), "{error}");
        // The downloaded one is found again after an update of riops.
        assert!(require_same_binaries(&state, &Options::default(), Path::new("/b/bin")).is_ok());
    }
}
