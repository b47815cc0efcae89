//! Searches the highest rate of an open loop that is sustained: the threshold is met, the rate is reached, and the
//! backlog does not grow.
//!
//! Near the boundary the same rate is sustained in one run and not in the next. A plain bisection trusts each run and
//! ends far off after one exception. This search keeps a probability for each boundary and measures the median
//! (Watson and Pelli, "QUEST: a Bayesian adaptive psychometric method", Perception & Psychophysics 33, 1983). It
//! ends when the boundary is known and most runs at the found rate were sustained.

use serde::Serialize;

use super::boundary::{Tally, add};
use crate::stats::Interval;

/// Share of the closed-loop throughput at which the search starts. Response times at higher rates are dominated by
/// queueing.
const START: f64 = 0.8;
/// Steps down to the lowest boundary that is considered: a factor of 20 000.
const STEPS_DOWN: i32 = 500;
/// Steps up to the highest: a factor of 50, for a closed loop of one session.
const STEPS_UP: i32 = 200;
/// Half of the boundaries are expected within this many steps of the start, about 13 %. The others are farther, with
/// the long tails of the Cauchy distribution: a strict threshold may be far below the capacity.
const EXPECTED_STEPS: f64 = 6.0;
/// Width of the transition, on the logarithmic scale: a rate 2 % above the boundary is sustained in 27 % of the runs.
const WIDTH: f64 = 0.02;
/// Share of the runs that a disturbance decides, not the rate.
const DISTURBED: f64 = 0.04;
/// The boundary is known if its 90 % interval is not longer than this many steps.
const KNOWN_STEPS: i32 = 2;

/// Settings of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// Throughput of a closed loop, per second; positive. The search starts at 80 % of it.
    pub capacity_per_s: f64,
    /// Relative distance between two rates that are distinguished, a step: 0.02 is 2 %.
    pub resolution: f64,
    /// Number of runs after which the search ends with what it found.
    pub runs_max: u32,
}

impl Settings {
    /// Returns the settings for this throughput of a closed loop, per second.
    pub fn new(capacity_per_s: f64) -> Self {
        Self { capacity_per_s, resolution: 0.02, runs_max: 20 }
    }

    /// Returns the rate at a step, with four significant digits.
    fn rate(&self, step: i32) -> f64 {
        let exact = self.capacity_per_s * START * (1.0 + self.resolution).powi(step);
        #[expect(clippy::cast_possible_truncation, reason = "the exponent of a float")]
        let digits = 3 - exact.log10().floor() as i32;
        let unit = 10.0_f64.powi(digits.abs());
        // Powers of ten below 1 are not exact.
        if digits > 0 { (exact * unit).round() / unit } else { (exact / unit).round() * unit }
    }

    fn step(&self, rate_per_s: f64) -> i32 {
        let steps = (rate_per_s / (self.capacity_per_s * START)).ln() / self.resolution.ln_1p();
        #[expect(clippy::cast_possible_truncation, reason = "clamped")]
        let step = steps.round().clamp(f64::from(-STEPS_DOWN), f64::from(STEPS_UP)) as i32;
        step
    }
}

/// A finished run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RatePoint {
    /// The rate, per second.
    pub rate_per_s: f64,
    /// Whether it was sustained.
    pub sustained: bool,
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
    /// Highest sustained rate per second: one step below the boundary, where most runs sustain it. In an
    /// incomplete search the highest one below the boundary that most runs sustained. `None` if there is none.
    pub rate_per_s: Option<f64>,
    /// The rate per second that half of the runs sustain, with 90 % probability.
    pub boundary_per_s: Interval,
    /// All measured rates, from the lowest on.
    pub rates: Vec<RateResult>,
    /// Whether the search ended before the boundary was known and the rate confirmed: at its maximum number of
    /// runs, or because all rates were sustained.
    pub is_incomplete: bool,
}

/// Returns the rate that is measured next, per second; `None` if all is measured. At most [`Settings::runs_max`] runs are measured.
pub fn next(settings: &Settings, points: &[RatePoint]) -> Option<f64> {
    if points.len() >= usize::try_from(settings.runs_max).unwrap_or(usize::MAX) {
        return None;
    }
    let state = State::new(settings, points);
    state.due().map(|step| settings.rate(step))
}

/// Returns the result; `None` without a run.
pub fn conclude(settings: &Settings, points: &[RatePoint]) -> Option<Conclusion> {
    let state = State::new(settings, points);
    let result = |tally: &Tally<i32>| RateResult {
        rate_per_s: settings.rate(tally.load),
        runs: tally.runs,
        sustained: tally.met,
    };
    let answer = state.answer_step();
    let sustained = |tally: &&Tally<i32>| tally.load <= answer && has_majority(tally);
    let rate_per_s = |tally: &Tally<i32>| settings.rate(tally.load);
    (!points.is_empty()).then(|| Conclusion {
        rate_per_s: state.tallies.iter().rev().find(sustained).map(rate_per_s),
        boundary_per_s: Interval {
            low: settings.rate(state.quantile(0.05)),
            high: settings.rate(state.quantile(0.95)),
        },
        rates: state.tallies.iter().map(result).collect(),
        is_incomplete: state.due().is_some() || state.quantile(0.95) == STEPS_UP,
    })
}

/// The state of the search after the runs.
struct State {
    /// Runs at each step, from the lowest on.
    tallies: Vec<Tally<i32>>,
    /// The probability that the boundary is at most at each step, from the lowest on.
    cumulative: Vec<(i32, f64)>,
}

impl State {
    fn new(settings: &Settings, points: &[RatePoint]) -> Self {
        let mut tallies = Vec::new();
        for point in points {
            add(&mut tallies, settings.step(point.rate_per_s), point.sustained);
        }
        tallies.sort_by_key(|one| one.load);
        let width = WIDTH / settings.resolution.ln_1p();
        let mut sum = 0.0;
        let mut cumulative: Vec<(i32, f64)> = (-STEPS_DOWN..=STEPS_UP)
            .map(|boundary| {
                sum += probability(boundary, &tallies, width);
                (boundary, sum)
            })
            .collect();
        for (_, share) in &mut cumulative {
            *share /= sum;
        }
        Self { tallies, cumulative }
    }

    fn tally(&self, step: i32) -> Option<&Tally<i32>> {
        self.tallies.iter().find(|tally| tally.load == step)
    }

    fn quantile(&self, share: f64) -> i32 {
        let reached = self.cumulative.iter().find(|(_, sum)| *sum >= share);
        reached.map_or(STEPS_UP, |(step, _)| *step)
    }

    /// Returns the step of the answer: below the boundary, where half of the runs would fail.
    fn answer_step(&self) -> i32 {
        self.quantile(0.5) - 1
    }

    /// Returns the step that is measured next, if any.
    fn due(&self) -> Option<i32> {
        if self.quantile(0.95) - self.quantile(0.05) > KNOWN_STEPS {
            return Some(self.quantile(0.5));
        }
        let answer = self.answer_step();
        let confirmed = self.tally(answer).is_some_and(|one| one.is_decided() && has_majority(one));
        (!confirmed).then_some(answer)
    }
}

/// Whether most runs sustained the rate.
fn has_majority(tally: &Tally<i32>) -> bool {
    2 * tally.met > tally.runs
}

/// Returns the probability of a boundary, up to a factor: the prior probability times the likelihood of the runs.
fn probability(boundary: i32, tallies: &[Tally<i32>], width: f64) -> f64 {
    let before = 1.0 / (1.0 + (f64::from(boundary) / EXPECTED_STEPS).powi(2));
    let of_runs = |tally: &Tally<i32>| {
        let above = f64::from(tally.load - boundary) / width;
        let sustained = DISTURBED / 2.0 + (1.0 - DISTURBED) / (1.0 + above.exp());
        let missed = tally.runs - tally.met;
        sustained.powf(f64::from(tally.met)) * (1.0 - sustained).powf(f64::from(missed))
    };
    before * tallies.iter().map(of_runs).product::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: Settings =
        Settings { capacity_per_s: 12_345.0, resolution: 0.02, runs_max: 20 };

    /// Measures until the search ends.
    fn search(settings: &Settings, mut sustained: impl FnMut(f64) -> bool) -> Vec<RatePoint> {
        let mut points = Vec::new();
        while let Some(rate_per_s) = next(settings, &points) {
            points.push(RatePoint { rate_per_s, sustained: sustained(rate_per_s) });
        }
        points
    }

    fn conclusion(points: &[RatePoint]) -> Conclusion {
        conclude(&SETTINGS, points).unwrap()
    }

    #[test]
    fn finds_a_sharp_boundary_within_two_steps() {
        for boundary in [200.0, 3_000.0, 9_000.0, 11_900.0, 12_345.0, 40_000.0] {
            let points = search(&SETTINGS, |rate| rate <= boundary);
            let conclusion = conclusion(&points);
            let rate = conclusion.rate_per_s.unwrap();
            assert!(rate <= boundary && rate >= boundary * 0.94, "{boundary}: {conclusion:?}");
            let is_near = (3_000.0..20_000.0).contains(&boundary);
            assert!(points.len() <= 20 && !(is_near && conclusion.is_incomplete), "{conclusion:?}");
            let result = conclusion.rates.iter().find(|result| result.rate_per_s == rate).unwrap();
            assert!(result.sustained >= 2 || !is_near, "{conclusion:?}");
        }
    }

    #[test]
    fn starts_at_80_percent_of_the_capacity_with_rates_of_four_digits() {
        assert_eq!(next(&SETTINGS, &[]), Some(9_876.0));
        assert_eq!(SETTINGS.rate(1), 10_070.0);
        assert_eq!(Settings::new(0.123_456).rate(0), 0.098_76);
        for step in [-500, -7, 0, 3, 200] {
            assert_eq!(SETTINGS.step(SETTINGS.rate(step)), step);
        }
    }

    #[test]
    fn one_disturbed_run_does_not_decide() {
        for disturbed in 0..12 {
            let mut runs = 0;
            let points = search(&SETTINGS, |rate| {
                runs += 1;
                (rate <= 9_000.0) != (runs - 1 == disturbed)
            });
            let rate = conclusion(&points).rate_per_s.unwrap();
            assert!((rate / 9_000.0 - 1.0).abs() <= 0.07, "{disturbed}: {rate}");
        }
    }

    #[test]
    fn the_next_run_depends_only_on_the_finished_runs() {
        let points = search(&SETTINGS, |rate| rate <= 9_000.0);
        for (killed_after, point) in points.iter().enumerate() {
            let expected = Some(point.rate_per_s);
            assert_eq!(next(&SETTINGS, &points[..killed_after]), expected);
        }
        assert_eq!(next(&SETTINGS, &points), None);
    }

    #[test]
    fn a_server_that_sustains_no_rate_has_none() {
        let points = search(&SETTINGS, |_| false);
        let none = conclusion(&points);
        assert_eq!((points.len(), none.rate_per_s, none.is_incomplete), (20, None, true));
        let all = conclusion(&search(&SETTINGS, |_| true));
        assert!(all.rate_per_s.unwrap() > 12_345.0 && all.is_incomplete, "{all:?}");
        assert_eq!(conclude(&SETTINGS, &[]), None);
    }
}
