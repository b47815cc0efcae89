//! Selection of keys: permutations of all keys, and random ranges.
//!
//! Pure and reproducible: all random numbers are derived from a seed.

use rand::distr::Distribution as _;
use rand::{RngExt, SeedableRng};
use rand_distr::Zipf;
use rand_xoshiro::Xoshiro256PlusPlus;

use riops_model::plan::Distribution;

/// Purposes of random numbers. Each has a separate stream, so drawing more numbers from one stream does not
/// change the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Positions of the keys in the table.
    Placement,
    /// Contents of the column `scratch`.
    Scratch,
    /// Ranges that a session reads or updates.
    Ranges,
    /// Popularity of the keys.
    Popularity,
    /// Start times of a worker's transactions.
    Arrivals,
    /// Delays of a session before a retry.
    Backoff,
    /// Texts that a session writes.
    Texts,
}

/// Returns the random stream for a purpose and an index (of a table or a session), derived from `seed`.
pub fn stream(seed: u64, purpose: Purpose, index: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(mix(mix(mix(seed) ^ (purpose as u64 + 1)) ^ index))
}

/// The increment of `SplitMix64`: 2^64 divided by the golden ratio.
pub(crate) const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finalizer of `SplitMix64` (Steele, Lea, Flood: "Fast splittable pseudorandom number
/// generators", 2014): every bit of the input changes about half of the output.
pub(crate) fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(GOLDEN_GAMMA);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Rounds of the Feistel network. A permutation with four rounds cannot be distinguished from a random one by
/// simple statistics (Luby and Rackoff, 1988).
const ROUNDS: u64 = 4;

/// A pseudo-random permutation of 0…n−1 that needs no memory: a Feistel network over the next even
/// number of bits, applied repeatedly until the result is below n.
#[derive(Debug, Clone, Copy)]
pub struct Permutation {
    count: u64,
    half_bits: u32,
    seed: u64,
}

impl Permutation {
    /// Creates a permutation of `count` numbers.
    pub fn new(count: u64, seed: u64) -> Self {
        let bits = u64::BITS - count.saturating_sub(1).leading_zeros();
        Self { count, half_bits: bits.div_ceil(2).max(1), seed }
    }

    /// Returns the image of `position`, which must be below the count. It takes at most four steps on average
    /// because the network covers less than four times the count.
    pub fn get(&self, position: u64) -> u64 {
        let mut value = self.network(position);
        while value >= self.count {
            value = self.network(value);
        }
        value
    }

    fn network(&self, value: u64) -> u64 {
        let mask = (1u64 << self.half_bits) - 1;
        let (mut left, mut right) = (value >> self.half_bits, value & mask);
        for round in 0..ROUNDS {
            let next = left ^ (mix(right ^ self.seed.rotate_left(13) ^ (round << 59)) & mask);
            (left, right) = (right, next);
        }
        (left << self.half_bits) | right
    }
}

/// Draws the first key of a range of `batch` keys from 1…rows. Every range within the keys can occur.
#[derive(Debug, Clone)]
pub struct RangePicker {
    /// Number of possible first keys, 1…starts.
    starts: u64,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Uniform,
    Zipfian { ranks: Zipf<f64>, keys: Permutation },
    Hotspot { hot: u64, probability: f64 },
    Special { width: u64, probability: f64, draws: u32 },
    Gaussian { draws: u32 },
    Pareto { power: f64 },
}

impl RangePicker {
    /// Creates a picker for ranges of `batch` keys; `batch` is between 1 and `rows`.
    pub fn new(distribution: Distribution, rows: u64, batch: u64, seed: u64) -> Self {
        let starts = rows.saturating_sub(batch) + 1;
        let kind = match distribution {
            Distribution::Uniform => Kind::Uniform,
            Distribution::Special { keys_percent, accesses_percent, draws } => Kind::Special {
                width: share(starts, f64::from(keys_percent) / 100.0),
                probability: f64::from(accesses_percent) / 100.0,
                draws,
            },
            Distribution::Gaussian { draws } => Kind::Gaussian { draws },
            // A uniform number raised to this power is below h with the probability 1 − h.
            Distribution::Pareto { h } => Kind::Pareto { power: h.ln() / (1.0 - h).ln() },
            Distribution::Zipfian { theta } => match Zipf::new(starts as f64, theta) {
                Ok(ranks) => Kind::Zipfian {
                    ranks,
                    keys: Permutation::new(starts, mix(seed ^ Purpose::Popularity as u64)),
                },
                // Zipf rejects only a negative θ and zero keys, which the plan has already rejected.
                Err(_) => Kind::Uniform,
            },
            Distribution::Hotspot { keys_percent, accesses_percent } => Kind::Hotspot {
                hot: share(starts, keys_percent / 100.0),
                probability: accesses_percent / 100.0,
            },
        };
        Self { starts, kind }
    }

    /// Returns the key at a relative position from 0 to 1.
    fn at(&self, position: f64) -> u64 {
        integer_part(self.starts as f64 * position).min(self.starts - 1) + 1
    }

    /// Draws the first key of the next range.
    #[inline]
    pub fn pick(&self, rng: &mut Xoshiro256PlusPlus) -> u64 {
        match &self.kind {
            Kind::Uniform => rng.random_range(1..=self.starts),
            Kind::Special { width, probability, .. } if rng.random_bool(*probability) => {
                (self.starts - width) / 2 + rng.random_range(1..=*width)
            }
            Kind::Special { draws, .. } | Kind::Gaussian { draws } => {
                let sum: f64 = (0..*draws).map(|_| rng.random::<f64>()).sum();
                self.at(sum / f64::from(*draws))
            }
            Kind::Pareto { power } => self.at(rng.random::<f64>().powf(*power)),
            Kind::Zipfian { ranks, keys } => {
                1 + keys.get(integer_part(ranks.sample(rng)).clamp(1, self.starts) - 1)
            }
            Kind::Hotspot { hot, probability } => {
                let cold = self.starts - hot;
                if cold == 0 || rng.random_bool(*probability) {
                    rng.random_range(1..=*hot)
                } else {
                    hot + rng.random_range(1..=cold)
                }
            }
        }
    }
}

/// Returns a fraction of `count`, rounded, at least 1 and at most `count`.
fn share(count: u64, fraction: f64) -> u64 {
    integer_part((count as f64 * fraction).round()).clamp(1, count)
}

/// Returns the integer part of a value that is not negative.
#[inline]
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
pub(super) fn integer_part(value: f64) -> u64 {
    value as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn a_permutation_contains_every_number_once(count in 1u64..3_000, seed in any::<u64>()) {
            let permutation = Permutation::new(count, seed);
            let mut numbers: Vec<_> = (0..count).map(|position| permutation.get(position)).collect();
            numbers.sort_unstable();
            prop_assert!(numbers.iter().copied().eq(0..count));
        }

        #[test]
        fn every_picked_range_lies_within_the_keys(
            rows in 1u64..5_000,
            part in 0.0f64..1.0,
            seed in any::<u64>(),
            kind in 0..6,
        ) {
            let batch = share(rows, part);
            let distribution = match kind {
                0 => Distribution::Uniform,
                1 => Distribution::Zipfian { theta: 0.99 },
                2 => Distribution::SPECIAL,
                3 => Distribution::GAUSSIAN,
                4 => Distribution::PARETO,
                _ => Distribution::Hotspot { keys_percent: 20.0, accesses_percent: 80.0 },
            };
            let picker = RangePicker::new(distribution, rows, batch, seed);
            let mut rng = stream(seed, Purpose::Ranges, 0);
            for _ in 0..100 {
                let first = picker.pick(&mut rng);
                prop_assert!(first >= 1 && first + batch - 1 <= rows);
            }
        }
    }

    fn frequencies(distribution: Distribution, rows: u64, batch: u64) -> BTreeMap<u64, u32> {
        let picker = RangePicker::new(distribution, rows, batch, 7);
        let mut rng = stream(7, Purpose::Ranges, 0);
        let mut counts = BTreeMap::new();
        for _ in 0..20_000 {
            *counts.entry(picker.pick(&mut rng)).or_insert(0) += 1;
        }
        counts
    }

    #[test]
    fn uniform_draws_every_range_equally_often() {
        let counts = frequencies(Distribution::Uniform, 10, 3);
        assert!(counts.keys().copied().eq(1..=8));
        // 20,000 draws over 8 ranges: 2,500 each, standard deviation 47; six of those.
        assert!(counts.values().all(|&count| count.abs_diff(2_500) < 285), "{counts:?}");
        let single_range = frequencies(Distribution::Uniform, 10, 10);
        assert!(single_range.keys().copied().eq([1]));
    }

    #[test]
    fn a_hotspot_gets_its_share_of_the_accesses() {
        let distribution = Distribution::Hotspot { keys_percent: 20.0, accesses_percent: 80.0 };
        let counts = frequencies(distribution, 100, 1);
        let hot: u32 = counts.range(1..=20).map(|(_, count)| count).sum();
        // 16,000 expected, standard deviation 57; six of those.
        assert!(hot.abs_diff(16_000) < 340, "{hot}");
        assert_eq!(counts.len(), 100);
    }

    #[test]
    fn sysbench_distributions_have_the_expected_shares() {
        let within = |distribution, keys: std::ops::RangeInclusive<u64>| {
            let counts = frequencies(distribution, 1_000, 1);
            f64::from(counts.range(keys).map(|(_, count)| count).sum::<u32>()) / 20_000.0
        };
        // 75 % of the draws plus 4.8 % of the others fall on the ten keys in the middle: the mean of twelve
        // has a standard deviation of 83 keys. The standard deviation of the share is 0.3 %.
        let special = within(Distribution::SPECIAL, 496..=505);
        assert!((special - 0.762).abs() < 0.02, "{special}");
        let gaussian = within(Distribution::GAUSSIAN, 418..=583);
        assert!((gaussian - 0.68).abs() < 0.02, "{gaussian}");
        let pareto = within(Distribution::PARETO, 1..=200);
        assert!((pareto - 0.8).abs() < 0.02, "{pareto}");
    }

    #[test]
    fn zipfian_frequencies_follow_the_power_law() {
        let frequencies_by_key = frequencies(Distribution::Zipfian { theta: 1.0 }, 1_000, 1);
        let mut counts: Vec<_> = frequencies_by_key.values().copied().collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        // The first rank gets 1/H(1000) = 13.4 % of the draws, the second rank half of that.
        let (first, second) = (f64::from(counts[0]), f64::from(counts[1]));
        assert!((first / 20_000.0 - 0.134).abs() < 0.015, "{first}");
        assert!((first / second - 2.0).abs() < 0.3, "{first} {second}");
    }

    #[test]
    fn streams_are_reproducible_and_differ_by_seed_purpose_and_index() {
        let draw = |seed, purpose, index| stream(seed, purpose, index).random::<u64>();
        let first = draw(1, Purpose::Ranges, 0);
        assert_eq!(first, draw(1, Purpose::Ranges, 0));
        assert_ne!(first, draw(1, Purpose::Ranges, 1));
        assert_ne!(first, draw(1, Purpose::Scratch, 0));
        assert_ne!(first, draw(2, Purpose::Ranges, 0));
    }
}
