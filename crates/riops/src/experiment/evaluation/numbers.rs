//! Values of axes as numbers: `10`, `1e6`, `1_000`, `20GB`, `30s`, `50%`.

use std::str::FromStr;

use crate::units::{Span, split_size};

/// Returns the values of an axis as numbers; `None` unless all are different numbers of one kind.
pub(super) fn numbers(values: &[String]) -> Option<Vec<f64>> {
    let parsed = [plain, size, duration]
        .into_iter()
        .find_map(|parse| values.iter().map(|value| parse(value)).collect::<Option<Vec<f64>>>())?;
    let is_new =
        |at: usize, value: f64| parsed.iter().take(at).all(|known| known.total_cmp(&value).is_ne());
    parsed.iter().enumerate().all(|(at, value)| is_new(at, *value)).then_some(parsed)
}

fn plain(text: &str) -> Option<f64> {
    let text = text.trim().trim_end_matches('%').replace(['_', ','], "");
    let starts = |first: char| first.is_ascii_digit() || matches!(first, '-' | '+' | '.');
    if !text.starts_with(starts) {
        // Not `inf` or `nan`.
        return None;
    }
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

fn size(text: &str) -> Option<f64> {
    let (number, unit_bytes) = split_size(text.trim())?;
    Some(plain(number)? * unit_bytes? as f64)
}

fn duration(text: &str) -> Option<f64> {
    Span::from_str(text.trim()).ok().map(|span| span.0.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[&str]) -> Option<Vec<f64>> {
        numbers(&values.iter().map(|&value| value.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn values_of_options_are_numbers() {
        assert_eq!(of(&["1", "1_000", "1e6", "2.5"]), Some(vec![1.0, 1e3, 1e6, 2.5]));
        assert_eq!(of(&["64MB", "1GB"]), Some(vec![67_108_864.0, 1_073_741_824.0]));
        assert_eq!(of(&["500ms", "2s", "1m"]), Some(vec![0.5, 2.0, 60.0]));
        assert_eq!(of(&["10%", "50%"]), Some(vec![10.0, 50.0]));
    }

    #[test]
    fn words_and_equal_numbers_are_not() {
        assert_eq!(of(&["headless", "cluster-ip"]), None);
        assert_eq!(of(&["1", "inf"]), None);
        assert_eq!(of(&["1", "16MB"]), None);
        assert_eq!(of(&["10", "1e1"]), None);
    }
}
