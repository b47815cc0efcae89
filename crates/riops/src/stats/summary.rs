//! Summary of repeated runs.

use super::change::{moments, two_sided_quantile};
use super::compare::Interval;

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
#[must_use]
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |position: usize| sorted.get(position).copied().unwrap_or(0.0);
    f64::midpoint(at(sorted.len() / 2), at(sorted.len().saturating_sub(1) / 2))
}

/// Summarizes values; `None` without values.
#[must_use]
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
#[must_use]
pub fn mean_reach(values: &[f64], alpha: f64) -> Option<f64> {
    let (n, (_, squares)) = (values.len() as f64, moments(values));
    let degrees = n - 1.0;
    Some(two_sided_quantile(alpha, degrees)? * (squares / degrees / n).sqrt())
}

/// Returns the 95 % interval of the mean of each group, with the variation within all groups: a group of one value
/// has an interval, too. `None` without values, or if no group has two.
///
/// The groups must vary alike, as the logarithms of the throughput of repeated runs do.
#[must_use]
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
    fn an_interval_does_not_extend_below_zero() {
        let interval = summary(&[1.0, 1.0, 10.0]).unwrap().interval.unwrap();
        assert!(interval.low == 0.0 && interval.high > 10.0, "{interval:?}");
    }

    #[test]
    fn groups_share_their_variation() {
        let found = mean_intervals(&[vec![10.0, 12.0], vec![20.0, 22.0], vec![30.0], vec![]]);
        // 4.303 standard errors of sqrt(2), with two degrees of freedom.
        let reaches: Vec<Option<f64>> =
            found.iter().map(|one| one.map(|one| (one.high - one.low) / 2.0)).collect();
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
}
