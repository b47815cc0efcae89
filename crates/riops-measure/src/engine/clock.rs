//! The clock of a run, a trait that tests implement with a virtual clock.
//! Also the clock of the server, against which a server-side loop measures.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::server::{Connection, ConnectionError};
use riops_model::units::Nanos;

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

// The clock of the server, against which a server-side loop measures.
//
// The loop compares the wall clock of its server with times that the client has set. A wall clock that is
// set forward or back ends the loop too early or too late, so it is compared with the local clock, which
// is monotonic.

/// Number of times the server's clock is read.
const SAMPLES: usize = 5;
/// Timeout of all readings together.
const TIMEOUT: Duration = Duration::from_secs(10);
const CLOCK: &str = "select date_part('epoch', clock_timestamp())";

/// The server's clock, relative to the local one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ServerClock {
    /// The server's clock at the zero of the local clock, in seconds since 1970.
    epoch_s: f64,
    /// Maximum error of that, in seconds: half of the round trip.
    error_s: f64,
}

impl ServerClock {
    /// Reads the clock of the server. Uses the reading with the shortest round trip, which has the smallest
    /// error.
    pub(super) fn read(
        connection: &mut Connection,
        clock: &impl Clock,
    ) -> Result<Self, ConnectionError> {
        connection.set_deadline(Some(Instant::now() + TIMEOUT));
        let mut best = Self { epoch_s: 0.0, error_s: f64::INFINITY };
        for _ in 0..SAMPLES {
            let sent = clock.now();
            let answer = connection.query_value(CLOCK)?;
            let half_s = clock.now().since(sent).as_seconds() / 2.0;
            let server_s: f64 = answer.and_then(|text| text.parse().ok()).ok_or_else(|| {
                ConnectionError::Protocol("clock_timestamp() is not a number".to_owned())
            })?;
            if half_s < best.error_s {
                let epoch_s = server_s - sent.as_seconds() - half_s;
                best = Self { epoch_s, error_s: half_s };
            }
        }
        connection.set_deadline(None);
        Ok(best)
    }

    /// Returns the server's clock at a time of the local clock, in seconds since 1970.
    pub(super) fn at(&self, time: Nanos) -> f64 {
        self.epoch_s + time.as_seconds()
    }

    /// Returns by how much the server's clock was set forward (or back, if negative) between two readings, in
    /// seconds, without the part that may be an error of the readings.
    pub(super) fn step_until(&self, later: &Self) -> f64 {
        without_error(later.epoch_s - self.epoch_s, self.error_s + later.error_s)
    }

    /// Returns by how much the server's clock was set forward, in seconds, if a message arrives at `now` that the
    /// server sent at `sent_s` according to its clock, in seconds of the local clock. A message cannot arrive
    /// before it was sent. A clock that was set back is not detected, because a message may be late.
    pub(super) fn step_at_arrival(&self, sent_s: f64, now: Nanos) -> f64 {
        without_error((sent_s - now.as_seconds()).max(0.0), self.error_s)
    }
}

/// Returns a difference without the part that may be an error.
fn without_error(difference_s: f64, error_s: f64) -> f64 {
    difference_s.signum() * (difference_s.abs() - error_s).max(0.0)
}

/// Returns the larger one of two steps, regardless of their direction.
pub(super) fn larger_step_s(one_s: f64, other_s: f64) -> f64 {
    if other_s.abs() > one_s.abs() { other_s } else { one_s }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_the_part_of_a_step_that_exceeds_the_reading_errors() {
        let clock = |epoch_s, error_s| ServerClock { epoch_s, error_s };
        let first = clock(1_000.0, 0.25);
        assert_eq!(first.step_until(&clock(1_000.5, 0.25)), 0.0);
        assert_eq!(first.step_until(&clock(1_015.5, 0.25)), 15.0);
        assert_eq!(first.step_until(&clock(984.5, 0.25)), -15.0);
        assert_eq!(first.at(Nanos(2_500_000_000)), 1_002.5);
        let seconds = |seconds: u64| Nanos(seconds * 1_000_000_000);
        assert_eq!(first.step_at_arrival(20.0, seconds(5)), 14.75);
        // A late message is not a step.
        assert_eq!(first.step_at_arrival(5.0, seconds(20)), 0.0);
        assert_eq!(larger_step_s(2.0, -3.0), -3.0);
        assert_eq!(larger_step_s(-2.0, 1.0), -2.0);
    }
}
