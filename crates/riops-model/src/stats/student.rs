//! Student's t distribution.

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
