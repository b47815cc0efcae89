//! Simulated A/B experiments that may stop early.

use rand::SeedableRng;
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
        for number in 0..blocks {
            let mut of_block = [Block::default(), Block::default(), Block::default()];
            for at in 0..4 {
                // A, B, B, A in even blocks, and B, A, A, B in odd ones.
                let is_b = (at == 1 || at == 2) == (number % 2 == 0);
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

    /// Returns the last look of each simulated experiment, and its number of blocks.
    fn simulate(&self, count: u64) -> Vec<(Look, u32)> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(19);
        let one = |seed| {
            let settings = SequentialSettings { resamples: 499, seed, ..Default::default() };
            let figures = self.figures(settings.blocks_max, &mut rng);
            let mut number = 1;
            loop {
                let blocks = settings.blocks_at(number);
                let first = |blocks_of: &Vec<Block>| blocks_of[..blocks as usize].to_vec();
                let so_far: Vec<(Direction, Vec<Block>)> =
                    figures.iter().map(|(direction, all)| (*direction, first(all))).collect();
                let found = look(&so_far, number, &settings);
                if matches!(found.decision, Decision::Stop(_)) {
                    return (found, blocks);
                }
                number += 1;
            }
        };
        (0..count).map(one).collect()
    }
}

fn share(looks: &[(Look, u32)], condition: impl Fn(&Look) -> bool) -> f64 {
    looks.iter().filter(|(look, _)| condition(look)).count() as f64 / looks.len() as f64
}

fn blocks(looks: &[(Look, u32)]) -> f64 {
    looks.iter().map(|(_, blocks)| f64::from(*blocks)).sum::<f64>() / looks.len() as f64
}

fn differs(effect: &Effect) -> bool {
    matches!(effect.outcome, Outcome::Faster | Outcome::Slower)
}

/// Prints and returns the shares of faster, of slower, of equivalent, and of a difference in any figure.
fn rates(name: &str, experiment: Experiment, count: u64) -> [f64; 4] {
    let looks = experiment.simulate(count);
    let outcome = |outcome| share(&looks, |look| look.decision == Decision::Stop(outcome));
    let [faster, slower, equivalent] =
        [Outcome::Faster, Outcome::Slower, Outcome::Equivalent].map(outcome);
    let any = share(&looks, |look| look.effects.iter().flatten().any(differs));
    let covered = share(&looks, |look| {
        let interval = look.effects[0].as_ref().unwrap().interval.unwrap();
        interval.low <= experiment.ratio && experiment.ratio <= interval.high
    });
    println!(
        "A/B, {name}: faster {faster:.3}, slower {slower:.3}, equivalent {equivalent:.3}; different in any of 3 \
         figures {any:.3}; mean blocks {:.1}; coverage {covered:.3}",
        blocks(&looks)
    );
    assert!(covered >= 0.95, "{covered}");
    [faster, slower, equivalent, any]
}

#[test]
fn equal_versions_are_called_different_in_at_most_5_percent_of_the_sequential_experiments() {
    let still = Experiment { drift: 0.0, ..STANDARD };
    let [.., any] = rates("equal, noise 2 %", still, 300);
    assert!(any <= 0.05, "{any}");
    let [.., any] = rates("equal, noise 2 %, drift", STANDARD, 150);
    assert!(any <= 0.05, "{any}");
    let [_, _, equivalent, any] =
        rates("equal, noise 1 %", Experiment { noise: 0.01, ..still }, 150);
    assert!(any <= 0.05 && equivalent >= 0.9, "{any} {equivalent}");
}

#[test]
fn a_difference_is_found_before_the_last_look() {
    let faster = |ratio| Experiment { ratio, ..STANDARD };
    for (name, ratio, power_min) in [
        ("20 % faster, noise 2 %", 1.20, 0.99),
        ("5 % faster, noise 2 %", 1.05, 0.95),
        ("3 % faster, noise 2 %", 1.03, 0.75),
    ] {
        let [faster, slower, equivalent, _] = rates(name, faster(ratio), 150);
        assert!(
            faster >= power_min && slower + equivalent <= 0.02,
            "{faster} {slower} {equivalent}"
        );
    }
}
