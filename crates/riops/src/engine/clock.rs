//! The clock of a run, as a value: tests bring their own.

use std::time::Instant;

use crate::units::Nanos;

/// Tells the time since some moment that all who share it agree on.
pub trait Clock: Clone + Send + 'static {
    /// Never goes back.
    fn now(&self) -> Nanos;
}

/// The operating system's monotonic clock.
#[derive(Debug, Clone, Copy)]
pub struct MonotonicClock {
    origin: Instant,
}

impl MonotonicClock {
    /// Zero is now.
    #[must_use]
    pub fn start() -> Self {
        Self { origin: Instant::now() }
    }

    /// When it was zero.
    pub(super) fn started(self) -> Instant {
        self.origin
    }
}

impl Clock for MonotonicClock {
    fn now(&self) -> Nanos {
        self.origin.elapsed().into()
    }
}
