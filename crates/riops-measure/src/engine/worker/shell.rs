//! Commands of the shell, on separate threads: they would block the sessions of a worker.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use crate::workload::turn::{ShellCommand, ShellOutput};

/// A command that has ended.
pub(super) struct Done {
    /// Position of the session at its worker.
    pub(super) index: usize,
    /// Number of its transaction in the session.
    pub(super) transaction: u64,
    pub(super) output: ShellOutput,
}

/// The commands of the sessions of a worker.
pub(in crate::engine) struct Shell {
    done: Sender<Done>,
    ended: Receiver<Done>,
    waker: Arc<mio::Waker>,
    running: usize,
}

impl Shell {
    pub(in crate::engine) fn new(waker: Arc<mio::Waker>) -> Self {
        let (done, ended) = channel();
        Self { done, ended, waker, running: 0 }
    }

    /// Starts a command.
    pub(super) fn start(
        &mut self,
        index: usize,
        transaction: u64,
        command: ShellCommand,
    ) -> std::io::Result<()> {
        let (done, waker) = (self.done.clone(), Arc::clone(&self.waker));
        std::thread::Builder::new().name("riops-shell".to_owned()).spawn(move || {
            let output = output_of(&command);
            // Fails only if the worker has exited.
            let _ = done.send(Done { index, transaction, output });
            let _ = waker.wake();
        })?;
        self.running += 1;
        Ok(())
    }

    /// Returns a command that has ended.
    #[inline]
    pub(super) fn take_done(&mut self) -> Option<Done> {
        if self.running == 0 {
            return None;
        }
        let done = self.ended.try_recv().ok()?;
        self.running -= 1;
        Some(done)
    }
}

/// Maximum length of the line of a command that is read.
const LINE_BYTES_MAX: u64 = 1024;

/// Executes a command and returns the first line of its output, of which at most [`LINE_BYTES_MAX`] are read.
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
    first_line(&mut shell).map_err(|error| error.to_string())
}

fn first_line(shell: &mut Command) -> std::io::Result<String> {
    let mut child = shell.stdout(Stdio::piped()).spawn()?;
    let mut line = Vec::new();
    if let Some(output) = child.stdout.take() {
        // Closed afterwards: a command that writes more is ended by the kernel.
        BufReader::new(output).take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
    }
    child.wait()?;
    Ok(String::from_utf8_lossy(line.trim_ascii_end()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returns_the_first_line_of_a_command_that_never_stops_writing() {
        let output = |text: &str, wants_output: bool| {
            output_of(&ShellCommand { text: text.to_owned(), wants_output })
        };
        assert_eq!(output("yes 1", true).as_deref(), Ok("1"));
        assert_eq!(output("echo 2; echo 3; exit 4", true).as_deref(), Ok("2"));
        assert_eq!(output("true", true).as_deref(), Ok(""));
        let endless = output("tr '\\0' 5 < /dev/zero", true).unwrap();
        assert_eq!(endless.len() as u64, LINE_BYTES_MAX);
        assert_eq!(output("exit 3", false).unwrap_err(), "exit status: 3");
    }
}
