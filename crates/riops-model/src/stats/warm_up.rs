//! The warm-up at the start of a series of rates (MSER; the sources are in `steadiness` of riops-measure).

/// Minimum number of intervals: a fifth then has two.
const INTERVALS_MIN: usize = 10;
/// From this number of intervals on, MSER uses means of five. Fewer than ten means would be too few.
const INTERVALS_FOR_MEANS: usize = 50;
/// Intervals per mean in MSER-5.
const MEAN_OF: usize = 5;
/// Intervals shorter than this share of the median are left out: the last one of a run by number.
const SHORT_SHARE: f64 = 0.5;

/// Returns the number of intervals in each mean that MSER examines.
fn mean_size(intervals: usize) -> usize {
    if intervals < INTERVALS_FOR_MEANS { 1 } else { MEAN_OF }
}

/// Returns the means of consecutive values that MSER examines; `None` if there are too few values.
pub fn mser_means(values: &[f64]) -> Option<Vec<f64>> {
    let means = values.chunks_exact(mean_size(values.len())).map(mean);
    (values.len() >= INTERVALS_MIN).then(|| means.collect())
}

/// Returns the intervals that are not much shorter than the others.
fn long_intervals(intervals: &[(f64, u64)]) -> Vec<(f64, u64)> {
    let mut lengths: Vec<f64> = intervals.iter().map(|(seconds, _)| *seconds).collect();
    lengths.sort_by(f64::total_cmp);
    let median = lengths.get(lengths.len() / 2).copied().unwrap_or(0.0);
    let long = |&&(seconds, _): &&(f64, u64)| seconds > 0.0 && seconds >= SHORT_SHARE * median;
    intervals.iter().filter(long).copied().collect()
}

/// Returns the arithmetic mean; 0 without values.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Returns the number of values at the start that MSER truncates, at most half of them.
pub fn truncation_point(values: &[f64]) -> usize {
    let (mut count, mut mean, mut squares) = (0.0, 0.0, 0.0);
    let mut best = (f64::INFINITY, 0);
    // From the end, so that mean and sum of squares grow by one value at a time (Welford).
    for (position, value) in values.iter().enumerate().rev() {
        count += 1.0;
        let before = value - mean;
        mean += before / count;
        squares += before * (value - mean);
        let error = squares / (count * count);
        if position <= values.len() / 2 && error <= best.0 {
            best = (error, position);
        }
    }
    best.1
}

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
pub fn warm_up(intervals: &[(f64, u64)]) -> Option<WarmUp> {
    let long = long_intervals(intervals);
    let rates: Vec<f64> = long.iter().map(|(seconds, count)| *count as f64 / seconds).collect();
    let means = mser_means(&rates)?;
    let truncated = truncation_point(&means);
    let (during, after) = rates.split_at_checked(truncated * mean_size(rates.len()))?;
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

    fn warm_up_of(thousands: &[u64]) -> WarmUp {
        let intervals: Vec<_> = thousands.iter().map(|rows| (2.0, rows * 2_000)).collect();
        warm_up(&intervals).unwrap()
    }

    #[test]
    fn finds_the_end_of_a_cold_start() {
        // A real run with a cold cache.
        let warm_up = warm_up_of(&[
            33, 37, 45, 58, 365, 1223, 1805, 1781, 1783, 1664, 1699, 1719, 1777, 1811, 1749,
        ]);
        assert_eq!((warm_up.intervals, warm_up.seconds, warm_up.ended), (6, 12.0, true));
        assert!(
            warm_up.during_per_s < 300_000.0 && warm_up.after_per_s > 1_700_000.0,
            "{warm_up:?}"
        );
    }

    #[test]
    fn a_steady_stage_has_no_warm_up() {
        let warm_up = warm_up_of(&[1000; 12]);
        assert_eq!((warm_up.intervals, warm_up.during_per_s, warm_up.ended), (0, 0.0, true));
    }

    #[test]
    fn a_rate_that_rises_to_the_end_has_not_ended_its_warm_up() {
        let rising: Vec<u64> = (1..=100).collect();
        let warm_up = warm_up_of(&rising);
        assert_eq!((warm_up.intervals, warm_up.ended), (50, false));
    }

    #[test]
    fn few_intervals_show_no_warm_up() {
        assert_eq!(warm_up(&[(1.0, 5); 9]), None);
        assert_eq!(warm_up(&[]), None);
    }

    #[test]
    fn mser_truncates_the_start_and_at_most_half() {
        assert_eq!(truncation_point(&[0.0, 1.0, 9.0, 9.0, 9.0, 9.0]), 2);
        assert_eq!(truncation_point(&[9.0; 6]), 0);
        assert_eq!(truncation_point(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), 3);
        assert_eq!(truncation_point(&[]), 0);
    }
}
