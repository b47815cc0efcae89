//! Interruption by the user: Ctrl-C, SIGTERM or SIGHUP, as a flag that all long operations check.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

/// How often a pause checks whether an interruption was requested.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Interrupt flag, shared by the signal handler and all long operations.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicI32>);

/// No interruption was requested.
const NONE: i32 = 0;
/// One was requested without a signal.
const WITHOUT_SIGNAL: i32 = -1;

impl Interrupt {
    /// Creates a flag that is not set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Requests the interruption of all operations.
    pub fn request(&self) {
        self.0.store(WITHOUT_SIGNAL, Ordering::Release);
    }

    /// Requests the interruption of all operations because of this signal.
    pub fn request_by(&self, signal: i32) {
        self.0.store(signal, Ordering::Release);
    }

    /// Returns the signal that requested the interruption, if there is one.
    pub fn signal(&self) -> Option<i32> {
        Some(self.0.load(Ordering::Acquire)).filter(|&signal| signal > 0)
    }

    /// Returns whether an interruption was requested.
    pub fn is_requested(&self) -> bool {
        self.0.load(Ordering::Acquire) != NONE
    }

    /// Sleeps until the time has passed or an interruption is requested. Returns whether the time has passed.
    pub fn pause(&self, time: Duration) -> bool {
        let start = Instant::now();
        while !self.is_requested() {
            let rest = time.saturating_sub(start.elapsed());
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
        // Without the interruption, this would take for ever.
        assert!(!interrupt.pause(Duration::MAX));
    }
}
