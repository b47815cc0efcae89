//! Commands of the shell, on separate threads: they would block the sessions of a worker.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use crate::workload::turn::{ShellCommand, ShellOutput};

/// A command that has ended.
pub(super) struct Done {
    /// Number of the session.
    pub(super) number: usize,
    /// Number of its transaction in the session.
    pub(super) transaction: u64,
    pub(super) output: ShellOutput,
}

/// The commands of the sessions of a worker.
pub(super) struct Shell {
    done: Sender<Done>,
    ended: Receiver<Done>,
    waker: Arc<mio::Waker>,
    running: usize,
}

impl Shell {
    pub(super) fn new(waker: Arc<mio::Waker>) -> Self {
        let (done, ended) = channel();
        Self { done, ended, waker, running: 0 }
    }

    /// Starts a command.
    pub(super) fn start(
        &mut self,
        (number, transaction): (usize, u64),
        command: ShellCommand,
    ) -> std::io::Result<()> {
        let (done, waker) = (self.done.clone(), Arc::clone(&self.waker));
        std::thread::Builder::new().name("riops-shell".to_owned()).spawn(move || {
            let output = output_of(&command);
            // Fails only if the worker has exited.
            let _ = done.send(Done { number, transaction, output });
            let _ = waker.wake();
        })?;
        self.running += 1;
        Ok(())
    }

    /// Returns a command that has ended.
    pub(super) fn take_done(&mut self) -> Option<Done> {
        if self.running == 0 {
            return None;
        }
        let done = self.ended.try_recv().ok()?;
        self.running -= 1;
        Some(done)
    }
}

/// Executes a command and returns the first line of its output.
fn output_of(command: &ShellCommand) -> ShellOutput {
    let mut shell = Command::new("/bin/sh");
    shell.arg("-c").arg(&command.text).stdin(Stdio::null());
    if !command.wants_output {
        return match shell.status() {
            Ok(status) if status.success() => Ok(String::new()),
            Ok(status) => Err(status.to_string()),
            Err(error) => Err(error.to_string()),
        };
    }
    match shell.stderr(Stdio::inherit()).output() {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout);
            Ok(text.lines().next().unwrap_or_default().to_owned())
        }
        Err(error) => Err(error.to_string()),
    }
}
