//! What an interactive transaction does between two turns.

use riops_wire::backend::ServerError;

use super::in_flight::InFlight;
use crate::units::Nanos;
use crate::workload::turn::ShellCommand;

/// What the start of a transaction led to.
#[derive(Debug)]
pub(super) enum Begun {
    /// It will be sent.
    Sent,
    /// The generator has no more.
    NoMore,
    /// It is interactive.
    Interactive(Continued),
}

/// What an interactive transaction does.
#[derive(Debug)]
pub(super) enum Continued {
    /// Something will be sent.
    Sent,
    /// It is paused for this time.
    Sleeping(Nanos),
    /// It is paused until the command has ended.
    InShell(u64, Box<ShellCommand>),
    /// It has succeeded.
    Ended(Box<InFlight>),
    /// It has failed without the server.
    Failed(Box<InFlight>, Box<ServerError>),
}
