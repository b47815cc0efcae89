//! The values of a search for sessions: settings, finished runs, and the throughput at a level.

use serde::Serialize;

use crate::stats::{Interval, ScalingSettings};

/// Share of the best throughput that counts as saturated.
pub const SATURATED: f64 = 0.95;

/// Settings of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Lowest number of sessions, at least 1.
    pub first: u32,
    /// Highest number of sessions.
    pub last: u32,
    /// Number of runs at each level that the answer depends on.
    pub repeats: u32,
    /// Number of runs after which the search ends with what it found.
    pub runs_max: u32,
    /// Number of bootstrap samples for the intervals of the law.
    pub resamples: u32,
    /// Random seed of these intervals.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        let ScalingSettings { resamples, seed } = ScalingSettings::default();
        Self { first: 1, last: 1024, repeats: 3, runs_max: 40, resamples, seed }
    }
}

/// A finished run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeasuredLevel {
    /// Number of sessions.
    pub level: u32,
    /// Throughput per second; 0 for a run that failed or is invalid.
    pub throughput_per_s: f64,
    /// Whether the run met the threshold; `None` without a threshold.
    pub meets_threshold: Option<bool>,
}

/// Throughput at one level.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LevelResult {
    /// Number of sessions.
    pub level: u32,
    /// Number of runs with a throughput.
    pub runs: u32,
    /// Number of runs that failed or are invalid.
    pub failed: u32,
    /// Geometric mean of the throughput per second; 0 if all runs failed.
    pub throughput_per_s: f64,
    /// Its 95 % interval, from the variation of the repeated runs at all levels; `None` if no level was repeated.
    pub interval: Option<Interval>,
    /// Number of runs that met the threshold; `None` without a threshold.
    pub within_threshold: Option<u32>,
}
