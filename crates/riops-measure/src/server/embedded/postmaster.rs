//! The server's processes: checks whether the server is running and ready, and stops it.
//!
//! A process belongs to the server only if its program is `postgres` and its working directory is the
//! server's data directory. Process ids are reused, and riops must not stop processes it did not start.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::error::{EmbeddedError, Result};
use crate::host::Interrupt;
use crate::host::files::{TEXT_BYTES_MAX, open_plain, rest_limited};
use crate::host::process::{self, Stat};

/// PostgreSQL's shutdown modes, as in `pg_ctl stop --mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShutdownMode {
    /// Terminates all sessions and writes a checkpoint; the next start needs no recovery.
    Fast,
    /// Stops at once; the next start runs crash recovery.
    Immediate,
}

/// How often the state of a process is checked while it starts or stops.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// Long enough for a checkpoint of 1 GB on a slow disk.
const FAST_TIMEOUT: Duration = Duration::from_mins(1);
/// The postmaster kills its child processes after 5 s.
const IMMEDIATE_TIMEOUT: Duration = Duration::from_secs(7);

/// Returns whether the process belongs to this server: a `postgres` process whose working directory
/// is this data directory.
pub(super) fn is_running(data: &Path, pid: i32) -> bool {
    if !Path::new("/proc/self").exists() {
        return is_postmaster_by_ps(data, pid);
    }
    let is_postgres = process::read(pid, "comm").is_some_and(|name| name.trim() == "postgres");
    let Ok(data) = fs::canonicalize(data) else {
        return false;
    };
    is_postgres
        // Not by its path, which is another one in the mount namespace of a container.
        && match fs::metadata(format!("/proc/{pid}/cwd/.")) {
            Ok(cwd) => fs::metadata(&data)
                .is_ok_and(|own| (own.dev(), own.ino()) == (cwd.dev(), cwd.ino())),
            // In a container, root may not be permitted to read the working directory of another
            // user's process. Command lines are readable, but backends overwrite theirs, so the
            // parent's is checked as well.
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                is_started_on(pid, &data)
                    || Stat::read(pid).is_some_and(|stat| is_started_on(stat.parent, &data))
            }
            Err(_) => false,
        }
}

/// Returns whether the process is the server's postmaster, on systems without /proc.
fn is_postmaster_by_ps(data: &Path, pid: i32) -> bool {
    let ps = Command::new("ps").args(["-ww", "-o", "args=", "-p", &pid.to_string()]).output();
    let line =
        ps.map_or_else(|_| String::new(), |ps| String::from_utf8_lossy(&ps.stdout).into_owned());
    let data = fs::canonicalize(data).unwrap_or_else(|_| data.to_owned());
    line.contains("postgres") && line.contains(&format!(" -D {}", data.display()))
}

/// Returns whether the command line of the process contains the data directory.
fn is_started_on(pid: i32, data: &Path) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|&byte| byte == 0).any(|argument| argument == data.as_os_str().as_encoded_bytes())
}

/// The contents of `postmaster.pid`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PidFile {
    pub(super) pid: i32,
    /// Start time of the postmaster, in seconds since 1970.
    pub(super) started: String,
    /// Whether the server accepts connections.
    pub(super) ready: bool,
}

/// Reads `postmaster.pid`; `None` if it does not exist.
pub(super) fn pid_file(data: &Path) -> Option<PidFile> {
    let mut file = open_plain(&data.join("postmaster.pid")).ok()?;
    let text = String::from_utf8(rest_limited(&mut file, TEXT_BYTES_MAX).ok()?).ok()?;
    let mut lines = text.lines();
    let pid = lines.next()?.trim().parse().ok()?;
    // Line 3 is the start time; line 8 the status: starting, stopping, ready, standby.
    let started = lines.nth(1).unwrap_or_default().trim().to_owned();
    let ready = lines.nth(4).is_some_and(|status| matches!(status.trim(), "ready" | "standby"));
    Some(PidFile { pid, started, ready })
}

/// Stops the server in the given mode and waits until it has exited. Escalates to an immediate
/// shutdown and then to SIGKILL.
///
/// # Errors
/// As [`kill_leftovers`].
pub(super) fn stop(data: &Path, pid: i32, mode: ShutdownMode, interrupt: &Interrupt) -> Result<()> {
    if mode == ShutdownMode::Fast && send(data, pid, Signal::INT) {
        await_shutdown(interrupt, || !is_running(data, pid));
    }
    if send(data, pid, Signal::QUIT) {
        wait_until(IMMEDIATE_TIMEOUT, || !is_running(data, pid));
    }
    kill_leftovers(data)
}

/// Kills all remaining processes of this server. Backends that outlive a killed postmaster hold its shared memory and would
/// prevent the next start.
///
/// # Errors
/// [`EmbeddedError::StillRunning`] if processes survived: the kernel cannot end a process during some I/O, and riops
/// must not end a process of another user.
pub(super) fn kill_leftovers(data: &Path) -> Result<()> {
    let leftovers = || -> Vec<i32> {
        process::ids(Path::new("/proc")).filter(|&pid| is_running(data, pid)).collect()
    };
    let killed: Vec<i32> =
        leftovers().into_iter().filter(|&pid| send(data, pid, Signal::KILL)).collect();
    wait_until(IMMEDIATE_TIMEOUT, || !killed.iter().any(|&pid| is_running(data, pid)));
    let survivors = leftovers();
    if survivors.is_empty() { Ok(()) } else { Err(EmbeddedError::StillRunning(survivors)) }
}

/// Sends a signal to a process of this server. Returns whether it was sent: not to a process of another user, or one
/// that has exited. The process is checked after its descriptor was opened, so that its id cannot be reused meanwhile.
#[cfg(target_os = "linux")]
fn send(data: &Path, pid: i32, signal: Signal) -> bool {
    use rustix::io::Errno;
    use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
    let Some(id) = Pid::from_raw(pid) else {
        return false;
    };
    match pidfd_open(id, PidfdFlags::empty()) {
        Ok(process) => is_running(data, pid) && pidfd_send_signal(process, signal).is_ok(),
        // Before Linux 5.3, or forbidden by a profile of a container.
        Err(Errno::NOSYS | Errno::PERM) => {
            is_running(data, pid) && kill_process(id, signal).is_ok()
        }
        Err(_) => false,
    }
}

/// Sends a signal to a process of this server. Returns whether it was sent.
#[cfg(not(target_os = "linux"))]
fn send(data: &Path, pid: i32, signal: Signal) -> bool {
    is_running(data, pid) && Pid::from_raw(pid).is_some_and(|id| kill_process(id, signal).is_ok())
}

/// Removes `postmaster.pid` if the process in it does not belong to this server.
pub(super) fn remove_stale_pid_file(data: &Path) {
    if let Some(file) = pid_file(data)
        && !is_running(data, file.pid)
    {
        let _ = fs::remove_file(data.join("postmaster.pid"));
    }
}

/// Waits until a fast shutdown is done, or a signal ends the wait: the next start recovers the data. An interruption before
/// the shutdown has ended what preceded it.
pub(super) fn await_shutdown(interrupt: &Interrupt, done: impl Fn() -> bool) {
    let was_requested = interrupt.is_requested();
    wait_until(FAST_TIMEOUT, || done() || !was_requested && interrupt.is_requested());
}

fn wait_until(timeout: Duration, done: impl Fn() -> bool) {
    let deadline = Instant::now() + timeout;
    while !done() && Instant::now() < deadline {
        std::thread::sleep(POLL_INTERVAL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_another_working_directory_is_not_the_server() {
        let data = tempfile::tempdir().unwrap();
        let me = i32::try_from(std::process::id()).unwrap();
        assert!(!is_running(data.path(), me));
        // The working directory matches, but the program is not postgres.
        assert!(!is_running(&std::env::current_dir().unwrap(), me));
    }

    #[test]
    fn a_pid_file_of_another_process_is_stale() {
        let data = tempfile::tempdir().unwrap();
        let file = data.path().join("postmaster.pid");
        let me = std::process::id();
        fs::write(&file, format!("{me}\n/x\n1\n5432\n/tmp\n127.0.0.1\n1 2\nready   \n")).unwrap();
        let contents =
            PidFile { pid: i32::try_from(me).unwrap(), started: "1".to_owned(), ready: true };
        assert_eq!(pid_file(data.path()), Some(contents));
        remove_stale_pid_file(data.path());
        assert!(!file.exists());
        fs::write(&file, "").unwrap();
        assert_eq!(pid_file(data.path()), None);
        // A device without an end.
        fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &file).unwrap();
        assert_eq!(pid_file(data.path()), None);
    }
}
