//! Prompts for a missing password on the terminal, as psql does.

use std::fs::File;
use std::io::Write;

use riops::host::Interrupt;
use riops::server::{ConnInfo, Connection, ConnectionError};
use riops::units::text::one_line;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::terminal;

/// Prompts for the password if the server requests one, none was found, and standard input is a terminal. Elsewhere,
/// and for other errors, does nothing: the next connection returns the error.
///
/// # Errors
/// [`ConnectionError::Interrupted`].
pub(crate) fn ask_if_missing(
    conninfo: &mut ConnInfo,
    interrupt: &Interrupt,
) -> Result<(), ConnectionError> {
    if conninfo.has_password() || !terminal::can_ask() {
        return Ok(());
    }
    let Err(error) = Connection::open(conninfo, interrupt) else {
        return Ok(());
    };
    if error.is_password_missing()
        && let Some(password) = ask(&format!("Password for user {}: ", conninfo.user), interrupt)?
    {
        conninfo.set_password(password);
    }
    Ok(())
}

/// Reads a line from the terminal without echo. Returns `None` if there is no terminal, or no line.
fn ask(prompt: &str, interrupt: &Interrupt) -> Result<Option<String>, ConnectionError> {
    let Some(mut terminal) = terminal::open().and_then(Silent::new) else {
        return Ok(None);
    };
    let _ = terminal.file.write_all(one_line(prompt).as_bytes());
    let line = terminal::read_line(&mut terminal.file, interrupt);
    let _ = terminal.file.write_all(b"\n");
    line
}

/// A terminal without echo. Dropping it restores its modes.
struct Silent {
    file: File,
    modes: Termios,
}

impl Silent {
    fn new(file: File) -> Option<Self> {
        let modes = tcgetattr(&file).ok()?;
        let mut silent = modes.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        tcsetattr(&file, OptionalActions::Flush, &silent).ok()?;
        Some(Self { file, modes })
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        let _ = tcsetattr(&self.file, OptionalActions::Flush, &self.modes);
    }
}
