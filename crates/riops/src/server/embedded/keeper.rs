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
    let persistent = home.join("persistent");
    // Without the lock users cannot be told apart: then the server stays until it is stopped.
    let Ok(users) = File::options().write(true).open(home.join("users.lock")) else {
        return;
    };
    loop {
        while persistent.exists() {
            std::thread::sleep(PERSISTENT_CHECK);
        }
        if users.lock().is_err() {
            return;
        }
        if !persistent.exists() {
            break;
        }
        // The last user has asked for it to stay.
        let _ = users.unlock();
    }
    let mode =
        if home.join("leaving").exists() { ShutdownMode::Fast } else { ShutdownMode::Immediate };
    postmaster::stop(&home.join("data"), pid, mode);
}

fn spawn(spec: &KeeperSpec) -> io::Result<Child> {
    let log = File::options().append(true).open(spec.home.join("server.log"))?;
    command(&spec.program, &spec.account, &spec.home)
        .args(&spec.arguments)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .process_group(0)
        .spawn()
}

/// A command that runs as the server's user, in its home, with an environment of its own, and not
/// longer than the thread that starts it: the keeper's and the command's main threads, which live
/// as long as their processes.
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
            // SIGQUIT is the server's immediate shutdown: all its processes end, and the next
            // start recovers. Set here, since a change of the user would clear it.
            rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::QUIT))?;
            Ok(())
        });
    }
    command
}

/// Makes an empty log that the keeper, and the server through it, appends to.
pub(super) fn new_log(path: &Path) -> io::Result<()> {
    fs::write(path, b"")
}
