//! Searches the number of sessions at which throughput is saturated.
//!
//! 1. It doubles the sessions until throughput has not grown by a relevant amount for two steps, and until the
//!    threshold is no longer met. A single step down is no reason to stop: on a small machine, a number of sessions
//!    that fits its cores may be much faster than the next.
//! 2. It measures the neighbors of the best level, and the levels between the last that meets the threshold and the
//!    first that does not.
//! 3. It repeats the levels that the answer depends on, interleaved, and starts again at 2 if the answer changes.

mod model;
mod state;
#[cfg(test)]
mod tests;

pub use model::{LevelResult, MeasuredLevel, SATURATED, Settings};
use state::State;

use crate::stats::{ScalingError, ScalingLaw, ScalingPoint, ScalingSettings, scaling_law};

/// The next step of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Measure this number of sessions.
    Measure(u32),
    /// All is measured.
    Done,
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct Conclusion {
    /// Smallest level whose mean throughput reaches 95 % of the best throughput: the mean of [`Self::best`] and
    /// of its neighbors that are within 10 % of it. The highest of many noisy means alone would be too high.
    pub saturation: u32,
    /// Level with the highest mean throughput.
    pub best: u32,
    /// Throughput at each measured level, from the lowest on.
    pub levels: Vec<LevelResult>,
    /// Highest level that meets the threshold; `None` without a threshold, or if no level meets it.
    pub most_sessions_within_threshold: Option<u32>,
    /// Whether the best level is the highest one that the settings allow: throughput may still grow beyond it.
    pub ends_at_last: bool,
    /// Whether the search ended at its maximum number of runs, before all levels were repeated.
    pub is_incomplete: bool,
    /// Lowest level whose runs all failed or are invalid: no higher level was measured.
    pub failing: Option<u32>,
    /// The scalability law fitted to all runs.
    pub law: Result<ScalingLaw, ScalingError>,
}

/// Returns the next step. At most [`Settings::runs_max`] runs are measured.
#[must_use]
pub fn next(settings: &Settings, points: &[MeasuredLevel]) -> Step {
    if points.len() >= usize::try_from(settings.runs_max).unwrap_or(usize::MAX) {
        return Step::Done;
    }
    let state = State::new(settings, points);
    state.due().map_or(Step::Done, Step::Measure)
}

/// Returns the throughput at the saturation point, [`Conclusion::saturation`]; `None` if no run has a throughput.
/// Unlike [`conclude`], it does not fit the law.
#[must_use]
pub fn saturation(settings: &Settings, points: &[MeasuredLevel]) -> Option<LevelResult> {
    let state = State::new(settings, points);
    let level = state.saturation()?;
    state.results().into_iter().find(|result| result.level == level)
}

/// Returns the result; `None` if no run has a throughput.
#[must_use]
pub fn conclude(settings: &Settings, points: &[MeasuredLevel]) -> Option<Conclusion> {
    let state = State::new(settings, points);
    let best = state.best()?;
    let measured: Vec<ScalingPoint> = points
        .iter()
        .filter(|point| point.throughput_per_s > 0.0)
        .map(|point| ScalingPoint {
            n: f64::from(point.level),
            throughput_per_s: point.throughput_per_s,
        })
        .collect();
    let law = ScalingSettings { resamples: settings.resamples, seed: settings.seed };
    Some(Conclusion {
        saturation: state.saturation().unwrap_or(best),
        best,
        levels: state.results(),
        most_sessions_within_threshold: state.within_threshold(),
        ends_at_last: state.is_last(best),
        is_incomplete: state.due().is_some(),
        failing: state.failing(),
        law: scaling_law(&measured, &law),
    })
}
