//! How long the warm-up of a stage took, from its intervals. Pure.

use super::steadiness::{MeanSize, long_intervals, mean, truncation_point};

/// The start of a stage whose rate differs from the rest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WarmUp {
    /// Number of intervals to leave out at the start; 0 if none.
    pub intervals: usize,
    /// Their duration, in seconds.
    pub seconds: f64,
    /// Mean rate during the warm-up, per second; 0 without a warm-up.
    pub during_per_s: f64,
    /// Mean rate after it, per second.
    pub after_per_s: f64,
    /// Whether the warm-up ended. If not, the truncation point is the middle of the stage: the rate still changed
    /// then, and the stage is too short.
    pub ended: bool,
}

/// Returns the warm-up that MSER-5 truncates (see `steadiness`), from intervals with their length in
/// seconds and their count. Returns `None` for fewer than ten intervals.
///
/// MSER also truncates a few intervals of a steady stage if they deviate by chance. The two rates show whether
/// the warm-up matters.
#[must_use]
pub fn warm_up(intervals: &[(f64, u64)]) -> Option<WarmUp> {
    let long = long_intervals(intervals);
    let size = MeanSize::of(long.len())?;
    let rates: Vec<f64> = long.iter().map(|(seconds, count)| *count as f64 / seconds).collect();
    let means = size.means(&rates);
    let truncated = truncation_point(&means);
    let (during, after) = rates.split_at_checked(truncated * size.0)?;
    Some(WarmUp {
        intervals: during.len(),
        seconds: long.iter().take(during.len()).map(|(seconds, _)| seconds).sum(),
        during_per_s: mean(during),
        after_per_s: mean(after),
        ended: truncated < means.len() / 2,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(thousands: &[u64]) -> WarmUp {
        let intervals: Vec<_> = thousands.iter().map(|rows| (2.0, rows * 2_000)).collect();
        warm_up(&intervals).unwrap()
    }

    #[test]
    fn finds_the_end_of_a_cold_start() {
        // A real run with a cold cache.
        let found =
            of(&[33, 37, 45, 58, 365, 1223, 1805, 1781, 1783, 1664, 1699, 1719, 1777, 1811, 1749]);
        assert_eq!((found.intervals, found.seconds, found.ended), (6, 12.0, true));
        assert!(found.during_per_s < 300_000.0 && found.after_per_s > 1_700_000.0, "{found:?}");
    }

    #[test]
    fn a_steady_stage_has_no_warm_up() {
        let found = of(&[1000; 12]);
        assert_eq!((found.intervals, found.during_per_s, found.ended), (0, 0.0, true));
    }

    #[test]
    fn a_rate_that_rises_to_the_end_has_not_ended_its_warm_up() {
        let rising: Vec<u64> = (1..=100).collect();
        let found = of(&rising);
        assert_eq!((found.intervals, found.ended), (50, false));
    }

    #[test]
    fn few_intervals_show_no_warm_up() {
        assert_eq!(warm_up(&[(1.0, 5); 9]), None);
        assert_eq!(warm_up(&[]), None);
    }
}
