//! A pause that the user can interrupt.

use std::time::{Duration, Instant};

use crate::host::Interrupt;
use crate::server::ConnectionError;

/// How often a pause checks whether the user interrupted it.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Sleeps until the time has passed or the user interrupts.
pub(super) fn pause(time: Duration, interrupt: &Interrupt) -> Result<(), ConnectionError> {
    let end = Instant::now() + time;
    loop {
        if interrupt.requested() {
            return Err(ConnectionError::Interrupted);
        }
        let rest = end.saturating_duration_since(Instant::now());
        if rest.is_zero() {
            return Ok(());
        }
        std::thread::sleep(rest.min(POLL_INTERVAL));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_ends_with_an_interruption() {
        let interrupt = Interrupt::new();
        pause(Duration::ZERO, &interrupt).unwrap();
        interrupt.request();
        // Without the interruption, this would take a day.
        let ended = pause(Duration::from_hours(24), &interrupt);
        assert!(matches!(ended, Err(ConnectionError::Interrupted)));
    }
}
