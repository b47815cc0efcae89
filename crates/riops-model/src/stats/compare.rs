//! Comparison of two groups of runs. The run is the unit: the points within a run are correlated and share its
//! plan, its caches and its neighbors, so they say nothing about the next run (Kalibera and Jones, "Rigorous
//! benchmarking in reasonable time", ISMM 2013).

use serde::Serialize;

use super::blocks::{Block, Incomparable, Sample, Unit};
use super::interval::{Interval, log_intervals};
use super::inversion::accepted;
use super::permutation::{Design, Significance, design, test};
use crate::units::format::truncated;

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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Throughput.
    HigherIsBetter,
    /// Latency.
    LowerIsBetter,
}

/// The verdict on B relative to A.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
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
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Faster => "faster",
            Self::Slower => "slower",
            Self::Equivalent => "equivalent",
            Self::Inconclusive => "inconclusive",
        }
    }

    /// Returns the outcome if the values of A or B are only lower bounds: a verdict remains if a higher value could not
    /// change it.
    fn with_bounds(self, direction: Direction, bounds: LowerBounds) -> Self {
        let (rises, falls) = (Self::of_change(true, direction), Self::of_change(false, direction));
        let is_open = bounds.a && (self == rises || self == Self::Equivalent)
            || bounds.b && (self == falls || self == Self::Equivalent);
        if is_open { Self::Inconclusive } else { self }
    }

    /// Reads the outcome from the interval of a ratio: equivalent if it is within the smallest relevant difference, otherwise
    /// faster or slower if it excludes 1, otherwise inconclusive, as without an interval.
    pub fn read(interval: Option<RatioInterval>, effect: f64, direction: Direction) -> Self {
        let Some(RatioInterval { low, high, .. }) = interval else {
            return Self::Inconclusive;
        };
        let relevant = 1.0 + effect;
        match () {
            () if low > 1.0 / relevant && high < relevant => Self::Equivalent,
            () if low > 1.0 || high < 1.0 => Self::of_change(low > 1.0, direction),
            () => Self::Inconclusive,
        }
    }

    /// Returns the outcome of a value that rose or fell.
    pub(super) fn of_change(rises: bool, direction: Direction) -> Self {
        if rises == (direction == Direction::HigherIsBetter) { Self::Faster } else { Self::Slower }
    }
}

/// Whether the values of A and B are only lower bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LowerBounds {
    pub(crate) a: bool,
    pub(crate) b: bool,
}

/// The interval of a ratio, from which the verdict is read.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RatioInterval {
    /// Lower limit.
    pub low: f64,
    /// Upper limit.
    pub high: f64,
    /// Probability with which such intervals cover the true ratio, at least: 0.95 is 95 %.
    pub coverage: f64,
}

impl RatioInterval {
    fn of_logs(logs: Interval, alpha: f64) -> Self {
        Self { low: logs.low.exp(), high: logs.high.exp(), coverage: 1.0 - alpha }
    }

    /// Returns the smallest difference that an interval of this length shows, as a share: a ratio in its middle that is
    /// farther from 1 has an interval without 1.
    pub fn visible(self) -> f64 {
        (self.high / self.low).sqrt() - 1.0
    }
}

/// The comparison of one figure.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Effect {
    /// B divided by A: ratio of the geometric means, averaged over the blocks.
    pub ratio: f64,
    /// The geometric means of A and B, whose quotient is the ratio.
    #[serde(skip)]
    pub means: [f64; 2],
    /// Interval that covers the true ratio with probability `1 - alpha`, and from which the verdict is read. `None` if the
    /// design cannot show a difference.
    pub interval: Option<RatioInterval>,
    /// The p-value of this figure alone.
    pub p: f64,
    /// The p-value adjusted for the number of figures.
    pub p_adjusted: f64,
    /// The verdict.
    pub outcome: Outcome,
    /// Whether the interval excludes a relevant difference for the worse (non-inferiority).
    #[serde(skip)]
    pub not_worse: bool,
    /// The differences that the number of runs can show.
    pub design: Design,
    /// Runs of each side that a verdict probably needs if they vary like these; only if these could show a
    /// difference and are inconclusive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runs_expected: Option<usize>,
}

impl Effect {
    /// Returns the effect if the values of A or B are only lower bounds. Without a verdict, the interval is not known either.
    #[must_use]
    pub(crate) fn with_bounds(self, direction: Direction, bounds: LowerBounds) -> Self {
        let outcome = self.outcome.with_bounds(direction, bounds);
        let is_open = (bounds.a || bounds.b) && outcome == Outcome::Inconclusive;
        Self { outcome, interval: self.interval.filter(|_| !is_open), ..self }
    }
}

/// Compares B with A in each figure: a direction, and the values of the runs. All figures have the same order of
/// blocks and runs.
///
/// The verdict is read from the interval, see [`Outcome::read`]. The probability of at least one false difference among all
/// figures is at most `alpha`.
pub fn compare(
    figures: &[(Direction, Vec<Block>)],
    settings: &Settings,
) -> Vec<Result<Effect, Incomparable>> {
    let samples: Vec<Result<Sample, Incomparable>> =
        figures.iter().map(|(_, blocks)| sample(blocks, settings)).collect();
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

/// Returns the interval of the best of `groups` groups that were compared with A; `alone` is the interval of its
/// comparison alone. The interval covers the ratios of all groups with probability `1 - alpha`, because chance favors
/// the best group most (Šidák, "Rectangular confidence regions for the means of multivariate normal distributions",
/// JASA 62, 1967).
pub fn of_best(
    alone: RatioInterval,
    blocks: &[Block],
    groups: usize,
    settings: &Settings,
) -> Option<RatioInterval> {
    let alpha = 1.0 - (1.0 - settings.alpha).powf(1.0 / groups.max(1) as f64);
    let seed = settings.seed.wrapping_add(1);
    let interval = log_intervals(&sample(blocks, settings).ok()?, alpha, settings.resamples, seed)?;
    let alone = Interval { low: alone.low.ln(), high: alone.high.ln() };
    Some(RatioInterval::of_logs(interval.joined(alone, settings.effect.ln_1p()), settings.alpha))
}

/// Returns the runs in their blocks. If the blocks are too few to show any difference, but the same runs without
/// blocks are enough, returns one block: knowing the blocks must not prevent a verdict. The choice depends on the
/// number of runs and not on their values, so that the error probability stays the same. Differences between blocks
/// make the interval longer.
fn sample(blocks: &[Block], settings: &Settings) -> Result<Sample, Incomparable> {
    let in_blocks = Sample::new(blocks)?;
    if design_of(&in_blocks, settings).needed.is_none() {
        return Ok(in_blocks);
    }
    let mut all = Block::default();
    for block in blocks.iter().filter(|block| !block.a.is_empty() && !block.b.is_empty()) {
        all.a.extend(&block.a);
        all.b.extend(&block.b);
    }
    let merged = Sample::new(&[all])?;
    Ok(if design_of(&merged, settings).needed.is_none() { merged } else { in_blocks })
}

fn design_of(sample: &Sample, settings: &Settings) -> Design {
    design(&sample.shape(), settings.alpha, settings.resamples, sample.unit != Unit::None)
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
    let design = design_of(sample, settings);
    let can_show = design.smallest_p <= settings.alpha;
    let logs = log_interval(sample, significance, settings).filter(|_| can_show);
    let interval = logs.map(|logs| RatioInterval::of_logs(logs, settings.alpha));
    let relevant = settings.effect.ln_1p();
    let outcome = Outcome::read(interval, settings.effect, direction);
    let is_open = outcome == Outcome::Inconclusive;
    Effect {
        runs_expected: logs
            .filter(|_| is_open)
            .map(|logs| runs_expected(logs, relevant, design.runs_a.min(design.runs_b))),
        ratio: difference.exp(),
        means: sample.means(),
        interval,
        p: significance.p,
        p_adjusted: significance.p_adjusted,
        outcome,
        not_worse: logs.is_some_and(|logs| match direction {
            Direction::HigherIsBetter => -logs.low < relevant,
            Direction::LowerIsBetter => logs.high < relevant,
        }),
        design,
    }
}

/// Returns the interval of the log ratio that all parts of the method agree on: the bootstrap interval, together with the
/// ratios below the smallest relevant one that the permutation test does not reject. The level of this test is the level at
/// which the adjusted p-value of equal sides is `alpha`.
fn log_interval(
    sample: &Sample,
    significance: Significance,
    settings: &Settings,
) -> Option<Interval> {
    // The bootstrap and the permutations use different random numbers.
    let seed = settings.seed.wrapping_add(1);
    let interval = log_intervals(sample, settings.alpha, settings.resamples, seed)?;
    let level = settings.alpha * significance.p / significance.p_adjusted;
    let relevant = settings.effect.ln_1p();
    let tested = accepted(sample, level, relevant, settings.resamples, settings.seed);
    Some(interval.joined(tested, relevant))
}

/// Returns the runs of each side with which the interval would be short enough to be within the smallest relevant
/// difference, or to exclude 1. Its length falls with the square root of their number.
fn runs_expected(Interval { low, high }: Interval, relevant: f64, runs: usize) -> usize {
    let (center, reach) = ((low + high).abs() / 2.0, (high - low) / 2.0);
    let longest = center.max(relevant - center);
    let expected = truncated((runs as f64 * (reach / longest).powi(2)).ceil());
    expected.max(runs + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::stats::Needed;

    /// Pairs of runs around 100, with these ratios.
    fn pairs(ratios: &[f64]) -> Vec<Block> {
        let block = |(at, ratio): (usize, &f64)| {
            let a = 100.0 + at as f64;
            Block { a: vec![a], b: vec![a * ratio] }
        };
        ratios.iter().enumerate().map(block).collect()
    }

    fn one(direction: Direction, blocks: Vec<Block>) -> Result<Effect, Incomparable> {
        compare(&[(direction, blocks)], &Settings::default()).remove(0)
    }

    fn throughput(ratios: &[f64]) -> Effect {
        one(Direction::HigherIsBetter, pairs(ratios)).unwrap()
    }

    const RISE: [f64; 6] = [1.20, 1.22, 1.18, 1.21, 1.19, 1.20];

    #[test]
    fn the_ratio_is_the_quotient_of_the_means_of_both_sides() {
        let blocks = vec![
            Block { a: vec![400.0, 460.0], b: vec![510.0] },
            Block { a: vec![900.0], b: vec![440.0, 480.0] },
            Block { a: vec![420.0], b: vec![490.0] },
        ];
        let effect = one(Direction::HigherIsBetter, blocks).unwrap();
        let [a, b] = effect.means;
        assert!((b / a - effect.ratio).abs() < 1e-9, "{effect:?}");
    }

    #[test]
    fn the_direction_decides_between_faster_and_slower() {
        let rise = throughput(&RISE);
        assert_eq!(rise.outcome, Outcome::Faster);
        assert!((rise.ratio - 1.2).abs() < 0.001, "{rise:?}");
        let interval = rise.interval.unwrap();
        assert!(interval.low > 1.18 && interval.high < 1.22, "{interval:?}");
        let fall = RISE.map(|ratio| 1.0 / ratio);
        assert_eq!(throughput(&fall).outcome, Outcome::Slower);
        let latency = |ratios| one(Direction::LowerIsBetter, pairs(ratios)).unwrap().outcome;
        assert_eq!((latency(&RISE), latency(&fall)), (Outcome::Slower, Outcome::Faster));
    }

    #[test]
    fn a_proven_but_irrelevant_difference_is_equivalent() {
        let small = throughput(&[1.010, 1.011, 1.009, 1.010, 1.012, 1.008]);
        assert_eq!((small.outcome, small.p), (Outcome::Equivalent, 2.0 / 64.0));
        assert_eq!(throughput(&[1.0; 6]).outcome, Outcome::Equivalent);
    }

    #[test]
    fn lower_bounds_keep_only_the_verdicts_that_they_cannot_change() {
        let latency = Direction::LowerIsBetter;
        let with = |outcome: Outcome, (a, b)| outcome.with_bounds(latency, LowerBounds { a, b });
        assert_eq!(with(Outcome::Slower, (false, true)), Outcome::Slower);
        assert_eq!(with(Outcome::Faster, (true, false)), Outcome::Faster);
        for (outcome, bounds) in [
            (Outcome::Faster, (false, true)),
            (Outcome::Slower, (true, false)),
            (Outcome::Equivalent, (false, true)),
            (Outcome::Slower, (true, true)),
        ] {
            assert_eq!(with(outcome, bounds), Outcome::Inconclusive, "{outcome:?} {bounds:?}");
        }
    }

    #[test]
    fn a_single_run_far_away_among_equal_ones_hides_no_difference() {
        let slow = [0.17, 0.17, 0.17, 0.17, 0.17, 0.17, 0.17, 0.34];
        let of_blocks = throughput(&slow);
        let runs = Block { a: vec![24.0; 5], b: vec![4.0, 4.0, 4.0, 4.0, 8.0] };
        let of_runs = one(Direction::HigherIsBetter, vec![runs]).unwrap();
        for effect in [of_blocks, of_runs] {
            let interval = effect.interval.unwrap();
            assert_eq!(effect.outcome, Outcome::Slower, "{effect:?}");
            assert!(interval.low > 0.05 && interval.high < 0.7, "{effect:?}");
        }
        // Neither is a difference of the size of the values left open, at any level.
        let mut equal = [1.0; 8];
        equal[3] = 1.04;
        for alpha in [0.05, 0.001] {
            let settings = Settings { effect: 0.5, alpha, ..Settings::default() };
            let blocks: Vec<Block> = equal
                .iter()
                .map(|ratio| Block { a: vec![24.0; 2], b: vec![24.0, 24.0 * ratio * ratio] })
                .collect();
            let effect =
                compare(&[(Direction::HigherIsBetter, blocks)], &settings).remove(0).unwrap();
            assert_eq!(effect.outcome, Outcome::Equivalent, "{effect:?}");
        }
    }

    #[test]
    fn noise_is_inconclusive() {
        let noise = throughput(&[1.10, 0.93, 1.08, 0.96, 1.01, 0.92]);
        assert_eq!(noise.outcome, Outcome::Inconclusive);
        assert!(noise.design.needed.is_none() && noise.p > 0.5, "{noise:?}");
    }

    #[test]
    fn too_small_a_design_states_the_runs_that_it_needs() {
        let three = throughput(&RISE[..3]);
        assert_eq!((three.outcome, three.runs_expected), (Outcome::Inconclusive, None));
        assert_eq!(three.design.needed, Some(Needed { runs_of_each: 4 }));
        assert_eq!(three.interval, None);
        let two =
            one(Direction::HigherIsBetter, vec![Block { a: vec![1.0, 1.1], b: vec![9.0, 9.1] }]);
        let two = two.unwrap();
        assert_eq!((two.outcome, two.interval), (Outcome::Inconclusive, None));
        assert_eq!(two.design.needed, Some(Needed { runs_of_each: 4 }));
    }

    #[test]
    fn blocks_decide_whenever_the_same_runs_without_blocks_do() {
        for count in 4..9 {
            let blocks = pairs(&vec![0.03; count]);
            let side =
                |pick: fn(&Block) -> &Vec<f64>| blocks.iter().flat_map(pick).copied().collect();
            let merged = Block { a: side(|block| &block.a), b: side(|block| &block.b) };
            let merged = one(Direction::HigherIsBetter, vec![merged]).unwrap();
            let effect = one(Direction::HigherIsBetter, blocks).unwrap();
            assert_eq!((effect.outcome, merged.outcome), (Outcome::Slower, Outcome::Slower));
            assert_eq!(effect.design.blocks, if count < 6 { 1 } else { count });
        }
        // Two blocks of two runs each.
        let block = Block { a: vec![100.0, 101.0], b: vec![200.0, 203.0] };
        let effect = one(Direction::HigherIsBetter, vec![block; 2]).unwrap();
        assert_eq!(effect.outcome, Outcome::Faster);
    }

    #[test]
    fn an_inconclusive_comparison_estimates_the_runs_that_it_needs() {
        let noise = throughput(&[1.10, 0.93, 1.08, 0.96, 1.01, 0.92]);
        let expected = noise.runs_expected.unwrap();
        // The interval of about ±9 % must become ±2 %.
        assert!((80..200).contains(&expected), "{noise:?}");
        assert_eq!(throughput(&RISE).runs_expected, None);
    }

    #[test]
    fn runs_that_cannot_be_compared_are_errors_of_their_figure_only() {
        let valid = (Direction::HigherIsBetter, pairs(&RISE));
        let zero = (Direction::HigherIsBetter, pairs(&[1.0, 0.0, 1.0]));
        let single = (Direction::LowerIsBetter, pairs(&[1.2]));
        let only_a = Block { a: vec![1.0, 2.0, 3.0], b: vec![] };
        let effects = compare(
            &[zero, single, (Direction::LowerIsBetter, vec![only_a]), valid],
            &Settings::default(),
        );
        assert_eq!(effects[0], Err(Incomparable::NotPositive(0.0)));
        assert_eq!(effects[1], Err(Incomparable::TooFewRuns { a: 1, b: 1 }));
        assert_eq!(effects[2], Err(Incomparable::TooFewRuns { a: 0, b: 0 }));
        assert_eq!(effects[3].as_ref().unwrap().outcome, Outcome::Faster);
    }

    #[test]
    fn a_block_without_runs_of_both_is_left_out() {
        let mut blocks = pairs(&RISE);
        blocks.push(Block { a: vec![5_000.0], b: vec![] });
        let effect = one(Direction::HigherIsBetter, blocks).unwrap();
        assert_eq!(effect, throughput(&RISE));
        assert_eq!((effect.design.blocks, effect.design.runs_a, effect.design.runs_b), (6, 6, 6));
    }

    #[test]
    fn differences_between_blocks_do_not_hide_a_difference_within_them() {
        // Each block is twice as fast as the one before; B is 10 % faster in each.
        let level = |block: i32| 100.0 * 2.0_f64.powi(block);
        let block = |at: i32| Block {
            a: vec![level(at), level(at) * 1.01],
            b: vec![level(at) * 1.10, level(at) * 1.11],
        };
        let effect = one(Direction::HigherIsBetter, (0..4).map(block).collect()).unwrap();
        assert_eq!(effect.outcome, Outcome::Faster);
        assert!((effect.ratio - 1.0995).abs() < 0.001, "{effect:?}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn exchanging_a_and_b_inverts_the_result(
            ratios in prop::collection::vec(0.8f64..1.3, 4..8),
            unit in 0.001f64..1000.0,
        ) {
            let settings = Settings { resamples: 199, ..Settings::default() };
            let forward = pairs(&ratios);
            let exchanged: Vec<Block> = forward.iter().map(|block| Block {
                a: block.b.iter().map(|value| value * unit).collect(),
                b: block.a.iter().map(|value| value * unit).collect(),
            }).collect();
            let compared = |blocks: &Vec<Block>| {
                compare(&[(Direction::HigherIsBetter, blocks.clone())], &settings).remove(0).unwrap()
            };
            let (one, other) = (compared(&forward), compared(&exchanged));
            let (here, there) = (one.interval.unwrap(), other.interval.unwrap());
            prop_assert!((one.ratio * other.ratio - 1.0).abs() < 1e-9);
            prop_assert!((here.low * there.high - 1.0).abs() < 1e-6);
            prop_assert!((here.high * there.low - 1.0).abs() < 1e-6);
            prop_assert_eq!(one.p, other.p);
            let expected = match one.outcome {
                Outcome::Faster => Outcome::Slower,
                Outcome::Slower => Outcome::Faster,
                same => same,
            };
            prop_assert_eq!(expected, other.outcome);
            prop_assert!(here.low <= one.ratio && one.ratio <= here.high);
            prop_assert!(one.p >= one.design.smallest_p - 1e-12 && one.p <= 1.0);
        }
    }
}
