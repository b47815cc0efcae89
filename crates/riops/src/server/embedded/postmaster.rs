//! The running server as the operating system sees it: is it alive, is it ready, make it end.
//!
//! A process counts as this server's only when it is a postgres and its working folder is this
//! server's data folder: process numbers are used again, and what riops did not start it does not end.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// How the server is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShutdownMode {
    /// Ends all sessions, writes a checkpoint: nothing to recover at the next start.
    Fast,
    /// At once; the next start recovers from the log.
    Immediate,
}

/// Between looks at a process that is about to change.
pub(super) const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// A checkpoint of a gigabyte on a slow disk has to fit.
const FAST_TIMEOUT: Duration = Duration::from_mins(1);
/// The postmaster itself gives its children five seconds.
const IMMEDIATE_TIMEOUT: Duration = Duration::from_secs(7);

/// Whether the process is this server's: a postgres that works in this data folder.
pub(super) fn is_running(data: &Path, pid: i32) -> bool {
    if !Path::new("/proc/self").exists() {
        // Without /proc (not Linux) the process number has to do.
        return Pid::from_raw(pid)
            .is_some_and(|pid| rustix::process::test_kill_process(pid).is_ok());
    }
    let is_postgres =
        fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "postgres");
    let Ok(data) = fs::canonicalize(data) else {
        return false;
    };
    is_postgres
        && match fs::read_link(format!("/proc/{pid}/cwd")) {
            Ok(folder) => folder == data,
            // Root in a container may not look at another user's processes; their command lines
            // are open to all, though sessions have overwritten theirs.
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
                is_started_on(pid, &data)
                    || parent(pid).is_some_and(|parent| is_started_on(parent, &data))
            }
            Err(_) => false,
        }
}

/// Whether the command line names the data folder.
fn is_started_on(pid: i32, data: &Path) -> bool {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    line.split(|&byte| byte == 0).any(|argument| argument == data.as_os_str().as_encoded_bytes())
}

/// The fourth field of /proc/PID/stat; the second one, in parentheses, may contain anything.
fn parent(pid: i32) -> Option<i32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// The process in `postmaster.pid` and whether it takes connections; `None` without the file.
pub(super) fn pid_file(data: &Path) -> Option<(i32, bool)> {
    let text = fs::read_to_string(data.join("postmaster.pid")).ok()?;
    let mut lines = text.lines();
    let pid = lines.next()?.trim().parse().ok()?;
    // Line 8 is the status: starting, stopping, ready, standby.
    let ready = lines.nth(6).is_some_and(|status| matches!(status.trim(), "ready" | "standby"));
    Some((pid, ready))
}

/// Ends the server and waits for it: as asked, then harder.
pub(super) fn stop(data: &Path, pid: i32, mode: ShutdownMode) {
    let steps = [
        (Signal::INT, FAST_TIMEOUT, mode == ShutdownMode::Fast),
        (Signal::QUIT, IMMEDIATE_TIMEOUT, true),
    ];
    for (signal, timeout, wanted) in steps {
        if wanted && is_running(data, pid) {
            if let Some(pid) = Pid::from_raw(pid) {
                let _ = kill_process(pid, signal);
            }
            wait_until(timeout, || !is_running(data, pid));
        }
    }
    end_leftovers(data);
}

/// Ends every process of this server that is left: sessions that outlived a killed postmaster keep
/// its shared memory and would prevent the next start.
pub(super) fn end_leftovers(data: &Path) {
    let leftovers = || -> Vec<i32> {
        let Ok(processes) = fs::read_dir("/proc") else {
            return Vec::new();
        };
        processes
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
            .filter(|&pid| is_running(data, pid))
            .collect()
    };
    for pid in leftovers() {
        if let Some(pid) = Pid::from_raw(pid) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
    wait_until(IMMEDIATE_TIMEOUT, || leftovers().is_empty());
}

/// Removes `postmaster.pid` where the process it names is not this server's.
pub(super) fn remove_stale_pid_file(data: &Path) {
    if let Some((pid, _)) = pid_file(data)
        && !is_running(data, pid)
    {
        let _ = fs::remove_file(data.join("postmaster.pid"));
    }
}

fn wait_until(timeout: Duration, done: impl Fn() -> bool) {
    let deadline = Instant::now() + timeout;
    while !done() && Instant::now() < deadline {
        std::thread::sleep(LOOK_AGAIN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_works_elsewhere_is_not_the_server() {
        let data = tempfile::tempdir().unwrap();
        let me = i32::try_from(std::process::id()).unwrap();
        assert!(!is_running(data.path(), me));
        // Nor is one that works there and is no postgres.
        assert!(!is_running(&std::env::current_dir().unwrap(), me));
        assert_eq!(parent(me), i32::try_from(std::os::unix::process::parent_id()).ok());
    }

    #[test]
    fn a_pid_file_of_somebody_else_is_stale() {
        let data = tempfile::tempdir().unwrap();
        let file = data.path().join("postmaster.pid");
        let me = std::process::id();
        fs::write(&file, format!("{me}\n/x\n1\n5432\n/tmp\n127.0.0.1\n1 2\nready   \n")).unwrap();
        assert_eq!(pid_file(data.path()), Some((i32::try_from(me).unwrap(), true)));
        remove_stale_pid_file(data.path());
        assert!(!file.exists());
        fs::write(&file, "").unwrap();
        assert_eq!(pid_file(data.path()), None);
    }
}
