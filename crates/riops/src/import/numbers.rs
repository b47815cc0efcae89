//! The numbers in results of other tools. Larger ones than any run has are not numbers, so that sums cannot overflow.

use crate::units::format::nearest_integer;
use std::str::FromStr;

/// Maximum count: a million per second for 12 days. A log would need 16 million such lines to exceed 64 bits.
const COUNT_MAX: u64 = 1 << 40;
/// Maximum of other numbers; the largest ones are sums of squared microseconds. Their reciprocal is the minimum.
const DECIMAL_MAX: f64 = 1e30;

/// A type of numbers with limits.
pub(super) trait Limited: FromStr {
    /// Whether a run can have this number.
    fn is_possible(&self) -> bool {
        true
    }
}

impl Limited for u32 {}

impl Limited for u64 {
    fn is_possible(&self) -> bool {
        *self <= COUNT_MAX
    }
}

impl Limited for i64 {
    fn is_possible(&self) -> bool {
        self.unsigned_abs() <= COUNT_MAX
    }
}

impl Limited for f64 {
    fn is_possible(&self) -> bool {
        *self == 0.0 || (DECIMAL_MAX.recip()..=DECIMAL_MAX).contains(&self.abs())
    }
}

/// Returns the number of a text, if it is one within the limits.
pub(super) fn parse_number<T: Limited>(text: &str) -> Option<T> {
    text.trim().parse().ok().filter(T::is_possible)
}

/// Returns the number of a text that must be one.
pub(super) fn require_number<T: Limited>(text: &str) -> Result<T, String> {
    parse_number(text).ok_or_else(|| format!("expected a number, found \"{text}\""))
}

/// Returns the count of a rate over some time.
pub(super) fn counted(per_s: f64, seconds: f64) -> u64 {
    nearest_integer((per_s * seconds).clamp(0.0, COUNT_MAX as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_limits() {
        assert_eq!(parse_number::<u64>(" 1099511627776 "), Some(COUNT_MAX));
        assert_eq!(parse_number::<u64>("1099511627777"), None);
        assert_eq!(parse_number::<f64>("-1e30"), Some(-1e30));
        for text in ["1e31", "1e-31", "inf", "nan", "", "x"] {
            assert_eq!(parse_number::<f64>(text), None, "{text}");
        }
        assert_eq!(parse_number::<f64>("0.0"), Some(0.0));
        assert_eq!((counted(0.5, 3.0), counted(-1.0, 1.0)), (2, 0));
        assert_eq!((counted(1e30, 1e30), counted(f64::NAN, 1.0)), (COUNT_MAX, 0));
    }
}
