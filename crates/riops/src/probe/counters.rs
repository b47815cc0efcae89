//! Counters that only grow.

/// Returns how much each counter has grown. One that was reset counts as 0.
pub(super) fn since<const COUNT: usize>(now: [u64; COUNT], earlier: [u64; COUNT]) -> [u64; COUNT] {
    let mut change = now;
    for (change, earlier) in change.iter_mut().zip(earlier) {
        *change = change.saturating_sub(earlier);
    }
    change
}
