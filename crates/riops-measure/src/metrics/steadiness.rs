//! Determines how long the warm-up of a stage took, and whether the stage is steady, so that its mean describes it. In
//! the closed loop, the rate must be steady; with a requested rate, the response time, because the schedule fixes the
//! rate. Pure.
//!
//! Four signs, each of which finds what the others miss:
//! - Stalls: a share of the intervals is far below the median interval.
//! - A mean that is far from the median.
//! - A level shift or a trend: the mean of a part of the series differs from the mean of the rest, in standard errors
//!   of noise whose neighbors correlate. The noise is estimated from the differences of neighboring intervals, which a
//!   shift hardly changes (von Neumann, "Distribution of the ratio of the mean square successive difference to the
//!   variance", 1941), by their median absolute deviation, which a few shifts do not change at all. The noise is
//!   modeled as a first-order autoregressive process with a coefficient of 0.7. The part with the largest difference is
//!   selected (a scan statistic), and the limit applies to such a maximum.
//! - MSER: of all points up to the middle of the series, the truncation point is the point after which the mean has the
//!   smallest marginal standard error (White, "An effective truncation heuristic for bias reduction in simulation
//!   output", Simulation 69 (6), 1997). MSER-5 applies it to means of five consecutive intervals (Franklin and White,
//!   "Stationarity tests and MSER-5", Winter Simulation Conference 2008). It expects a warm-up at the start. Caches
//!   that fill up, throttled devices and checkpoints also change a rate towards the end, so the reversed series is
//!   examined as well. It decides where the intervals are too few for a scan.

use super::slots::Slot;
use riops_model::record::{Shift, SteadinessRecord};
use riops_model::stats::{mean, median, mser_means, truncation_point};

/// Intervals shorter than this share of the median are left out: the last one of a run by number.
const SHORT_SHARE: f64 = 0.5;
/// Slots are joined to at most this many intervals, of at least [`TRANSACTIONS_MIN`] transactions on average.
const INTERVALS_MAX: usize = 60;
/// Fewer transactions than this have a standard deviation of a third and more by chance alone.
const TRANSACTIONS_MIN: f64 = 10.0;

/// An interval with less than this share of the median rate is far below it, if that is not noise either.
const LOW: f64 = 0.5;
/// Number of standard deviations of the intervals that noise does not exceed.
const LOW_DEVIATIONS: f64 = 4.0;
/// Smallest share of intervals far below the median that makes a series not steady.
const LOW_SHARE: f64 = 0.05;
/// Smallest difference between mean and median that makes a series not steady, as a share of the larger one.
const MEAN_DIFFERS: f64 = 0.2;

/// A part is at least one of this many parts of the series, and so is the rest.
const PARTS: usize = 6;
/// Smallest relevant difference of a part, as a share of the mean of the series.
const RATE_SHIFT: f64 = 0.1;
/// The same for a response time, which varies more.
const RESPONSE_SHIFT: f64 = 0.5;
/// The largest difference of all parts is more than noise if it is at least this number of standard errors: in at most 2 % of the series with
/// correlated noise.
const SHIFT_ERRORS: f64 = 3.5;
/// Variance of the mean of many values of the autoregressive process, times their number, divided by half the mean
/// squared difference of neighbors: (1 + 0.7) / (1 - 0.7)^2.
const CORRELATED: f64 = 1.7 / 0.09;
/// A response time that deviates by more standard deviations is an outlier.
const OUTLIER: f64 = 6.0;

/// With fewer intervals, the noise is hardly known, and a scan finds only large shifts.
const INTERVALS_FOR_SCAN: usize = 30;
/// Maximum difference of the first and the last fifth of few intervals, as a share of the larger one.
const FIFTHS_DIFFER: f64 = 0.35;
/// Smallest truncation that makes few intervals not steady. A shorter start than a fifth changes the mean less than the
/// first fifth suggests.
const TRUNCATED_SHARE: f64 = 0.2;
/// Minimum difference of the two fifths, in standard errors of the noise between neighboring intervals.
const STANDARD_ERRORS: f64 = 3.0;

/// Returns whether a stage is steady. `rows_each` is the number of rows per transaction; `by_response` judges the response
/// time. `None` for a stage with too few transactions for ten intervals.
pub fn steadiness(slots: &[Slot], rows_each: f64, by_response: bool) -> Option<SteadinessRecord> {
    let intervals = joined(slots);
    let rates: Vec<f64> =
        intervals.iter().map(|interval| interval.transactions as f64 / interval.seconds).collect();
    let means = mser_means(&rates)?;
    let reversed: Vec<f64> = means.iter().rev().copied().collect();
    let truncated = truncation_point(&means).max(truncation_point(&reversed));
    let truncated_share = truncated as f64 / means.len() as f64;
    let fifth = rates.len() / 5;
    let first = mean(rates.get(..fifth)?);
    let last = mean(rates.get(rates.len() - fifth..)?);
    let (middle, all) = (median(&rates), mean(&rates));
    let usual_from = middle - LOW_DEVIATIONS * deviation(&rates);
    let low = rates.iter().filter(|&&rate| rate < LOW * middle && rate < usual_from).count();
    let low_share = low as f64 / rates.len() as f64;
    let mean_differs = (all - middle).abs() > MEAN_DIFFERS * all.max(middle);
    // The count of an interval varies by chance, even if nothing else does.
    let seconds: f64 = intervals.iter().map(|interval| interval.seconds).sum();
    let by_chance = all * rates.len() as f64 / seconds.max(f64::MIN_POSITIVE);
    let shift =
        if by_response { response_shift(&intervals) } else { part(&rates, RATE_SHIFT, by_chance) };
    let standard_error = noise(&rates) * (2.0 / fifth as f64).sqrt();
    let difference = (first - last).abs();
    let has_trend = !by_response
        && rates.len() < INTERVALS_FOR_SCAN
        && difference > FIFTHS_DIFFER * first.max(last)
        && difference > STANDARD_ERRORS * standard_error
        && truncated_share >= TRUNCATED_SHARE;
    Some(SteadinessRecord {
        intervals: rates.len(),
        first_fifth_transactions_per_s: first,
        last_fifth_transactions_per_s: last,
        first_fifth_rows_per_s: first * rows_each,
        last_fifth_rows_per_s: last * rows_each,
        truncated_share,
        low_share,
        shift: shift.map(|part| part.shift(&intervals, by_response)),
        steady: low_share < LOW_SHARE && !mean_differs && shift.is_none() && !has_trend,
    })
}

/// Joins neighboring slots to intervals that have enough transactions. The last one is left out if it is much shorter.
fn joined(slots: &[Slot]) -> Vec<Slot> {
    let transactions: u64 = slots.iter().map(|slot| slot.transactions).sum();
    let per_slot = transactions as f64 / slots.len().max(1) as f64;
    let mut size = slots.len().div_ceil(INTERVALS_MAX).max(1);
    while transactions > 0 && per_slot * (size as f64) < TRANSACTIONS_MIN {
        size += 1;
    }
    let join = |chunk: &[Slot]| {
        let mut interval = Slot::default();
        for slot in chunk {
            interval.merge(slot);
        }
        interval
    };
    let intervals: Vec<Slot> = slots.chunks(size).map(join).collect();
    let lengths: Vec<f64> = intervals.iter().map(|interval| interval.seconds).collect();
    let usual = median(&lengths);
    let is_long =
        |interval: &Slot| interval.seconds > 0.0 && interval.seconds >= SHORT_SHARE * usual;
    intervals.into_iter().filter(is_long).collect()
}

/// A part of a series that differs from the rest.
#[derive(Debug, Clone, Copy)]
struct Part {
    from: usize,
    to: usize,
    inside: f64,
    outside: f64,
}

impl Part {
    fn shift(self, intervals: &[Slot], of_response: bool) -> Shift {
        // An empty sum is -0.0.
        let until = |end: usize| {
            0.0 + intervals.iter().take(end).map(|interval| interval.seconds).sum::<f64>()
        };
        Shift {
            from_s: until(self.from),
            to_s: until(self.to),
            is_at_end: self.to == intervals.len(),
            inside: self.inside,
            outside: self.outside,
            of_response,
        }
    }
}

/// Returns the part whose mean differs most from the rest, in standard errors; `None` if it differs by less than this share
/// of the mean, or by no more than noise does. `least` is the least variance of a value.
fn part(values: &[f64], relevant: f64, least: f64) -> Option<Part> {
    let count = values.len();
    let shortest = (count / PARTS).max(2);
    let total: f64 = values.iter().sum();
    let step = deviation(&differences(values)) / std::f64::consts::SQRT_2;
    let variance = (CORRELATED * step * step).max(least).max(f64::MIN_POSITIVE);
    let mut best: Option<(f64, Part)> = None;
    for from in 0..count {
        let mut sum = 0.0;
        for (to, value) in (from + 1..=count).zip(values.iter().skip(from)) {
            sum += value;
            let (length, rest) = (to - from, count - (to - from));
            if length < shortest || rest < shortest {
                continue;
            }
            let (length, rest) = (length as f64, rest as f64);
            let (inside, outside) = (sum / length, (total - sum) / rest);
            let difference = (inside - outside).abs();
            let errors = difference / (variance * (1.0 / length + 1.0 / rest)).sqrt();
            let is_shift = difference >= relevant * total / count as f64 && errors >= SHIFT_ERRORS;
            if is_shift && best.is_none_or(|(most, _)| errors > most) {
                best = Some((errors, Part { from, to, inside, outside }));
            }
        }
    }
    best.map(|(_, part)| part)
}

/// Returns the part of the intervals whose mean response time differs from the rest.
fn response_shift(intervals: &[Slot]) -> Option<Part> {
    if intervals.iter().any(|interval| interval.transactions == 0) {
        return None;
    }
    let means: Vec<f64> = intervals
        .iter()
        .map(|interval| interval.latency_us / interval.transactions as f64)
        .collect();
    let (middle, most) = (median(&means), OUTLIER * deviation(&means));
    let clipped: Vec<f64> = means.iter().map(|&mean| mean.min(middle + most)).collect();
    part(&clipped, RESPONSE_SHIFT, 0.0)
}

/// Returns the standard deviation of most values: their median absolute deviation, times its factor for normal noise
/// (Huber, "Robust Statistics", 1981, section 5.1).
fn deviation(values: &[f64]) -> f64 {
    let middle = median(values);
    let deviations: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    1.4826 * median(&deviations)
}

fn differences(values: &[f64]) -> Vec<f64> {
    values.iter().zip(values.iter().skip(1)).map(|(one, next)| next - one).collect()
}

/// Returns the standard deviation of the noise between neighboring values.
fn noise(values: &[f64]) -> f64 {
    let differences = differences(values);
    let squares: f64 = differences.iter().map(|difference| difference * difference).sum();
    (squares / (2.0 * differences.len().max(1) as f64)).sqrt()
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_distr::StandardNormal;
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    fn slots(counts: &[u64]) -> Vec<Slot> {
        let slot = |&transactions| Slot { seconds: 1.0, transactions, latency_us: 0.0 };
        counts.iter().map(slot).collect()
    }

    fn verdict(thousands: &[u64]) -> SteadinessRecord {
        let counts: Vec<u64> = thousands.iter().map(|count| count * 1_000).collect();
        steadiness(&slots(&counts), 1.0, false).unwrap()
    }

    /// The slots of a stage of this length with a rate that depends on the time.
    fn stage(seconds: u32, rate: impl Fn(f64) -> f64) -> Vec<Slot> {
        // As many as a stage of some length has.
        let count = 200;
        let length = f64::from(seconds) / f64::from(count);
        (0..count)
            .map(|position| {
                let transactions = rate(f64::from(position) * length) * length;
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "a count"
                )]
                let transactions = transactions.round() as u64;
                Slot { seconds: length, transactions, latency_us: 0.0 }
            })
            .collect()
    }

    #[test]
    fn finds_stalls_shifts_and_trends_anywhere() {
        let within = |t: f64, from: f64, to: f64| t >= from && t < to;
        let series: [(&str, Vec<Slot>); 8] = [
            ("20 of 60 s at zero", stage(60, |t| if within(t, 20.0, 40.0) { 0.0 } else { 1e3 })),
            ("46 of 60 s at zero", stage(60, |t| if within(t, 7.0, 53.0) { 0.0 } else { 1e3 })),
            ("6 of 10 s at zero", stage(10, |t| if within(t, 2.0, 8.0) { 0.0 } else { 1e3 })),
            ("half the rate", stage(60, |t| if within(t, 15.0, 45.0) { 500.0 } else { 1e3 })),
            ("alternating", stage(60, |t| if t % 20.0 < 10.0 { 1e3 } else { 700.0 })),
            ("18 % less", stage(60, |t| if t < 30.0 { 1e3 } else { 820.0 })),
            ("a slow first second", stage(10, |t| if t < 1.0 { 100.0 } else { 1e3 })),
            ("falling", stage(9, |t| 1e3 - 100.0 * t)),
        ];
        for (name, slots) in series {
            let record = steadiness(&slots, 1.0, false).unwrap();
            assert!(!record.steady, "{name}: {record:?}");
        }
        let half = stage(60, |t| if within(t, 15.0, 45.0) { 500.0 } else { 1e3 });
        let shift = steadiness(&half, 1.0, false).unwrap().shift.unwrap();
        assert!((shift.from_s - 15.0).abs() < 1.5 && (shift.to_s - 45.0).abs() < 1.5, "{shift:?}");
        assert!((shift.inside - 500.0).abs() < 20.0 && !shift.is_at_end, "{shift:?}");
        assert!(steadiness(&stage(60, |_| 1e3), 1.0, false).unwrap().steady);
    }

    #[test]
    fn judges_correlated_noise_as_not_steady_in_at_most_2_percent() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(17);
        for (count, deviation) in [(10, 0.1), (30, 0.05), (60, 0.05), (60, 0.1), (60, 0.2)] {
            let unsteady = (0..1_000).filter(|_| {
                let mut noise: f64 = rng.sample(StandardNormal);
                let counts: Vec<u64> = (0..count)
                    .map(|_| {
                        let next: f64 = rng.sample(StandardNormal);
                        noise = 0.7 * noise + (1.0_f64 - 0.49).sqrt() * next;
                        let count = 100_000.0 * (1.0 + deviation * noise);
                        #[expect(
                            clippy::cast_possible_truncation,
                            clippy::cast_sign_loss,
                            reason = "a count"
                        )]
                        let count = count.max(0.0).round() as u64;
                        count
                    })
                    .collect();
                !steadiness(&slots(&counts), 1.0, false).unwrap().steady
            });
            let unsteady = unsteady.count();
            assert!(unsteady <= 20, "{unsteady} of 1,000 with {count} intervals, {deviation}");
        }
    }

    #[test]
    fn a_growing_response_time_is_not_steady() {
        let slot = |position: u32, mean_us: f64| Slot {
            seconds: 0.1,
            transactions: 100,
            latency_us: 100.0 * mean_us * if position.is_multiple_of(2) { 1.1 } else { 0.9 },
        };
        let judge = |mean_us: fn(u32) -> f64| {
            let slots: Vec<Slot> =
                (0..100).map(|position| slot(position, mean_us(position))).collect();
            steadiness(&slots, 1.0, true).unwrap()
        };
        let growing = judge(|position| 1e3 + 200.0 * f64::from(position));
        let shift = growing.shift.unwrap();
        assert!(!growing.steady && shift.grows(), "{growing:?}");
        assert!(judge(|_| 1e3).steady);
        // One slow interval is not a trend.
        assert!(judge(|position| if position == 50 { 1e6 } else { 1e3 }).steady);
    }

    #[test]
    fn measured_runs_with_a_trend_are_not_steady() {
        // Series of real runs: a cold cache that fills up, a rising rate, a falling one.
        let cold = verdict(&[
            33, 37, 45, 58, 365, 1223, 1805, 1781, 1783, 1664, 1699, 1719, 1777, 1811, 1749,
        ]);
        assert!(!cold.steady && cold.truncated_share >= 0.3, "{cold:?}");
        assert!((cold.first_fifth_transactions_per_s - 38_333.0).abs() < 1.0, "{cold:?}");
        assert!((cold.last_fifth_transactions_per_s - 1_779_000.0).abs() < 1.0, "{cold:?}");
        let rising = verdict(&[4700, 4830, 6370, 6548, 6426, 6372, 5313, 5130, 7974, 10_012]);
        assert!(!rising.steady, "{rising:?}");
        let falling = verdict(&[3525, 3830, 3679, 3964, 4160, 3001, 2259, 2225, 2338, 2328]);
        assert!(!falling.steady && falling.truncated_share == 0.5, "{falling:?}");
        let linear: Vec<u64> = (34..=288).collect();
        assert!(!verdict(&linear).steady);
        // Two slow seconds of twenty.
        let slow_start = verdict(&[
            108, 811, 3585, 3782, 3746, 3746, 3692, 3735, 3648, 3813, 3463, 3184, 3828, 3789, 3890,
            3782, 3767, 3749, 3504, 3795,
        ]);
        assert!(!slow_start.steady && slow_start.low_share == 0.1, "{slow_start:?}");
    }

    #[test]
    fn measured_runs_with_noise_are_steady() {
        for series in [
            // A dip at the end, and a rate that varies by 40 %.
            &[1242, 1523, 1404, 1627, 1694, 1670, 1600, 1352, 942, 999][..],
            &[900, 1300, 1000, 1250, 950, 1350, 900, 1200, 1100, 1300],
            &[0; 12],
        ] {
            assert!(verdict(series).steady, "{:?}", verdict(series));
        }
    }

    #[test]
    fn few_or_short_intervals_give_no_verdict() {
        assert_eq!(steadiness(&slots(&[5_000; 9]), 1.0, false), None);
        assert_eq!(steadiness(&[], 1.0, false), None);
        // Ten intervals of five transactions each are five of ten.
        assert_eq!(steadiness(&slots(&[5; 10]), 1.0, false), None);
        // The last interval of a run by number ends early.
        let mut short = slots(&[1_000; 10]);
        short.push(Slot { seconds: 0.01, ..Slot::default() });
        let record = steadiness(&short, 2.0, false).unwrap();
        assert_eq!((record.intervals, record.steady), (10, true));
        let last = (record.last_fifth_transactions_per_s, record.last_fifth_rows_per_s);
        assert_eq!(last, (1_000.0, 2_000.0));
    }
}
