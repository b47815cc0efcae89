//! The permutation test turned into an interval: the ratios that it does not reject. The values of B are divided by a ratio,
//! and if B differs from A by nothing else, the labels A and B are then exchangeable.

use super::blocks::{Estimate, Sample, Sums, Unit};
use super::interval::Interval;
use super::permutation::{ROUNDING, assignments};

/// Halvings of the distance to a limit.
const HALVINGS: usize = 24;

/// Returns the limits of the log ratios up to `within`, of either sign, whose p-value is above `level`, together with the
/// estimate. They contain 0 if the p-value of equal sides is above `level`.
pub(super) fn accepted(
    sample: &Sample,
    level: f64,
    within: f64,
    resamples: u32,
    seed: u64,
) -> Interval {
    let test = Shifted::new(sample, resamples, seed);
    let accepts = |log_ratio: f64| test.p(log_ratio) > level * (1.0 + ROUNDING);
    let center = test.lines.first().map_or(0.0, |(difference, _)| *difference);
    let limit = |sign: f64| {
        if center * sign >= within {
            return center;
        }
        let (nearest, farthest) = (center.clamp(-within, within), sign * within);
        let is_beyond_zero = center * sign < 0.0;
        if is_beyond_zero && accepts(0.0) {
            outermost(&accepts, 0.0, farthest)
        } else if center.abs() > within && !accepts(nearest) {
            center
        } else {
            outermost(&accepts, nearest, if is_beyond_zero { 0.0 } else { farthest })
        }
    };
    Interval { low: limit(-1.0), high: limit(1.0) }
}

/// Returns the last accepted value from one that is accepted to another one.
fn outermost(accepts: &dyn Fn(f64) -> bool, from: f64, to: f64) -> f64 {
    if accepts(to) {
        return to;
    }
    let (mut inside, mut outside) = (from, to);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(inside, outside);
        if accepts(middle) { inside = middle } else { outside = middle }
    }
    inside
}

/// The permutation test of runs after the runs of B are shifted.
struct Shifted<'a> {
    sample: &'a Sample,
    /// The difference of each assignment, and its change by a shift of 1; the observed assignment first.
    lines: Vec<(f64, f64)>,
    /// The sums of each block of each assignment, for the standard errors; empty if the block is the unit.
    sums: Vec<Sums>,
}

impl<'a> Shifted<'a> {
    fn new(sample: &'a Sample, resamples: u32, seed: u64) -> Self {
        let (mut lines, mut sums) = (Vec::new(), Vec::new());
        for is_b in assignments(&sample.shape(), resamples, seed) {
            let blocks: Vec<Sums> = sample.sums(&is_b).collect();
            let difference = |shift: f64| {
                let shifted = blocks.iter().map(|block| block.shifted(shift));
                sample.estimate_of(shifted).difference
            };
            lines.push((difference(0.0), difference(1.0) - difference(0.0)));
            if sample.unit == Unit::Run {
                sums.extend(blocks);
            }
        }
        Self { sample, lines, sums }
    }

    /// Returns the p-value of a log ratio.
    fn p(&self, log_ratio: f64) -> f64 {
        if self.sample.unit == Unit::Run {
            let statistic = |blocks: &[Sums]| {
                let shifted = blocks.iter().map(|block| block.shifted(log_ratio));
                self.sample.estimate_of(shifted).statistic()
            };
            return share_reaching(self.sums.chunks(self.sample.shape().len()).map(statistic));
        }
        let statistic = |(difference, slope): &(f64, f64)| {
            Estimate::of_blocks(difference + log_ratio * slope).statistic()
        };
        share_reaching(self.lines.iter().map(statistic))
    }
}

/// Returns the share of the statistics that reach the first one.
fn share_reaching(statistics: impl Iterator<Item = f64> + Clone) -> f64 {
    let least = statistics.clone().next().unwrap_or(0.0) * (1.0 - ROUNDING);
    let (mut all, mut reaching) = (0.0_f64, 0.0);
    for statistic in statistics {
        all += 1.0;
        reaching += f64::from(u8::from(statistic >= least));
    }
    reaching / all.max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Block;

    fn sample(blocks: &[Block]) -> Sample {
        Sample::new(blocks).unwrap()
    }

    /// Pairs with these differences of logarithms.
    fn pairs(differences: &[f64]) -> Sample {
        let pair = |difference: &f64| Block { a: vec![1.0], b: vec![difference.exp()] };
        sample(&differences.iter().map(pair).collect::<Vec<_>>())
    }

    #[test]
    fn six_pairs_have_the_limits_of_their_smallest_and_largest_difference() {
        // At 5 %, only the two of 64 assignments in which all differences have the same sign are significant.
        let limits = accepted(&pairs(&[0.01, 0.05, 0.03, 0.02, 0.06, 0.04]), 0.05, 1.0, 99, 1);
        assert!(
            (limits.low - 0.01).abs() < 1e-6 && (limits.high - 0.06).abs() < 1e-6,
            "{limits:?}"
        );
        // At 10 %, one small difference may have the other sign.
        let limits = accepted(&pairs(&[0.01, 0.05, 0.03, 0.02, 0.06, 0.04]), 0.1, 1.0, 99, 1);
        assert!(limits.low > 0.01 && limits.high < 0.06, "{limits:?}");
    }

    #[test]
    fn limits_are_searched_up_to_the_given_ones() {
        let wild = [0.30, -0.25, 0.10, -0.20, 0.25, -0.18];
        let limits = Interval { low: -0.02, high: 0.02 };
        assert_eq!(accepted(&pairs(&wild), 0.05, 0.02, 99, 1), limits);
        let far = accepted(&pairs(&[0.31, 0.35, 0.33, 0.32, 0.36, 0.34]), 0.05, 0.02, 99, 1);
        assert!(far.low == far.high && (far.low - 0.335).abs() < 1e-9, "{far:?}");
    }

    #[test]
    fn runs_without_blocks_have_the_limits_at_which_their_groups_are_apart() {
        // Only complete separation is significant for 4 and 4 runs: 2 of 70.
        let block = Block {
            a: [0.0_f64, 0.01, 0.02, 0.03].map(f64::exp).to_vec(),
            b: [0.10_f64, 0.11, 0.12, 0.13].map(f64::exp).to_vec(),
        };
        let limits = accepted(&sample(&[block]), 0.03, 1.0, 99, 1);
        assert!(
            (limits.low - 0.07).abs() < 1e-6 && (limits.high - 0.13).abs() < 1e-6,
            "{limits:?}"
        );
    }
}
