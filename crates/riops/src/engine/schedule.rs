//! Intended start times of transactions, independent of the progress of earlier transactions.
//!
//! Each worker has its share of the stage's starts, and its next free session takes the next due start. A
//! session that hangs therefore does not delay the starts of other sessions.

use rand::RngExt;
use rand_distr::Exp1;
use rand_xoshiro::Xoshiro256PlusPlus;
use riops_script::random::Random;

use crate::plan::Schedule;
use crate::units::Nanos;

/// The sessions of a stage that one worker drives. They are assigned round-robin, so that the starts of each
/// worker are spread as evenly as those of the stage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Share {
    /// Number of the worker, from 0; also the number of its first session.
    pub(super) worker: u32,
    /// Number of workers.
    pub(super) workers: u32,
    /// Number of sessions of the stage.
    pub(super) sessions: u32,
}

impl Share {
    /// Returns the number of sessions that the worker drives.
    pub(super) fn count(self) -> u32 {
        self.own(u64::from(self.sessions)).try_into().unwrap_or(u32::MAX)
    }

    /// Returns the number in the stage of the worker's session at `position`.
    pub(super) fn number(self, position: u64) -> u64 {
        u64::from(self.worker) + position * u64::from(self.workers)
    }

    /// Returns how many of the first `assigned` sessions belong to the worker, within one round of sessions.
    fn own(self, assigned: u64) -> u64 {
        assigned.saturating_sub(u64::from(self.worker)).div_ceil(u64::from(self.workers.max(1)))
    }
}

/// Intended start times of one worker, in order.
#[derive(Debug, Clone)]
pub(super) struct Arrivals {
    source: Source,
    next: Nanos,
}

#[derive(Debug, Clone)]
enum Source {
    /// Start `k` of the stage is at `anchor + k / rate`, so rounding errors do not accumulate. Before the
    /// measurement starts, `k` is negative.
    Constant { per_s: f64, anchor: Nanos, share: Share, first_number: i64, taken: u64 },
    Poisson {
        /// Mean time between two starts of this worker, in nanoseconds.
        mean: f64,
        rng: Gaps,
        /// Copy of the same random stream, advanced to the current time to count the due starts.
        ahead: Gaps,
        ahead_next: Nanos,
        /// Number of starts that were due at the last call.
        due: u64,
        taken: u64,
    },
}

/// The random stream of the times between starts.
#[derive(Debug, Clone)]
pub(super) enum Gaps {
    Own(Xoshiro256PlusPlus),
    /// That of pgbench, in whole microseconds.
    Pgbench(Random),
}

impl Arrivals {
    /// Creates the arrivals from `start` on. At a constant rate, one start of the stage falls on `anchor`,
    /// where the measurement starts. Returns `None` for the closed loop, which has no intended starts.
    #[must_use]
    pub(super) fn new(
        schedule: Schedule,
        share: Share,
        start: Nanos,
        anchor: Nanos,
        rng: Gaps,
    ) -> Option<Self> {
        let mut arrivals = match schedule {
            Schedule::Closed => return None,
            Schedule::Constant { per_s } => {
                let before = (anchor.since(start).0 as f64 * per_s / 1e9).floor();
                #[expect(clippy::cast_possible_truncation, reason = "a number of starts")]
                let first_number = -(before as i64);
                let source = Source::Constant { per_s, anchor, share, first_number, taken: 0 };
                Self { source, next: Nanos(0) }
            }
            Schedule::Poisson { per_s } => {
                let part = f64::from(share.sessions) / f64::from(share.count().max(1));
                let mean = 1e9 / per_s * part;
                let ahead = rng.clone();
                let source =
                    Source::Poisson { mean, rng, ahead, ahead_next: start, due: 0, taken: 0 };
                Self { source, next: start }
            }
        };
        if let Source::Poisson { mean, ahead, ahead_next, .. } = &mut arrivals.source {
            *ahead_next = ahead_next.after(distance(*mean, ahead));
        }
        arrivals.advance();
        Some(arrivals)
    }

    /// Returns the next intended start. It is in the past if no session was free to take it.
    #[must_use]
    pub(super) fn next(&self) -> Nanos {
        self.next
    }

    /// Takes the next intended start and returns it.
    pub(super) fn take(&mut self) -> Nanos {
        let taken_at = self.next;
        match &mut self.source {
            Source::Constant { taken, .. } | Source::Poisson { taken, .. } => *taken += 1,
        }
        self.advance();
        taken_at
    }

    /// Returns the number of starts that are due at `now` and have not been taken.
    pub(super) fn backlog(&mut self, now: Nanos) -> u64 {
        let due = self.due(now);
        match &self.source {
            Source::Constant { taken, .. } | Source::Poisson { taken, .. } => {
                due.saturating_sub(*taken)
            }
        }
    }

    /// Returns the number of starts up to `now`. `now` must not decrease between calls.
    pub(super) fn due(&mut self, now: Nanos) -> u64 {
        match &mut self.source {
            Source::Constant { per_s, anchor, share, first_number, .. } => {
                let since_anchor = if now >= *anchor {
                    now.since(*anchor).0 as f64
                } else {
                    -(anchor.since(now).0 as f64)
                };
                // Number of the last due start of the stage. Adds half a nanosecond because start times
                // are rounded to nanoseconds.
                #[expect(clippy::cast_possible_truncation, reason = "a number of starts")]
                let last = ((since_anchor + 0.5) * *per_s / 1e9).floor() as i64;
                own(*share, u64::try_from(last - *first_number + 1).unwrap_or(0))
            }
            Source::Poisson { mean, ahead, ahead_next, due, .. } => {
                while *ahead_next <= now {
                    *due += 1;
                    *ahead_next = ahead_next.after(distance(*mean, ahead));
                }
                *due
            }
        }
    }

    fn advance(&mut self) {
        match &mut self.source {
            Source::Constant { per_s, anchor, share, first_number, taken } => {
                let count = u64::from(share.count().max(1));
                let slot =
                    *taken / count * u64::from(share.sessions) + share.number(*taken % count);
                let number = slot.cast_signed() + *first_number;
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "nanoseconds of a positive rate"
                )]
                let offset = Nanos((number.unsigned_abs() as f64 * 1e9 / *per_s).round() as u64);
                self.next = if number >= 0 {
                    anchor.after(offset)
                } else {
                    Nanos(anchor.0.saturating_sub(offset.0))
                };
            }
            Source::Poisson { mean, rng, .. } => {
                self.next = self.next.after(distance(*mean, rng));
            }
        }
    }
}

/// Returns how many of the first `due` starts of the stage belong to this share.
fn own(share: Share, due: u64) -> u64 {
    let sessions = u64::from(share.sessions.max(1));
    due / sessions * u64::from(share.count()) + share.own(due % sessions)
}

/// Returns a random, exponentially distributed time to the next start of a Poisson process.
fn distance(mean: f64, rng: &mut Gaps) -> Nanos {
    let rng = match rng {
        Gaps::Own(rng) => rng,
        Gaps::Pgbench(random) => {
            let microseconds = random.poisson_gap_us(mean / 1e3);
            return Nanos(u64::try_from(microseconds).unwrap_or(0) * 1_000);
        }
    };
    let factor: f64 = rng.sample(Exp1);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "nanoseconds, not negative"
    )]
    Nanos((mean * factor).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::keys::{Purpose, stream};

    const START: Nanos = Nanos(1_000_000_000);

    fn arrivals(schedule: Schedule, share: Share, anchor: Nanos) -> Arrivals {
        let rng = stream(7, Purpose::Arrivals, u64::from(share.worker));
        Arrivals::new(schedule, share, START, anchor, Gaps::Own(rng)).unwrap()
    }

    /// Returns the starts of all workers before `end`, in order.
    fn all(
        schedule: Schedule,
        (sessions, workers): (u32, u32),
        anchor: Nanos,
        end: Nanos,
    ) -> Vec<u64> {
        let mut starts = Vec::new();
        for worker in 0..workers {
            let share = Share { worker, workers, sessions };
            let mut arrivals = arrivals(schedule, share, anchor);
            while arrivals.next() < end {
                starts.push(arrivals.take().0);
            }
        }
        starts.sort_unstable();
        starts
    }

    #[test]
    fn sessions_are_assigned_round_robin() {
        for (sessions, workers) in [(1, 1), (7, 3), (8, 3), (1_000, 2), (5, 5)] {
            let mut numbers: Vec<u64> = (0..workers)
                .map(|worker| Share { worker, workers, sessions })
                .flat_map(|share| (0..u64::from(share.count())).map(move |at| share.number(at)))
                .collect();
            numbers.sort_unstable();
            assert_eq!(numbers, (0..u64::from(sessions)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn closed_loop_has_no_arrivals() {
        let share = Share { worker: 0, workers: 1, sessions: 1 };
        let rng = stream(7, Purpose::Arrivals, 0);
        assert!(Arrivals::new(Schedule::Closed, share, START, START, Gaps::Own(rng)).is_none());
    }

    #[test]
    fn measurement_contains_exactly_rate_times_duration_starts() {
        for (per_s, seconds) in
            [(1_000.0, 4), (3.0, 7), (7_777.0, 10), (1e6, 1), (0.5, 10), (33_333.0, 3)]
        {
            for counts in [(1, 1), (7, 3), (1_000, 2)] {
                // An anchor that is not a multiple of any interval.
                let anchor = START.after(Nanos(1_234_567_891));
                let end = anchor.after(Nanos(seconds * 1_000_000_000));
                let starts = all(Schedule::Constant { per_s }, counts, anchor, end);
                let counted = starts.iter().filter(|&&start| start >= anchor.0).count();
                assert_eq!(counted as f64, per_s * seconds as f64, "{per_s} {counts:?}");
                assert!(starts.iter().all(|&start| start >= START.0));
                assert!(starts.windows(2).all(|pair| pair[0] < pair[1]));
            }
        }
    }

    #[test]
    fn constant_rate_starts_do_not_drift() {
        let share = Share { worker: 0, workers: 1, sessions: 1 };
        let mut arrivals = arrivals(Schedule::Constant { per_s: 3.0 }, share, START);
        for number in 0..300_000u64 {
            let exact = START.0 as f64 + number as f64 * 1e9 / 3.0;
            assert!((arrivals.take().0 as f64 - exact).abs() <= 1.0);
        }
    }

    #[test]
    fn poisson_starts_match_the_rate_and_variance() {
        let end = START.after(Nanos(20_000_000_000));
        let starts = all(Schedule::Poisson { per_s: 5_000.0 }, (3, 2), START, end);
        // 100,000 expected, standard deviation 316.
        assert!((98_500..=101_500).contains(&starts.len()), "{}", starts.len());
        // In a Poisson process the variance of the counts per 10 ms equals their mean.
        let mut counts = vec![0.0f64; 2_000];
        for start in &starts {
            counts[usize::try_from((start - START.0) / 10_000_000).unwrap()] += 1.0;
        }
        let mean = counts.iter().sum::<f64>() / 2_000.0;
        let variance = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / 2_000.0;
        assert!((variance / mean - 1.0).abs() < 0.15, "{}", variance / mean);
        assert_eq!(starts, all(Schedule::Poisson { per_s: 5_000.0 }, (3, 2), START, end));
    }

    #[test]
    fn backlog_equals_due_starts_minus_taken_ones() {
        for schedule in [Schedule::Constant { per_s: 999.0 }, Schedule::Poisson { per_s: 999.0 }] {
            for share in [
                Share { worker: 0, workers: 1, sessions: 1 },
                Share { worker: 2, workers: 3, sessions: 8 },
            ] {
                let anchor = START.after(Nanos(500_000_000));
                let mut arrivals = arrivals(schedule, share, anchor);
                let mut reference = arrivals.clone();
                for step in 1..50u64 {
                    let now = START.after(Nanos(step * 37_000_000));
                    if step % 3 == 0 && arrivals.next() <= now {
                        assert_eq!(arrivals.take(), reference.take());
                    }
                    let mut counter = reference.clone();
                    let mut due = 0;
                    while counter.next() <= now {
                        counter.take();
                        due += 1;
                    }
                    assert_eq!(arrivals.backlog(now), due, "{schedule:?} {share:?} {step}");
                }
            }
        }
    }
}
