//! Simulated experiments: rates of false and of missed verdicts, with a fixed seed. docs/statistics.md quotes the
//! printed rates.

use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::student::t_test;
use super::{
    Block, ChangeSettings, Direction, Effect, Outcome, Settings, change_points, compare,
    effective_sample_size,
};

/// Bootstrap samples and permutations. Few, because the tests are not optimized.
const RESAMPLES: u32 = 199;
/// Intervals of a simulated run.
const INTERVALS: usize = 60;

/// A simulated experiment.
#[derive(Clone, Copy)]
struct Experiment {
    blocks: usize,
    /// Runs of each side in a block.
    runs: usize,
    /// Logarithm of the true ratio.
    difference: f64,
    /// Standard deviation between runs.
    between_runs: f64,
    /// Change from one run to the next, for all runs.
    drift: f64,
    /// Whether the first run of a block alternates between A and B. Otherwise A is first.
    alternating: bool,
}

const STANDARD: Experiment = Experiment {
    blocks: 8,
    runs: 1,
    difference: 0.0,
    between_runs: 0.02,
    drift: 0.003,
    alternating: true,
};

/// The rates of the intervals of all runs, by block.
struct Measured {
    a: Vec<Vec<f64>>,
    b: Vec<Vec<f64>>,
}

fn noise(rng: &mut Xoshiro256PlusPlus) -> f64 {
    StandardNormal.sample(rng)
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

impl Experiment {
    /// Simulates the intervals of all runs: noise of 2 % with a correlation of 0.7 between neighbors, around the
    /// level of the run.
    fn measure(&self, rng: &mut Xoshiro256PlusPlus) -> Vec<Measured> {
        let mut position = 0.0;
        let mut run = |log_ratio: f64, rng: &mut Xoshiro256PlusPlus| {
            position += 1.0;
            let level = log_ratio + self.drift * position + self.between_runs * noise(rng);
            let mut deviation = 0.02 * noise(rng);
            let interval = |_| {
                deviation = 0.7 * deviation + 0.02 * (1.0_f64 - 0.49).sqrt() * noise(rng);
                50_000.0 * (level + deviation).exp()
            };
            (0..INTERVALS).map(interval).collect::<Vec<f64>>()
        };
        let block = |block: usize| {
            let mut measured = Measured { a: Vec::new(), b: Vec::new() };
            for _ in 0..self.runs {
                if self.alternating && block % 2 == 1 {
                    measured.b.push(run(self.difference, rng));
                    measured.a.push(run(0.0, rng));
                } else {
                    measured.a.push(run(0.0, rng));
                    measured.b.push(run(self.difference, rng));
                }
            }
            measured
        };
        (0..self.blocks).map(block).collect()
    }
}

/// Returns three figures: throughput, mean latency (its inverse, with noise), and a p99 of B that has no true
/// difference.
fn figures(
    measured: &[Measured],
    difference: f64,
    rng: &mut Xoshiro256PlusPlus,
) -> Vec<(Direction, Vec<Block>)> {
    let of = |value: &mut dyn FnMut(f64, f64) -> f64| -> Vec<Block> {
        let mut side = |runs: &[Vec<f64>], difference: f64| {
            runs.iter().map(|run| value(mean(run), difference)).collect()
        };
        let block = |block: &Measured| {
            let a = side(&block.a, 0.0);
            Block { a, b: side(&block.b, difference) }
        };
        measured.iter().map(block).collect()
    };
    let throughput = of(&mut |rate, _| rate);
    let latency = of(&mut |rate, _| 1e6 / rate * (0.002 * noise(rng)).exp());
    let p99 = of(&mut |rate, difference| 4e6 / rate * (difference + 0.04 * noise(rng)).exp());
    vec![
        (Direction::HigherIsBetter, throughput),
        (Direction::LowerIsBetter, latency),
        (Direction::LowerIsBetter, p99),
    ]
}

fn settings(seed: u64) -> Settings {
    Settings { resamples: RESAMPLES, seed, ..Settings::default() }
}

/// Compares `count` simulated experiments.
fn simulate(experiment: Experiment, count: u64) -> Vec<Vec<Effect>> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(18);
    let compared = |seed| {
        let measured = experiment.measure(&mut rng);
        let figures = figures(&measured, experiment.difference, &mut rng);
        compare(&figures, &settings(seed)).into_iter().map(Result::unwrap).collect()
    };
    (0..count).map(compared).collect()
}

/// Returns the share of experiments that fulfill a condition.
fn share(experiments: &[Vec<Effect>], condition: impl Fn(&[Effect]) -> bool) -> f64 {
    let count = experiments.iter().filter(|effects| condition(effects)).count();
    count as f64 / experiments.len() as f64
}

fn differs(effect: &Effect) -> bool {
    matches!(effect.outcome, Outcome::Faster | Outcome::Slower)
}

fn covers(effect: &Effect, ratio: f64) -> bool {
    effect.interval.is_some_and(|interval| interval.low <= ratio && ratio <= interval.high)
}

#[test]
fn equal_versions_are_called_different_in_at_most_5_percent_of_the_experiments() {
    for blocks in [6, 8] {
        let experiments = simulate(Experiment { blocks, ..STANDARD }, 500);
        let any = share(&experiments, |effects| effects.iter().any(differs));
        let first = share(&experiments, |effects| differs(&effects[0]));
        let coverage = share(&experiments, |effects| covers(&effects[0], 1.0));
        println!(
            "A/A, {blocks} blocks: different in any of 3 figures {any:.3}, in the first {first:.3}; coverage \
             {coverage:.3}"
        );
        assert!(any <= 0.05, "{any}");
        assert!(coverage >= 0.93, "{coverage}");
    }
}

#[test]
fn a_difference_of_5_percent_is_found_in_at_least_80_percent_of_the_experiments() {
    for (blocks, power_min) in [(6, 0.4), (8, 0.8)] {
        let difference = 1.05_f64.ln();
        let experiments = simulate(Experiment { blocks, difference, ..STANDARD }, 500);
        let faster = share(&experiments, |effects| effects[0].outcome == Outcome::Faster);
        let latency = share(&experiments, |effects| effects[1].outcome == Outcome::Faster);
        let wrong = share(&experiments, |effects| {
            differs(&effects[2]) || effects.iter().any(|effect| effect.outcome == Outcome::Slower)
        });
        let coverage = share(&experiments, |effects| covers(&effects[0], 1.05));
        println!(
            "true difference 5 %, {blocks} blocks: throughput faster {faster:.3}, latency {latency:.3}, wrong \
             {wrong:.3}; coverage {coverage:.3}"
        );
        assert!(faster >= power_min, "{faster}");
        assert!(wrong <= 0.05, "{wrong}");
        assert!(coverage >= 0.93, "{coverage}");
    }
}

#[test]
fn a_large_difference_is_found_in_all_figures_with_six_blocks() {
    let difference = 1.5_f64.ln();
    let experiments = simulate(Experiment { blocks: 6, difference, ..STANDARD }, 100);
    let both = share(&experiments, |effects| {
        effects[0].outcome == Outcome::Faster && effects[1].outcome == Outcome::Faster
    });
    println!("true difference 50 %, 6 blocks: throughput and latency faster {both:.3}");
    assert_eq!(both, 1.0);
}

#[test]
fn a_difference_of_the_smallest_relevant_size_is_rarely_called_equivalent() {
    for blocks in [6, 8, 12] {
        let quiet = Experiment { blocks, between_runs: 0.005, drift: 0.0, ..STANDARD };
        let equal = simulate(quiet, 200);
        let equivalent = share(&equal, |effects| effects[0].outcome == Outcome::Equivalent);
        let at_limit = simulate(Experiment { difference: 1.02_f64.ln(), ..quiet }, 300);
        let wrong = share(&at_limit, |effects| effects[0].outcome == Outcome::Equivalent);
        println!(
            "variation 0.5 %, {blocks} blocks: equivalent {equivalent:.3} without a difference, {wrong:.3} at a \
             difference of 2 %"
        );
        assert!(wrong <= 0.05, "{wrong}");
        assert!(equivalent >= 0.6, "{equivalent}");
    }
}

#[test]
fn one_block_of_several_runs_keeps_the_rates() {
    for runs in [5, 8] {
        let one_block = Experiment { blocks: 1, runs, drift: 0.0, ..STANDARD };
        let experiments = simulate(one_block, 300);
        let any = share(&experiments, |effects| effects.iter().any(differs));
        let coverage = share(&experiments, |effects| covers(&effects[0], 1.0));
        println!("A/A, {runs} runs each in one block: different {any:.3}; coverage {coverage:.3}");
        assert!(any <= 0.06 && coverage >= 0.93, "{any} {coverage}");
    }
}

/// The two mistakes that the method avoids.
#[test]
fn intervals_as_units_and_runs_that_are_not_interleaved_give_false_differences() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(18);
    let mut by_interval = 0;
    for _ in 0..200 {
        let measured = STANDARD.measure(&mut rng);
        let all = |side: fn(&Measured) -> &Vec<Vec<f64>>| {
            measured.iter().flat_map(side).flatten().copied().collect::<Vec<f64>>()
        };
        by_interval += u32::from(t_test(&all(|block| &block.a), &all(|block| &block.b)) < 0.05);
    }
    let by_interval = f64::from(by_interval) / 200.0;
    let mut not_interleaved = 0;
    for seed in 0..200 {
        let eight = Experiment { blocks: 16, drift: 0.003, alternating: false, ..STANDARD };
        let runs: Vec<f64> =
            eight.measure(&mut rng).iter().map(|block| mean(&block.a[0])).collect();
        let block = Block { a: runs[..8].to_vec(), b: runs[8..].to_vec() };
        let effect = compare(&[(Direction::HigherIsBetter, vec![block])], &settings(seed));
        not_interleaved += u32::from(differs(effect[0].as_ref().unwrap()));
    }
    let not_interleaved = f64::from(not_interleaved) / 200.0;
    println!(
        "A/A, t-test of the intervals: different {by_interval:.3}; 8 runs of A before 8 of B, with drift: \
         different {not_interleaved:.3}"
    );
    assert!(by_interval > 0.3 && not_interleaved > 0.3, "{by_interval} {not_interleaved}");
}

#[test]
fn effective_values_of_a_simulated_run_match_its_correlation() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(18);
    let shares: Vec<f64> = (0..200)
        .map(|_| {
            let measured = Experiment { blocks: 1, ..STANDARD }.measure(&mut rng);
            effective_sample_size(&measured[0].a[0]) / INTERVALS as f64
        })
        .collect();
    println!(
        "effective share of 60 intervals with a correlation of 0.7: {:.3}, true 0.176",
        mean(&shares)
    );
    assert!((0.13..0.30).contains(&mean(&shares)), "{}", mean(&shares));
}

/// Returns a series of runs with noise of 2 %, and a shift of 5 % from `shift` on.
fn runs(length: usize, shift: Option<usize>, rng: &mut Xoshiro256PlusPlus) -> Vec<f64> {
    let level = |at| if shift.is_some_and(|shift| at >= shift) { 0.95 } else { 1.0 };
    (0..length).map(|at| 1000.0 * level(at) * (1.0 + 0.02 * noise(rng))).collect()
}

#[test]
fn a_shift_of_5_percent_is_found_within_two_runs_in_90_percent_of_the_series() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(18);
    for length in [20, 40, 100] {
        let mut found = 0;
        let mut only = 0;
        for _ in 0..200 {
            // Anywhere in the middle half.
            let shift = rng.random_range(length / 4..=length * 3 / 4);
            let points =
                change_points(&runs(length, Some(shift), &mut rng), &ChangeSettings::default());
            let near = points.iter().filter(|point| point.index.abs_diff(shift) <= 2).count();
            found += u32::from(near > 0);
            only += u32::from(near > 0 && points.len() == 1);
        }
        println!(
            "shift of 5 % in {length} runs: found {found} of 200, without any other change {only}"
        );
        assert!(found >= 180, "{found} of 200 with {length} runs");
    }
}

#[test]
fn no_change_is_found_in_95_percent_of_the_series_without_a_shift() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(18);
    for length in [20, 40, 100] {
        let none = |_: &usize| {
            change_points(&runs(length, None, &mut rng), &ChangeSettings::default()).is_empty()
        };
        let none = (0..200).filter(none).count();
        println!("no shift in {length} runs: no change in {none} of 200");
        assert!(none >= 190, "{none} of 200 with {length} runs");
    }
}
