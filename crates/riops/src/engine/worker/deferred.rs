//! What interactive transactions put off to the next turn of a worker's loop.

use riops_wire::backend::ServerError;

use super::super::in_flight::InFlight;

/// The end of a transaction that has sent nothing. Other sessions are served before the next one.
pub(super) enum Deferred {
    /// It succeeded: the session continues with the next one.
    Next(usize),
    /// It failed.
    Failed(usize, Box<InFlight>, Box<ServerError>),
}
