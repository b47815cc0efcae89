//! Simulated A/B experiments that may stop early.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::noise;
use crate::stats::{Block, Decision, Direction, Effect, Look, Outcome, SequentialSettings, look};

/// A simulated experiment.
#[derive(Clone, Copy)]
struct Experiment {
    /// True ratio of B to A.
    ratio: f64,
    /// Standard deviation between runs.
    noise: f64,
    /// Change from one run to the next, for all runs.
    drift: f64,
}

const STANDARD: Experiment = Experiment { ratio: 1.0, noise: 0.02, drift: 0.003 };

impl Experiment {
    /// Simulates throughput, mean latency, and a p99 that varies by another 4 % and has no difference.
    fn figures(&self, blocks: u32, rng: &mut Xoshiro256PlusPlus) -> Vec<(Direction, Vec<Block>)> {
        let mut position = 0.0;
        let mut measured = [Vec::new(), Vec::new(), Vec::new()];
        for _ in 0..blocks {
            let mut of_block = [Block::default(), Block::default(), Block::default()];
            let mut order = [false, false, true, true];
            order.shuffle(rng);
            for is_b in order {
                position += 1.0;
                let common = self.drift * position + self.noise * noise(rng);
                let rate = (common + if is_b { self.ratio.ln() } else { 0.0 }).exp();
                let latency = (0.002 * noise(rng)).exp() / rate;
                let p99 = (0.04 * noise(rng) - common).exp();
                for (block, value) in of_block.iter_mut().zip([rate, latency, p99]) {
                    if is_b { block.b.push(value) } else { block.a.push(value) }
                }
            }
            for (blocks, block) in measured.iter_mut().zip(of_block) {
                blocks.push(block);
            }
        }
        let [throughput, latency, p99] = measured;
        vec![
            (Direction::HigherIsBetter, throughput),
            (Direction::LowerIsBetter, latency),
            (Direction::LowerIsBetter, p99),
        ]
    }

    /// Simulates experiments until they stop.
    fn simulate(&self, count: u64) -> Vec<Simulated> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(19);
        let one = |seed| {
            let settings = SequentialSettings { resamples: 499, seed, ..Default::default() };
            let figures = self.figures(settings.blocks_max, &mut rng);
            let mut ordinal = 1;
            let mut is_significant = false;
            loop {
                let blocks = settings.blocks_at(ordinal);
                let first = |blocks_of: &Vec<Block>| blocks_of[..blocks as usize].to_vec();
                let so_far: Vec<(Direction, Vec<Block>)> =
                    figures.iter().map(|(direction, all)| (*direction, first(all))).collect();
                let current = look(&so_far, ordinal, &settings);
                let mut effects = current.effects.iter().flatten();
                is_significant |= effects.any(|effect| effect.p_adjusted <= current.level);
                if matches!(current.decision, Decision::Stop(_)) {
                    return Simulated { last: current, blocks, is_significant };
                }
                ordinal += 1;
            }
        };
        (0..count).map(one).collect()
    }
}

/// A simulated experiment that stopped.
struct Simulated {
    last: Look,
    blocks: u32,
    /// Whether a figure was significant at any look.
    is_significant: bool,
}

fn share(experiments: &[Simulated], condition: impl Fn(&Simulated) -> bool) -> f64 {
    let count = experiments.iter().filter(|one| condition(one)).count();
    count as f64 / experiments.len() as f64
}

fn differs(effect: &Effect) -> bool {
    matches!(effect.outcome, Outcome::Faster | Outcome::Slower)
}

/// The shares of experiments with these results.
struct Rates {
    faster: f64,
    equivalent: f64,
    /// Different in any figure.
    different: f64,
    /// Any figure is significant at any look.
    significant: f64,
}

/// Simulates experiments, and prints their rates.
fn rates(name: &str, experiment: Experiment, count: u64) -> Rates {
    let all = experiment.simulate(count);
    let outcome = |outcome| share(&all, |one| one.last.decision == Decision::Stop(outcome));
    let rates = Rates {
        faster: outcome(Outcome::Faster),
        equivalent: outcome(Outcome::Equivalent),
        different: share(&all, |one| one.last.effects.iter().flatten().any(differs)),
        significant: share(&all, |one| one.is_significant),
    };
    let covered = share(&all, |one| {
        let interval = one.last.effects[0].as_ref().unwrap().interval.unwrap();
        interval.low <= experiment.ratio && experiment.ratio <= interval.high
    });
    let blocks = all.iter().map(|one| f64::from(one.blocks)).sum::<f64>() / count as f64;
    println!(
        "A/B, {name}: faster {:.3}, equivalent {:.3}; different {:.3}, significant {:.3}; coverage \
         {covered:.3}; blocks {blocks:.1}",
        rates.faster, rates.equivalent, rates.different, rates.significant
    );
    assert!(covered >= 0.95 && outcome(Outcome::Slower) <= 0.02, "{covered}");
    rates
}

#[test]
fn equal_versions_are_called_different_in_at_most_5_percent_of_the_sequential_experiments() {
    let still = Experiment { drift: 0.0, ..STANDARD };
    for (name, experiment, count) in [
        ("equal, noise 2 %", still, 200),
        ("equal, noise 2 %, drift", STANDARD, 100),
        ("equal, noise 1 %", Experiment { noise: 0.01, ..still }, 100),
    ] {
        let measured = rates(name, experiment, count);
        assert!(
            measured.different <= 0.05 && measured.significant <= 0.06,
            "{}",
            measured.significant
        );
        assert!(measured.equivalent >= 0.9 || experiment.noise > 0.01, "{}", measured.equivalent);
    }
}

#[test]
fn a_difference_is_found_before_the_last_look() {
    for (name, ratio, power_min) in [
        ("20 % faster, noise 2 %", 1.20, 0.99),
        ("5 % faster, noise 2 %", 1.05, 0.95),
        ("3 % faster, noise 2 %", 1.03, 0.75),
    ] {
        let measured = rates(name, Experiment { ratio, ..STANDARD }, 100);
        assert!(measured.faster >= power_min && measured.equivalent <= 0.02, "{}", measured.faster);
    }
}
