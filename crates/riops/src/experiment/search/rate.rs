//! Searches the highest rate of an open loop that is sustained: the threshold is met, the rate is reached, and the
//! backlog does not grow.
//!
//! 1. It starts below the throughput of a closed loop and goes up or down until it has a rate that is sustained and
//!    one that is not.
//! 2. It bisects between them on a logarithmic scale, down to the resolution.
//! 3. It repeats both rates until two runs of each agree, and starts again at 2 if the answer changes.

use serde::Serialize;

use super::boundary::{Tally, add, boundary};

/// Share of the closed-loop throughput at which the search starts. Response times at higher rates are dominated by
/// queueing.
const START: f64 = 0.8;
/// First distance from one rate to the next, in steps of the resolution: about 10 %.
const STRIDE: i32 = 4;
/// Steps from the start beyond which the search gives up: a factor of 50 000.
const STEPS_MAX: i32 = 440;

/// Settings of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// Throughput of a closed loop, per second; positive. The search starts at 80 % of it.
    pub capacity_per_s: f64,
    /// Relative distance between two rates that are distinguished: 0.025 is 2.5 %.
    pub resolution: f64,
    /// Number of runs after which the search ends with what it found.
    pub runs_max: u32,
}

impl Settings {
    /// Returns the settings for this throughput of a closed loop, per second.
    #[must_use]
    pub fn new(capacity_per_s: f64) -> Self {
        Self { capacity_per_s, resolution: 0.025, runs_max: 20 }
    }

    /// Returns the rate at a step, with four significant digits.
    fn rate(&self, step: i32) -> f64 {
        let exact = self.capacity_per_s * START * (1.0 + self.resolution).powi(step);
        #[expect(clippy::cast_possible_truncation, reason = "the exponent of a float")]
        let scale = 10.0_f64.powi(3 - exact.log10().floor() as i32);
        (exact * scale).round() / scale
    }

    fn step(&self, rate_per_s: f64) -> i32 {
        let steps = (rate_per_s / (self.capacity_per_s * START)).ln() / self.resolution.ln_1p();
        #[expect(clippy::cast_possible_truncation, reason = "clamped")]
        let step = steps.round().clamp(f64::from(-STEPS_MAX), f64::from(STEPS_MAX)) as i32;
        step
    }
}

/// A finished run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RatePoint {
    /// The rate, per second.
    pub rate_per_s: f64,
    /// Whether it was sustained. A run that failed was not.
    pub sustained: bool,
    /// Number of the run at this rate, from 1.
    pub block: u32,
}

/// The next step of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step {
    /// Measure this.
    Measure {
        /// The rate, per second.
        rate_per_s: f64,
        /// Number of the run at this rate, from 1.
        block: u32,
    },
    /// All is measured.
    Done,
}

/// Runs at one rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RateResult {
    /// The rate, per second.
    pub rate_per_s: f64,
    /// Number of runs.
    pub runs: u32,
    /// Number of runs that sustained it.
    pub sustained: u32,
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Conclusion {
    /// Highest rate per second that most runs sustained; `None` if no rate was sustained.
    pub rate_per_s: Option<f64>,
    /// Lowest higher rate per second that most runs did not sustain; `None` if all rates were sustained.
    pub not_sustained_per_s: Option<f64>,
    /// All measured rates, from the lowest on.
    pub rates: Vec<RateResult>,
    /// Whether the search ended at its maximum number of runs, before the two rates were next to each other and
    /// confirmed.
    pub is_incomplete: bool,
}

/// Returns the next step. At most [`Settings::runs_max`] runs are measured.
#[must_use]
pub fn next(settings: &Settings, points: &[RatePoint]) -> Step {
    if points.len() >= usize::try_from(settings.runs_max).unwrap_or(usize::MAX) {
        return Step::Done;
    }
    let tallies = tallies(settings, points);
    let Some(step) = due(&tallies) else {
        return Step::Done;
    };
    let runs = tallies.iter().find(|one| one.load == step).map_or(0, |one| one.runs);
    Step::Measure { rate_per_s: settings.rate(step), block: runs + 1 }
}

/// Returns the result; `None` without a run.
#[must_use]
pub fn conclude(settings: &Settings, points: &[RatePoint]) -> Option<Conclusion> {
    let tallies = tallies(settings, points);
    let (low, high) = sides(&tallies);
    let rate = |tally: &Tally<i32>| settings.rate(tally.load);
    let result = |tally: &Tally<i32>| RateResult {
        rate_per_s: rate(tally),
        runs: tally.runs,
        sustained: tally.met,
    };
    (!points.is_empty()).then(|| Conclusion {
        rate_per_s: low.map(rate),
        not_sustained_per_s: high.map(rate),
        rates: tallies.iter().map(result).collect(),
        is_incomplete: due(&tallies).is_some(),
    })
}

/// Returns the runs at each step, from the lowest on.
fn tallies(settings: &Settings, points: &[RatePoint]) -> Vec<Tally<i32>> {
    let mut tallies = Vec::new();
    for point in points {
        add(&mut tallies, settings.step(point.rate_per_s), point.sustained);
    }
    tallies.sort_by_key(|one| one.load);
    tallies
}

/// Returns the rates on both sides of the boundary.
fn sides(tallies: &[Tally<i32>]) -> (Option<&Tally<i32>>, Option<&Tally<i32>>) {
    let count = boundary(tallies);
    (count.checked_sub(1).and_then(|at| tallies.get(at)), tallies.get(count))
}

/// Returns the step that is measured next, if any.
fn due(tallies: &[Tally<i32>]) -> Option<i32> {
    let next = match sides(tallies) {
        (None, None) => 0,
        // Up by 10 %, later by half of the distance from the start: an overloaded server shows little.
        (Some(low), None) => low.load + STRIDE.max(low.load / 2),
        // Down by 10 %, 20 %, 40 %, …: a strict threshold may be far below the capacity.
        (None, Some(high)) => high.load - STRIDE.max(-high.load),
        (Some(low), Some(high)) if high.load - low.load > 1 => i32::midpoint(low.load, high.load),
        (Some(low), Some(high)) => {
            let undecided = [low, high].into_iter().find(|one| !one.is_decided());
            return undecided.map(|one| one.load);
        }
    };
    (next.abs() <= STEPS_MAX).then_some(next)
}
