//! The clock of a run, a trait that tests implement with a virtual clock.

use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

use crate::units::Nanos;

/// A monotonic clock. All clones have the same origin.
pub trait Clock: Clone + Send + 'static {
    /// Returns the time since the origin. Never decreases.
    fn now(&self) -> Nanos;
}

/// The operating system's monotonic clock.
#[derive(Debug, Clone, Copy)]
pub struct MonotonicClock {
    started: Instant,
    /// The same time, as the system counts it. Reading that is cheaper than subtracting two instants.
    origin_ns: u64,
}

impl MonotonicClock {
    /// Starts a clock at zero.
    pub fn start() -> Self {
        Self { started: Instant::now(), origin_ns: system_ns() }
    }

    /// Returns the time at an instant; zero if it is before the start of the clock.
    pub(super) fn at(self, instant: Instant) -> Nanos {
        instant.saturating_duration_since(self.started).into()
    }

    /// Returns the instant at which the clock was zero.
    pub(super) fn started(self) -> Instant {
        self.started
    }
}

/// Returns the time of the system's monotonic clock.
#[inline]
fn system_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    // Since the start of the machine: neither is negative.
    time.tv_sec
        .cast_unsigned()
        .wrapping_mul(1_000_000_000)
        .wrapping_add(time.tv_nsec.cast_unsigned())
}

impl Clock for MonotonicClock {
    #[inline]
    fn now(&self) -> Nanos {
        Nanos(system_ns().wrapping_sub(self.origin_ns))
    }
}
