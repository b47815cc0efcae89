//! Interactive transactions that wait for something else than the server and a time.

use std::collections::VecDeque;
use std::sync::Arc;

use riops_wire::backend::ServerError;

use super::super::in_flight::InFlight;
use super::shell::Shell;

/// The end of a transaction that has sent nothing. Other sessions are served before the next one.
pub(super) enum Deferred {
    /// It succeeded: the session continues with the next one.
    Next(usize),
    /// It failed.
    Failed(usize, Box<InFlight>, Box<ServerError>),
}

/// What the interactive transactions of a worker wait for, except for the server and a time.
pub(in crate::engine) struct Interactive {
    /// Handled in the next turn of the loop.
    pub(super) deferred: VecDeque<Deferred>,
    pub(super) shell: Shell,
}

impl Interactive {
    pub(in crate::engine) fn new(waker: Arc<mio::Waker>) -> Self {
        Self { deferred: VecDeque::new(), shell: Shell::new(waker) }
    }
}
