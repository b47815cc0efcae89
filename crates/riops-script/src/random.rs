//! The random numbers of pgbench 15 and later, bit for bit: generator, distributions, hashes and permutation.
//!
//! The generator is xoroshiro128** 1.0 (Blackman and Vigna, 2018), seeded by splitmix64.

use std::f64::consts::PI;

const GOLDEN_GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// Returns the next output of splitmix64.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(GOLDEN_GAMMA);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A stream of random numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Random {
    state: [u64; 2],
}

impl Random {
    /// Creates the stream of a seed.
    pub fn new(seed: u64) -> Self {
        let mut seed = seed;
        let state = [split_mix(&mut seed), split_mix(&mut seed)];
        // The generator would return only zeros.
        let state =
            if state == [0, 0] { [0x5851_f42d_4c95_7f2d, 0x1405_7b7e_f767_814f] } else { state };
        Self { state }
    }

    /// Returns the next 64 bits.
    pub fn bits(&mut self) -> u64 {
        let [a, mut b] = self.state;
        let result = a.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        b ^= a;
        self.state = [a.rotate_left(24) ^ b ^ (b << 16), b.rotate_left(37)];
        result
    }

    /// Returns a number from 0 to `range`. Draws nothing if the range is 0.
    pub fn up_to(&mut self, range: u64) -> u64 {
        if range == 0 {
            return 0;
        }
        loop {
            let value = self.bits() >> range.leading_zeros();
            if value <= range {
                return value;
            }
        }
    }

    /// Returns an integer from `low` to `high`.
    pub fn uniform(&mut self, low: i64, high: i64) -> i64 {
        let range = high.wrapping_sub(low).cast_unsigned();
        low.wrapping_add(self.up_to(range).cast_signed())
    }

    /// Returns a number of at least 0 and below 1.
    #[expect(clippy::cast_precision_loss, reason = "52 bits")]
    pub fn fraction(&mut self) -> f64 {
        (self.bits() >> 12) as f64 / (1u64 << 52) as f64
    }

    /// Returns an integer from `low` to `high` with an exponential distribution.
    pub fn exponential(&mut self, low: i64, high: i64, parameter: f64) -> i64 {
        let cut = (-parameter).exp();
        let uniform = 1.0 - self.fraction();
        let share = -(cut + (1.0 - cut) * uniform).ln() / parameter;
        offset(low, high, share)
    }

    /// Returns an integer from `low` to `high` with a normal distribution around their middle.
    pub fn gaussian(&mut self, low: i64, high: i64, parameter: f64) -> i64 {
        // Box and Muller, 1958; of its two values the second is not used.
        let deviation = loop {
            let first = 1.0 - self.fraction();
            let second = 1.0 - self.fraction();
            let deviation = (-2.0 * first.ln()).sqrt() * (2.0 * PI * second).sin();
            if -parameter <= deviation && deviation < parameter {
                break deviation;
            }
        };
        offset(low, high, (deviation + parameter) / (2.0 * parameter))
    }

    /// Returns an integer from `low` to `high` with a Zipfian distribution: the lowest are the most frequent. By
    /// rejection (Devroye, Non-Uniform Random Variate Generation, 1986, page 550).
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        reason = "as in the original"
    )]
    pub fn zipfian(&mut self, low: i64, high: i64, parameter: f64) -> i64 {
        let count = high.wrapping_sub(low).wrapping_add(1);
        if count <= 1 {
            return low;
        }
        let limit = 2.0f64.powf(parameter - 1.0);
        loop {
            let first = self.fraction();
            let second = self.fraction();
            let x = first.powf(-1.0 / (parameter - 1.0)).floor();
            let t = (1.0 + 1.0 / x).powf(parameter - 1.0);
            if second * x * (t - 1.0) / (limit - 1.0) <= t / limit && x <= count as f64 {
                return low.wrapping_sub(1).wrapping_add(x as i64);
            }
        }
    }

    /// Returns the time to the next start of a Poisson process, in microseconds.
    #[expect(clippy::cast_possible_truncation, reason = "as in the original")]
    pub fn poisson_gap_us(&mut self, mean_us: f64) -> i64 {
        let uniform = 1.0 - self.fraction();
        (-uniform.ln() * mean_us + 0.5) as i64
    }
}

/// Returns the integer at a share (0 to 1) of the range from `low` to `high`.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "as in the original"
)]
fn offset(low: i64, high: i64, share: f64) -> i64 {
    let count = high.wrapping_sub(low).wrapping_add(1);
    low.wrapping_add((count as f64 * share) as i64)
}

/// The hash function FNV-1a of the eight bytes of an integer, lowest first.
pub fn fnv1a(value: i64, seed: i64) -> i64 {
    let start = 0xcbf2_9ce4_8422_2325 ^ seed.cast_unsigned();
    let hash = value
        .to_le_bytes()
        .into_iter()
        .fold(start, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    hash.cast_signed()
}

/// The hash function `MurmurHash2`, 64 bits, of one integer.
pub fn murmur2(value: i64, seed: i64) -> i64 {
    const M: u64 = 0xc6a4_a793_5bd1_e995;
    let mix = |word: u64| word ^ (word >> 47);
    // The length of the input times the multiplier.
    let start = seed.cast_unsigned() ^ M.wrapping_mul(8);
    let word = mix(value.cast_unsigned().wrapping_mul(M)).wrapping_mul(M);
    let hash = (start ^ word).wrapping_mul(M);
    mix(mix(hash).wrapping_mul(M)).cast_signed()
}

/// Returns the position of `value`, modulo `size`, in a pseudorandom permutation of the numbers from 0 to `size` − 1.
pub fn permute(value: i64, size: u64, seed: i64) -> i64 {
    const ROUNDS: usize = 6;
    if size == 0 {
        return 0;
    }
    let mut random = Random::new(seed.cast_unsigned());
    let bits = size.ilog2();
    let mask = (1u64 << bits) - 1;
    let mut position = value.cast_unsigned() % size;
    for _ in 0..ROUNDS {
        for reflected in [false, true] {
            let factor = (random.bits() & mask) | 1;
            let change = random.bits() & mask;
            let mut half = if reflected { size - 1 - position } else { position };
            if half <= mask {
                half = (half.wrapping_mul(factor) ^ change) & mask;
                half = ((half << 1) & mask) | (half >> bits.saturating_sub(1));
            }
            position = if reflected { size - 1 - half } else { half };
        }
        let shift = random.up_to(size - 1);
        position = shifted(position, shift, size);
    }
    position.cast_signed()
}

/// Returns the sum of two numbers below `size`, modulo `size`.
fn shifted(position: u64, shift: u64, size: u64) -> u64 {
    let left = size - shift;
    if position >= left { position - left } else { position + shift }
}

#[cfg(test)]
mod tests {
    use super::*;

    // The expected values come from pgbench 15.

    #[test]
    fn the_stream_of_a_seed_is_fixed() {
        let mut random = Random::new(1);
        let numbers = [random.bits(), random.bits(), random.bits()];
        assert_eq!(
            numbers,
            [7_280_431_682_470_476_346, 14_368_974_704_090_626_991, 16_882_196_638_837_869_613]
        );
    }

    /// Returns the stream of client 0.
    fn client(seed: u64) -> Random {
        Random::new(Random::new(seed).bits())
    }

    #[test]
    fn the_distributions_return_the_values_of_pgbench() {
        let mut random = client(5432);
        let values = [
            random.uniform(10, 19),
            random.exponential(100, 199, 10.0),
            random.gaussian(1000, 1999, 10.0),
            random.zipfian(1, 9, 1.3),
        ];
        assert_eq!(values, [17, 104, 1498, 3]);
        let mut random = client(42);
        assert_eq!([0; 3].map(|_| random.uniform(1, 100_000)), [83_532, 83_233, 7_682]);
    }

    #[test]
    fn the_gaps_of_a_rate_match_pgbench() {
        // Client, default seed, choice of script, throttle.
        let mut base = Random::new(7);
        let seeds: Vec<u64> = (0..4).map(|_| base.bits()).collect();
        let mut random = Random::new(seeds[3]);
        let gaps = [0; 5].map(|_| random.poisson_gap_us(1e6 / 50.0));
        assert_eq!(gaps, [4_350, 55_326, 27_359, 6_421, 34_801]);
    }

    #[test]
    fn hashes_match_pgbench() {
        assert_eq!(murmur2(10, 5432), -5_817_877_081_768_721_676);
        assert_eq!(murmur2(1, 0), -8_089_716_718_896_805_586);
        assert_eq!(murmur2(0, 0), 8_217_090_173_679_840_641);
        assert_eq!(fnv1a(10, 5432), -7_793_829_335_365_542_153);
        assert_eq!(fnv1a(1, 0), -8_517_097_267_634_966_620);
    }

    #[test]
    fn a_permutation_matches_pgbench_and_has_every_number_once() {
        let size = i64::MAX as u64 - 10;
        let last = size.cast_signed();
        let permuted = [1, 2, 3].map(|back| permute(last - back, size, 5432));
        assert_eq!(
            permuted,
            [520_382_784_483_822_430, 1_143_715_004_660_802_862, 447_293_596_416_496_998]
        );
        for size in 1..40 {
            let mut all: Vec<i64> =
                (0..size).map(|value| permute(value, size.cast_unsigned(), size)).collect();
            all.sort_unstable();
            assert_eq!(all, (0..size).collect::<Vec<_>>());
            assert_eq!(
                permute(-1, size.cast_unsigned(), 3),
                permute((u64::MAX % size.cast_unsigned()).cast_signed(), size.cast_unsigned(), 3)
            );
        }
    }

    #[test]
    fn a_range_of_one_draws_nothing() {
        let mut random = Random::new(3);
        let before = random.clone();
        assert_eq!((random.uniform(5, 5), random.zipfian(5, 5, 2.0)), (5, 5));
        assert_eq!(random, before);
        random.uniform(i64::MIN, i64::MAX);
        assert_ne!(random, before);
    }
}
