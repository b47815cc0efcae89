//! Student's t distribution and two-sample t-test.

use statrs::distribution::{ContinuousCDF, StudentsT};
use statrs::function::beta::beta_reg;

/// Returns the probability that a t-distributed value is at least this far from 0.
///
/// Abramowitz and Stegun, "Handbook of Mathematical Functions", 26.7.1: the regularized incomplete beta function.
pub(super) fn two_sided_p(t: f64, degrees: f64) -> f64 {
    if t.is_infinite() { 0.0 } else { beta_reg(degrees / 2.0, 0.5, degrees / (degrees + t * t)) }
}

/// Returns the value that the absolute of a t-distributed value exceeds with probability `alpha`; `None` without
/// degrees of freedom.
pub(super) fn two_sided_quantile(alpha: f64, degrees: f64) -> Option<f64> {
    let distribution = StudentsT::new(0.0, 1.0, degrees).ok()?;
    (alpha > 0.0 && alpha < 1.0).then(|| distribution.inverse_cdf(1.0 - alpha / 2.0))
}

/// Returns the p-value of the two-sided t-test of equal means, with a common variance (Student 1908); 1 for fewer
/// than three values.
pub(super) fn t_test(left: &[f64], right: &[f64]) -> f64 {
    let degrees = (left.len() + right.len()) as f64 - 2.0;
    if degrees <= 0.0 || left.is_empty() || right.is_empty() {
        return 1.0;
    }
    let ((left_mean, left_squares), (right_mean, right_squares)) = (moments(left), moments(right));
    let difference = (left_mean - right_mean).abs();
    let variance = (left_squares + right_squares) / degrees;
    let error = (variance * (1.0 / left.len() as f64 + 1.0 / right.len() as f64)).sqrt();
    // Differences of equal values are rounding errors.
    if difference <= 1e-12 * left_mean.abs().max(right_mean.abs()) {
        return 1.0;
    }
    two_sided_p(difference / error, degrees)
}

/// Returns the mean and the sum of squared deviations from it.
pub(super) fn moments(values: &[f64]) -> (f64, f64) {
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    (mean, values.iter().map(|value| (value - mean) * (value - mean)).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!((t_test(&first, &second) - 0.07919).abs() < 0.00001);
    }

    #[test]
    fn values_without_variation_are_different_or_equal() {
        assert_eq!(t_test(&[1.0, 1.0], &[2.0, 2.0]), 0.0);
        assert_eq!(t_test(&[1.0, 1.0], &[1.0, 1.0]), 1.0);
        assert_eq!(t_test(&[1.0], &[2.0]), 1.0);
        assert_eq!(t_test(&[], &[2.0, 1.0, 3.0]), 1.0);
    }
}
