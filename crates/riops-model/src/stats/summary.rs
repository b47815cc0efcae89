//! Summary of repeated runs: median, mean, its interval and differences by Student's t distribution, and which percentiles can be
//! shown.

use super::interval::Interval;
use super::student::{two_sided_p, two_sided_quantile};

/// Values below which there is no interval. With two, it would be the mean ± 6 times their difference.
const INTERVAL_MIN: usize = 3;
/// The interval misses the true mean with this probability.
const ALPHA: f64 = 0.05;

/// Repeated runs of one plan.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Number of runs.
    pub n: usize,
    /// Median.
    pub median: f64,
    /// Mean.
    pub mean: f64,
    /// Standard deviation divided by the mean; `None` for one value, or a mean of 0.
    pub stdev_share: Option<f64>,
    /// The 95 % interval of the mean, with Student's t distribution, from 0 on; `None` for fewer than three values.
    pub interval: Option<Interval>,
}

/// Returns the median; 0 without values.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |position: usize| sorted.get(position).copied().unwrap_or(0.0);
    f64::midpoint(at(sorted.len() / 2), at(sorted.len().saturating_sub(1) / 2))
}

/// Returns the first and the third quartile: the medians of the lower and of the upper half, both with the value in the middle
/// if there is one (the hinges of Tukey, "Exploratory Data Analysis", 1977). Zeros without values.
pub fn quartiles(values: &[f64]) -> (f64, f64) {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len().div_ceil(2);
    let (lower, upper) = (sorted.iter().take(half), sorted.iter().rev().take(half));
    (median(&lower.copied().collect::<Vec<_>>()), median(&upper.copied().collect::<Vec<_>>()))
}

/// Summarizes values; `None` without values.
pub fn summary(values: &[f64]) -> Option<Summary> {
    let n = values.len();
    values.first()?;
    let (mean, squares) = moments(values);
    let degrees = n as f64 - 1.0;
    let stdev = (n > 1).then(|| (squares / degrees).sqrt());
    let interval = mean_reach(values, ALPHA)
        .filter(|_| n >= INTERVAL_MIN)
        // No figure of a run is negative.
        .map(|reach| Interval { low: (mean - reach).max(0.0), high: mean + reach });
    Some(Summary {
        n,
        median: median(values),
        mean,
        stdev_share: stdev.filter(|_| mean != 0.0).map(|stdev| stdev / mean.abs()),
        interval,
    })
}

/// Returns half the width of the interval of the mean, with Student's t distribution, which misses the mean with the probability
/// `alpha`; `None` for fewer than two values.
pub fn mean_reach(values: &[f64], alpha: f64) -> Option<f64> {
    let (n, (_, squares)) = (values.len() as f64, moments(values));
    let degrees = n - 1.0;
    Some(two_sided_quantile(alpha, degrees)? * (squares / degrees / n).sqrt())
}

/// Returns the 95 % interval of the mean of each group, with the variation within all groups: a group of one value
/// has an interval, too. `None` without values, or if no group has two.
///
/// The groups must vary alike, as the logarithms of the throughput of repeated runs do.
pub fn mean_intervals(groups: &[Vec<f64>]) -> Vec<Option<Interval>> {
    let squares: f64 = groups.iter().map(|values| moments(values).1).sum();
    let degrees: f64 = groups.iter().map(|values| values.len().saturating_sub(1) as f64).sum();
    let quantile = if degrees > 0.0 { two_sided_quantile(ALPHA, degrees) } else { None };
    let interval = |values: &Vec<f64>| {
        let reach = quantile? * (squares / degrees / values.len() as f64).sqrt();
        let (mean, _) = moments(values);
        (!values.is_empty()).then_some(Interval { low: mean - reach, high: mean + reach })
    };
    groups.iter().map(interval).collect()
}

/// Returns the p-value of the two-sided t-test of equal means, with a common variance (Student 1908); 1 for fewer
/// than three values. Values with a `correlation` of neighbors are worth fewer independent ones, by the factor
/// (1 − ρ) / (1 + ρ) (Bayley and Hammersley, "The effective number of independent observations in an autocorrelated time
/// series", 1946, for long series of an autoregressive process).
pub(super) fn t_test(left: &[f64], right: &[f64], correlation: f64) -> f64 {
    let worth = (1.0 - correlation) / (1.0 + correlation);
    let count = (left.len() + right.len()) as f64;
    let degrees = worth * count - 2.0;
    if degrees <= 0.0 || left.is_empty() || right.is_empty() {
        return 1.0;
    }
    let ((left_mean, left_squares), (right_mean, right_squares)) = (moments(left), moments(right));
    // Correlated values deviate less from their own means: the expected sum of squares is σ² (n − 2 / worth).
    let variance = (left_squares + right_squares) / degrees;
    let error = (variance * (1.0 / left.len() as f64 + 1.0 / right.len() as f64)).sqrt();
    p_of_means(left_mean, right_mean, error, degrees)
}

/// Returns the p-value of the two-sided t-test of equal means, whose difference has this standard error.
pub(super) fn p_of_means(left: f64, right: f64, error: f64, degrees: f64) -> f64 {
    let difference = (left - right).abs();
    // Differences of equal values are rounding errors.
    if difference <= 1e-12 * left.abs().max(right.abs()) {
        return 1.0;
    }
    two_sided_p(difference / error, degrees)
}

/// Returns the mean and the sum of squared deviations from it.
pub(super) fn moments(values: &[f64]) -> (f64, f64) {
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    (mean, values.iter().map(|value| (value - mean) * (value - mean)).sum())
}

/// Minimum number of blocks for an interval from the variation between blocks. With fewer blocks, the interval is
/// computed from the variation of the runs within them.
const BLOCKS_MIN: usize = 3;

/// A difference of two means.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// The mean of B minus the mean of A, averaged over the blocks.
    pub value: f64,
    /// Half the width of its interval, with Student's t distribution; `None` with too few runs.
    pub reach: Option<f64>,
}

/// Returns the difference of the values of A and B, which were measured together in blocks; `None` without values of both. The
/// interval misses the true difference with the probability `alpha`.
pub fn difference(blocks: &[(Vec<f64>, Vec<f64>)], alpha: f64) -> Option<Difference> {
    let complete: Vec<_> = blocks.iter().filter(|(a, b)| !a.is_empty() && !b.is_empty()).collect();
    let of_blocks: Vec<f64> = complete.iter().map(|(a, b)| moments(b).0 - moments(a).0).collect();
    let count = of_blocks.len() as f64;
    let value = (count > 0.0).then(|| of_blocks.iter().sum::<f64>() / count)?;
    if of_blocks.len() >= BLOCKS_MIN {
        return Some(Difference { value, reach: mean_reach(&of_blocks, alpha) });
    }
    let sides = || complete.iter().flat_map(|(a, b)| [a, b]);
    let degrees: f64 = sides().map(|side| side.len() as f64 - 1.0).sum();
    let squares: f64 = sides().map(|side| moments(side).1).sum();
    let inverse: f64 = sides().map(|side| 1.0 / side.len() as f64).sum();
    // One value of a side beside equal values of the other says nothing about the variation.
    let reach = two_sided_quantile(alpha, degrees)
        .filter(|_| squares > 0.0 || sides().all(|side| side.len() > 1))
        .map(|quantile| quantile * (squares / degrees * inverse).sqrt() / count);
    Some(Difference { value, reach })
}

/// Minimum number of effective values beyond a percentile.
///
/// The number of values beyond the true percentile is binomial. With ten expected, its standard deviation is 3.2:
/// the recorded p99 is between the true p98.4 and p99.6 in 95 % of the runs. With one, it is the maximum. (Order
/// statistics as limits of a percentile: Hahn and Meeker, "Statistical Intervals", 1991, section 5.2.)
pub const BEYOND_MIN: f64 = 10.0;

/// Whether a percentile (0 to 100) of `count` values can be shown. `effective_share` is the effective sample size
/// divided by the number of values, see [`super::effective_sample_size`]; 1 for independent values.
pub fn is_percentile_shown(count: u64, percentile: f64, effective_share: f64) -> bool {
    let beyond = (1.0 - percentile / 100.0).min(percentile / 100.0);
    // Rounding: 1 - 0.999 is slightly less than 0.001.
    count as f64 * effective_share.clamp(0.0, 1.0) * beyond >= BEYOND_MIN * (1.0 - 1e-9)
}

// Autocorrelation and effective sample size of a series, such as the rate of each interval of a run.

/// A series with at least this number of values is replaced by means of neighboring values, which bounds the cost.
const VALUES_MAX: usize = 2_000;

/// Returns the correlation of values that are `lag` positions apart; 0 for a constant or shorter series.
pub fn autocorrelation(values: &[f64], lag: usize) -> f64 {
    let (centered, variance) = centered(values);
    if variance > 0.0 { autocovariance(&centered, lag) / variance } else { 0.0 }
}

/// Returns the number of independent values whose mean varies as much as the mean of this series: from 1 to the
/// number of values. Returns the number of values for a constant series.
///
/// The variance of the mean is the sum of all autocovariances, divided by the number of values. It is
/// estimated with the initial monotone positive sequence of Geyer ("Practical Markov chain Monte Carlo",
/// Statistical Science 7 (4), 1992): autocovariances are added in pairs until a pair is negative, and no pair
/// counts more than the one before. Unlike batch means it needs no batch size. Autocovariances around the estimated
/// mean are too small by the variance of the mean each; the sum is corrected for that (Wolff, "Monte Carlo errors
/// with less errors", Computer Physics Communications 156, 2004, equation 49).
pub fn effective_sample_size(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let (_, variance) = centered(values);
    if variance <= 0.0 {
        return count;
    }
    // Means of neighbors have the same mean and thus the same variance of the mean.
    let size = values.len().div_ceil(VALUES_MAX);
    let means: Vec<f64> =
        values.chunks_exact(size).map(|chunk| chunk.iter().sum::<f64>() / size as f64).collect();
    let (means, variance_of_means) = centered(&means);
    let mut sum = 0.0;
    let mut last = f64::INFINITY;
    let mut lags = 0.0;
    for lag in (0..means.len()).step_by(2) {
        let pair = autocovariance(&means, lag) + autocovariance(&means, lag + 1);
        if pair <= 0.0 {
            break;
        }
        last = last.min(pair);
        sum += last;
        lags += 4.0;
    }
    let count_of_means = means.len() as f64;
    let correction = 1.0 + lags / count_of_means;
    let variance_of_mean = correction * (2.0 * sum - variance_of_means) / count_of_means;
    if variance_of_mean <= 0.0 {
        return count;
    }
    (variance / variance_of_mean).clamp(1.0, count)
}

/// Returns the values minus their mean, and their variance.
fn centered(values: &[f64]) -> (Vec<f64>, f64) {
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    let centered: Vec<f64> = values.iter().map(|value| value - mean).collect();
    let variance = autocovariance(&centered, 0);
    (centered, variance)
}

/// Returns the mean product of centered values that are `lag` positions apart. The divisor is the number of all
/// values, which keeps the estimated spectrum positive.
fn autocovariance(centered: &[f64], lag: usize) -> f64 {
    let products = centered.iter().zip(centered.iter().skip(lag)).map(|(one, other)| one * other);
    products.sum::<f64>() / centered.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_distr::{Distribution, StandardNormal};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    #[test]
    fn quartiles_are_the_medians_of_the_halves() {
        assert_eq!(quartiles(&[9.0, 1.0, 3.0, 2.0, 8.0, 4.0, 7.0, 5.0, 6.0]), (3.0, 7.0));
        assert_eq!(quartiles(&[4.0, 3.0, 2.0, 1.0]), (1.5, 3.5));
        assert_eq!(quartiles(&[2.0]), (2.0, 2.0));
    }

    #[test]
    fn summarizes_repeated_runs() {
        let summary = summary(&[10.0, 14.0, 12.0, 11.0, 13.0]).unwrap();
        assert_eq!((summary.n, summary.median, summary.mean), (5, 12.0, 12.0));
        assert!((summary.stdev_share.unwrap() - 2.5_f64.sqrt() / 12.0).abs() < 1e-12);
        let interval = summary.interval.unwrap();
        // 2.776 standard errors of sqrt(2.5 / 5).
        assert!((interval.low - 10.037).abs() < 0.001 && (interval.high - 13.963).abs() < 0.001);
    }

    #[test]
    fn an_interval_does_not_extend_below_zero() {
        let interval = summary(&[1.0, 1.0, 10.0]).unwrap().interval.unwrap();
        assert!(interval.low == 0.0 && interval.high > 10.0, "{interval:?}");
    }

    #[test]
    fn groups_share_their_variation() {
        let intervals = mean_intervals(&[vec![10.0, 12.0], vec![20.0, 22.0], vec![30.0], vec![]]);
        // 4.303 standard errors of sqrt(2), with two degrees of freedom.
        let reaches: Vec<Option<f64>> =
            intervals.iter().map(|one| one.map(|one| (one.high - one.low) / 2.0)).collect();
        assert!((reaches[0].unwrap() - 4.303).abs() < 0.001, "{reaches:?}");
        assert!((reaches[2].unwrap() - 4.303 * 2.0_f64.sqrt()).abs() < 0.001, "{reaches:?}");
        assert_eq!(reaches[3], None);
        assert_eq!(mean_intervals(&[vec![1.0], vec![2.0]]), [None, None]);
    }

    #[test]
    fn few_values_have_no_interval() {
        let two = summary(&[10.0, 12.0]).unwrap();
        assert_eq!((two.median, two.interval), (11.0, None));
        assert!(two.stdev_share.is_some());
        let one = summary(&[10.0]).unwrap();
        assert_eq!((one.median, one.stdev_share, one.interval), (10.0, None, None));
        assert_eq!(summary(&[]), None);
    }

    #[test]
    fn matches_tabulated_values() {
        for (degrees, quantile) in [(1.0, 12.706), (2.0, 4.303), (5.0, 2.571), (18.0, 2.101)] {
            assert!((two_sided_quantile(0.05, degrees).unwrap() - quantile).abs() < 0.001);
            assert!((two_sided_p(quantile, degrees) - 0.05).abs() < 0.0001);
        }
        assert!((two_sided_p(3.922, 18.0) - 0.001).abs() < 0.00001);
    }

    #[test]
    fn tests_the_difference_of_two_means() {
        // Student's sleep data (1908): t = -1.8608 with 18 degrees of freedom.
        let first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        assert!((t_test(&first, &second, 0.0) - 0.07919).abs() < 0.00001);
    }

    #[test]
    fn values_without_variation_are_different_or_equal() {
        assert_eq!(t_test(&[1.0, 1.0], &[2.0, 2.0], 0.0), 0.0);
        assert_eq!(t_test(&[1.0, 1.0], &[1.0, 1.0], 0.0), 1.0);
        assert_eq!(t_test(&[1.0], &[2.0], 0.0), 1.0);
        assert_eq!(t_test(&[], &[2.0, 1.0, 3.0], 0.0), 1.0);
    }

    #[test]
    fn the_interval_matches_the_two_sample_t_test() {
        // Student's sleep data (1908): a difference of 1.58, t = 1.8608 with 18 degrees of freedom, quantile 2.1009.
        let first = vec![0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let second = vec![1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let change = difference(&[(first, second)], 0.05).unwrap();
        assert!((change.value - 1.58).abs() < 1e-9);
        assert!((change.reach.unwrap() - 1.58 / 1.8608 * 2.1009).abs() < 1e-3);
    }

    #[test]
    fn the_level_of_a_block_does_not_matter() {
        let block = |level: f64, by: f64| (vec![level], vec![level + by]);
        let change =
            difference(&[block(0.0, 1.0), block(100.0, 1.2), block(-50.0, 0.8)], 0.05).unwrap();
        assert!((change.value - 1.0).abs() < 1e-12);
        assert!(change.reach.unwrap() < 0.51);
        assert_eq!(difference(&[block(1.0, 2.0)], 0.05).unwrap().reach, None);
        assert_eq!(difference(&[(vec![1.0], Vec::new())], 0.05), None);
    }

    #[test]
    fn needs_ten_effective_values_beyond_the_percentile() {
        assert!(is_percentile_shown(1_000, 99.0, 1.0) && !is_percentile_shown(999, 99.0, 1.0));
        assert!(is_percentile_shown(10_000, 99.9, 1.0) && !is_percentile_shown(9_999, 99.9, 1.0));
        assert!(is_percentile_shown(20, 50.0, 1.0) && !is_percentile_shown(19, 50.0, 1.0));
        assert!(is_percentile_shown(1_000, 1.0, 1.0) && !is_percentile_shown(999, 1.0, 1.0));
    }

    #[test]
    fn correlated_values_count_less() {
        assert!(!is_percentile_shown(1_000, 99.0, 0.1) && is_percentile_shown(10_000, 99.0, 0.1));
        assert!(!is_percentile_shown(1_000, 99.0, f64::NAN));
    }

    #[test]
    fn an_extreme_is_never_shown() {
        assert!(!is_percentile_shown(u64::MAX, 100.0, 1.0) && !is_percentile_shown(0, 50.0, 1.0));
    }

    /// A series in which each value is `correlation` times the last one plus noise.
    fn autoregressive(correlation: f64, count: usize, seed: u64) -> Vec<f64> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut value = 0.0;
        let mut next = || {
            let noise: f64 = StandardNormal.sample(&mut rng);
            value = correlation * value + noise;
            100.0 + value
        };
        (0..50).for_each(|_| {
            next();
        });
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn matches_the_known_value_of_an_autoregressive_series() {
        // Share of effective values: (1 - r) / (1 + r).
        for (correlation, expected) in [(0.0, 1.0), (0.5, 1.0 / 3.0), (0.8, 1.0 / 9.0)] {
            let shares: Vec<f64> = (0..20)
                .map(|seed| {
                    let series = autoregressive(correlation, 1_500, seed);
                    effective_sample_size(&series) / 1_500.0
                })
                .collect();
            let mean = shares.iter().sum::<f64>() / 20.0;
            assert!((mean / expected - 1.0).abs() < 0.15, "{mean} for {expected}");
        }
    }

    #[test]
    fn long_series_have_the_same_share_of_effective_values() {
        let series = autoregressive(0.8, 30_000, 3);
        let share = effective_sample_size(&series) / 30_000.0;
        assert!((share * 9.0 - 1.0).abs() < 0.2, "{share}");
    }

    #[test]
    fn a_trend_has_few_effective_values() {
        let trend: Vec<f64> = (0..100).map(f64::from).collect();
        assert!(effective_sample_size(&trend) < 5.0);
        assert!(autocorrelation(&trend, 1) > 0.9);
    }

    #[test]
    fn stays_between_one_and_the_number_of_values() {
        let alternating: Vec<f64> = (0..50).map(|at| f64::from(at % 2)).collect();
        assert_eq!(effective_sample_size(&alternating), 50.0);
        assert!(autocorrelation(&alternating, 1) < -0.9);
        assert_eq!(effective_sample_size(&[5.0; 7]), 7.0);
        assert_eq!(effective_sample_size(&[]), 0.0);
        assert_eq!(effective_sample_size(&[1.0, 2.0]), 2.0);
        assert_eq!(autocorrelation(&[5.0; 7], 1), 0.0);
    }

    #[test]
    fn a_single_value_beside_equal_ones_has_no_interval() {
        let reach =
            |a: &[f64], b: &[f64]| difference(&[(a.to_vec(), b.to_vec())], 0.05).unwrap().reach;
        assert_eq!(reach(&[843.0], &[0.0, 0.0, 0.0]), None);
        assert_eq!(reach(&[843.0, 843.0], &[0.0, 0.0]), Some(0.0));
        assert!(reach(&[843.0], &[0.0, 1.0, 2.0]).is_some_and(|reach| reach > 0.0));
    }
}
