//! Bootstrap interval of a log ratio.
//!
//! The symmetric bootstrap-t interval (Hall, "On symmetric bootstrap confidence intervals", JRSS B 50 (1), 1988)
//! with random weights instead of counts: each value has a weight from Beta(1/2, 3/2) (Owen, "Better bootstrap t
//! confidence intervals for the mean", arXiv:2508.10083, 2025). With six to eight blocks, percentile intervals and
//! intervals of the `BCa` method are too short. Resampling with counts often draws one block several times, which
//! makes a bootstrap-t interval much too long. docs/statistics.md has the measured rates.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::Serialize;

use super::blocks::{Group, Sample, ZERO};
use super::student::two_sided_quantile;
use crate::units::format::truncated;

/// Maximum length of an interval, relative to Student's t interval. If most values are equal and one is far away, many bootstrap
/// errors are close to 0, and the length of a bootstrap interval is unlimited.
const SKEW_MAX: f64 = 3.0;

/// Limits of an interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// Lower limit.
    pub low: f64,
    /// Upper limit.
    pub high: f64,
}

/// Intervals of a log ratio.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LogIntervals {
    /// Covers it with probability `1 - alpha`.
    pub(super) covering: Interval,
    /// Each limit is beyond it with a probability of at most about `alpha`, also with skewed differences: the symmetric and
    /// the equal-tailed interval with half of `alpha`. With skewed differences, the values that are seldom and far away may
    /// all be missing; the others then vary little, and the covering interval is too short on that side.
    pub(super) cautious: Interval,
}

impl LogIntervals {
    /// Returns the covering interval extended to another one. A limit is within the smallest relevant ratio only if the
    /// cautious limit is, too: the claim that a difference is smaller must not depend on missing values. A difference that
    /// is shown and may be larger makes no such claim.
    pub(super) fn joined(&self, other: Interval, relevant: f64) -> Interval {
        let (covering, cautious) = (self.covering, self.cautious);
        let (low, high) = (covering.low.min(other.low), covering.high.max(other.high));
        let is_within = |low: f64, high: f64| (low > -relevant, high < relevant);
        let (within, surely) = (is_within(low, high), is_within(cautious.low, cautious.high));
        let (is_more, is_less) = (low > 0.0 && !within.1, high < 0.0 && !within.0);
        let low = if within.0 && !surely.0 && !is_more { cautious.low } else { low };
        let high = if within.1 && !surely.1 && !is_less { cautious.high } else { high };
        Interval { low, high }
    }
}

/// Returns the intervals of the log ratio; `None` if the variation cannot be estimated.
pub(super) fn log_intervals(
    sample: &Sample,
    alpha: f64,
    resamples: u32,
    seed: u64,
) -> Option<LogIntervals> {
    let groups = sample.groups()?;
    let (center, error) = studentized(&groups, || 1.0);
    if error <= ZERO {
        let only = Interval { low: center, high: center };
        return Some(LogIntervals { covering: only, cautious: only });
    }
    let degrees: usize = groups.iter().map(|group| group.values.len().saturating_sub(1)).sum();
    let longest =
        |alpha: f64| two_sided_quantile(alpha, degrees as f64).map(|quantile| SKEW_MAX * quantile);
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let mut deviations: Vec<f64> = (0..resamples)
        .map(|_| {
            let (mean, error) = studentized(&groups, || weight(&mut rng));
            (mean - center) / error
        })
        .collect();
    deviations.sort_by(f64::total_cmp);
    let least = quantile(&deviations, alpha / 4.0)?;
    let most = quantile(&deviations, 1.0 - alpha / 4.0)?;
    for deviation in &mut deviations {
        *deviation = deviation.abs();
    }
    deviations.sort_by(f64::total_cmp);
    let factor = quantile(&deviations, 1.0 - alpha)?.min(longest(alpha)?);
    let wide = quantile(&deviations, 1.0 - alpha / 2.0)?;
    let longest = longest(alpha / 2.0)?;
    Some(LogIntervals {
        covering: Interval { low: center - factor * error, high: center + factor * error },
        cautious: Interval {
            low: center - most.max(wide).min(longest) * error,
            high: center + (-least).max(wide).min(longest) * error,
        },
    })
}

/// Returns the value below which this share of the sorted values is, rounded away from the median.
fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let position = share * (sorted.len() as f64 + 1.0);
    let position = if share < 0.5 { position.floor() } else { position.ceil() };
    let position = truncated(position).clamp(1, sorted.len().max(1));
    sorted.get(position - 1).copied()
}

/// Returns the weighted estimate and its standard error.
fn studentized(groups: &[Group], mut weight: impl FnMut() -> f64) -> (f64, f64) {
    let (mut estimate, mut variance) = (0.0, 0.0);
    for group in groups {
        let (mut weights, mut mean, mut squares) = (0.0, 0.0, 0.0);
        for value in &group.values {
            // Weighted mean and sum of squares in one pass (West 1979).
            let weight = weight();
            weights += weight;
            let before = value - mean;
            mean += before * weight / weights;
            squares += weight * before * (value - mean);
        }
        let degrees = (group.values.len() as f64 - 1.0).max(1.0);
        estimate += group.factor * mean;
        variance += group.factor * group.factor * squares / weights / degrees;
    }
    (estimate, variance.sqrt())
}

/// Returns a random number from Beta(1/2, 3/2): the square of a coordinate of a point in the unit disk.
fn weight(rng: &mut Xoshiro256PlusPlus) -> f64 {
    loop {
        let (x, y) = (rng.random::<f64>(), rng.random::<f64>());
        // A weight of 0 for all values would have no mean.
        if x * x + y * y <= 1.0 && x > 0.0 {
            return x * x;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Block;

    #[test]
    fn weights_have_the_moments_of_the_beta_distribution() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let weights: Vec<f64> = (0..20_000).map(|_| weight(&mut rng)).collect();
        let mean = weights.iter().sum::<f64>() / 20_000.0;
        let squares = weights.iter().map(|weight| weight * weight).sum::<f64>() / 20_000.0;
        assert!((mean - 0.25).abs() < 0.005, "{mean}");
        assert!((squares - mean * mean - 0.0625).abs() < 0.003, "{squares}");
    }

    #[test]
    fn equal_ratios_have_an_interval_without_length() {
        let block = Block { a: vec![100.0], b: vec![110.0] };
        let sample = Sample::new(&vec![block; 6]).unwrap();
        let Interval { low, high } = log_intervals(&sample, 0.05, 999, 1).unwrap().covering;
        assert!((low - 1.1_f64.ln()).abs() < 1e-9 && (high - low).abs() < 1e-9, "{low} {high}");
    }

    #[test]
    fn two_blocks_of_one_pair_have_no_interval() {
        let block = Block { a: vec![100.0], b: vec![110.0] };
        let sample = Sample::new(&vec![block; 2]).unwrap();
        assert_eq!(log_intervals(&sample, 0.05, 999, 1), None);
    }
}
