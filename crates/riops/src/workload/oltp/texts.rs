//! Sysbench's texts: groups of eleven random digits with dashes between them.

use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// Characters of `c`: ten groups.
pub(super) const C: usize = 119;
/// Characters of `pad`: five groups.
pub(super) const PAD: usize = 59;

const GROUP: usize = 11;
/// Ten to the power of a group's digits.
const GROUP_VALUES: u128 = 100_000_000_000;

/// Fills `out` with groups of digits.
pub(super) fn write(rng: &mut Xoshiro256PlusPlus, out: &mut [u8]) {
    for group in out.chunks_mut(GROUP + 1) {
        let (digits, dash) = group.split_at_mut(group.len().min(GROUP));
        // The upper part of a product is as even as 64 random bits are.
        let value = (u128::from(rng.next_u64()) * GROUP_VALUES) >> u64::BITS;
        let mut value = u64::try_from(value).unwrap_or(0);
        for digit in digits.iter_mut().rev() {
            *digit = b'0' + u8::try_from(value % 10).unwrap_or(0);
            value /= 10;
        }
        dash.fill(b'-');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::keys::{Purpose, stream};

    #[test]
    fn a_text_is_groups_of_eleven_digits_and_every_digit_is_as_frequent() {
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
        // 110,000 digits, 11,000 of each, standard deviation 100; six of those.
        assert!(counts.iter().all(|count| count.abs_diff(11_000) < 600), "{counts:?}");
        let mut pad = [0; PAD];
        write(&mut rng, &mut pad);
        assert_eq!(pad.split(|&byte| byte == b'-').count(), 5);
    }
}
