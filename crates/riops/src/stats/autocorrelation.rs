//! Autocorrelation and effective sample size of a series, such as the rate of each interval of a run.

/// Values from which on a series is replaced by means of neighboring values, which bounds the cost.
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
}
