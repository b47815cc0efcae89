//! The keeper: a small process that is the server's parent and outlives every riops process that
//! uses the server.
//!
//! It starts the server, reports this on its standard output, and then waits until the server exits
//! or no process holds the lock on `users.lock`. In the second case it stops the server: with a
//! checkpoint if the last user exited normally, immediately if it was killed. If the keeper itself
//! is killed, the kernel's parent-death signal stops the server.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use super::account::Account;
use super::postmaster::{self, POLL_INTERVAL, ShutdownMode};
use crate::host::Interrupt;

/// The specification of the server to run, passed as JSON on the keeper's standard input.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KeeperSpec {
    /// Path of the `postgres` program.
    pub(super) program: PathBuf,
    /// Arguments of the program.
    pub(super) arguments: Vec<String>,
    /// User that the server runs as.
    pub(super) account: Account,
    /// Home directory of the server.
    pub(super) home: PathBuf,
}

/// The line that the keeper prints when the server accepts connections; any other text is an error.
pub(super) const READY: &str = "ready";
/// How often a persistent server is checked.
const PERSISTENT_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Runs a server until it exits; the body of the keeper process.
///
/// # Errors
/// The server cannot be started; the same error is written to the standard output.
pub fn run(input: &mut impl io::Read, output: &mut impl Write) -> io::Result<()> {
    // Ctrl-C on the terminal must reach riops, but not the keeper and the server. This fails only
    // for a process group leader, which the keeper is not.
    let _ = rustix::process::setsid();
    let spec: KeeperSpec = serde_json::from_reader(input)?;
    let data = spec.home.join("data");
    let mut server = spawn(&spec).or_else(|error| {
        writeln!(output, "{error}")?;
        Err(error)
    })?;
    let pid = i32::try_from(server.id()).unwrap_or_default();
    let is_ready = || postmaster::pid_file(&data).is_some_and(|file| file.pid == pid && file.ready);
    while !is_ready() {
        if let Some(status) = server.try_wait()? {
            writeln!(output, "exited during startup ({status})")?;
            return Err(io::Error::other("the server exited during startup"));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    // If the process that waits for this line has exited, the lock is free and the server is stopped.
    let _ = writeln!(output, "{READY}").and_then(|()| output.flush());
    std::thread::spawn(move || stop_when_unused(&spec.home, pid));
    server.wait().map(drop)
}

/// Waits until no process uses the server, and stops it.
fn stop_when_unused(home: &Path, pid: i32) {
    let persistent = home.join("persistent");
    // Without the lock file the users are unknown: the server runs until `riops server stop`.
    let Ok(users) = File::options().write(true).open(home.join("users.lock")) else {
        return;
    };
    loop {
        while persistent.exists() {
            std::thread::sleep(PERSISTENT_POLL_INTERVAL);
        }
        if users.lock().is_err() {
            return;
        }
        if !persistent.exists() {
            break;
        }
        // The last user made the server persistent.
        let _ = users.unlock();
    }
    let mode =
        if home.join("leaving").exists() { ShutdownMode::Fast } else { ShutdownMode::Immediate };
    // Nothing reads the output of the keeper, which runs until the server has exited.
    let _ = postmaster::stop(&home.join("data"), pid, mode, &Interrupt::new());
}

fn spawn(spec: &KeeperSpec) -> io::Result<Child> {
    let mut options = File::options();
    options.append(true).custom_flags(OFlags::NOFOLLOW.bits().cast_signed());
    let log = options.open(spec.home.join("server.log"))?;
    command(&spec.program, &spec.account, &spec.home)
        .args(&spec.arguments)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .process_group(0)
        .spawn()
}

/// Returns a command that runs as the server's user, in the home directory, with a clean environment. The kernel stops
/// the command when the thread that starts it exits. Callers are the main threads of the keeper and of riops, which
/// live as long as their processes.
#[cfg_attr(
    target_os = "linux",
    expect(unsafe_code, reason = "the parent-death signal can only be set between fork and exec")
)]
pub(super) fn command(program: &Path, account: &Account, home: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().env("LC_ALL", "C").env("TZ", "UTC").current_dir(home);
    if account.switched {
        command.uid(account.uid).gid(account.gid);
    }
    // SAFETY: prctl is async-signal-safe, and the closure allocates nothing and takes no lock.
    #[cfg(target_os = "linux")]
    unsafe {
        command.pre_exec(|| {
            // SIGQUIT requests an immediate shutdown: all server processes exit, and the next start
            // runs crash recovery. Set after the change of the user, which would clear it.
            rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::QUIT))?;
            Ok(())
        });
    }
    command
}
