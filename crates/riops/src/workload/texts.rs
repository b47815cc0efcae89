//! Random texts of letters and digits: a pure function of a seed, a key and a column, so that what
//! has to be in a table can be computed again, and nothing has to be kept.
//!
//! A row of 4 × 24 characters with all that stands around them took about 0.09 µs in a profile of
//! `copy-binary`: filling a table does not wait for them.

use super::keys::mix;

/// The step of `SplitMix64`, whose n-th number is a function of n: each text starts where it likes.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
/// Characters that one random number gives.
const WORD: usize = 8;

/// The texts of one table.
#[derive(Debug, Clone, Copy)]
pub struct Texts {
    seed: u64,
    length: usize,
}

impl Texts {
    /// Texts of `length` characters.
    #[must_use]
    pub fn new(seed: u64, length: u32) -> Self {
        Self { seed: mix(seed), length: length as usize }
    }

    /// Characters of each.
    #[must_use]
    pub fn length(&self) -> usize {
        self.length
    }

    /// Writes the text of this key and column, as many characters as `out` has.
    pub fn write(&self, key: u64, column: u64, out: &mut [u8]) {
        let words = self.length.div_ceil(WORD) as u64;
        let mut state = mix(self.seed ^ key).wrapping_add(STEP.wrapping_mul(column * words));
        let (whole, rest) = out.as_chunks_mut::<WORD>();
        for word in whole {
            *word = letters(mix(state)).to_le_bytes();
            state = state.wrapping_add(STEP);
        }
        for (byte, letter) in rest.iter_mut().zip(letters(mix(state)).to_le_bytes()) {
            *byte = letter;
        }
    }
}

/// The same byte in all places.
const fn all(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; WORD])
}

/// Turns six bits of each byte into a digit or a letter, all eight at once. Of the 64 values two are
/// too many: the digits 0 and 1 come twice as often as the others.
fn letters(random: u64) -> u64 {
    let value = random & all(63);
    // 1 in each byte whose value is at least `least`: adding carries into its highest bit.
    let at_least = |least: u8| ((value + all(128 - least)) & all(128)) >> 7;
    // 0…9 become '0'…'9', 10…35 'A'…'Z', 36…61 'a'…'z'; 62 and 63 '0' and '1'.
    value + all(b'0') + at_least(10) * 7 + at_least(36) * 6 - at_least(62) * 75
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(texts: Texts, key: u64, column: u64) -> String {
        let mut bytes = vec![0; texts.length()];
        texts.write(key, column, &mut bytes);
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn all_digits_and_letters_occur_and_nothing_else_about_equally_often() {
        let mut counts = [0u32; 256];
        let texts = Texts::new(7, 24);
        for key in 0..10_000 {
            for byte in text(texts, key, key % 4).bytes() {
                counts[usize::from(byte)] += 1;
            }
        }
        // 3,750 of each of 64 values; the standard deviation is 61.
        for (byte, count) in (0..=u8::MAX).zip(counts) {
            let expected = match byte {
                b'0' | b'1' => 7_500,
                byte if byte.is_ascii_alphanumeric() => 3_750,
                _ => 0,
            };
            assert!(u32::abs_diff(count, expected) < 450, "{byte}: {count}");
            assert_eq!(count == 0, expected == 0, "{byte}");
        }
    }

    #[test]
    fn a_text_depends_on_seed_key_and_column_and_on_nothing_else() {
        let texts = Texts::new(1, 21);
        let first = text(texts, 5, 0);
        assert_eq!(first.len(), 21);
        assert_eq!(first, text(texts, 5, 0));
        for other in [text(texts, 6, 0), text(texts, 5, 1), text(Texts::new(2, 21), 5, 0)] {
            assert_ne!(first, other);
        }
    }

    #[test]
    fn neighbouring_texts_share_no_part() {
        let texts = Texts::new(3, 20);
        let mut parts: Vec<String> = (0..500)
            .flat_map(|key| (0..4).map(move |column| text(texts, key, column)))
            .flat_map(|text| [text[..8].to_owned(), text[8..16].to_owned()])
            .collect();
        parts.sort_unstable();
        let all = parts.len();
        parts.dedup();
        assert_eq!(parts.len(), all);
    }
}
