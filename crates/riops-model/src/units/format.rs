//! Numbers for people: digits in groups of three, a suitable unit, three significant digits.

/// Rounds to a whole number; 0 for a negative one.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
pub fn nearest_integer(value: f64) -> u64 {
    value.round() as u64
}

/// Formats a share, 0 to 1, as percentage; with one decimal below 10%.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    // A rounding error below 0 would be "-0.0%".
    let percent = if percent.abs() < 0.05 { percent.abs() } else { percent };
    if percent >= 9.95 { format!("{percent:.0}%") } else { format!("{percent:.1}%") }
}

/// Formats a requested rate as a whole number from 100 on, else with the decimals that it needs.
pub fn requested_rate(per_s: f64) -> String {
    if per_s >= 100.0 {
        return count(nearest_integer(per_s));
    }
    let text = format!("{per_s:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Formats `1234567` as `1,234,567`.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A rate with three significant digits; a whole number from 100 on.
pub fn rate(per_second: f64) -> String {
    let per_second = per_second.max(0.0) + 0.0;
    match per_second {
        rate if rate >= 99.95 => count(nearest_integer(rate)),
        rate if rate >= 0.995 || rate == 0.0 => factor(rate),
        rate if rate >= 0.0995 => format!("{rate:.3}"),
        rate if rate >= 0.00995 => format!("{rate:.4}"),
        rate => format!("{rate:.5}"),
    }
}

/// A duration with three significant digits and a suitable unit: `412 µs`, `1.63 ms`, `2.10 s`.
pub fn duration_us(microseconds: f64) -> String {
    let (value, unit) = match microseconds {
        us if us < 999.5 => (us, "µs"),
        us if us < 999_500.0 => (us / 1e3, "ms"),
        us => (us / 1e6, "s"),
    };
    format!("{} {unit}", factor(value))
}

/// A value that may be only a lower bound: `≥ 459 ms`.
pub fn bounded(value: String, is_bound: bool) -> String {
    if is_bound { format!("≥ {value}") } else { value }
}

/// A factor with three significant digits: `1.51`, `23.2`, `117`. An empty sum is -0.0, which is shown as `0.00`.
pub fn factor(ratio: f64) -> String {
    let ratio = ratio + 0.0;
    match ratio {
        ratio if ratio >= 99.95 => format!("{ratio:.0}"),
        ratio if ratio >= 9.995 => format!("{ratio:.1}"),
        ratio if ratio > 0.0 && ratio < 0.0995 => format!("{ratio:.3}"),
        ratio => format!("{ratio:.2}"),
    }
}

/// In GB (10^9 bytes), or in MB below 0.1 GB.
pub fn bytes_text(bytes: u64) -> String {
    match bytes as f64 {
        bytes if bytes < 0.1e9 => format!("{:.1} MB", bytes / 1e6),
        bytes => format!("{:.2} GB", bytes / 1e9),
    }
}

/// A number of bytes with three significant digits and a suitable unit: `412 B`, `8.19 kB`, `1.05 MB`.
pub fn bytes_each(bytes: f64) -> String {
    let (value, unit) = match bytes {
        bytes if bytes < 999.5 => (bytes, "B"),
        bytes if bytes < 999_500.0 => (bytes / 1e3, "kB"),
        bytes if bytes < 999.5e6 => (bytes / 1e6, "MB"),
        bytes => (bytes / 1e9, "GB"),
    };
    format!("{} {unit}", rate(value))
}

/// The texts with a separator between them.
pub fn joined<T: ToString>(texts: impl IntoIterator<Item = T>, separator: &str) -> String {
    texts.into_iter().map(|text| text.to_string()).collect::<Vec<_>>().join(separator)
}

/// A number with its noun in singular or plural: `1 row`, `2,000 rows`, `3 retries`.
pub fn number_of(value: u64, noun: &str) -> String {
    match (value, noun.strip_suffix("try")) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{} {stem}tries", count(value)),
        _ => format!("{} {noun}s", count(value)),
    }
}

/// A number without its fraction; 0 if it is negative or not a number.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "what it is for")]
pub fn truncated(value: f64) -> usize {
    value as usize
}

/// Last characters of a run id, which lists show and commands accept.
const ID_CHARS: usize = 8;

/// Characters of a time in RFC 3339: date, hour and minute.
const MINUTE_CHARS: usize = 16;

/// The end of a run id: ids created in the same minute share their beginning.
pub fn short_id(id: &str) -> &str {
    id.get(id.len().saturating_sub(ID_CHARS)..).unwrap_or(id)
}

/// A time in RFC 3339 up to the minute, with a space before the hour.
pub fn to_the_minute(time: &str) -> String {
    time.get(..MINUTE_CHARS).unwrap_or(time).replace('T', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_groups_of_three_digits() {
        let pairs = [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")];
        for (value, text) in pairs {
            assert_eq!(count(value), text);
        }
    }

    #[test]
    fn rates_have_three_significant_digits() {
        let pairs = [
            (0.0, "0.00"),
            (0.001_234, "0.00123"),
            (0.012_34, "0.0123"),
            (0.2, "0.200"),
            (0.996, "1.00"),
            (1.234, "1.23"),
            (12.34, "12.3"),
            (99.96, "100"),
            (1234.5, "1,235"),
        ];
        for (value, text) in pairs {
            assert_eq!(rate(value), text);
        }
    }

    #[test]
    fn durations_have_a_suitable_unit() {
        let pairs = [
            (0.4, "0.40 µs"),
            (412.3, "412 µs"),
            (999.6, "1.00 ms"),
            (1_630.0, "1.63 ms"),
            (99_960.0, "100 ms"),
            (-0.0, "0.00 µs"),
            (2_100_000.0, "2.10 s"),
        ];
        for (value, text) in pairs {
            assert_eq!(duration_us(value), text);
        }
    }

    #[test]
    fn nouns_are_singular_for_one_only() {
        let pairs =
            [(0, "row", "0 rows"), (1, "retry", "1 retry"), (2_000, "retry", "2,000 retries")];
        for (value, noun, text) in pairs {
            assert_eq!(number_of(value, noun), text);
        }
    }

    #[test]
    fn shares_are_shown_as_percentages() {
        assert_eq!((percent(0.0312), percent(0.999)), ("3.1%".to_owned(), "100%".to_owned()));
        assert_eq!((percent(-1e-9), percent(-0.01)), ("0.0%".to_owned(), "-1.0%".to_owned()));
    }

    #[test]
    fn ids_and_times_are_shortened() {
        assert_eq!(short_id("01a20727-de07-71e9-8cf6-b341e3565e45"), "e3565e45");
        assert_eq!((short_id("abc"), to_the_minute("then")), ("abc", "then".to_owned()));
        assert_eq!(to_the_minute("2026-11-23T06:46:22Z"), "2026-11-23 06:46");
    }
}
