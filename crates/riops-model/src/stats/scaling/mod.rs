//! The Universal Scalability Law fitted to measured throughput: X(N) = λN / (1 + σ(N−1) + κN(N−1)) (Gunther,
//! "A simple capacity model of massively parallel transaction systems", CMG 1993; "Guerrilla Capacity Planning",
//! 2007). λ is the throughput of one session, σ the contention, κ the coherency delay.
//!
//! Pure: values in, values out. It must not decide which levels to measure; `experiment::search` does.

mod bootstrap;
mod curve;
mod least_squares;
mod residuals;
#[cfg(test)]
mod tests;

use serde::Serialize;

use curve::Curve;
pub use curve::{CurvePoint, FittedValue, ScalingPoint, ScalingSettings};
pub use residuals::ResidualCheck;

/// Different values of N below which the law is not fitted. Three determine it exactly and leave nothing to
/// estimate its error from.
pub const LEVELS_MIN: usize = 4;

/// Steps of the curve between the smallest and the largest measured N.
const CURVE_STEPS: u32 = 40;

/// The law fitted to measurements.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScalingLaw {
    /// Throughput per second of one session (λ).
    pub lambda: FittedValue,
    /// Contention (σ): the share of the work that is serialized.
    pub sigma: FittedValue,
    /// Coherency delay (κ): the cost of each pair of sessions.
    pub kappa: FittedValue,
    /// N with the highest throughput, N* = sqrt((1−σ)/κ). `None` if the fitted curve does not fall: κ is 0, or
    /// lowers the throughput at the largest measured N by less than 0.1 %.
    pub peak_at: Option<FittedValue>,
    /// Lower limit of the 95 % interval of N*, also if there is no [`Self::peak_at`]. `None`: no limit.
    pub peak_at_least: Option<f64>,
    /// Highest throughput per second of the fitted curve: at N*, or without a peak its limit λ/σ. `None` if the
    /// curve grows without limit.
    pub maximum_per_s: Option<FittedValue>,
    /// Smallest N at which the fitted curve reaches 90 % of its maximum.
    pub n90: Option<FittedValue>,
    /// N with the highest ratio of throughput to response time (Kleinrock's power). Beyond the knee the response
    /// time grows by a larger share than the throughput. `None` if the curve grows without limit.
    pub knee: Option<FittedValue>,
    /// Largest measured N.
    pub largest_n: f64,
    /// Number of measurements.
    pub points: usize,
    /// Number of different N.
    pub levels: usize,
    /// Coefficient of determination (R²): share of the variation of the throughput that the law explains.
    pub r_squared: f64,
    /// Whether the measurements follow the law.
    pub residuals: ResidualCheck,
    /// The fitted curve, from the smallest measured N to the largest one, and beyond if its peak is there, up to
    /// twice the largest.
    pub curve: Vec<CurvePoint>,
}

impl ScalingLaw {
    /// Returns the throughput per second of the fitted curve.
    pub fn throughput_per_s(&self, n: f64) -> f64 {
        let (lambda, sigma, kappa) = (self.lambda.value, self.sigma.value, self.kappa.value);
        Curve { lambda, sigma, kappa }.at(n)
    }

    /// Whether N* is beyond the largest measured N, or there is none, so that the figures that depend on the peak
    /// (N*, the maximum and N90) are extrapolations.
    pub fn is_peak_extrapolated(&self) -> bool {
        self.peak_at.is_none_or(|peak| peak.value > self.largest_n)
    }

    /// Whether the knee is beyond the largest measured N, or there is none.
    pub fn is_knee_extrapolated(&self) -> bool {
        self.knee.is_none_or(|knee| knee.value > self.largest_n)
    }
}

/// Why the law was not fitted.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ScalingError {
    /// Three different N determine the law exactly.
    #[error(
        "cannot fit the scalability law to {levels} different levels: at least {LEVELS_MIN} are needed"
    )]
    TooFewLevels {
        /// Number of different N.
        levels: usize,
    },
    /// Not a possible measurement.
    #[error(
        "cannot fit the scalability law to a throughput of {throughput_per_s}/s at N = {n}: N must be at least 1 \
         and the throughput positive"
    )]
    NotPositive {
        /// N.
        n: f64,
        /// Throughput per second.
        throughput_per_s: f64,
    },
}

/// Fits the law by least squares of the throughput, with σ ≥ 0 and κ ≥ 0.
///
/// The intervals are expanded percentile intervals (Hesterberg, "What teachers should know about the bootstrap",
/// The American Statistician 69, 2015) of a bootstrap of the relative residuals: runs typically vary by a share of
/// their throughput. docs/statistics.md has the measured coverage.
///
/// # Errors
/// Returns [`ScalingError`] for fewer than [`LEVELS_MIN`] different N, or a value that is not positive.
pub fn scaling_law(
    points: &[ScalingPoint],
    settings: &ScalingSettings,
) -> Result<ScalingLaw, ScalingError> {
    let valid = |point: &&ScalingPoint| {
        point.n.is_finite()
            && point.n >= 1.0
            && point.throughput_per_s.is_finite()
            && point.throughput_per_s > 0.0
    };
    if let Some(point) = points.iter().find(|point| !valid(point)) {
        let ScalingPoint { n, throughput_per_s } = *point;
        return Err(ScalingError::NotPositive { n, throughput_per_s });
    }
    let mut ns: Vec<f64> = points.iter().map(|point| point.n).collect();
    ns.sort_by(f64::total_cmp);
    ns.dedup();
    let levels = ns.len();
    if levels < LEVELS_MIN {
        return Err(ScalingError::TooFewLevels { levels });
    }
    let largest_n = ns.last().copied().unwrap_or(1.0);
    let fit = least_squares::fit(points);
    let curve = fit.curve;
    let bootstrap = bootstrap::resample(points, &fit, settings);
    let residuals = residuals::check(points, &fit, &bootstrap);
    let parameter =
        |pick: fn(&Curve) -> f64| bootstrap.interval(pick(&curve), |one| Some(pick(one)));
    let peak_at = |one: &Curve| one.peak_at(largest_n);
    let bounded = |pick: &dyn Fn(&Curve) -> Option<f64>| {
        pick(&curve).map(|value| bootstrap.bounded_interval(value, pick))
    };
    Ok(ScalingLaw {
        lambda: parameter(|one| one.lambda),
        sigma: parameter(|one| one.sigma),
        kappa: parameter(|one| one.kappa),
        peak_at: peak_at(&curve).map(|value| bootstrap.interval(value, peak_at)),
        peak_at_least: bootstrap.low(peak_at),
        maximum_per_s: bounded(&|one| one.maximum_per_s(largest_n)),
        n90: bounded(&|one| one.reaches(0.9, largest_n)),
        knee: curve.knee().map(|value| bootstrap.interval(value, Curve::knee)),
        largest_n,
        points: points.len(),
        levels,
        r_squared: residuals::r_squared(points, &curve),
        residuals,
        curve: grid(ns.first().copied().unwrap_or(1.0), largest_n, peak_at(&curve))
            .map(|n| CurvePoint {
                n,
                throughput_per_s: bootstrap.bounded_interval(curve.at(n), |one| Some(one.at(n))),
            })
            .collect(),
    })
}

/// Returns the values of N at which the curve is computed, at equal ratios. The largest measured one is among them.
fn grid(first: f64, largest: f64, peak: Option<f64>) -> impl Iterator<Item = f64> {
    let beyond = peak.map_or(largest, |peak| (peak * 1.1).clamp(largest, 2.0 * largest));
    let steps = f64::from(CURVE_STEPS);
    let within =
        (0..=CURVE_STEPS).map(move |step| first * (largest / first).powf(f64::from(step) / steps));
    let ratio = (largest / first).powf(1.0 / steps);
    let further = (1..=CURVE_STEPS).map(move |step| largest * ratio.powf(f64::from(step)));
    within.chain(further.take_while(move |n| *n <= beyond))
}
