//! Whether the rate of a stage is steady, from its intervals. Pure.
//!
//! The truncation point is that of MSER: of all points up to the middle of the series, the one after which the
//! mean has the smallest marginal standard error (White, "An effective truncation heuristic for bias
//! reduction in simulation output", Simulation 69 (6), 1997). MSER-5 applies it to means of five consecutive
//! intervals (Franklin and White, "Stationarity tests and MSER-5", Winter Simulation Conference 2008). MSER
//! expects a warm-up at the start. Caches that fill up, throttled devices and checkpoints also change a rate
//! towards the end, so the reversed series is examined as well.

use crate::record::{Point, SteadinessRecord};

/// Minimum number of intervals: a fifth then has two.
const INTERVALS_MIN: usize = 10;
/// From this number of intervals on, MSER uses means of five. Fewer than ten means would be too few.
const INTERVALS_FOR_MEANS: usize = 50;
/// Intervals per mean in MSER-5.
const MEAN_OF: usize = 5;
/// Intervals shorter than this share of the median are left out: the last one of a run by number.
const SHORT_SHARE: f64 = 0.5;
/// Maximum difference of the first and the last fifth in a steady series, as a share of the larger one. The rate
/// of repeated runs on one machine often varies by 10 %.
const DIFFERENCE_SHARE: f64 = 0.2;
/// Truncation from which on a series is not steady. A shorter start than a fifth changes the mean less than the
/// first fifth suggests.
const TRUNCATED_SHARE: f64 = 0.2;
/// Minimum difference of the two fifths, in standard errors of the noise between neighboring intervals.
/// Uncorrelated noise exceeds it in about 1 % of all runs.
const STANDARD_ERRORS: f64 = 3.0;

/// How the rate changes over a stage.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Steadiness {
    /// Number of intervals.
    intervals: usize,
    /// Mean rate in the first fifth of the intervals, per second.
    first_fifth_per_s: f64,
    /// Mean rate in the last fifth.
    last_fifth_per_s: f64,
    /// Share of the intervals that MSER truncates, from the start or from the end, whichever is larger: 0 to 0.5.
    truncated_share: f64,
    /// Whether the mean describes the stage.
    steady: bool,
}

/// Returns how the rate changed over the series: by rows if the transactions have rows, otherwise by transactions.
/// `None` for a series that is too short.
#[must_use]
pub fn steadiness_of(series: &[Point]) -> Option<SteadinessRecord> {
    let by = |count: fn(&Point) -> u64| {
        let intervals: Vec<_> = series.iter().map(|point| (point.seconds, count(point))).collect();
        steadiness(&intervals)
    };
    let (rows, transactions) = (by(|point| point.rows)?, by(|point| point.transactions)?);
    let has_rows = series.iter().any(|point| point.rows > 0);
    let judged = if has_rows { rows } else { transactions };
    Some(SteadinessRecord {
        intervals: judged.intervals,
        first_fifth_transactions_per_s: transactions.first_fifth_per_s,
        last_fifth_transactions_per_s: transactions.last_fifth_per_s,
        first_fifth_rows_per_s: rows.first_fifth_per_s,
        last_fifth_rows_per_s: rows.last_fifth_per_s,
        truncated_share: judged.truncated_share,
        steady: judged.steady,
    })
}

/// Judges a series of intervals, each with its length in seconds and its count. Returns `None` for fewer than ten
/// intervals.
fn steadiness(intervals: &[(f64, u64)]) -> Option<Steadiness> {
    let long = long_intervals(intervals);
    let rates: Vec<f64> = long.iter().map(|(seconds, count)| *count as f64 / seconds).collect();
    let means = MeanSize::of(rates.len())?.means(&rates);
    let reversed: Vec<f64> = means.iter().rev().copied().collect();
    let truncated = truncation_point(&means).max(truncation_point(&reversed));
    let truncated_share = truncated as f64 / means.len() as f64;
    let fifth = rates.len() / 5;
    let first = mean(rates.get(..fifth)?);
    let last = mean(rates.get(rates.len() - fifth..)?);
    let difference = (first - last).abs();
    // The difference of two means of a fifth each.
    let standard_error = noise(&rates) * (2.0 / fifth as f64).sqrt();
    let differs = difference > DIFFERENCE_SHARE * first.max(last)
        && difference > STANDARD_ERRORS * standard_error;
    Some(Steadiness {
        intervals: rates.len(),
        first_fifth_per_s: first,
        last_fifth_per_s: last,
        truncated_share,
        steady: !(differs && truncated_share >= TRUNCATED_SHARE),
    })
}

/// Number of intervals in each mean that MSER examines.
#[derive(Debug, Clone, Copy)]
pub(super) struct MeanSize(pub(super) usize);

impl MeanSize {
    /// Returns the size for a number of intervals; `None` if they are too few.
    pub(super) fn of(intervals: usize) -> Option<Self> {
        let size = if intervals < INTERVALS_FOR_MEANS { 1 } else { MEAN_OF };
        (intervals >= INTERVALS_MIN).then_some(Self(size))
    }

    /// Returns the means of consecutive values.
    pub(super) fn means(self, values: &[f64]) -> Vec<f64> {
        values.chunks_exact(self.0).map(mean).collect()
    }
}

/// Returns the intervals that are not much shorter than the others.
pub(super) fn long_intervals(intervals: &[(f64, u64)]) -> Vec<(f64, u64)> {
    let mut lengths: Vec<f64> = intervals.iter().map(|(seconds, _)| *seconds).collect();
    lengths.sort_by(f64::total_cmp);
    let median = lengths.get(lengths.len() / 2).copied().unwrap_or(0.0);
    let long = |&&(seconds, _): &&(f64, u64)| seconds > 0.0 && seconds >= SHORT_SHARE * median;
    intervals.iter().filter(long).copied().collect()
}

pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Returns the number of values at the start that MSER truncates, at most half of them.
pub(super) fn truncation_point(values: &[f64]) -> usize {
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

/// Returns the standard deviation of the noise, from the differences of neighboring values: a trend hardly
/// changes it (von Neumann, "Distribution of the ratio of the mean square successive difference to the
/// variance", 1941).
fn noise(values: &[f64]) -> f64 {
    let differences = values.iter().zip(values.iter().skip(1)).map(|(one, next)| next - one);
    let squares: f64 = differences.map(|difference| difference * difference).sum();
    (squares / (2.0 * values.len().saturating_sub(1).max(1) as f64)).sqrt()
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    fn of(thousands: &[u64]) -> Steadiness {
        let intervals: Vec<_> = thousands.iter().map(|rows| (1.0, rows * 1_000)).collect();
        steadiness(&intervals).unwrap()
    }

    #[test]
    fn measured_runs_with_a_trend_are_not_steady() {
        // Series of real runs: a cold cache that fills up, a rising rate, a falling one.
        let cold =
            of(&[33, 37, 45, 58, 365, 1223, 1805, 1781, 1783, 1664, 1699, 1719, 1777, 1811, 1749]);
        assert!(!cold.steady && cold.truncated_share >= 0.3, "{cold:?}");
        assert!((cold.first_fifth_per_s - 38_333.0).abs() < 1.0, "{cold:?}");
        assert!((cold.last_fifth_per_s - 1_779_000.0).abs() < 1.0, "{cold:?}");
        let rising = of(&[4700, 4830, 6370, 6548, 6426, 6372, 5313, 5130, 7974, 10_012]);
        assert!(!rising.steady, "{rising:?}");
        let falling = of(&[3525, 3830, 3679, 3964, 4160, 3001, 2259, 2225, 2338, 2328]);
        assert!(!falling.steady && falling.truncated_share == 0.5, "{falling:?}");
        let linear: Vec<u64> = (34..=288).collect();
        assert!(!of(&linear).steady);
    }

    #[test]
    fn measured_runs_with_noise_are_steady() {
        for series in [
            // A dip at the end, two slow seconds of twenty, and a rate that varies by 40 %.
            &[1242, 1523, 1404, 1627, 1694, 1670, 1600, 1352, 942, 999][..],
            &[
                108, 811, 3585, 3782, 3746, 3746, 3692, 3735, 3648, 3813, 3463, 3184, 3828, 3789,
                3890, 3782, 3767, 3749, 3504, 3795,
            ],
            &[900, 1300, 1000, 1250, 950, 1350, 900, 1200, 1100, 1300],
            &[0; 12],
        ] {
            assert!(of(series).steady, "{:?}", of(series));
        }
    }

    #[test]
    fn uncorrelated_noise_is_hardly_ever_called_a_trend() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(17);
        for length in [10, 20, 60, 300] {
            let unsteady = (0..1_000)
                .filter(|_| {
                    let series: Vec<u64> =
                        (0..length).map(|_| rng.random_range(500..1_500)).collect();
                    !of(&series).steady
                })
                .count();
            assert!(unsteady < 20, "{unsteady} of 1,000 with {length} intervals");
        }
    }

    #[test]
    fn few_or_short_intervals_give_no_verdict() {
        assert_eq!(steadiness(&[(1.0, 5); 9]), None);
        assert_eq!(steadiness(&[]), None);
        // The last interval of a run by number ends early.
        let mut intervals = vec![(1.0, 1_000); 10];
        intervals.push((0.01, 0));
        let found = steadiness(&intervals).unwrap();
        assert_eq!((found.intervals, found.steady, found.last_fifth_per_s), (10, true, 1_000.0));
    }

    #[test]
    fn mser_truncates_the_start_and_at_most_half() {
        assert_eq!(truncation_point(&[0.0, 1.0, 9.0, 9.0, 9.0, 9.0]), 2);
        assert_eq!(truncation_point(&[9.0; 6]), 0);
        assert_eq!(truncation_point(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), 3);
        assert_eq!(truncation_point(&[]), 0);
    }

    #[test]
    fn judges_rows_or_else_transactions() {
        let series = |rows_each: u64| -> Vec<Point> {
            (1..=20)
                .map(|second| {
                    let transactions = 100 * second;
                    let rows = rows_each * transactions;
                    Point { seconds: 1.0, transactions, rows, ..Point::default() }
                })
                .collect()
        };
        let with_rows = steadiness_of(&series(10)).unwrap();
        assert!(!with_rows.steady);
        assert_eq!(with_rows.first_fifth_rows_per_s, 2_500.0);
        assert_eq!(with_rows.last_fifth_rows_per_s, 18_500.0);
        assert_eq!(with_rows.last_fifth_transactions_per_s, 1_850.0);
        let without = steadiness_of(&series(0)).unwrap();
        assert_eq!((without.steady, without.last_fifth_rows_per_s), (false, 0.0));
        assert_eq!(steadiness_of(&[]), None);
    }
}
