//! The texts of sysbench: groups of eleven random digits, separated by dashes.

use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// Length of `c`, ten groups, in characters.
pub(super) const C: usize = 119;
/// Length of `pad`, five groups, in characters.
pub(super) const PAD: usize = 59;

const GROUP: usize = 11;
/// All pairs of digits.
const PAIRS: [[u8; 2]; 100] = pairs();

#[expect(
    clippy::cast_possible_truncation,
    clippy::indexing_slicing,
    reason = "evaluated at compile time, with numbers below 100"
)]
const fn pairs() -> [[u8; 2]; 100] {
    let mut pairs = [[0; 2]; 100];
    let mut value = 0;
    while value < pairs.len() {
        pairs[value] = [b'0' + (value / 10) as u8, b'0' + (value % 10) as u8];
        value += 1;
    }
    pairs
}

/// Fills `out` with groups of digits.
pub(super) fn write(rng: &mut Xoshiro256PlusPlus, out: &mut [u8]) {
    for group in out.chunks_mut(GROUP + 1) {
        let (digits, dash) = group.split_at_mut(group.len().min(GROUP));
        // `rest` is a random fraction. The integer part of 100 × rest is the next pair of digits, the
        // fractional part is the new rest. 64 bits are enough for eleven digits.
        let mut rest = rng.next_u64();
        let mut next = || {
            let product = u128::from(rest) * 100;
            #[expect(clippy::cast_possible_truncation, reason = "the fractional part")]
            {
                rest = product as u64;
            }
            let pair = usize::try_from(product >> u64::BITS).unwrap_or(0);
            PAIRS.get(pair).copied().unwrap_or_default()
        };
        let (pairs, last) = digits.as_chunks_mut::<2>();
        for pair in pairs {
            *pair = next();
        }
        if let [digit] = last {
            [*digit, _] = next();
        }
        dash.fill(b'-');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::keys::{Purpose, stream};

    #[test]
    fn texts_are_groups_of_eleven_uniformly_distributed_digits() {
        let mut rng = stream(7, Purpose::Texts, 0);
        let mut counts = [0u32; 10];
        for _ in 0..1_000 {
            let mut c = [0; C];
            write(&mut rng, &mut c);
            let text = std::str::from_utf8(&c).unwrap();
            let groups: Vec<_> = text.split('-').collect();
            assert_eq!((groups.len(), groups.iter().all(|group| group.len() == 11)), (10, true));
            for digit in text.bytes().filter(u8::is_ascii_digit) {
                counts[usize::from(digit - b'0')] += 1;
            }
        }
        // 110,000 digits, 11,000 of each; the standard deviation is 100, and the tolerance six of them.
        assert!(counts.iter().all(|count| count.abs_diff(11_000) < 600), "{counts:?}");
        let mut pad = [0; PAD];
        write(&mut rng, &mut pad);
        assert_eq!(pad.split(|&byte| byte == b'-').count(), 5);
    }
}
