//! Group sequential comparison: an A/B experiment is compared several times, and each time may end it early.
//!
//! Testing at 5 % after each block finds a false difference in far more than 5 % of the experiments. A spending
//! function divides the 5 % among the looks (Lan and `DeMets`, "Discrete sequential boundaries for clinical trials",
//! Biometrika 70, 1983). Each look compares at its own level with [`compare`], whose p-values are exact, and the
//! levels add up to at most alpha. So the probability of a false difference in any figure at any look is at most
//! alpha, whatever the correlation between the looks is (Bonferroni).

use serde::Serialize;

use super::blocks::{Block, Incomparable};
use super::compare::{Direction, Effect, Outcome, Settings, compare};
use super::permutation::design;

/// Settings of a sequential comparison. Each block has two runs of A and two of B: A, B, B, A or B, A, A, B.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SequentialSettings {
    /// Smallest relevant difference, as a share: 0.02 is 2 %.
    pub effect: f64,
    /// Probability of at least one false difference among all figures and looks.
    pub alpha: f64,
    /// Blocks at the first look.
    pub blocks_first: u32,
    /// Blocks from one look to the next.
    pub blocks_step: u32,
    /// Blocks at the last look.
    pub blocks_max: u32,
    /// Number of bootstrap samples, and of permutations if there are too many to enumerate.
    pub resamples: u32,
    /// Random seed.
    pub seed: u64,
    /// Whether the experiment also stops as soon as the first figure cannot be worse by a relevant difference.
    pub one_sided: bool,
}

impl Default for SequentialSettings {
    fn default() -> Self {
        let Settings { effect, alpha, resamples, seed } = Settings::default();
        Self {
            effect,
            alpha,
            blocks_first: 4,
            blocks_step: 2,
            blocks_max: 12,
            resamples,
            seed,
            one_sided: false,
        }
    }
}

/// How an experiment goes on after a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Measure more blocks, up to this number, before the next look.
    Continue {
        /// Blocks at the next look.
        blocks: u32,
    },
    /// Stop with this verdict on the first figure. It is inconclusive only at the last look.
    Stop(Outcome),
    /// Stop: the cautious interval of the first figure excludes a relevant difference for the worse (non-inferiority).
    NotSlower,
}

/// The comparison at one look.
#[derive(Debug, Clone, PartialEq)]
pub struct Look {
    /// Number of the look, from 1.
    pub ordinal: u32,
    /// Number of the last look.
    pub looks_max: u32,
    /// Level of this look: its tests have this alpha, and its intervals the coverage `1 - level`.
    pub level: f64,
    /// Comparisons of the figures, in their order. The intervals of all looks are valid together.
    pub effects: Vec<Result<Effect, Incomparable>>,
    /// How the experiment goes on.
    pub decision: Decision,
}

impl SequentialSettings {
    /// Returns the number of looks.
    pub fn looks_max(&self) -> u32 {
        let after_first = self.blocks_max.saturating_sub(self.blocks_first);
        1 + after_first.div_ceil(self.blocks_step.max(1))
    }

    /// Returns the number of blocks at a look, from 1 on.
    pub fn blocks_at(&self, look: u32) -> u32 {
        let more = look.saturating_sub(1).saturating_mul(self.blocks_step.max(1));
        self.blocks_first.saturating_add(more).min(self.blocks_max)
    }

    /// Returns the number of the look that is due after this number of finished blocks; `None` before the first.
    /// A look is due once: the same number of blocks, or more until the next look, has the same look.
    pub fn look_after(&self, blocks: u32) -> Option<u32> {
        (1..=self.looks_max()).rev().find(|look| self.blocks_at(*look) <= blocks)
    }

    /// Returns the level of a look.
    ///
    /// The spending function is alpha · ln(1 + (e − 1)t) at the share t of all blocks, which spends early like
    /// Pocock's boundaries (Lan and `DeMets` 1983). With few blocks, p-values cannot be below a limit. A look whose
    /// level is below this limit has no level, and the next look has it in addition.
    pub fn level(&self, look: u32) -> f64 {
        let mut spent = 0.0;
        let mut level = 0.0;
        for ordinal in 1..=look.min(self.looks_max()) {
            let blocks = self.blocks_at(ordinal);
            let share = f64::from(blocks) / f64::from(self.blocks_max.max(1));
            let spending = self.alpha * (1.0 + (std::f64::consts::E - 1.0) * share.min(1.0)).ln();
            let available = (spending - spent).max(0.0);
            level = if self.smallest_p(blocks) <= available { available } else { 0.0 };
            spent += level;
        }
        level
    }

    fn smallest_p(&self, blocks: u32) -> f64 {
        let shape = vec![(2, 2); usize::try_from(blocks).unwrap_or(usize::MAX)];
        design(&shape, self.alpha, self.resamples, true).smallest_p
    }
}

/// Compares at a look, from 1 on. `figures` have the blocks of this look, [`SequentialSettings::blocks_at`].
///
/// The first figure decides: the experiment stops if it is faster, slower or equivalent at the level of the look.
/// The other figures are part of the error probability, but often vary too much for a verdict.
pub fn look(
    figures: &[(Direction, Vec<Block>)],
    ordinal: u32,
    settings: &SequentialSettings,
) -> Look {
    let looks_max = settings.looks_max();
    let level = settings.level(ordinal);
    let at_look = Settings {
        effect: settings.effect,
        // Without a level, no design is large enough, and there is neither an interval nor a verdict.
        alpha: level,
        resamples: settings.resamples,
        seed: settings.seed.wrapping_add(u64::from(ordinal)),
    };
    let effects = compare(figures, &at_look);
    let first = effects.first().and_then(|effect| effect.as_ref().ok());
    let outcome = first.map_or(Outcome::Inconclusive, |effect| effect.outcome);
    let not_worse = settings.one_sided && first.is_some_and(|first| first.not_worse);
    let decision = match outcome {
        Outcome::Inconclusive if not_worse => Decision::NotSlower,
        Outcome::Inconclusive if ordinal < looks_max => {
            Decision::Continue { blocks: settings.blocks_at(ordinal + 1) }
        }
        _ => Decision::Stop(outcome),
    };
    Look { ordinal, looks_max, level, effects, decision }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: SequentialSettings = SequentialSettings {
        effect: 0.02,
        alpha: 0.05,
        blocks_first: 4,
        blocks_step: 2,
        blocks_max: 12,
        resamples: 499,
        seed: 1,
        one_sided: false,
    };

    /// Blocks whose runs vary by up to 1 %, with this ratio.
    fn blocks(count: u32, ratio: f64) -> Vec<Block> {
        let block = |at: u32| {
            let wave = 1.0 + 0.01 * f64::from(at * 7 % 5) / 4.0;
            Block { a: vec![100.0, 100.5 * wave], b: vec![100.2 * ratio * wave, 100.4 * ratio] }
        };
        (0..count).map(block).collect()
    }

    fn decision(count: u32, ratio: f64, ordinal: u32) -> Decision {
        let figures = [(Direction::HigherIsBetter, blocks(count, ratio))];
        look(&figures, ordinal, &SETTINGS).decision
    }

    #[test]
    fn the_levels_add_up_to_alpha() {
        for (blocks_first, blocks_step, blocks_max) in
            [(4, 2, 12), (2, 1, 9), (3, 4, 12), (6, 1, 6)]
        {
            let settings = SequentialSettings { blocks_first, blocks_step, blocks_max, ..SETTINGS };
            let sum: f64 = (1..=settings.looks_max()).map(|ordinal| settings.level(ordinal)).sum();
            assert!((sum - 0.05).abs() < 1e-12, "{sum}");
        }
        let first = SETTINGS.level(1);
        assert!((first - 0.05 * (1.0 + (std::f64::consts::E - 1.0) / 3.0).ln()).abs() < 1e-12);
    }

    #[test]
    fn a_look_that_cannot_show_a_difference_leaves_its_level_to_the_next() {
        // Two blocks have a smallest p of 2/36, three of 2/216.
        let settings = SequentialSettings { blocks_first: 2, blocks_step: 1, ..SETTINGS };
        assert_eq!((settings.looks_max(), settings.level(1)), (11, 0.0));
        let spent_by_three = 0.05 * (1.0 + (std::f64::consts::E - 1.0) * 0.25).ln();
        assert!((settings.level(2) - spent_by_three).abs() < 1e-12);
        let none = look(&[(Direction::HigherIsBetter, blocks(2, 2.0))], 1, &settings);
        assert_eq!((none.level, none.decision), (0.0, Decision::Continue { blocks: 3 }));
        // Neither is there an interval that could be read as a verdict.
        assert_eq!(none.effects[0].as_ref().unwrap().interval, None);
    }

    #[test]
    fn looks_are_due_at_their_number_of_blocks() {
        let due: Vec<Option<u32>> =
            [0, 3, 4, 5, 6, 11, 12, 40].map(|n| SETTINGS.look_after(n)).to_vec();
        assert_eq!(due, [None, None, Some(1), Some(1), Some(2), Some(4), Some(5), Some(5)]);
        let uneven = SequentialSettings { blocks_step: 3, ..SETTINGS };
        assert_eq!([1, 2, 3, 4].map(|ordinal| uneven.blocks_at(ordinal)), [4, 7, 10, 12]);
        assert_eq!(uneven.looks_max(), 4);
    }

    #[test]
    fn stops_as_soon_as_the_first_figure_has_a_verdict() {
        assert_eq!(decision(4, 1.2, 1), Decision::Stop(Outcome::Faster));
        assert_eq!(decision(4, 0.8, 1), Decision::Stop(Outcome::Slower));
        assert_eq!(decision(4, 1.0, 1), Decision::Stop(Outcome::Equivalent));
    }

    #[test]
    fn goes_on_without_a_verdict_and_ends_inconclusive_at_the_last_look() {
        let noisy = |at: u32| {
            let ratio = [1.3, 0.8, 1.1, 0.9, 1.2, 0.7][at as usize % 6];
            Block { a: vec![100.0, 110.0], b: vec![100.0 * ratio, 120.0] }
        };
        let figures = |count| [(Direction::HigherIsBetter, (0..count).map(noisy).collect())];
        let first = look(&figures(4), 1, &SETTINGS);
        assert_eq!(first.decision, Decision::Continue { blocks: 6 });
        let last = look(&figures(12), 5, &SETTINGS);
        assert_eq!(last.decision, Decision::Stop(Outcome::Inconclusive));
        assert_eq!((last.ordinal, last.looks_max), (5, 5));
    }

    #[test]
    fn a_one_sided_test_stops_as_soon_as_a_relevant_difference_for_the_worse_is_excluded() {
        // Better by about 1%: whether this is relevant stays open, but not that it is not worse.
        let better = |at: u32| {
            let ratio = [1.001, 1.016, 1.005, 1.010][at as usize % 4];
            Block { a: vec![100.0, 100.0], b: vec![100.0 * ratio, 100.0 * ratio] }
        };
        let one_sided = SequentialSettings { one_sided: true, ..SETTINGS };
        let decision = |direction, settings: &SequentialSettings| {
            look(&[(direction, (0..4).map(better).collect())], 1, settings).decision
        };
        let higher = Direction::HigherIsBetter;
        assert_eq!(decision(higher, &one_sided), Decision::NotSlower);
        let open = Decision::Continue { blocks: 6 };
        assert_eq!(decision(higher, &SETTINGS), open);
        assert_eq!(decision(Direction::LowerIsBetter, &one_sided), open);
    }

    #[test]
    fn a_figure_that_cannot_be_compared_does_not_end_the_experiment() {
        let zero = vec![Block { a: vec![0.0, 0.0], b: vec![0.0, 0.0] }; 4];
        let figures =
            [(Direction::HigherIsBetter, zero), (Direction::LowerIsBetter, blocks(4, 2.0))];
        let first = look(&figures, 1, &SETTINGS);
        assert_eq!(first.decision, Decision::Continue { blocks: 6 });
        assert_eq!(first.effects[1].as_ref().unwrap().outcome, Outcome::Slower);
        assert_eq!(look(&[], 5, &SETTINGS).decision, Decision::Stop(Outcome::Inconclusive));
    }
}
