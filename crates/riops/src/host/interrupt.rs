//! Interruption by the user: Ctrl-C, SIGTERM or SIGHUP, as a flag that all long operations check.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How often a pause checks whether an interruption was requested.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Interrupt flag, shared by the signal handler and all long operations.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Creates a flag that is not set.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Requests the interruption of all operations.
    pub fn request(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Returns whether an interruption was requested.
    #[must_use]
    pub fn requested(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// Sleeps until the time has passed or an interruption is requested. Returns whether the time has passed.
    #[must_use]
    pub fn pause(&self, time: Duration) -> bool {
        let end = Instant::now() + time;
        while !self.requested() {
            let rest = end.saturating_duration_since(Instant::now());
            if rest.is_zero() {
                return true;
            }
            std::thread::sleep(rest.min(POLL_INTERVAL));
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_ends_with_an_interruption() {
        let interrupt = Interrupt::new();
        assert!(interrupt.pause(Duration::ZERO));
        interrupt.request();
        // Without the interruption, this would take a day.
        assert!(!interrupt.pause(Duration::from_hours(24)));
    }
}
