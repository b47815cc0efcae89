//! The numbers of sessions that a search measures: 1, 2, 3, 4, 6, 8, 12, 16, 24, …: powers of two and the numbers
//! halfway between them. A step is a third to a half, which throughput near its maximum hardly shows; finer
//! steps would not be reproducible.

/// Levels closer to the last one than this factor are left out.
const CLOSE: f64 = 1.2;

/// Returns the levels from `first` to `last`, both included. Levels are at least 1.
pub(super) fn levels(first: u32, last: u32) -> Vec<u32> {
    let first = first.max(1);
    let last = last.max(first);
    let mut all = vec![first];
    for power in (0..u32::BITS).map(|exponent| 1_u32 << exponent) {
        let halfway = power.checked_add(power / 2).filter(|_| power > 1);
        let close = |level: u32| f64::from(last) < f64::from(level) * CLOSE;
        let between = |level: &u32| *level > first && *level < last && !close(*level);
        all.extend([Some(power), halfway].into_iter().flatten().filter(between));
    }
    if last > first {
        all.push(last);
    }
    all
}

/// Returns the level that is measured after `level` while throughput still grows: the first one that is at least
/// twice as high, or the last one. `None` after the last one.
pub(super) fn doubled(levels: &[u32], level: u32) -> Option<u32> {
    let twice = levels.iter().copied().find(|next| *next >= level.saturating_mul(2));
    twice.or(levels.last().copied()).filter(|next| *next > level)
}

/// Returns the neighbors of a level.
pub(super) fn neighbors(levels: &[u32], level: u32) -> (Option<u32>, Option<u32>) {
    let below = levels.iter().copied().rev().find(|other| *other < level);
    let above = levels.iter().copied().find(|other| *other > level);
    (below, above)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contains_powers_of_two_and_the_numbers_between_them() {
        assert_eq!(levels(1, 64), [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64]);
        assert_eq!(levels(1, 1024).len(), 20);
        assert_eq!(levels(4, 100), [4, 6, 8, 12, 16, 24, 32, 48, 64, 100]);
        assert_eq!(levels(5, 24), [5, 6, 8, 12, 16, 24]);
        assert_eq!((levels(0, 0), levels(7, 3)), (vec![1], vec![7]));
        assert_eq!(levels(1, u32::MAX).last(), Some(&u32::MAX));
    }

    #[test]
    fn doubles_up_to_the_last_level() {
        let climb = |first, last| {
            let levels = levels(first, last);
            let mut climbed = vec![first];
            while let Some(next) = doubled(&levels, *climbed.last().unwrap()) {
                climbed.push(next);
            }
            climbed
        };
        assert_eq!(climb(1, 64), [1, 2, 4, 8, 16, 32, 64]);
        assert_eq!(climb(5, 100), [5, 12, 24, 48, 100]);
        assert_eq!(climb(3, 3), [3]);
    }

    #[test]
    fn the_outermost_levels_have_one_neighbor() {
        let levels = levels(1, 8);
        assert_eq!(neighbors(&levels, 1), (None, Some(2)));
        assert_eq!(neighbors(&levels, 4), (Some(3), Some(6)));
        assert_eq!(neighbors(&levels, 8), (Some(6), None));
    }
}
