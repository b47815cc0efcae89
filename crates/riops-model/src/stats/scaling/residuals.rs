//! Whether measurements follow the fitted law.

use std::fmt;

use serde::Serialize;

use super::bootstrap::{Bootstrap, PARAMETERS, standardized_residuals};
use super::curve::{Curve, ScalingPoint};
use super::least_squares::Fit;
use crate::stats::student::two_sided_p;

/// A check fails with this probability if the measurements follow the law. There are two.
const ALPHA: f64 = 0.025;
/// Additional measurements at the same N from which the error is estimated without the law.
const REPEATS_MIN: usize = 3;
/// Relative differences up to this are rounding errors of a perfect fit.
const ROUNDING: f64 = 1e-6;

/// The result of the checks of the residuals.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ResidualCheck {
    /// The measurements follow the law.
    Ok,
    /// The measurements have a different shape: they differ from the curve by more than repeated measurements
    /// differ from each other, or neighbors differ from it in the same direction.
    Shape {
        /// Probability of such a difference if the measurements followed the law.
        p: f64,
        /// Largest difference between the mean at one N and the curve, as a share of the curve.
        largest_share: f64,
    },
    /// One measurement is far from all others.
    Outlier {
        /// Its N.
        n: f64,
        /// Measured throughput divided by the throughput of the curve.
        ratio: f64,
    },
}

impl ResidualCheck {
    /// Whether the measurements follow the law.
    pub fn is_ok(&self) -> bool {
        matches!(self, Self::Ok)
    }
}

impl fmt::Display for ResidualCheck {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ok => write!(to, "the measurements follow the law"),
            Self::Shape { p, largest_share } => write!(
                to,
                "the measurements do not follow the law: they differ from it by up to {:.1}% (p = {p:.3})",
                100.0 * largest_share
            ),
            Self::Outlier { n, ratio } => write!(
                to,
                "one measurement at N = {n} is {:.1}% {} the fitted curve",
                100.0 * (ratio - 1.0).abs(),
                if *ratio > 1.0 { "above" } else { "below" }
            ),
        }
    }
}

/// Returns the share of the variation of the throughput that the law explains.
pub(super) fn r_squared(points: &[ScalingPoint], curve: &Curve) -> f64 {
    let mean = points.iter().map(|point| point.throughput_per_s).sum::<f64>() / points.len() as f64;
    let squares = |expected: &dyn Fn(&ScalingPoint) -> f64| -> f64 {
        points.iter().map(|point| (point.throughput_per_s - expected(point)).powi(2)).sum()
    };
    let total = squares(&|_| mean);
    if total > 0.0 { 1.0 - squares(&|point| curve.at(point.n)) / total } else { 0.0 }
}

/// Checks the shape, and each measurement.
pub(super) fn check(points: &[ScalingPoint], fit: &Fit, bootstrap: &Bootstrap) -> ResidualCheck {
    let measured: Vec<f64> = points.iter().map(|point| point.throughput_per_s).collect();
    let levels = Levels::new(points);
    let shape = levels.shape(&measured, &fit.curve);
    let samples = bootstrap.samples.iter().zip(bootstrap.curves());
    let reached = samples.filter(|(sample, curve)| levels.shape(sample, curve) >= shape).count();
    // The measurements count as one of the samples, so that p is never 0.
    let p = (reached as f64 + 1.0) / (bootstrap.samples.len() as f64 + 1.0);
    if shape > 0.0 && p <= ALPHA {
        let largest_share = levels.largest_share(&measured, &fit.curve);
        return ResidualCheck::Shape { p, largest_share };
    }
    outlier(points, fit).unwrap_or(ResidualCheck::Ok)
}

/// Returns the measurement that is an outlier, by its externally studentized residual with Bonferroni's factor
/// (Cook and Weisberg, "Residuals and Influence in Regression", 1982, section 2.2).
fn outlier(points: &[ScalingPoint], fit: &Fit) -> Option<ResidualCheck> {
    let residuals = standardized_residuals(points, fit);
    let degrees = points.len().checked_sub(PARAMETERS + 1).filter(|degrees| *degrees > 0)? as f64;
    let squares: f64 = residuals.iter().map(|residual| residual * residual).sum();
    let count = residuals.len() as f64;
    let farthest =
        points.iter().zip(&residuals).max_by(|one, other| one.1.abs().total_cmp(&other.1.abs()))?;
    let (point, residual) = farthest;
    let ratio = point.throughput_per_s / fit.curve.at(point.n);
    // Rounding errors of a perfect fit have outliers, too.
    if (ratio - 1.0).abs() <= ROUNDING {
        return None;
    }
    let others = (squares - residual * residual) / (count - 1.0);
    let p = count * two_sided_p(residual / others.max(f64::MIN_POSITIVE).sqrt(), degrees);
    (p <= ALPHA).then_some(ResidualCheck::Outlier { n: point.n, ratio })
}

/// The positions of the measurements at each N, in the order of N.
struct Levels {
    levels: Vec<(f64, Vec<usize>)>,
    points: usize,
}

impl Levels {
    fn new(points: &[ScalingPoint]) -> Self {
        let mut levels: Vec<(f64, Vec<usize>)> = Vec::new();
        for (at, point) in points.iter().enumerate() {
            match levels.iter_mut().find(|(n, _)| *n == point.n) {
                Some((_, positions)) => positions.push(at),
                None => levels.push((point.n, vec![at])),
            }
        }
        levels.sort_by(|one, other| one.0.total_cmp(&other.0));
        Self { levels, points: points.len() }
    }

    /// Returns the mean and the values of the logarithms of measured to fitted throughput at each N.
    fn logs(&self, measured: &[f64], curve: &Curve) -> Vec<(f64, Vec<f64>)> {
        let of_level = |(n, positions): &(f64, Vec<usize>)| {
            let fitted = curve.at(*n);
            let values = positions.iter().filter_map(|at| measured.get(*at));
            let logs: Vec<f64> = values.map(|value| (value / fitted).ln()).collect();
            (logs.iter().sum::<f64>() / logs.len().max(1) as f64, logs)
        };
        self.levels.iter().map(of_level).collect()
    }

    fn largest_share(&self, measured: &[f64], curve: &Curve) -> f64 {
        let logs = self.logs(measured, curve);
        logs.iter().map(|(mean, _)| mean.exp_m1().abs()).fold(0.0, f64::max)
    }

    /// Returns how much the shape differs. With repeated measurements: the mean square of the levels divided by
    /// that within them (the test of lack of fit, Draper and Smith, "Applied Regression Analysis"). Otherwise:
    /// the correlation of neighbors. Its distribution comes from the bootstrap.
    fn shape(&self, measured: &[f64], curve: &Curve) -> f64 {
        let logs = self.logs(measured, curve);
        let repeats = self.points - self.levels.len();
        let between: f64 = logs.iter().map(|(mean, logs)| logs.len() as f64 * mean * mean).sum();
        if repeats >= REPEATS_MIN {
            let within: f64 = logs
                .iter()
                .flat_map(|(mean, logs)| logs.iter().map(move |log| (log - mean) * (log - mean)))
                .sum();
            return if between > ROUNDING * ROUNDING {
                between / within.max(ROUNDING * ROUNDING)
            } else {
                0.0
            };
        }
        let neighbors = logs.iter().zip(logs.iter().skip(1));
        let products: f64 = neighbors.map(|(one, other)| one.0 * other.0).sum();
        if between > ROUNDING * ROUNDING { products / between } else { 0.0 }
    }
}
