//! The curve of the law, and the figures that follow from its parameters.

use serde::Serialize;

/// κ counts as 0 if it lowers the throughput at the largest measured N by less than this share. Noise of that size
/// would otherwise predict a peak at thousands of sessions.
const KAPPA_SHARE: f64 = 0.001;

/// The parameters of the law.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Curve {
    /// Throughput per second of one session.
    pub(super) lambda: f64,
    /// Contention, at least 0.
    pub(super) sigma: f64,
    /// Coherency delay, at least 0.
    pub(super) kappa: f64,
}

impl Curve {
    /// Returns the throughput per second.
    pub(super) fn at(&self, n: f64) -> f64 {
        self.lambda * n / (1.0 + self.sigma * (n - 1.0) + self.kappa * n * (n - 1.0))
    }

    /// Returns N*, where the derivative of the throughput is 0; 1 if the curve falls from the first session on.
    /// `None` if it does not fall.
    pub(super) fn peak_at(&self, largest_n: f64) -> Option<f64> {
        let contention = 1.0 + self.sigma * (largest_n - 1.0);
        let falls = self.kappa * largest_n * (largest_n - 1.0) >= KAPPA_SHARE * contention;
        if self.sigma > 1.0 {
            return Some(1.0);
        }
        falls.then(|| ((1.0 - self.sigma) / self.kappa).sqrt().max(1.0))
    }

    /// Returns the highest throughput per second, or the limit λ/σ of a curve without a peak. `None` without a
    /// limit.
    pub(super) fn maximum_per_s(&self, largest_n: f64) -> Option<f64> {
        let limit = (self.sigma > 0.0).then(|| self.lambda / self.sigma);
        self.peak_at(largest_n).map(|peak| self.at(peak)).or(limit)
    }

    /// Returns the smallest N at which the curve reaches a share of its maximum.
    ///
    /// λN = share · maximum · (1 + σ(N−1) + κN(N−1)) is a quadratic equation; N is its smaller root.
    pub(super) fn reaches(&self, share: f64, largest_n: f64) -> Option<f64> {
        let target = share * self.maximum_per_s(largest_n)?;
        let peak = self.peak_at(largest_n);
        if peak == Some(1.0) {
            return Some(1.0);
        }
        let kappa = if peak.is_some() { self.kappa } else { 0.0 };
        let linear = self.lambda - target * (self.sigma - kappa);
        let constant = target * (1.0 - self.sigma);
        let root = (linear * linear - 4.0 * target * kappa * constant).max(0.0).sqrt();
        // The form of the smaller root that also holds for κ = 0.
        let n = 2.0 * constant / (linear + root);
        (n.is_finite()).then(|| n.max(1.0))
    }

    /// Returns the N with the highest power, throughput divided by response time (Kleinrock, "Power and
    /// deterministic rules of thumb for probabilistic problems in computer communications", ICC 1979).
    ///
    /// The response time is N/X (Little), so the power is X²/N. Its derivative is 0 where 3κN² + (σ−κ)N = 1−σ.
    pub(super) fn knee(&self) -> Option<f64> {
        let linear = self.sigma - self.kappa;
        let constant = (1.0 - self.sigma).max(0.0);
        let root = (linear * linear + 12.0 * self.kappa * constant).sqrt();
        let n = 2.0 * constant / (linear + root);
        n.is_finite().then(|| n.max(1.0))
    }
}

/// One measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScalingPoint {
    /// Sessions, threads or nodes; at least 1.
    pub n: f64,
    /// Throughput per second; positive.
    pub throughput_per_s: f64,
}

/// Settings of a fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScalingSettings {
    /// Number of bootstrap samples.
    pub resamples: u32,
    /// Random seed.
    pub seed: u64,
}

impl Default for ScalingSettings {
    fn default() -> Self {
        Self { resamples: 1_999, seed: 18 }
    }
}

/// A fitted value with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct FittedValue {
    /// The estimate.
    pub value: f64,
    /// Lower limit.
    pub low: f64,
    /// Upper limit. `None`: the measurements do not limit it.
    pub high: Option<f64>,
}

/// A point of the fitted curve.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CurvePoint {
    /// N.
    pub n: f64,
    /// Throughput per second, with the interval of the curve at this N.
    pub throughput_per_s: FittedValue,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the N, from 1 in steps of 0.001, at which a function is highest.
    fn highest(function: impl Fn(f64) -> f64) -> f64 {
        let ns = (1_000..200_000).map(|step| f64::from(step) / 1000.0);
        ns.max_by(|one, other| function(*one).total_cmp(&function(*other))).unwrap()
    }

    #[test]
    fn formulas_match_a_search_along_the_curve() {
        for (sigma, kappa) in [(0.03, 8e-4), (0.2, 1e-3), (0.0, 1e-3), (0.05, 5e-3), (0.0, 0.3)] {
            let curve = Curve { lambda: 1000.0, sigma, kappa };
            let peak = highest(|n| curve.at(n));
            assert!((curve.peak_at(64.0).unwrap() - peak).abs() < 0.002, "{peak}");
            let knee = highest(|n| curve.at(n).powi(2) / n);
            assert!((curve.knee().unwrap() - knee).abs() < 0.002, "{knee}");
            let maximum = curve.maximum_per_s(64.0).unwrap();
            assert!((maximum - curve.at(peak)).abs() < 0.01, "{maximum}");
            let n90 = curve.reaches(0.9, 64.0).unwrap();
            assert!((curve.at(n90) / maximum - 0.9).abs() < 1e-9 && n90 < peak, "{n90}");
        }
    }

    #[test]
    fn a_curve_that_does_not_fall_has_a_limit_instead_of_a_peak() {
        let curve = Curve { lambda: 1000.0, sigma: 0.1, kappa: 0.0 };
        assert_eq!((curve.peak_at(64.0), curve.maximum_per_s(64.0)), (None, Some(10_000.0)));
        assert!((curve.reaches(0.9, 64.0).unwrap() - 81.0).abs() < 1e-9);
        assert!((curve.knee().unwrap() - 9.0).abs() < 1e-9);
        let tiny = Curve { kappa: 1e-9, ..curve };
        assert_eq!((tiny.peak_at(64.0), tiny.maximum_per_s(64.0)), (None, Some(10_000.0)));
        assert!((tiny.reaches(0.9, 64.0).unwrap() - 81.0).abs() < 1e-9);
    }

    #[test]
    fn a_curve_without_contention_has_no_limit_and_no_knee() {
        let curve = Curve { lambda: 1000.0, sigma: 0.0, kappa: 0.0 };
        let figures = (curve.peak_at(64.0), curve.maximum_per_s(64.0), curve.knee());
        assert_eq!((figures, curve.reaches(0.9, 64.0)), ((None, None, None), None));
    }

    #[test]
    fn a_curve_that_falls_from_the_first_session_on_has_its_peak_at_one() {
        let curve = Curve { lambda: 1000.0, sigma: 1.5, kappa: 0.0 };
        assert_eq!((curve.peak_at(64.0), curve.maximum_per_s(64.0)), (Some(1.0), Some(1000.0)));
        assert_eq!((curve.knee(), curve.reaches(0.9, 64.0)), (Some(1.0), Some(1.0)));
    }
}
