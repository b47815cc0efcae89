//! Searches the number of sessions at which throughput is saturated.
//!
//! 1. It doubles the sessions until throughput has not grown by a relevant amount for two steps, or has fallen, and
//!    until the threshold is no longer met.
//! 2. It measures the neighbors of the best level, and the levels between the last that meets the threshold and the
//!    first that does not.
//! 3. It repeats the levels that the answer depends on, interleaved, and starts again at 2 if the answer changes.

use serde::Serialize;

use super::boundary::{Tally, add, boundary};
use super::grid;
use crate::stats::{
    Interval, ScalingError, ScalingLaw, ScalingPoint, ScalingSettings, mean_intervals, scaling_law,
};

/// Growth of throughput from one doubling to the next that counts as growth, as a share.
const GROWTH: f64 = 0.05;
/// Share of the best throughput below which throughput has fallen.
const FALLEN: f64 = 0.9;
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
    /// Random seed of the intervals of the law.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { first: 1, last: 1024, repeats: 3, runs_max: 40, seed: 19 }
    }
}

/// A finished run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// Number of sessions.
    pub level: u32,
    /// Throughput per second; 0 for a run that failed or is invalid.
    pub throughput_per_s: f64,
    /// Whether the run met the threshold; `None` without a threshold.
    pub meets_threshold: Option<bool>,
    /// Number of the run at this level, from 1.
    pub block: u32,
}

/// The next step of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Measure this.
    Measure {
        /// Number of sessions.
        level: u32,
        /// Number of the run at this level, from 1.
        block: u32,
    },
    /// All is measured.
    Done,
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

/// The result of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct Conclusion {
    /// Smallest level whose mean throughput reaches 95 % of the best.
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
    /// The scalability law fitted to all runs.
    pub law: Result<ScalingLaw, ScalingError>,
}

/// Returns the next step. At most [`Settings::runs_max`] runs are measured.
#[must_use]
pub fn next(settings: &Settings, points: &[Point]) -> Step {
    if points.len() >= usize::try_from(settings.runs_max).unwrap_or(usize::MAX) {
        return Step::Done;
    }
    let state = State::new(settings, points);
    match state.climb().or_else(|| state.due(settings.repeats)) {
        Some(level) => Step::Measure { level, block: state.attempts(level) + 1 },
        None => Step::Done,
    }
}

/// Returns the result; `None` if no run has a throughput.
#[must_use]
pub fn conclude(settings: &Settings, points: &[Point]) -> Option<Conclusion> {
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
    let law_settings = ScalingSettings { seed: settings.seed, ..ScalingSettings::default() };
    Some(Conclusion {
        saturation: state.saturation().unwrap_or(best),
        best,
        levels: state.results(),
        most_sessions_within_threshold: state.within_threshold(),
        ends_at_last: state.grid.last() == Some(&best),
        is_incomplete: state.climb().or_else(|| state.due(settings.repeats)).is_some(),
        law: scaling_law(&measured, &law_settings),
    })
}

/// The runs at one level.
#[derive(Debug, Clone, PartialEq)]
struct Measured {
    level: u32,
    logs: Vec<f64>,
    failed: u32,
}

impl Measured {
    /// Returns the geometric mean; `None` if all runs failed.
    fn mean(&self) -> Option<f64> {
        let count = self.logs.len();
        (count > 0).then(|| (self.logs.iter().sum::<f64>() / count as f64).exp())
    }

    fn attempts(&self) -> u32 {
        u32::try_from(self.logs.len()).unwrap_or(u32::MAX).saturating_add(self.failed)
    }
}

/// What the runs show.
struct State {
    grid: Vec<u32>,
    /// From the lowest level on.
    measured: Vec<Measured>,
    /// Runs that met the threshold at each level, from the lowest on; empty without a threshold.
    threshold: Vec<Tally<u32>>,
}

impl State {
    fn new(settings: &Settings, points: &[Point]) -> Self {
        let mut measured: Vec<Measured> = Vec::new();
        let mut threshold = Vec::new();
        for point in points {
            let at = measured.iter().position(|one| one.level == point.level);
            let at = at.unwrap_or_else(|| {
                measured.push(Measured { level: point.level, logs: Vec::new(), failed: 0 });
                measured.len() - 1
            });
            let is_usable = point.throughput_per_s.is_finite() && point.throughput_per_s > 0.0;
            if let Some(one) = measured.get_mut(at) {
                if is_usable {
                    one.logs.push(point.throughput_per_s.ln());
                } else {
                    one.failed += 1;
                }
            }
            if let Some(met) = point.meets_threshold {
                add(&mut threshold, point.level, met && is_usable);
            }
        }
        measured.sort_by_key(|one| one.level);
        threshold.sort_by_key(|one| one.load);
        Self { grid: grid::levels(settings.first, settings.last), measured, threshold }
    }

    fn at(&self, level: u32) -> Option<&Measured> {
        self.measured.iter().find(|one| one.level == level)
    }

    fn attempts(&self, level: u32) -> u32 {
        self.at(level).map_or(0, Measured::attempts)
    }

    /// Returns the next level to climb to, if the climb has not ended.
    fn climb(&self) -> Option<u32> {
        let mut level = self.grid.first().copied()?;
        let (mut best, mut without_growth) = (0.0_f64, 0);
        while let Some(measured) = self.at(level) {
            // A server that rejects this number of sessions also rejects more.
            let mean = measured.mean()?;
            without_growth = if mean >= best * (1.0 + GROWTH) { 0 } else { without_growth + 1 };
            let has_fallen = mean < best * FALLEN;
            best = best.max(mean);
            let is_within = self.threshold.iter().any(|one| one.load == level && one.met > 0);
            if (without_growth >= 2 || has_fallen) && !is_within {
                return None;
            }
            level = grid::doubled(&self.grid, level)?;
        }
        Some(level)
    }

    /// Returns the level with the highest mean.
    fn best(&self) -> Option<u32> {
        let means = self.measured.iter().filter_map(|one| Some((one.level, one.mean()?)));
        means.max_by(|one, other| one.1.total_cmp(&other.1)).map(|(level, _)| level)
    }

    /// Returns the smallest level whose mean reaches [`SATURATED`] of the highest mean.
    fn saturation(&self) -> Option<u32> {
        let least = SATURATED * self.at(self.best()?)?.mean()?;
        let saturated = |one: &&Measured| one.mean().is_some_and(|mean| mean >= least);
        self.measured.iter().find(saturated).map(|one| one.level)
    }

    fn within_threshold(&self) -> Option<u32> {
        let count = boundary(&self.threshold);
        count.checked_sub(1).and_then(|at| self.threshold.get(at)).map(|one| one.load)
    }

    /// Returns the level that is measured next for the answer, if any: of those with the fewest runs, the lowest
    /// and the highest first in turns, so that a drift of the machine affects all alike.
    fn due(&self, repeats: u32) -> Option<u32> {
        let mut due: Vec<(u32, u32)> = self
            .needed(repeats)
            .into_iter()
            .filter(|(level, runs)| self.attempts(*level) < *runs)
            .map(|(level, _)| (self.attempts(level), level))
            .collect();
        due.sort_unstable();
        let fewest = due.first()?.0;
        let mut levels = due.iter().filter(|(runs, _)| *runs == fewest).map(|(_, level)| *level);
        if fewest % 2 == 0 { levels.next() } else { levels.next_back() }
    }

    /// Returns the levels that the answer depends on, with the number of runs that they need.
    fn needed(&self, repeats: u32) -> Vec<(u32, u32)> {
        let mut needed = Vec::new();
        let mut neighborhood = |level: u32, runs_of_neighbors: u32| {
            let (below, above) = grid::neighbors(&self.grid, level);
            needed.push((level, repeats));
            needed.extend(below.map(|level| (level, runs_of_neighbors)));
            // Not beyond a level at which all runs failed.
            let failed = |above: &u32| {
                self.measured.iter().any(|one| one.level <= *above && one.logs.is_empty())
            };
            needed.extend(
                above.filter(|above| !failed(above)).map(|level| (level, runs_of_neighbors)),
            );
        };
        if let Some(best) = self.best() {
            neighborhood(best, 1);
        }
        if let Some(saturation) = self.saturation() {
            neighborhood(saturation, repeats);
        }
        needed.extend(self.needed_for_threshold().map(|level| (level, repeats)));
        needed
    }

    /// Returns the levels next to the boundary whose runs do not decide yet, or one between them.
    fn needed_for_threshold(&self) -> impl Iterator<Item = u32> {
        let count = boundary(&self.threshold);
        let low = count.checked_sub(1).and_then(|at| self.threshold.get(at));
        let high = self.threshold.get(count);
        let between: Vec<u32> = match (low, high) {
            (Some(low), Some(high)) => {
                let inside = |level: &&u32| **level > low.load && **level < high.load;
                self.grid.iter().filter(inside).copied().collect()
            }
            _ => Vec::new(),
        };
        let middle = between.get(between.len() / 2).copied();
        let undecided = [low, high].into_iter().flatten().filter(|one| !one.is_decided());
        let undecided: Vec<u32> = undecided.map(|one| one.load).collect();
        middle.map_or(undecided, |middle| vec![middle]).into_iter()
    }

    fn results(&self) -> Vec<LevelResult> {
        let logs: Vec<Vec<f64>> = self.measured.iter().map(|one| one.logs.clone()).collect();
        let intervals = mean_intervals(&logs);
        let result = |(one, interval): (&Measured, Option<Interval>)| LevelResult {
            level: one.level,
            runs: one.attempts() - one.failed,
            failed: one.failed,
            throughput_per_s: one.mean().unwrap_or(0.0),
            interval: interval.map(|logs| Interval { low: logs.low.exp(), high: logs.high.exp() }),
            within_threshold: self
                .threshold
                .iter()
                .find(|tally| tally.load == one.level)
                .map(|tally| tally.met),
        };
        self.measured.iter().zip(intervals).map(result).collect()
    }
}
