//! The process of a build, which ends with riops.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::host::Interrupt;

/// Executes `$1` in a separate process group. If riops is killed, the kernel closes its end of standard input, and the reader
/// kills the group. The trap keeps the shell alive until its command has ended on a signal.
const WATCHED: &str = r#"
trap : TERM
exec 3<&0 </dev/null
{ read -r _ <&3; kill -s KILL 0; } >/dev/null 2>&1 &
reader=$!
exec 3<&-
sh -c "$1"
status=$?
kill -s KILL "$reader"
exit "$status"
"#;

/// How often an interrupt is noticed.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Time to end after an interrupt.
const END_TIMEOUT: Duration = Duration::from_secs(2);

/// Returns the command that executes a text in a shell. Run it with [`wait`].
pub(super) fn watched(text: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", WATCHED, "riops-build", text]).stdin(Stdio::piped()).process_group(0);
    command
}

/// Waits until the process has ended. An interrupt ends it, with all processes of its group.
///
/// # Errors
/// If it cannot be started.
pub(super) fn wait(command: &mut Command, interrupt: &Interrupt) -> io::Result<ExitStatus> {
    // Its end of standard input is closed when riops ends.
    let mut child = command.spawn()?;
    while !interrupt.is_requested() {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        interrupt.pause(POLL_INTERVAL);
    }
    end(&mut child)
}

fn end(child: &mut Child) -> io::Result<ExitStatus> {
    let group = Pid::from_child(child);
    // Fails only if it has ended.
    let _ = kill_process_group(group, Signal::TERM);
    let deadline = Instant::now() + END_TIMEOUT;
    while child.try_wait()?.is_none() && Instant::now() < deadline {
        std::thread::sleep(POLL_INTERVAL);
    }
    let _ = kill_process_group(group, Signal::KILL);
    child.wait()
}
