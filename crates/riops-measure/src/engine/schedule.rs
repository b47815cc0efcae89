//! Intended start times of transactions, independent of the progress of earlier transactions.
//! The rate over time is here, too.
//!
//! The starts belong to all workers: a session that becomes idle claims the next one, whether it is due or not, and begins
//! it in time. So a due start waits only if no session of the stage is idle, and the oldest is served first; a session that
//! hangs delays the starts of no other session. The closed loop has no starts, and uses nothing of this.

use std::sync::{Mutex, PoisonError};

use rand::RngExt;
use rand_distr::Exp1;
use rand_xoshiro::Xoshiro256PlusPlus;
use riops_script::random::Random;

use riops_model::plan::Schedule;
use riops_model::units::Nanos;
use riops_model::units::format::nearest_integer;

/// The sessions of a stage that one worker drives. They are assigned round-robin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Share {
    /// Number of the worker, from 0; also the number of its first session.
    pub(super) worker: u32,
    /// Number of workers.
    pub(super) workers: u32,
}

impl Share {
    /// Returns the id in the stage of the worker's session at `position`.
    pub(super) fn session_id(self, position: u64) -> u64 {
        u64::from(self.worker) + position * u64::from(self.workers)
    }
}

/// The intended starts that no session has claimed, shared by all workers.
#[derive(Debug)]
pub(super) struct Unclaimed(Mutex<Claims>);

#[derive(Debug)]
struct Claims {
    arrivals: Arrivals,
    /// Starts that a session has claimed and could not begin, such as after it has lost its connection.
    returned: Vec<Nanos>,
}

impl Unclaimed {
    pub(super) fn new(arrivals: Arrivals) -> Self {
        Self(Mutex::new(Claims { arrivals, returned: Vec::new() }))
    }

    fn with_claims<T>(&self, action: impl FnOnce(&mut Claims) -> T) -> T {
        // Each change is complete, so the claims of a thread that has panicked are not damaged.
        action(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Claims the next start.
    pub(super) fn claim(&self) -> Nanos {
        self.with_claims(Claims::claim)
    }

    /// Claims the next start if it is before `end`.
    pub(super) fn claim_before(&self, end: Nanos) -> Option<Nanos> {
        self.with_claims(|claims| (claims.next() < end).then(|| claims.claim()))
    }

    /// Lets another session claim a start.
    pub(super) fn give_back(&self, start: Nanos) {
        self.with_claims(|claims| claims.returned.push(start));
    }

    /// Returns the number of starts that are due at `now` and that no session has claimed.
    pub(super) fn backlog(&self, now: Nanos) -> u64 {
        self.with_claims(|claims| {
            let returned = claims.returned.iter().filter(|start| **start <= now).count();
            claims.arrivals.backlog(now) + returned as u64
        })
    }
}

impl Claims {
    fn next(&self) -> Nanos {
        self.returned.iter().copied().fold(self.arrivals.next, Nanos::min)
    }

    fn claim(&mut self) -> Nanos {
        let next = self.next();
        match self.returned.iter().position(|start| *start == next) {
            Some(position) => self.returned.swap_remove(position),
            None => self.arrivals.take(),
        }
    }
}

/// Intended start times of a stage, in order.
#[derive(Debug, Clone)]
pub(super) struct Arrivals {
    rate: Rate,
    /// Start of the measurement.
    anchor: Nanos,
    source: Source,
    /// The next intended start. It is in the past if no session was free to take it.
    next: Nanos,
    taken: u64,
}

#[derive(Debug, Clone)]
enum Source {
    /// Start `k` is when `k` starts have taken place, so rounding errors do not accumulate. Before the measurement starts,
    /// `k` is negative.
    Even { first_number: i64 },
    Poisson {
        walk: Walk,
        /// Copy of the same random stream, advanced to the current time to count the due starts.
        ahead: Walk,
        ahead_next: Nanos,
        /// Number of starts that were due at the last call.
        due: u64,
    },
}

/// A Poisson process with the rate 1: at any other rate, its points are those at which as many starts have taken place
/// (Cinlar, "Introduction to Stochastic Processes", 1975, section 4.7).
#[derive(Debug, Clone)]
struct Walk {
    gaps: Gaps,
    /// Number of starts since the start of the measurement; negative before it.
    at: f64,
}

/// The random stream of the times between starts.
#[derive(Debug, Clone)]
pub(super) enum Gaps {
    Own(Xoshiro256PlusPlus),
    /// Random stream of pgbench, with times in whole microseconds.
    Pgbench(Random),
}

impl Arrivals {
    /// Creates the arrivals from `start` on. Without random intervals, one start falls on `anchor`, where the measurement
    /// starts. Returns `None` for the closed loop, which has no intended starts.
    pub(super) fn new(
        schedule: &Schedule,
        start: Nanos,
        anchor: Nanos,
        gaps: Gaps,
    ) -> Option<Self> {
        let rate = Rate::from_schedule(schedule)?;
        let at = rate.starts_by(-anchor.since(start).as_seconds());
        let source = if schedule.is_poisson() {
            let walk = Walk { gaps, at };
            Source::Poisson { ahead: walk.clone(), walk, ahead_next: Nanos(0), due: 0 }
        } else {
            #[expect(clippy::cast_possible_truncation, reason = "a number of starts")]
            let first_number = at.ceil() as i64;
            Source::Even { first_number }
        };
        let mut arrivals = Self { rate, anchor, source, next: Nanos(0), taken: 0 };
        arrivals.next = arrivals.following();
        if let Source::Poisson { walk, ahead, ahead_next, .. } = &mut arrivals.source {
            (*ahead, *ahead_next) = (walk.clone(), arrivals.next);
        }
        Some(arrivals)
    }

    /// Takes the next intended start and returns it.
    pub(super) fn take(&mut self) -> Nanos {
        self.taken += 1;
        let following = self.following();
        std::mem::replace(&mut self.next, following)
    }

    /// Returns the start after the taken ones.
    fn following(&mut self) -> Nanos {
        let starts = match &mut self.source {
            Source::Even { first_number } => (self.taken.cast_signed() + *first_number) as f64,
            Source::Poisson { walk, .. } => walk.step(&self.rate),
        };
        time_of(&self.rate, self.anchor, starts)
    }

    /// Returns the number of starts that are due at `now` and have not been taken. `now` must not decrease between calls.
    pub(super) fn backlog(&mut self, now: Nanos) -> u64 {
        let due = match &mut self.source {
            Source::Even { first_number } => {
                let since_anchor = if now >= self.anchor {
                    now.since(self.anchor).0 as f64
                } else {
                    -(self.anchor.since(now).0 as f64)
                };
                // Number of the last due start. Adds half a nanosecond because start times are rounded to nanoseconds.
                #[expect(clippy::cast_possible_truncation, reason = "a number of starts")]
                let last = self.rate.starts_by((since_anchor + 0.5) / 1e9).floor() as i64;
                u64::try_from(last - *first_number + 1).unwrap_or(0)
            }
            Source::Poisson { ahead, ahead_next, due, .. } => {
                while *ahead_next <= now {
                    *due += 1;
                    *ahead_next = time_of(&self.rate, self.anchor, ahead.step(&self.rate));
                }
                *due
            }
        };
        due.saturating_sub(self.taken)
    }
}

/// Returns the time by which this number of starts has taken place since `anchor`; it is before that if negative.
fn time_of(rate: &Rate, anchor: Nanos, starts: f64) -> Nanos {
    let since_s = rate.time_of(starts);
    let offset = Nanos(nearest_integer(since_s.abs() * 1e9));
    if since_s >= 0.0 { anchor.after(offset) } else { anchor.since(offset) }
}

impl Walk {
    /// Returns the number of starts at the next point.
    fn step(&mut self, rate: &Rate) -> f64 {
        self.at += match &mut self.gaps {
            Gaps::Own(rng) => rng.sample(Exp1),
            // Whole microseconds at a constant rate.
            Gaps::Pgbench(random) => {
                let mean_us = rate.time_of(1.0) * 1e6;
                random.poisson_gap_us(mean_us) as f64 / mean_us
            }
        };
        self.at
    }
}

// The requested rate over time.

/// The requested rate over the time since the start of the measurement. Before it, the first rate applies; after the end
/// of a profile, the last one.
#[derive(Debug, Clone)]
pub(super) struct Rate {
    first_per_s: f64,
    /// In order, at least one.
    pieces: Vec<Piece>,
}

/// A part with a rate that is constant or changes linearly.
#[derive(Debug, Clone, Copy)]
struct Piece {
    start_s: f64,
    /// Number of starts in the pieces before.
    before: f64,
    per_s: f64,
    /// Change of the rate, per second.
    slope: f64,
}

impl Rate {
    /// Returns the rate of a schedule; `None` for the closed loop.
    pub(super) fn from_schedule(schedule: &Schedule) -> Option<Self> {
        let mut pieces = Vec::new();
        let mut last = Piece { start_s: 0.0, before: 0.0, per_s: 0.0, slope: 0.0 };
        match schedule {
            Schedule::Closed => return None,
            Schedule::Constant { per_s } | Schedule::Poisson { per_s } => last.per_s = *per_s,
            Schedule::Profile { steps, .. } => {
                for step in steps {
                    let slope = (step.to_per_s - step.from_per_s) / step.seconds;
                    pieces.push(Piece { per_s: step.from_per_s, slope, ..last });
                    last.start_s += step.seconds;
                    last.before += step.starts();
                    last.per_s = step.to_per_s;
                }
            }
        }
        pieces.push(last);
        Some(Self { first_per_s: pieces.first().map_or(0.0, |piece| piece.per_s), pieces })
    }

    /// Returns the number of starts between the start of the measurement and `t_s`; negative before it.
    pub(super) fn starts_by(&self, t_s: f64) -> f64 {
        let Some(piece) = self.last_piece(|piece| piece.start_s <= t_s) else {
            return self.first_per_s * t_s;
        };
        let since = t_s - piece.start_s;
        piece.before + piece.per_s * since + piece.slope * since * since / 2.0
    }

    /// Returns the time by which this number of starts has taken place: the inverse of [`Self::starts_by`], infinite if they
    /// never do.
    pub(super) fn time_of(&self, starts: f64) -> f64 {
        let Some(piece) = self.last_piece(|piece| piece.before <= starts) else {
            return starts / self.first_per_s;
        };
        let starts = starts - piece.before;
        let since = if starts <= 0.0 {
            0.0
        } else if piece.slope == 0.0 {
            starts / piece.per_s
        } else {
            // The solution of the quadratic equation that loses no digits with a small slope.
            let root = (piece.per_s * piece.per_s + 2.0 * piece.slope * starts).max(0.0).sqrt();
            2.0 * starts / (piece.per_s + root)
        };
        piece.start_s + since
    }

    /// Returns the last piece that has begun.
    fn last_piece(&self, has_begun: impl Fn(&Piece) -> bool) -> Option<&Piece> {
        self.pieces.get(self.pieces.partition_point(has_begun).checked_sub(1)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::keys::{Purpose, stream};

    const START: Nanos = Nanos(1_000_000_000);

    fn arrivals(schedule: &Schedule, anchor: Nanos) -> Arrivals {
        let rng = stream(7, Purpose::Arrivals, 0);
        Arrivals::new(schedule, START, anchor, Gaps::Own(rng)).unwrap()
    }

    /// Returns the starts before `end`, in order.
    fn all(schedule: &Schedule, anchor: Nanos, end: Nanos) -> Vec<u64> {
        let unclaimed = Unclaimed::new(arrivals(schedule, anchor));
        std::iter::from_fn(|| unclaimed.claim_before(end)).map(|start| start.0).collect()
    }

    #[test]
    fn sessions_are_assigned_round_robin() {
        let share = Share { worker: 1, workers: 3 };
        let ids: Vec<u64> = (0..3).map(|position| share.session_id(position)).collect();
        assert_eq!(ids, [1, 4, 7]);
    }

    #[test]
    fn closed_loop_has_no_arrivals() {
        let rng = stream(7, Purpose::Arrivals, 0);
        assert!(Arrivals::new(&Schedule::Closed, START, START, Gaps::Own(rng)).is_none());
    }

    #[test]
    fn measurement_contains_exactly_rate_times_duration_starts() {
        for (per_s, seconds) in
            [(1_000.0, 4), (3.0, 7), (7_777.0, 10), (1e6, 1), (0.5, 10), (33_333.0, 3)]
        {
            // An anchor that is not a multiple of any interval.
            let anchor = START.after(Nanos(1_234_567_891));
            let end = anchor.after(Nanos(seconds * 1_000_000_000));
            let starts = all(&Schedule::Constant { per_s }, anchor, end);
            let counted = starts.iter().filter(|&&start| start >= anchor.0).count();
            assert_eq!(counted as f64, per_s * seconds as f64, "{per_s}");
            assert!(starts.iter().all(|&start| start >= START.0));
            assert!(starts.windows(2).all(|pair| pair[0] < pair[1]));
        }
    }

    #[test]
    fn constant_rate_starts_do_not_drift() {
        let mut arrivals = arrivals(&Schedule::Constant { per_s: 3.0 }, START);
        for start in 0..300_000u64 {
            let exact = START.0 as f64 + start as f64 * 1e9 / 3.0;
            assert!((arrivals.take().0 as f64 - exact).abs() <= 1.0);
        }
    }

    #[test]
    fn poisson_starts_match_the_rate_and_variance() {
        let end = START.after(Nanos(20_000_000_000));
        let starts = all(&Schedule::Poisson { per_s: 5_000.0 }, START, end);
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
        assert_eq!(starts, all(&Schedule::Poisson { per_s: 5_000.0 }, START, end));
    }

    #[test]
    fn backlog_equals_due_starts_minus_taken_starts() {
        for schedule in [Schedule::Constant { per_s: 999.0 }, Schedule::Poisson { per_s: 999.0 }] {
            let anchor = START.after(Nanos(500_000_000));
            let mut arrivals = arrivals(&schedule, anchor);
            let mut reference = arrivals.clone();
            for step in 1..50u64 {
                let now = START.after(Nanos(step * 37_000_000));
                if step % 3 == 0 && arrivals.next <= now {
                    assert_eq!(arrivals.take(), reference.take());
                }
                let mut counter = reference.clone();
                let mut due = 0;
                while counter.next <= now {
                    counter.take();
                    due += 1;
                }
                assert_eq!(arrivals.backlog(now), due, "{schedule:?} {step}");
            }
        }
    }

    #[test]
    fn claims_a_returned_start_next() {
        let unclaimed = Unclaimed::new(arrivals(&Schedule::Constant { per_s: 1e9 }, START));
        let starts: Vec<u64> = (0..3).map(|_| unclaimed.claim().0 - START.0).collect();
        assert_eq!(starts, [0, 1, 2]);
        unclaimed.give_back(START.after(Nanos(1)));
        assert_eq!(unclaimed.backlog(START.after(Nanos(2))), 1);
        assert_eq!(unclaimed.claim_before(START.after(Nanos(1))), None);
        assert_eq!([unclaimed.claim(), unclaimed.claim()].map(|start| start.0 - START.0), [1, 3]);
    }

    fn profile(steps: &[&str]) -> Rate {
        let steps = steps.iter().map(|step| step.parse().unwrap()).collect();
        Rate::from_schedule(&Schedule::Profile { steps, poisson: false }).unwrap()
    }

    #[test]
    fn a_profile_has_the_starts_of_its_steps_at_their_rates() {
        let rate = profile(&["500:30s", "2000:30s", "2000..0:10s", "0:5s"]);
        let at = [-2.0, 0.0, 30.0, 45.0, 60.0, 65.0, 70.0, 99.0];
        let starts = [-1_000.0, 0.0, 15_000.0, 45_000.0, 75_000.0, 82_500.0, 85_000.0, 85_000.0];
        assert_eq!(at.map(|t_s| rate.starts_by(t_s)), starts);
        let first = [-1_000.0, 0.0, 15_000.0, 45_000.0, 75_000.0, 82_500.0];
        assert_eq!(first.map(|starts| rate.time_of(starts)), [-2.0, 0.0, 30.0, 45.0, 60.0, 65.0]);
        assert_eq!(rate.time_of(85_000.5), f64::INFINITY);
    }

    #[test]
    fn the_times_of_a_ramp_are_the_inverse_of_its_starts() {
        let rate = profile(&["0..1000:10s", "1000..900:20s"]);
        for count in 0..24_000 {
            let starts = f64::from(count);
            assert!((rate.starts_by(rate.time_of(starts)) - starts).abs() < 1e-6, "{count}");
        }
        assert_eq!(Rate::from_schedule(&Schedule::Closed).map(|rate| rate.first_per_s), None);
    }
}
