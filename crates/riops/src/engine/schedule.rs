//! When each transaction of a session is meant to start.
//!
//! The loop asks and obeys; it does not know which schedule it follows.

use crate::plan::Schedule;
use crate::units::Nanos;

/// The schedule of one session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// The next one starts when the last one has ended.
    Closed,
    /// At fixed points on the clock, whatever happens to the transactions before.
    Fixed {
        /// The next point.
        next: Nanos,
        /// Between two points of this session.
        step: Nanos,
    },
}

impl Pace {
    /// The pace of session `number` of `sessions`, from `start` on. The sessions take turns, so
    /// that their starts are spread evenly.
    #[must_use]
    pub fn new(schedule: Schedule, number: u32, sessions: u32, start: Nanos) -> Self {
        match schedule {
            Schedule::Closed => Self::Closed,
            Schedule::Constant { per_s } => {
                let between = 1e9 / per_s;
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "nanoseconds of a positive rate"
                )]
                let nanos = |count: u32| Nanos((between * f64::from(count)) as u64);
                Self::Fixed { next: start.after(nanos(number)), step: nanos(sessions) }
            }
        }
    }

    /// The intended start of the next transaction: now, or a fixed point that may be in the
    /// future, or in the past where the session is late.
    pub fn next(&mut self, now: Nanos) -> Nanos {
        match self {
            Self::Closed => now,
            Self::Fixed { next, step } => {
                let intended = *next;
                *next = next.after(*step);
                intended
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_loop_starts_now() {
        let mut pace = Pace::new(Schedule::Closed, 3, 4, Nanos(5));
        assert_eq!(pace.next(Nanos(77)), Nanos(77));
    }

    #[test]
    fn fixed_starts_stay_on_the_clock_however_late_the_session_is() {
        let schedule = Schedule::Constant { per_s: 1_000.0 };
        let mut starts: Vec<_> = (0..4)
            .flat_map(|number| {
                let mut pace = Pace::new(schedule, number, 4, Nanos(100));
                [Nanos(0), Nanos(1 << 40), Nanos(1 << 50)].map(|now| pace.next(now).0)
            })
            .collect();
        starts.sort_unstable();
        let expected: Vec<_> = (0..12).map(|number| 100 + number * 1_000_000).collect();
        assert_eq!(starts, expected);
    }
}
