//! PostgreSQL's hash of a text, computed by the client, to verify the texts in the server without
//! transferring them again.

/// Returns the value of the server function `hashtextextended(text, seed)` for these bytes, with a
/// deterministic collation on a little-endian server. The function is Bob Jenkins's lookup3 (2006) with a
/// seed of 64 bits. Hash partitions depend on it, so it is the same in all versions of the server.
pub(super) fn hash_text_extended(bytes: &[u8], seed: u64) -> i64 {
    // A text is at most 1 GiB long.
    #[expect(clippy::cast_possible_truncation, reason = "the hash takes the length modulo 2^32")]
    let start = 0x9e37_79b9_u32.wrapping_add(bytes.len() as u32).wrapping_add(3_923_095);
    let mut state = [start; 3];
    if seed != 0 {
        let [high, low] = halves(seed);
        state = mix([start.wrapping_add(high), start.wrapping_add(low), start]);
    }
    let (blocks, rest) = bytes.as_chunks::<12>();
    for block in blocks {
        state = mix(add(state, words(*block)));
    }
    let mut last = [0; 12];
    // The lowest byte of the third word is reserved for the length.
    let (front, back) = rest.split_at(rest.len().min(8));
    for (place, byte) in last.iter_mut().zip(front) {
        *place = *byte;
    }
    for (place, byte) in last.iter_mut().skip(9).zip(back) {
        *place = *byte;
    }
    let [_, high, low] = finish(add(state, words(last)));
    (u64::from(high) << 32 | u64::from(low)).cast_signed()
}

fn halves(value: u64) -> [u32; 2] {
    #[expect(clippy::cast_possible_truncation, reason = "the two halves")]
    [(value >> 32) as u32, value as u32]
}

fn words(block: [u8; 12]) -> [u32; 3] {
    let (words, _) = block.as_chunks::<4>();
    let mut values = [0; 3];
    for (place, word) in values.iter_mut().zip(words) {
        *place = u32::from_le_bytes(*word);
    }
    values
}

fn add(mut state: [u32; 3], block: [u32; 3]) -> [u32; 3] {
    for (place, word) in state.iter_mut().zip(block) {
        *place = place.wrapping_add(word);
    }
    state
}

fn mix([mut a, mut b, mut c]: [u32; 3]) -> [u32; 3] {
    a = a.wrapping_sub(c) ^ c.rotate_left(4);
    c = c.wrapping_add(b);
    b = b.wrapping_sub(a) ^ a.rotate_left(6);
    a = a.wrapping_add(c);
    c = c.wrapping_sub(b) ^ b.rotate_left(8);
    b = b.wrapping_add(a);
    a = a.wrapping_sub(c) ^ c.rotate_left(16);
    c = c.wrapping_add(b);
    b = b.wrapping_sub(a) ^ a.rotate_left(19);
    a = a.wrapping_add(c);
    c = c.wrapping_sub(b) ^ b.rotate_left(4);
    b = b.wrapping_add(a);
    [a, b, c]
}

fn finish([mut a, mut b, mut c]: [u32; 3]) -> [u32; 3] {
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    c = (c ^ b).wrapping_sub(b.rotate_left(24));
    [a, b, c]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returns_the_hashes_of_postgresql_18() {
        for (text, seed, hash) in [
            ("", 0, -6_939_563_903_564_495_251),
            ("", 7, 2_755_504_096_093_790_112),
            ("abc", 0, -6_747_756_470_228_489_321),
            ("abcdefghi", 2_147_483_647, -5_336_301_889_714_894_983),
            ("abcdefghijkl", 1, -6_429_754_808_531_195_817),
            ("abcdefghijklmnopqrstuvw", 5, -5_779_051_665_035_861_303),
        ] {
            assert_eq!(hash_text_extended(text.as_bytes(), seed), hash, "{text} {seed}");
        }
    }
}
