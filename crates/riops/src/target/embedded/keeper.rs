//! The keeper: a small process that is the server's parent and outlives every riops that uses it.
//!
//! It starts the server, says so on its standard output, and then waits for either of two things:
//! the server ends, or nobody holds the lock on `users.lock` any more. In the second case it stops
//! the server: with time for a checkpoint where the last user left in good order, at once where it
//! was killed. Should the keeper itself be killed, the kernel's parent-death signal stops the
//! server.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::account::Account;
use super::postmaster::{self, LOOK_AGAIN, ShutdownMode};

/// What the keeper has to know; it comes as JSON on its standard input.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct KeeperSpec {
    /// The server's program.
    pub(super) program: PathBuf,
    /// Its arguments.
    pub(super) arguments: Vec<String>,
    /// Its user.
    pub(super) account: Account,
    /// The home folder.
    pub(super) home: PathBuf,
}

/// What the keeper says when the server takes connections; anything else is an error's text.
pub(super) const READY: &str = "ready";
/// Between looks at a server that is to stay although nobody uses it.
const PERSISTENT_CHECK: Duration = Duration::from_secs(1);

/// Runs a server to its end; the body of the keeper process.
///
/// # Errors
/// Where the server cannot be started; the same text went to the standard output.
pub fn run(input: &mut impl io::Read, output: &mut impl Write) -> io::Result<()> {
    // A Ctrl-C on the terminal is for riops; the server's end is decided here. This fails only
    // for the leader of a group, which the keeper is not.
    let _ = rustix::process::setsid();
    let spec: KeeperSpec = serde_json::from_reader(input)?;
    let data = spec.home.join("data");
    let mut server = match spawn(&spec) {
        Ok(server) => server,
        Err(error) => {
            writeln!(output, "{error}")?;
            return Err(error);
        }
    };
    while postmaster::pid_file(&data) != Some((pid_of(&server), true)) {
        if let Some(status) = server.try_wait()? {
            writeln!(output, "it ended while starting ({status})")?;
            return Err(io::Error::other("the server ended while starting"));
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    // Whoever waits for this line may be gone: then the lock is free, and the server is stopped.
    let _ = writeln!(output, "{READY}").and_then(|()| output.flush());
    let pid = pid_of(&server);
    std::thread::spawn(move || stop_when_unused(&spec.home, pid));
    server.wait().map(drop)
}

fn pid_of(server: &Child) -> i32 {
    i32::try_from(server.id()).unwrap_or_default()
}

/// Waits until nobody uses the server, and stops it.
fn stop_when_unused(home: &Path, pid: i32) {
    let data = home.join("data");
    let users = File::options().write(true).open(home.join("users.lock"));
    loop {
        let locked = users
            .as_ref()
            .map_err(|error| io::Error::from(error.kind()))
            .and_then(File::lock);
        if home.join("persistent").exists() {
            let _ = users.as_ref().map(File::unlock);
            std::thread::sleep(PERSISTENT_CHECK);
            continue;
        }
        // Without the lock nobody can be told apart: then the server stays until it is stopped.
        if locked.is_ok() {
            let mode = if home.join("leaving").exists() {
                ShutdownMode::Fast
            } else {
                ShutdownMode::Immediate
            };
            postmaster::stop(&data, pid, mode);
        }
        return;
    }
}

#[expect(
    unsafe_code,
    reason = "the parent-death signal can only be set between fork and exec"
)]
fn spawn(spec: &KeeperSpec) -> io::Result<Child> {
    let log = File::options()
        .append(true)
        .open(spec.home.join("server.log"))?;
    let mut command = command(&spec.program, &spec.account, &spec.home);
    command
        .args(&spec.arguments)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .process_group(0);
    // SAFETY: prctl is async-signal-safe, and the closure allocates nothing and takes no lock.
    #[cfg(target_os = "linux")]
    unsafe {
        command.pre_exec(|| {
            // SIGQUIT is the immediate shutdown: all processes end, the next start recovers.
            rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::QUIT))?;
            Ok(())
        });
    }
    command.spawn()
}

/// A command that runs as the server's user, in its home, with an environment of its own.
pub(super) fn command(program: &Path, account: &Account, home: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("LC_ALL", "C")
        .env("TZ", "UTC")
        .current_dir(home);
    if account.switched {
        command.uid(account.uid).gid(account.gid);
    }
    command
}

/// Makes an empty log that the keeper, and the server through it, appends to.
pub(super) fn new_log(path: &Path) -> io::Result<()> {
    fs::write(path, b"")
}
