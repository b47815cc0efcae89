//! In every comparison, the verdict follows from the interval beside it.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::noise;
use crate::stats::{
    Block, Direction, Effect, Outcome, RatioInterval, SequentialSettings, Settings, compare, look,
};

/// How the runs of an experiment vary.
#[derive(Debug, Clone, Copy)]
enum Noise {
    /// Normally distributed.
    Normal,
    /// Now and then a run is far away: Student's t with two degrees of freedom.
    HeavyTailed,
    /// Now and then a run is much slower.
    Skewed,
}

impl Noise {
    fn next(self, rng: &mut Xoshiro256PlusPlus) -> f64 {
        let exponential = |rng: &mut Xoshiro256PlusPlus| -rng.random::<f64>().max(1e-9).ln();
        match self {
            Self::Normal => noise(rng),
            Self::HeavyTailed => noise(rng) / exponential(rng).sqrt(),
            Self::Skewed => 1.0 - exponential(rng),
        }
    }
}

/// Three figures with this ratio of B to A, of which two are alike.
fn figures(
    blocks: u32,
    runs: usize,
    (ratio, deviation, kind): (f64, f64, Noise),
    rng: &mut Xoshiro256PlusPlus,
) -> Vec<(Direction, Vec<Block>)> {
    let mut measured = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..blocks {
        let mut of_block = [Block::default(), Block::default(), Block::default()];
        for is_b in [false, true] {
            for _ in 0..runs {
                let level = deviation * kind.next(rng) + if is_b { ratio.ln() } else { 0.0 };
                let latency = -level + 0.1 * deviation * noise(rng);
                let other = 2.0 * deviation * kind.next(rng);
                for (block, log) in of_block.iter_mut().zip([level, latency, other]) {
                    if is_b { block.b.push(log.exp()) } else { block.a.push(log.exp()) }
                }
            }
        }
        measured.iter_mut().zip(of_block).for_each(|(all, block)| all.push(block));
    }
    let [throughput, latency, other] = measured;
    let (higher, lower) = (Direction::HigherIsBetter, Direction::LowerIsBetter);
    vec![(higher, throughput), (lower, latency), (lower, other)]
}

/// Returns the verdict that a reader takes from the interval.
fn read(interval: Option<RatioInterval>, effect: f64, direction: Direction) -> Outcome {
    let Some(RatioInterval { low, high, .. }) = interval else {
        return Outcome::Inconclusive;
    };
    if low > 1.0 / (1.0 + effect) && high < 1.0 + effect {
        return Outcome::Equivalent;
    }
    match (low > 1.0, high < 1.0, direction) {
        (true, _, Direction::HigherIsBetter) | (_, true, Direction::LowerIsBetter) => {
            Outcome::Faster
        }
        (true, _, Direction::LowerIsBetter) | (_, true, Direction::HigherIsBetter) => {
            Outcome::Slower
        }
        (false, false, _) => Outcome::Inconclusive,
    }
}

/// Checks all effects, and counts the outcomes.
fn check(
    figures: &[(Direction, Vec<Block>)],
    effects: &[Effect],
    (effect, level): (f64, f64),
    counts: &mut [u32; 4],
) {
    for ((direction, _), compared) in figures.iter().zip(effects) {
        assert_eq!(compared.outcome, read(compared.interval, effect, *direction), "{compared:?}");
        if let Some(interval) = compared.interval {
            assert!((interval.coverage - (1.0 - level)).abs() < 1e-12, "{compared:?} at {level}");
            assert!(
                interval.low <= compared.ratio && compared.ratio <= interval.high,
                "{compared:?}"
            );
            // An interval that excludes 1 belongs to a difference that is significant at this level, over all figures.
            let excludes = interval.low > 1.0 || interval.high < 1.0;
            let is_irrelevant = compared.outcome == Outcome::Equivalent;
            assert!(
                !excludes || is_irrelevant || compared.p_adjusted <= level,
                "{compared:?} at {level}"
            );
        }
        counts[compared.outcome as usize] += 1;
    }
}

const RATIOS: [f64; 5] = [1.0, 1.01, 0.97, 1.05, 0.9];
const DEVIATIONS: [f64; 3] = [0.003, 0.02, 0.06];
const KINDS: [Noise; 3] = [Noise::Normal, Noise::HeavyTailed, Noise::Skewed];

#[test]
fn each_verdict_is_read_from_its_interval() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(56);
    let mut counts = [0; 4];
    for seed in 0..1_200_u32 {
        let pick = |divisor: u32, from: usize| (seed / divisor) as usize % from;
        let (blocks, runs) = match seed % 5 {
            0 => (6, 1),
            1 => (4 + seed % 17, 1),
            2 => (4 + seed / 5 % 4, 2),
            3 => (1, 3 + pick(5, 4)),
            _ => (3 + seed / 5 % 6, 1),
        };
        let scenario = (RATIOS[pick(1, 5)], DEVIATIONS[pick(5, 3)], KINDS[pick(15, 3)]);
        let measured = figures(blocks, runs, scenario, &mut rng);
        let settings = Settings { resamples: 199, seed: seed.into(), ..Settings::default() };
        let effects: Vec<Effect> =
            compare(&measured, &settings).into_iter().map(Result::unwrap).collect();
        check(&measured, &effects, (settings.effect, settings.alpha), &mut counts);
    }
    println!("faster, slower, equivalent, inconclusive: {counts:?}");
    assert!(counts.iter().all(|count| *count > 50), "{counts:?}");
}

#[test]
fn each_verdict_of_a_look_is_read_from_its_interval() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(57);
    let mut counts = [0; 4];
    for seed in 0..60_u32 {
        let settings =
            SequentialSettings { resamples: 499, seed: seed.into(), ..Default::default() };
        let scenario = (
            RATIOS[seed as usize % 5],
            DEVIATIONS[(seed / 5) as usize % 3],
            KINDS[(seed / 15) as usize % 3],
        );
        let all = figures(settings.blocks_max, 2, scenario, &mut rng);
        for ordinal in 1..=settings.looks_max() {
            let blocks = settings.blocks_at(ordinal) as usize;
            let first =
                |(direction, all): &(Direction, Vec<Block>)| (*direction, all[..blocks].to_vec());
            let measured: Vec<_> = all.iter().map(first).collect();
            let current = look(&measured, ordinal, &settings);
            let effects: Vec<Effect> = current.effects.into_iter().map(Result::unwrap).collect();
            check(&measured, &effects, (settings.effect, current.level), &mut counts);
        }
    }
    println!("looks: faster, slower, equivalent, inconclusive: {counts:?}");
    assert!(counts.iter().all(|count| *count > 10), "{counts:?}");
}
