//! Bootstrap of the relative residuals of a fit, and the intervals from it.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::curve::{Curve, FittedValue, ScalingPoint, ScalingSettings};
use super::least_squares::Fit;
use crate::stats::student::two_sided_quantile;
use crate::units::format::truncated;

/// The interval misses the true value with this probability.
const ALPHA: f64 = 0.05;
/// Quantile of the normal distribution for it.
const NORMAL: f64 = 1.959_964;
/// Number of parameters.
pub(super) const PARAMETERS: usize = 3;
/// A point that the fit follows exactly shows nothing of its error.
const LEVERAGE_MAX: f64 = 0.95;

/// Curves fitted to resampled measurements.
#[derive(Debug, Clone)]
pub(super) struct Bootstrap {
    /// The resampled throughputs.
    pub(super) samples: Vec<Vec<f64>>,
    /// Fitted without bounds.
    unbounded: Vec<Curve>,
    /// Fitted within the bounds.
    bounded: Vec<Curve>,
}

/// Returns the logarithm of measured to fitted throughput of each point, divided by the share of its error that
/// the fit leaves in it (`MacKinnon` and White, J. Econometrics 29, 1985, HC2).
pub(super) fn standardized_residuals(points: &[ScalingPoint], fit: &Fit) -> Vec<f64> {
    let residual = |(point, leverage): (&ScalingPoint, f64)| {
        let log = (point.throughput_per_s / fit.curve.at(point.n)).ln();
        log / (1.0 - leverage.min(LEVERAGE_MAX)).sqrt()
    };
    points.iter().zip(fit.leverages()).map(residual).collect()
}

/// Resamples the residuals, with random signs: a handful of residuals does not show whether errors are skewed.
///
/// With few points, percentile intervals are too short, because they correspond to a normal distribution. The
/// resampled residuals are multiplied by the ratio of the quantiles of Student's t to the normal distribution,
/// which gives the expanded percentile interval (Hesterberg 2015).
pub(super) fn resample(
    points: &[ScalingPoint],
    fit: &Fit,
    settings: &ScalingSettings,
) -> Bootstrap {
    let residuals = standardized_residuals(points, fit);
    let degrees = points.len().saturating_sub(PARAMETERS).max(1) as f64;
    let expansion = two_sided_quantile(ALPHA, degrees).unwrap_or(NORMAL) / NORMAL;
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(settings.seed);
    let fitted: Vec<f64> = points.iter().map(|point| fit.unbounded.at(point.n)).collect();
    let mut sample = || {
        let measured = |fitted: &f64| {
            let drawn = residuals.get(rng.random_range(0..residuals.len())).copied();
            let sign = if rng.random::<bool>() { 1.0 } else { -1.0 };
            fitted * (sign * expansion * drawn.unwrap_or(0.0)).exp()
        };
        fitted.iter().map(measured).collect::<Vec<f64>>()
    };
    let samples: Vec<Vec<f64>> = (0..settings.resamples).map(|_| sample()).collect();
    let (unbounded, bounded) = samples.iter().map(|sample| fit.refit(sample)).unzip();
    Bootstrap { samples, unbounded, bounded }
}

impl Bootstrap {
    /// Returns the curves within the bounds, in the order of the samples.
    pub(super) fn curves(&self) -> &[Curve] {
        &self.bounded
    }

    /// Returns the interval of a figure of the curves without bounds, at least 0. A curve without the figure
    /// counts as infinite.
    pub(super) fn interval(
        &self,
        value: f64,
        figure: impl Fn(&Curve) -> Option<f64>,
    ) -> FittedValue {
        interval(value, &sorted(&self.unbounded, figure))
    }

    /// Returns the interval of a figure that only curves within the bounds have.
    pub(super) fn bounded_interval(
        &self,
        value: f64,
        figure: impl Fn(&Curve) -> Option<f64>,
    ) -> FittedValue {
        interval(value, &sorted(&self.bounded, figure))
    }

    /// Returns the lower limit of the interval of a figure; `None` if it is infinite.
    pub(super) fn low(&self, figure: impl Fn(&Curve) -> Option<f64>) -> Option<f64> {
        quantile(&sorted(&self.unbounded, figure), ALPHA / 2.0).filter(|low| low.is_finite())
    }
}

fn sorted(curves: &[Curve], figure: impl Fn(&Curve) -> Option<f64>) -> Vec<f64> {
    let mut figures: Vec<f64> =
        curves.iter().map(|curve| figure(curve).unwrap_or(f64::INFINITY)).collect();
    figures.sort_by(f64::total_cmp);
    figures
}

fn interval(value: f64, sorted: &[f64]) -> FittedValue {
    let low = quantile(sorted, ALPHA / 2.0).unwrap_or(value);
    let high = quantile(sorted, 1.0 - ALPHA / 2.0).unwrap_or(f64::INFINITY);
    // At a bound the estimate can be outside.
    let high = high.is_finite().then(|| high.max(value));
    FittedValue { value, low: low.min(value).max(0.0), high }
}

/// Returns the value below which a share of the sorted values are.
fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let position = share * (sorted.len() as f64 + 1.0);
    let at = truncated(position.round()).clamp(1, sorted.len().max(1));
    sorted.get(at - 1).copied()
}
