//! The clock of a run, a trait that tests implement with a virtual clock.

use std::time::Instant;

use crate::units::Nanos;

/// A monotonic clock. All clones have the same origin.
pub trait Clock: Clone + Send + 'static {
    /// Returns the time since the origin. Never decreases.
    fn now(&self) -> Nanos;
}

/// The operating system's monotonic clock.
#[derive(Debug, Clone, Copy)]
pub struct MonotonicClock {
    origin: Instant,
}

impl MonotonicClock {
    /// Starts a clock at zero.
    #[must_use]
    pub fn start() -> Self {
        Self { origin: Instant::now() }
    }

    /// Returns the instant at which the clock was zero.
    pub(super) fn started(self) -> Instant {
        self.origin
    }
}

impl Clock for MonotonicClock {
    fn now(&self) -> Nanos {
        self.origin.elapsed().into()
    }
}
