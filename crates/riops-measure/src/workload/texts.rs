//! Random texts of letters and digits. A text is a pure function of a seed, a key and a column, so the
//! expected contents of a table can be computed again instead of being stored.
//!
//! In a profile of `copy-binary`, a row of 4 × 24 characters took about 0.09 µs including its framing:
//! generating the texts does not slow down the load.

use super::keys::{GOLDEN_GAMMA, mix};

/// Characters generated from one random number.
const WORD: usize = 8;

/// The texts of one table.
#[derive(Debug, Clone, Copy)]
pub struct Texts {
    seed: u64,
    length: usize,
}

impl Texts {
    /// Creates a source of texts of `length` characters.
    pub fn new(seed: u64, length: u32) -> Self {
        Self { seed: mix(seed), length: length as usize }
    }

    /// Returns the length of each text, in characters.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Fills `out` with the text of this key and column.
    pub fn write(&self, key: u64, column: u64, out: &mut [u8]) {
        // The n-th number of `SplitMix64` is a function of n, so a text can start at any n.
        let words = self.length.div_ceil(WORD) as u64;
        let mut state =
            mix(self.seed ^ key).wrapping_add(GOLDEN_GAMMA.wrapping_mul(column * words));
        let (full_words, rest) = out.as_chunks_mut::<WORD>();
        for word in full_words {
            *word = letters(mix(state)).to_le_bytes();
            state = state.wrapping_add(GOLDEN_GAMMA);
        }
        for (byte, letter) in rest.iter_mut().zip(letters(mix(state)).to_le_bytes()) {
            *byte = letter;
        }
    }
}

/// Returns a word that repeats the byte.
const fn all(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; WORD])
}

/// Maps six bits of each byte to a digit or a letter, all eight bytes at once. Six bits have 64 values for 62
/// characters, so the digits 0 and 1 occur twice as often as the other characters.
fn letters(random: u64) -> u64 {
    let value = random & all(63);
    // 1 in each byte whose value is at least `least`: the addition carries into the highest bit.
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
    fn letters_and_digits_have_the_expected_frequencies() {
        let mut counts = [0u32; 256];
        let texts = Texts::new(7, 24);
        for key in 0..10_000 {
            for byte in text(texts, key, key % 4).bytes() {
                counts[usize::from(byte)] += 1;
            }
        }
        // 3,750 expected for each of 64 values; the standard deviation is 61.
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
    fn a_text_depends_only_on_seed_key_and_column() {
        let texts = Texts::new(1, 21);
        let first = text(texts, 5, 0);
        assert_eq!(first.len(), 21);
        assert_eq!(first, text(texts, 5, 0));
        for other in [text(texts, 6, 0), text(texts, 5, 1), text(Texts::new(2, 21), 5, 0)] {
            assert_ne!(first, other);
        }
    }

    #[test]
    fn neighboring_texts_have_no_part_in_common() {
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
