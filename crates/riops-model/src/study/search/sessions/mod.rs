//! Searches the number of sessions at which throughput is saturated.
//!
//! 1. It doubles the sessions until throughput has not grown by a relevant amount for two steps, and until the
//!    threshold is no longer met. A single step down is not a reason to stop: on a small machine, a number of sessions
//!    that fits its cores may be much faster than the next.
//! 2. It measures the neighbors of the best level, and the levels between the last that meets the threshold and the
//!    first that does not.
//! 3. It repeats the levels that the answer depends on, interleaved, and starts again at 2 if the answer changes.

#[cfg(test)]
mod tests;

use serde::Serialize;

use super::boundary::{Tally, add, boundary};
use super::grid;
use crate::stats::{
    Interval, ScalingLaw, ScalingPoint, ScalingSettings, mean_intervals, scaling_law,
};

/// The result of a search.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Conclusion {
    /// Smallest level whose mean throughput reaches 95 % of the best throughput: the mean of [`Self::best`] and
    /// of its neighbors that are within 10 % of it. The highest of many noisy means alone would be too high.
    pub saturation: u32,
    /// The levels between which the saturation is; `None` if no level was repeated.
    pub saturation_range: Option<LevelRange>,
    /// Level with the highest mean throughput.
    pub best: u32,
    /// Throughput at each measured level, from the lowest on.
    #[serde(skip)]
    pub levels: Vec<LevelResult>,
    /// Highest level that meets the threshold; `None` without a threshold, or if no level meets it.
    pub most_sessions_within_threshold: Option<u32>,
    /// Whether the best level is the highest one that the settings allow: throughput may still grow beyond it.
    pub ends_at_last: bool,
    /// Whether the search ended at its maximum number of runs, before all levels were repeated.
    pub is_incomplete: bool,
    /// Lowest level whose runs all failed or are invalid: no higher level was measured.
    pub failing: Option<u32>,
    /// The scalability law fitted to all runs, in transactions per second.
    pub law: Option<ScalingLaw>,
    /// Why the law was not fitted.
    pub law_error: Option<String>,
}

/// Two levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LevelRange {
    /// The lower one.
    pub low: u32,
    /// The higher one.
    pub high: u32,
}

/// Returns the number of sessions that is measured next; `None` if all is measured. At most [`Settings::runs_max`] runs are measured.
pub fn next(settings: &Settings, points: &[MeasuredLevel]) -> Option<u32> {
    if points.len() >= usize::try_from(settings.runs_max).unwrap_or(usize::MAX) {
        return None;
    }
    State::new(settings, points).due()
}

/// Returns the throughput at the saturation point, [`Conclusion::saturation`]; `None` if no run has a throughput.
/// Unlike [`conclude`], it does not fit the law.
pub fn saturation(settings: &Settings, points: &[MeasuredLevel]) -> Option<LevelResult> {
    let state = State::new(settings, points);
    let level = state.saturation()?;
    state.results().into_iter().find(|result| result.level == level)
}

/// Returns the result; `None` if no run has a throughput.
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
    let law = scaling_law(&measured, &law);
    let saturation = state.saturation().unwrap_or(best);
    let levels = state.results();
    Some(Conclusion {
        saturation,
        saturation_range: range(&levels, saturation, best),
        best,
        levels,
        most_sessions_within_threshold: state.within_threshold(),
        ends_at_last: state.is_last(best),
        is_incomplete: state.due().is_some(),
        failing: state.failing(),
        law_error: law.as_ref().err().map(ToString::to_string),
        law: law.ok(),
    })
}

/// Returns the levels between which the saturation is: the first that may reach [`SATURATED`] of the best throughput, and the
/// first that certainly does, by the intervals of the throughputs. The highest level if none certainly does.
fn range(levels: &[LevelResult], saturation: u32, best: u32) -> Option<LevelRange> {
    let plateau = levels.iter().find(|result| result.level == best)?.interval?;
    let first = |least: f64, end: fn(Interval) -> f64| {
        let reaches = |result: &&LevelResult| result.interval.is_some_and(|own| end(own) >= least);
        levels.iter().find(reaches).map(|result| result.level)
    };
    let low = first(SATURATED * plateau.low, |own| own.high)?;
    let high = first(SATURATED * plateau.high, |own| own.low).or(Some(levels.last()?.level))?;
    Some(LevelRange { low: low.min(saturation), high: high.max(saturation) })
}

/// Growth of throughput from one doubling to the next that counts as growth, as a share.
const GROWTH: f64 = 0.05;
/// A neighbor with at least this share of the best throughput is on the same plateau.
const PLATEAU: f64 = 0.9;

/// Runs that fail at a level before it is given up.
const ATTEMPTS: u32 = 2;

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

    /// Whether all runs failed, and more than once: not by chance.
    fn fails(&self) -> bool {
        self.logs.is_empty() && self.failed >= ATTEMPTS
    }

    fn attempts(&self) -> u32 {
        u32::try_from(self.logs.len()).unwrap_or(u32::MAX).saturating_add(self.failed)
    }
}

/// The state of the search after the runs.
struct State {
    /// The levels that may be measured.
    grid: Vec<u32>,
    /// Number of runs at each level that the answer depends on.
    repeats: u32,
    /// From the lowest level on.
    measured: Vec<Measured>,
    /// Runs that met the threshold at each level, from the lowest on; empty without a threshold.
    threshold: Vec<Tally<u32>>,
}

impl State {
    fn new(settings: &Settings, points: &[MeasuredLevel]) -> Self {
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
        let grid = grid::levels(settings.first, settings.last);
        Self { grid, repeats: settings.repeats, measured, threshold }
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
            let Some(mean) = measured.mean() else {
                // A server that rejects this number of sessions also rejects more.
                return (!measured.fails()).then_some(level);
            };
            without_growth = if mean >= best * (1.0 + GROWTH) { 0 } else { without_growth + 1 };
            best = best.max(mean);
            let is_within = self.threshold.iter().any(|one| one.load == level && one.met > 0);
            if without_growth >= 2 && !is_within {
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

    /// Returns the best throughput: the mean of the best level and of its neighbors that are close to it. The
    /// highest of many noisy means is too high, and the more so the longer the plateau.
    fn best_throughput_per_s(&self) -> Option<f64> {
        let best = self.at(self.best()?)?;
        let least = PLATEAU * best.mean()?;
        let (below, above) = grid::neighbors(&self.grid, best.level);
        let neighbors = [below, above].into_iter().flatten().filter_map(|level| self.at(level));
        let close = neighbors.filter(|one| one.mean().is_some_and(|mean| mean >= least));
        let logs: Vec<f64> = close.chain([best]).flat_map(|one| one.logs.iter().copied()).collect();
        Some((logs.iter().sum::<f64>() / logs.len() as f64).exp())
    }

    /// Returns the smallest level whose mean reaches [`SATURATED`] of the best throughput.
    fn saturation(&self) -> Option<u32> {
        let least = SATURATED * self.best_throughput_per_s()?;
        let saturated = |one: &&Measured| one.mean().is_some_and(|mean| mean >= least);
        self.measured.iter().find(saturated).map(|one| one.level)
    }

    fn within_threshold(&self) -> Option<u32> {
        let count = boundary(&self.threshold);
        count.checked_sub(1).and_then(|at| self.threshold.get(at)).map(|one| one.load)
    }

    /// Whether a level is the highest one that may be measured.
    fn is_last(&self, level: u32) -> bool {
        self.grid.last() == Some(&level)
    }

    /// Returns the level that is measured next, if any: after the climb, of the levels that need a run those with
    /// the fewest, in rising and falling order by turns, so that a drift of the machine does not favor a level.
    fn due(&self) -> Option<u32> {
        if let Some(level) = self.climb() {
            return Some(level);
        }
        let mut due: Vec<(u32, u32)> = self
            .needed()
            .into_iter()
            .map(|level| (self.attempts(level), level))
            .filter(|(runs, _)| *runs < self.repeats)
            .collect();
        due.sort_unstable();
        let fewest = due.first()?.0;
        let mut levels = due.iter().filter(|(runs, _)| *runs == fewest).map(|(_, level)| *level);
        if fewest % 2 == 0 { levels.next() } else { levels.next_back() }
    }

    /// Returns the levels that the answer depends on.
    fn needed(&self) -> Vec<u32> {
        let mut needed = self.needed_for_threshold();
        for level in [self.best(), self.saturation()].into_iter().flatten() {
            let (below, above) = grid::neighbors(&self.grid, level);
            needed.extend([below, Some(level), above].into_iter().flatten());
        }
        // A level that fails is not repeated, nor is one above it measured.
        let failing = self.failing();
        needed.retain(|level| failing.is_none_or(|failing| *level < failing));
        needed
    }

    /// Returns the lowest level whose runs all failed.
    fn failing(&self) -> Option<u32> {
        self.measured.iter().find(|one| one.fails()).map(|one| one.level)
    }

    /// Returns the levels next to the boundary whose runs do not decide yet, or one between them.
    fn needed_for_threshold(&self) -> Vec<u32> {
        let count = boundary(&self.threshold);
        let low = count.checked_sub(1).and_then(|at| self.threshold.get(at));
        let high = self.threshold.get(count);
        if let (Some(low), Some(high)) = (low, high) {
            let inside = |level: &u32| *level > low.load && *level < high.load;
            let between: Vec<u32> = self.grid.iter().copied().filter(inside).collect();
            if let Some(middle) = between.get(between.len() / 2) {
                return vec![*middle];
            }
        }
        let sides = [low, high].into_iter().flatten();
        sides.filter(|one| !one.is_decided()).map(|one| one.load).collect()
    }

    /// Returns the throughput at each measured level.
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
