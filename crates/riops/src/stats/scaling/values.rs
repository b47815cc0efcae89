//! The values that a fit takes and returns.

use serde::Serialize;

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
