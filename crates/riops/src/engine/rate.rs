//! The requested rate over time.

use crate::plan::Schedule;

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
    pub(super) fn of(schedule: &Schedule) -> Option<Self> {
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

    fn profile(steps: &[&str]) -> Rate {
        let steps = steps.iter().map(|step| step.parse().unwrap()).collect();
        Rate::of(&Schedule::Profile { steps, poisson: false }).unwrap()
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
        for number in 0..24_000 {
            let starts = f64::from(number);
            assert!((rate.starts_by(rate.time_of(starts)) - starts).abs() < 1e-6, "{number}");
        }
        assert_eq!(Rate::of(&Schedule::Closed).map(|rate| rate.first_per_s), None);
    }
}
