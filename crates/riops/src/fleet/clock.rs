//! The clock of the store, as a client knows it.
//!
//! An exchange reads the clock of the store between two readings of the own monotonic clock, so the offset between the two is
//! in an interval as long as the round trip, however asymmetric it is. The offset is in the intersection of the intervals of
//! all exchanges (RFC 5905, sections 8 and 11.2.1; Cristian, "Probabilistic clock synchronization", Distributed Computing 3,
//! 1989). Older intervals grow by the largest rate at which a clock is adjusted.

use std::time::{Duration, Instant, SystemTime};

/// Largest difference between the rates of two clocks: NTP slews one by at most this (RFC 5905, section 11.3).
const DRIFT_MAX: f64 = 500e-6;
/// Resolution of the clock of a server, in seconds.
const RESOLUTION_S: f64 = 1e-6;
/// Readings of the system clock: a process may lose its processor within one.
const READINGS: usize = 5;

/// What is known about the clock of the store. Its times are seconds since 1970.
#[derive(Debug, Clone)]
pub(super) struct StoreClock {
    /// Origin of the own clock.
    origin: Instant,
    /// Interval of the time of the store at the origin.
    low_s: f64,
    high_s: f64,
    /// Own time of the last exchange, in seconds since the origin.
    last_s: f64,
    pub(super) exchanges: u64,
}

impl StoreClock {
    pub(super) fn new(origin: Instant) -> Self {
        Self { origin, low_s: f64::NEG_INFINITY, high_s: f64::INFINITY, last_s: 0.0, exchanges: 0 }
    }

    /// Adds an exchange: the time of the store was `store_s` at a moment between two own times.
    pub(super) fn add(&mut self, sent: Instant, store_s: f64, received: Instant) {
        let own_s = |at: Instant| at.saturating_duration_since(self.origin).as_secs_f64();
        let (sent_s, received_s) = (own_s(sent), own_s(received));
        let (low_s, high_s) = (store_s - received_s, store_s - sent_s + RESOLUTION_S);
        let grown_s = DRIFT_MAX * (received_s - self.last_s).max(0.0);
        (self.low_s, self.high_s) =
            ((self.low_s - grown_s).max(low_s), (self.high_s + grown_s).min(high_s));
        // One of the clocks was set: only the last exchange is of the clock as it is now.
        if self.low_s > self.high_s {
            (self.low_s, self.high_s) = (low_s, high_s);
        }
        self.last_s = received_s;
        self.exchanges += 1;
    }

    fn offset_s(&self) -> f64 {
        f64::midpoint(self.low_s, self.high_s)
    }

    /// Returns half the length of the interval in which the offset is, in seconds.
    pub(super) fn uncertainty_s(&self) -> f64 {
        (self.high_s - self.low_s) / 2.0
    }

    /// Returns by how much the clock of the store is ahead of that of this machine, and the uncertainty of that, in seconds.
    pub(super) fn ahead_s(&self) -> (f64, f64) {
        let mut own = Self::new(self.origin);
        for _ in 0..READINGS {
            let sent = Instant::now();
            let own_s = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_secs_f64();
            own.add(sent, own_s, Instant::now());
        }
        let grown_s = DRIFT_MAX * (own.last_s - self.last_s);
        (self.offset_s() - own.offset_s(), self.uncertainty_s() + own.uncertainty_s() + grown_s)
    }

    /// Returns the instant of a time of the store; the origin if it is before that.
    pub(super) fn instant_of(&self, store_s: f64) -> Instant {
        let since = Duration::try_from_secs_f64(store_s - self.offset_s()).unwrap_or_default();
        self.origin + since
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    impl StoreClock {
        /// Returns the time of the store at an instant.
        fn time_at(&self, instant: Instant) -> f64 {
            instant.saturating_duration_since(self.origin).as_secs_f64() + self.offset_s()
        }
    }

    proptest! {
        #[test]
        fn the_offset_is_within_the_uncertainty_however_asymmetric_the_delays_are(
            offset_s in -1e6f64..2e9,
            delays in prop::collection::vec((0u64..100_000, 0u64..100_000), 1..30),
        ) {
            let origin = Instant::now();
            let mut clock = StoreClock::new(origin);
            let mut now = Duration::ZERO;
            let mut shortest = u64::MAX;
            for (there_us, back_us) in delays {
                let sent = now;
                let read = sent + Duration::from_micros(there_us);
                now = read + Duration::from_micros(back_us);
                clock.add(origin + sent, read.as_secs_f64() + offset_s, origin + now);
                shortest = shortest.min(there_us + back_us);
            }
            // A float of seconds since 1970 has a resolution of 0.24 µs.
            let found = clock.time_at(origin + now) - now.as_secs_f64();
            prop_assert!((found - offset_s).abs() <= clock.uncertainty_s() + 1e-6);
            // At least as exact as the shortest round trip.
            let bound = shortest as f64 / 2e6 + DRIFT_MAX * now.as_secs_f64() + 3e-6;
            prop_assert!(clock.uncertainty_s() <= bound);
            let at = clock.instant_of(clock.time_at(origin + now));
            let error = at.max(origin + now) - at.min(origin + now);
            prop_assert!(error < Duration::from_micros(1));
        }
    }

    #[test]
    fn the_clock_of_this_machine_is_not_ahead_of_itself() {
        let mut clock = StoreClock::new(Instant::now());
        let sent = Instant::now();
        let own_s = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs_f64();
        clock.add(sent, own_s, Instant::now());
        let (ahead_s, uncertainty_s) = clock.ahead_s();
        assert!(ahead_s.abs() <= uncertainty_s, "{ahead_s} {uncertainty_s}");
    }

    #[test]
    fn after_a_step_of_a_clock_the_last_exchange_counts() {
        let origin = Instant::now();
        let mut clock = StoreClock::new(origin);
        let at = |ms| origin + Duration::from_millis(ms);
        clock.add(at(0), 1_000.000_5, at(1));
        clock.add(at(10), 2_000.010_5, at(11));
        assert!((clock.time_at(at(20)) - 2_000.02).abs() < 0.001);
    }
}
