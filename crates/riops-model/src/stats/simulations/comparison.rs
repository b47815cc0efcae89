//! Simulated comparisons.

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::noise;
use crate::stats::summary::t_test;
use crate::stats::{
    Block, Direction, Effect, Outcome, Settings, compare, effective_sample_size, of_best,
};

/// Bootstrap samples and permutations. Few, because the tests are not optimized.
const RESAMPLES: u32 = 199;
/// Bootstrap samples where limits far out decide.
const RESAMPLES_FAR: u32 = 1_999;
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
    let blocks_of = |value: &mut dyn FnMut(f64, f64) -> f64| -> Vec<Block> {
        let mut side = |runs: &[Vec<f64>], difference: f64| {
            runs.iter().map(|run| value(mean(run), difference)).collect()
        };
        let block = |block: &Measured| {
            let a = side(&block.a, 0.0);
            Block { a, b: side(&block.b, difference) }
        };
        measured.iter().map(block).collect()
    };
    let throughput = blocks_of(&mut |rate, _| rate);
    let latency = blocks_of(&mut |rate, _| 1e6 / rate * (0.002 * noise(rng)).exp());
    let p99 =
        blocks_of(&mut |rate, difference| 4e6 / rate * (difference + 0.04 * noise(rng)).exp());
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
    simulate_first(experiment, count, 3, RESAMPLES)
}

/// The same for the first figures, with this number of bootstrap samples.
fn simulate_first(
    experiment: Experiment,
    count: u64,
    first: usize,
    resamples: u32,
) -> Vec<Vec<Effect>> {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(18);
    let compared = |seed| {
        let measured = experiment.measure(&mut rng);
        let mut figures = figures(&measured, experiment.difference, &mut rng);
        figures.truncate(first);
        let settings = Settings { resamples, ..settings(seed) };
        compare(&figures, &settings).into_iter().map(Result::unwrap).collect()
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

/// Blocks that are too few to show a difference are compared as one.
#[test]
fn few_blocks_keep_the_rate_of_false_differences() {
    for blocks in [4, 5] {
        let experiments = simulate(Experiment { blocks, ..STANDARD }, 500);
        let any = share(&experiments, |effects| effects.iter().any(differs));
        let coverage = share(&experiments, |effects| covers(&effects[0], 1.0));
        println!(
            "A/A, {blocks} rounds: different in any of 3 figures {any:.3}; coverage {coverage:.3}"
        );
        assert!(any <= 0.05 && coverage >= 0.93, "{any} {coverage}");
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
    println!("true difference 50 %, 6 rounds: throughput and latency faster {both:.3}");
    assert_eq!(both, 1.0);
}

#[test]
fn a_difference_of_the_smallest_relevant_size_is_rarely_called_equivalent() {
    // With six blocks, the level for skewed differences costs a third of the power.
    for (blocks, least) in [(6, 0.4), (8, 0.8)] {
        let quiet = Experiment { blocks, between_runs: 0.005, drift: 0.0, ..STANDARD };
        // The limits of a cautious interval are far out in the bootstrap distribution.
        let equal = simulate_first(quiet, 200, 1, RESAMPLES_FAR);
        let equivalent = share(&equal, |effects| effects[0].outcome == Outcome::Equivalent);
        let at_limit = Experiment { difference: 1.02_f64.ln(), ..quiet };
        let at_limit = simulate_first(at_limit, 300, 1, RESAMPLES_FAR);
        let wrong = share(&at_limit, |effects| effects[0].outcome == Outcome::Equivalent);
        println!(
            "variation 0.5 %, {blocks} blocks: equivalent {equivalent:.3} without a difference, {wrong:.3} at a \
             difference of 2 %"
        );
        assert!(wrong <= 0.05, "{wrong}");
        assert!(equivalent >= least, "{equivalent}");
    }
}

/// Now and then a run of A is much slower or faster, and most experiments do not show it.
#[test]
fn skewed_differences_of_the_smallest_relevant_size_are_rarely_called_equivalent() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(18);
    for blocks in [6, 8, 12] {
        let mut wrong = 0;
        for seed in 0..600 {
            let pair = |_| {
                let skewed = -rng.random::<f64>().max(1e-9).ln() - 1.0;
                Block { a: vec![1.0], b: vec![(1.02_f64.ln() + 0.003 * skewed).exp()] }
            };
            let pairs = (0..blocks).map(pair).collect();
            let settings = Settings { resamples: RESAMPLES_FAR, ..settings(seed) };
            let effect = compare(&[(Direction::HigherIsBetter, pairs)], &settings).remove(0);
            wrong += u32::from(effect.unwrap().outcome == Outcome::Equivalent);
        }
        let wrong = f64::from(wrong) / 600.0;
        println!("skewed, {blocks} rounds: equivalent {wrong:.3} at a difference of 2 %");
        // Three standard errors above 0.05.
        assert!(wrong <= 0.077, "{wrong}");
    }
}

#[test]
fn equivalence_needs_as_many_blocks_as_a_difference() {
    let equal = |blocks| vec![Block { a: vec![100.0], b: vec![100.0] }; blocks];
    let outcome = |blocks| {
        let figures = [(Direction::HigherIsBetter, equal(blocks))];
        compare(&figures, &settings(1)).remove(0).unwrap().outcome
    };
    // Pairs in three blocks, whose interval has no length, cannot show a difference.
    assert_eq!((outcome(3), outcome(6)), (Outcome::Inconclusive, Outcome::Equivalent));
}

/// Chance favors the best of ten equal versions most.
#[test]
fn the_best_of_equal_versions_is_seldom_called_different() {
    const VERSIONS: usize = 10;
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(18);
    let (mut alone, mut of_all) = (0, 0);
    for seed in 0..300 {
        let baseline: Vec<f64> = (0..8).map(|_| (0.02 * noise(&mut rng)).exp()).collect();
        let mut version = || -> Vec<Block> {
            let pair = |a: &f64| Block { a: vec![*a], b: vec![(0.02 * noise(&mut rng)).exp()] };
            baseline.iter().map(pair).collect()
        };
        let versions: Vec<Vec<Block>> = (0..VERSIONS).map(|_| version()).collect();
        let level = |blocks: &Vec<Block>| blocks.iter().map(|block| block.b[0].ln()).sum::<f64>();
        let best =
            versions.iter().max_by(|one, other| level(one).total_cmp(&level(other))).unwrap();
        let direction = Direction::HigherIsBetter;
        let settings = Settings { resamples: RESAMPLES_FAR, ..settings(seed) };
        let effect = compare(&[(direction, best.clone())], &settings).remove(0).unwrap();
        alone += u32::from(effect.outcome == Outcome::Faster);
        let interval = of_best(effect.interval.unwrap(), best, VERSIONS, &settings);
        let outcome = Outcome::read(interval, settings.effect, direction);
        of_all += u32::from(outcome == Outcome::Faster);
    }
    let [alone, of_all] = [alone, of_all].map(|count| f64::from(count) / 300.0);
    println!("best of {VERSIONS} equal versions: faster {alone:.3} alone, {of_all:.3} among all");
    assert!(alone > 0.1 && of_all <= 0.05, "{alone} {of_all}");
}

#[test]
fn one_block_of_several_runs_keeps_the_rates() {
    for runs in [4, 5] {
        let one_block = Experiment { blocks: 1, runs, drift: 0.0, ..STANDARD };
        let experiments = simulate(one_block, 300);
        let any = share(&experiments, |effects| effects.iter().any(differs));
        let coverage = share(&experiments, |effects| covers(&effects[0], 1.0));
        println!("A/A, {runs} runs each in one round: different {any:.3}; coverage {coverage:.3}");
        assert!(any <= 0.06 && coverage >= 0.92, "{any} {coverage}");
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
        by_interval +=
            u32::from(t_test(&all(|block| &block.a), &all(|block| &block.b), 0.0) < 0.05);
    }
    let by_interval = f64::from(by_interval) / 200.0;
    let mut not_interleaved = 0;
    for seed in 0..200 {
        let ten = Experiment { blocks: 10, drift: 0.003, alternating: false, ..STANDARD };
        let runs: Vec<f64> = ten.measure(&mut rng).iter().map(|block| mean(&block.a[0])).collect();
        let block = Block { a: runs[..5].to_vec(), b: runs[5..].to_vec() };
        let effect = compare(&[(Direction::HigherIsBetter, vec![block])], &settings(seed));
        not_interleaved += u32::from(differs(effect[0].as_ref().unwrap()));
    }
    let not_interleaved = f64::from(not_interleaved) / 200.0;
    println!(
        "A/A, t-test of the intervals: different {by_interval:.3}; 5 runs of A before 5 of B, with drift: \
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

/// Returns the 95 % percentile interval of the mean, from 499 resamples.
fn percentile_interval(values: &[f64], rng: &mut Xoshiro256PlusPlus) -> (f64, f64) {
    let mut resample = || {
        let drawn = values.iter().map(|_| values[rng.random_range(0..values.len())]);
        mean(&drawn.collect::<Vec<f64>>())
    };
    let mut means: Vec<f64> = (0..499).map(|_| resample()).collect();
    means.sort_by(f64::total_cmp);
    (means[12], means[486])
}

/// Why the interval is not the common percentile interval.
#[test]
fn the_interval_covers_the_true_ratio_more_often_than_the_percentile_interval() {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(18);
    for blocks in [6, 8] {
        for (name, skewed) in [("normal", false), ("skewed", true)] {
            let (mut of_percentiles, mut of_riops) = (0, 0);
            for seed in 0..300 {
                // Skewed: now and then a run of A is much slower, so that the ratio is much larger.
                let difference = |rng: &mut Xoshiro256PlusPlus| {
                    if skewed {
                        0.03 * (-rng.random::<f64>().max(1e-9).ln() - 1.0)
                    } else {
                        0.03 * noise(rng)
                    }
                };
                let differences: Vec<f64> = (0..blocks).map(|_| difference(&mut rng)).collect();
                let (low, high) = percentile_interval(&differences, &mut rng);
                of_percentiles += u32::from(low <= 0.0 && 0.0 <= high);
                let pair = |difference: &f64| Block { a: vec![1.0], b: vec![difference.exp()] };
                let pairs = differences.iter().map(pair).collect();
                let effect = compare(&[(Direction::HigherIsBetter, pairs)], &settings(seed));
                of_riops += u32::from(covers(effect[0].as_ref().unwrap(), 1.0));
            }
            let [of_percentiles, of_riops] =
                [of_percentiles, of_riops].map(|count| f64::from(count) / 300.0);
            println!(
                "95 % interval, {blocks} blocks, {name}: coverage {of_riops:.3}; percentile interval \
                 {of_percentiles:.3}"
            );
            assert!(of_riops > of_percentiles, "{of_percentiles}");
            assert!(of_riops >= if skewed { 0.85 } else { 0.93 }, "{of_riops}");
        }
    }
}
