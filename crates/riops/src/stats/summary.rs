//! Summary of repeated runs.

use super::compare::Interval;
use super::student::{moments, two_sided_quantile};

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
    /// The 95 % interval of the mean, with Student's t distribution; `None` for fewer than three values.
    pub interval: Option<Interval>,
}

/// Summarizes values; `None` without values.
#[must_use]
pub fn summary(values: &[f64]) -> Option<Summary> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    let upper = *sorted.get(n / 2)?;
    let lower = *sorted.get((n - 1) / 2)?;
    let (mean, squares) = moments(values);
    let degrees = n as f64 - 1.0;
    let stdev = (n > 1).then(|| (squares / degrees).sqrt());
    let interval = stdev.filter(|_| n >= INTERVAL_MIN).and_then(|stdev| {
        let reach = two_sided_quantile(ALPHA, degrees)? * stdev / (n as f64).sqrt();
        Some(Interval { low: mean - reach, high: mean + reach })
    });
    Some(Summary {
        n,
        median: f64::midpoint(lower, upper),
        mean,
        stdev_share: stdev.filter(|_| mean != 0.0).map(|stdev| stdev / mean.abs()),
        interval,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summarizes_repeated_runs() {
        let found = summary(&[10.0, 14.0, 12.0, 11.0, 13.0]).unwrap();
        assert_eq!((found.n, found.median, found.mean), (5, 12.0, 12.0));
        assert!((found.stdev_share.unwrap() - 2.5_f64.sqrt() / 12.0).abs() < 1e-12);
        let interval = found.interval.unwrap();
        // 2.776 standard errors of sqrt(2.5 / 5).
        assert!((interval.low - 10.037).abs() < 0.001 && (interval.high - 13.963).abs() < 0.001);
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
}
