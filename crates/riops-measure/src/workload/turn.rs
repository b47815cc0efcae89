//! The next action of an interactive transaction, which depends on the replies.

use riops_wire::backend::ServerError;

use riops_model::units::Nanos;

/// Next action of an interactive transaction.
#[derive(Debug)]
pub enum Turn {
    /// It sends the steps that it now has, and waits for all replies.
    Send,
    /// It waits for this time.
    Sleep(Nanos),
    /// It waits for a command of the shell.
    Shell(Box<ShellCommand>),
    /// It is complete.
    End,
    /// It failed without the server.
    Fail(Box<ServerError>),
}

/// A command of the shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellCommand {
    /// Text of the command.
    pub text: String,
    /// Whether its output is required; otherwise its status must be 0.
    pub wants_output: bool,
}

/// The first line of the output of a command, or what went wrong.
pub type ShellOutput = Result<String, String>;
