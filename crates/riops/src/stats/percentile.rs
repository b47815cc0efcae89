//! Whether a percentile can be shown.

/// Minimum number of effective values beyond a percentile.
///
/// The number of values beyond the true percentile is binomial. With ten expected, its standard deviation is 3.2:
/// the recorded p99 is between the true p98.4 and p99.6 in 95 % of the runs. With one, it is the maximum. (Order
/// statistics as limits of a percentile: Hahn and Meeker, "Statistical Intervals", 1991, section 5.2.)
pub const BEYOND_MIN: f64 = 10.0;

/// Whether a percentile (0 to 100) of `count` values can be shown. `effective_share` is the effective sample size
/// divided by the number of values, see [`super::effective_sample_size`]; 1 for independent values.
#[must_use]
pub fn percentile_shown(count: u64, percentile: f64, effective_share: f64) -> bool {
    let beyond = (1.0 - percentile / 100.0).min(percentile / 100.0);
    // Rounding: 1 - 0.999 is slightly less than 0.001.
    count as f64 * effective_share.clamp(0.0, 1.0) * beyond >= BEYOND_MIN * (1.0 - 1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn needs_ten_effective_values_beyond_the_percentile() {
        assert!(percentile_shown(1_000, 99.0, 1.0) && !percentile_shown(999, 99.0, 1.0));
        assert!(percentile_shown(10_000, 99.9, 1.0) && !percentile_shown(9_999, 99.9, 1.0));
        assert!(percentile_shown(20, 50.0, 1.0) && !percentile_shown(19, 50.0, 1.0));
        assert!(percentile_shown(1_000, 1.0, 1.0) && !percentile_shown(999, 1.0, 1.0));
    }

    #[test]
    fn correlated_values_count_less() {
        assert!(!percentile_shown(1_000, 99.0, 0.1) && percentile_shown(10_000, 99.0, 0.1));
        assert!(!percentile_shown(1_000, 99.0, f64::NAN));
    }

    #[test]
    fn an_extreme_is_never_shown() {
        assert!(!percentile_shown(u64::MAX, 100.0, 1.0) && !percentile_shown(0, 50.0, 1.0));
    }
}
