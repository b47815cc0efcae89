//! A pause that the user can interrupt.

use std::time::Duration;

use crate::host::Interrupt;
use crate::server::ConnectionError;

/// Sleeps until the time has passed. An interruption is an error.
pub(super) fn pause(time: Duration, interrupt: &Interrupt) -> Result<(), ConnectionError> {
    interrupt.pause(time).then_some(()).ok_or(ConnectionError::Interrupted)
}
