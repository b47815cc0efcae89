//! Questions to the user on the controlling terminal: for a confirmation, and for a missing password, as psql does.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, IsTerminal, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::time::Duration;

use anyhow::Result;
use riops::host::Interrupt;
use riops::server::{ConnInfo, Connection, ConnectionError};
use riops::units::text::one_line;
use rustix::fs::OFlags;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::failure::refuse;
use crate::ui::Ui;

/// The controlling terminal of the process.
const TERMINAL: &str = "/dev/tty";
/// How often an interrupt is noticed.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Returns whether the user can be asked: standard input is a terminal.
pub(crate) fn can_ask() -> bool {
    std::io::stdin().is_terminal()
}

/// Opens the terminal; `None` if there is none.
pub(crate) fn open() -> Option<File> {
    // Not blocking, because the signal handler would let a blocking read continue after Ctrl-C.
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    OpenOptions::new().read(true).write(true).custom_flags(flags).open(TERMINAL).ok()
}

/// Reads up to the end of the line; `None` at the end of the input.
///
/// # Errors
/// [`ConnectionError::Interrupted`].
pub(crate) fn read_line(
    terminal: &mut File,
    interrupt: &Interrupt,
) -> Result<Option<String>, ConnectionError> {
    let mut line = Vec::new();
    let mut buffer = [0; 256];
    while !line.contains(&b'\n') {
        match terminal.read(&mut buffer) {
            Ok(0) => return Ok(None),
            Ok(length) => line.extend_from_slice(buffer.get(..length).unwrap_or_default()),
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                if interrupt.is_requested() {
                    return Err(ConnectionError::Interrupted);
                }
                std::thread::sleep(POLL_INTERVAL);
            }
            Err(_) => return Ok(None),
        }
    }
    let line = String::from_utf8_lossy(&line);
    Ok(Some(line.trim_end_matches(['\r', '\n']).to_owned()))
}

/// Prompts for the password if the server requests one, none was found, and standard input is a terminal. Elsewhere,
/// and for other errors, does nothing: the next connection returns the error.
///
/// # Errors
/// [`ConnectionError::Interrupted`].
pub(crate) fn ask_if_missing(
    conninfo: &mut ConnInfo,
    interrupt: &Interrupt,
) -> Result<(), ConnectionError> {
    if conninfo.has_password() || !can_ask() {
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
    let Some(mut terminal) = open().and_then(Silent::new) else {
        return Ok(None);
    };
    let _ = terminal.file.write_all(one_line(prompt).as_bytes());
    let line = read_line(&mut terminal.file, interrupt);
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

/// Returns whether something may be removed: asks the question, unless `yes` was given.
///
/// # Errors
/// A usage error if there is no terminal to ask on, or [`ConnectionError::Interrupted`].
pub(crate) fn confirm(question: &str, yes: bool, ui: Ui) -> Result<bool> {
    if yes {
        return Ok(true);
    }
    let Some(mut terminal) = open().filter(|_| can_ask()) else {
        let text = "nothing removed: confirm with --yes, because standard input is not a terminal";
        return refuse(text);
    };
    let _ = terminal.write_all(format!("{} [y/N] ", one_line(question)).as_bytes());
    let answer = read_line(&mut terminal, ui.interrupt)?.unwrap_or_default();
    let is_confirmed = matches!(answer.trim().to_lowercase().as_str(), "y" | "yes");
    if !is_confirmed {
        ui.notice("nothing removed");
    }
    Ok(is_confirmed)
}
