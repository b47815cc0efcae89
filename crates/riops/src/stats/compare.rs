//! Comparison of two groups of runs. The run is the unit: the points within a run are correlated and share its
//! plan, its caches and its neighbors, so they say nothing about the next run (Kalibera and Jones, "Rigorous
//! benchmarking in reasonable time", ISMM 2013).

use super::blocks::{Block, Incomparable, Sample};
use super::design::{Design, design};
use super::interval::log_interval;
use super::permutation::{Significance, test};

/// Settings of a comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// Smallest relevant difference, as a share: 0.02 is 2 %.
    pub effect: f64,
    /// Probability of at least one false difference among all figures.
    pub alpha: f64,
    /// Number of bootstrap samples, and of permutations if there are too many to enumerate.
    pub resamples: u32,
    /// Random seed.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { effect: 0.02, alpha: 0.05, resamples: 10_000, seed: 18 }
    }
}

/// Which values are better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Throughput.
    HigherIsBetter,
    /// Latency.
    LowerIsBetter,
}

/// The verdict on B relative to A.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// B is better, and possibly by more than the smallest relevant difference.
    Faster,
    /// B is worse, and possibly by more than the smallest relevant difference.
    Slower,
    /// The difference is smaller than the smallest relevant one.
    Equivalent,
    /// The runs do not decide.
    Inconclusive,
}

impl Outcome {
    /// Returns the name in reports and records.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::Equivalent => "equivalent",
            Self::Inconclusive => "inconclusive",
        }
    }

    /// Returns the outcome of a value that rose or fell.
    pub(super) fn of_change(rises: bool, direction: Direction) -> Self {
        if rises == (direction == Direction::HigherIsBetter) { Self::Faster } else { Self::Slower }
    }
}

/// Limits of the interval of a ratio.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Lower limit.
    pub low: f64,
    /// Upper limit.
    pub high: f64,
}

/// The comparison of one figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Effect {
    /// B divided by A: ratio of the geometric means, averaged over the blocks.
    pub ratio: f64,
    /// Interval that covers the true ratio with probability `1 - alpha`. `None` with fewer than three blocks or
    /// three runs on each side.
    pub interval: Option<Interval>,
    /// The p-value of this figure alone.
    pub p: f64,
    /// The p-value adjusted for the number of figures.
    pub p_adjusted: f64,
    /// The verdict.
    pub outcome: Outcome,
    /// What the number of runs can show.
    pub design: Design,
}

/// Compares B with A in each figure: a direction, and the values of the runs. All figures have the same order of
/// blocks and runs.
///
/// A figure is equivalent if the interval is within the smallest relevant difference, on a logarithmic scale.
/// Otherwise it is faster or slower if its adjusted p-value is at most `alpha` and the interval excludes a ratio
/// of 1. The probability of at least one false difference among all figures is at most `alpha`.
#[must_use]
pub fn compare(
    figures: &[(Direction, Vec<Block>)],
    settings: &Settings,
) -> Vec<Result<Effect, Incomparable>> {
    let samples: Vec<Result<Sample, Incomparable>> =
        figures.iter().map(|(_, blocks)| Sample::new(blocks)).collect();
    let valid: Vec<Sample> = samples.iter().filter_map(|sample| sample.clone().ok()).collect();
    let mut significances = test(&valid, settings.resamples, settings.seed).into_iter();
    let mut effect = |(sample, (direction, _)): (Result<Sample, _>, &(Direction, _))| {
        let sample = sample?;
        let significance = significances.next();
        let significance = significance.unwrap_or(Significance { p: 1.0, p_adjusted: 1.0 });
        Ok(of_figure(&sample, *direction, significance, settings))
    };
    samples.into_iter().zip(figures).map(&mut effect).collect()
}

fn of_figure(
    sample: &Sample,
    direction: Direction,
    significance: Significance,
    settings: &Settings,
) -> Effect {
    let shape = sample.shape();
    let observed: Vec<bool> =
        shape.iter().flat_map(|&(a, b)| [vec![false; a], vec![true; b]].concat()).collect();
    let difference = sample.estimate(&observed).difference;
    // A different stream of random numbers than that of the permutations.
    let seed = settings.seed.wrapping_add(1);
    let logs = log_interval(sample, settings.alpha, settings.resamples, seed);
    let relevant = settings.effect.ln_1p();
    let outcome = match logs {
        Some((low, high)) if -relevant < low && high < relevant => Outcome::Equivalent,
        Some((low, high))
            if significance.p_adjusted <= settings.alpha && (low > 0.0 || high < 0.0) =>
        {
            Outcome::of_change(difference > 0.0, direction)
        }
        _ => Outcome::Inconclusive,
    };
    Effect {
        ratio: difference.exp(),
        interval: logs.map(|(low, high)| Interval { low: low.exp(), high: high.exp() }),
        p: significance.p,
        p_adjusted: significance.p_adjusted,
        outcome,
        design: design(&shape, settings.alpha, settings.resamples, logs.is_some()),
    }
}
