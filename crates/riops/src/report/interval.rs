//! One interval of a run as a line.

use std::fmt::Write as _;

use super::format::{duration_us, rate};
use crate::record::Point;

/// What there is besides, where there is any of it.
pub(super) fn asides(counts: &[(u64, &str)]) -> String {
    let mut text = String::new();
    for (number, what) in counts.iter().filter(|(number, _)| *number > 0) {
        let _ = write!(text, " · {number} {what}");
    }
    text
}

/// One interval as a line.
#[must_use]
pub(super) fn interval_line(point: &Point) -> String {
    let (p50, p99, max) = match point.response_p50_us {
        Some(_) => (point.response_p50_us, point.response_p99_us, point.response_max_us),
        None => (point.p50_us, point.p99_us, point.max_us),
    };
    let latency = match (p50, p99, max) {
        (Some(p50), Some(p99), Some(max)) => {
            format!(
                "p50 {} · p99 {} · max {}",
                duration_us(p50),
                duration_us(p99),
                duration_us(max)
            )
        }
        _ => "nothing ended".to_owned(),
    };
    let asides = asides(&[
        (point.errors, "errors"),
        (point.retries, "retries"),
        (point.late, "late"),
        (point.skipped, "skipped"),
        (point.backlog.unwrap_or(0), "waiting"),
    ]);
    format!(
        "{:>6.1} s  {:>12} rows/s  {:>9} tx/s  {latency}{asides}",
        point.t_s,
        rate(point.rows as f64 / point.seconds),
        rate(point.transactions as f64 / point.seconds),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example_record;

    #[test]
    fn an_interval_is_one_line() {
        let mut point = example_record().stages[0].session_loop.series[0].clone();
        assert_eq!(
            interval_line(&point),
            "   1.0 s     1,200,000 rows/s      1,200 tx/s  p50 1.60 ms · p99 2.90 ms · max 4.10 ms"
        );
        point.transactions = 0;
        point.rows = 0;
        point.p50_us = None;
        point.errors = 2;
        assert_eq!(
            interval_line(&point),
            "   1.0 s          0.00 rows/s       0.00 tx/s  nothing ended · 2 errors"
        );
    }
}
