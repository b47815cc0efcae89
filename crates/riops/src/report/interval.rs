//! One interval of a run as a line.

use std::fmt::Write as _;

use super::format::{count, duration_us, rate};
use crate::record::Point;

/// The counters that are not zero.
pub(super) fn asides(counts: &[(u64, &str)]) -> String {
    let mut text = String::new();
    for (number, what) in counts.iter().filter(|(number, _)| *number > 0) {
        let _ = write!(text, " · {} {what}", count(*number));
    }
    text
}

/// p50, p99 and maximum of an interval: response times if there is a rate.
fn latencies(point: &Point) -> Option<[String; 3]> {
    let (p50, p99, max) = match point.response_p50_us {
        Some(_) => (point.response_p50_us, point.response_p99_us, point.response_max_us),
        None => (point.p50_us, point.p99_us, point.max_us),
    };
    let text = |name: &str, us: f64| format!("{name} {}", duration_us(us));
    Some([text("p50", p50?), text("p99", p99?), text("max", max?)])
}

fn counters(point: &Point) -> [(u64, &'static str); 5] {
    [
        (point.errors, "errors"),
        (point.retries, "retries"),
        (point.late, "late"),
        (point.skipped, "skipped"),
        (point.backlog.unwrap_or(0), "waiting"),
    ]
}

const NOTHING_FINISHED: &str = "no transaction finished";

/// One interval as a line of a log.
#[must_use]
pub(super) fn interval_line(point: &Point) -> String {
    let latency =
        latencies(point).map_or_else(|| NOTHING_FINISHED.to_owned(), |parts| parts.join(" · "));
    format!(
        "{:>6.1} s  {:>12} rows/s  {:>9} tx/s  {latency}{}",
        point.t_s,
        rate(point.rows as f64 / point.seconds),
        rate(point.transactions as f64 / point.seconds),
        asides(&counters(point)),
    )
}

/// The parts of a live line with their ranks: errors and the main result come before details.
pub(super) fn live_parts(
    point: &Point,
    counts_transactions: bool,
    has_rows: bool,
    progress: &str,
) -> Vec<(u8, String)> {
    let rows = format!("{} rows/s", rate(point.rows as f64 / point.seconds));
    let transactions = format!("{} tx/s", rate(point.transactions as f64 / point.seconds));
    let (first, second) =
        if counts_transactions { (transactions, rows) } else { (rows, transactions) };
    let mut parts = vec![(0, progress.to_owned()), (1, first)];
    if has_rows {
        parts.push((5, second));
    }
    match latencies(point) {
        Some([p50, p99, max]) => parts.extend([(6, p50), (4, p99), (7, max)]),
        None => parts.push((4, NOTHING_FINISHED.to_owned())),
    }
    let counters = counters(point).into_iter().filter(|(number, _)| *number > 0);
    parts.extend(counters.map(|(number, name)| (2, format!("{} {name}", count(number)))));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example_record;

    #[test]
    fn a_live_line_is_never_cut_inside_a_number_and_shows_errors_first() {
        let mut point = example_record().stages[0].session_loop.series[0].clone();
        point.errors = 2;
        let line = |width| crate::report::fit(&live_parts(&point, false, true, "1/10 s"), width);
        assert_eq!(
            line(120),
            "1/10 s · 1,200,000 rows/s · 1,200 tx/s · p50 1.60 ms · p99 2.90 ms · max 4.10 ms · 2 errors"
        );
        assert_eq!(line(60), "1/10 s · 1,200,000 rows/s · p99 2.90 ms · 2 errors");
        assert_eq!(line(40), "1/10 s · 1,200,000 rows/s · 2 errors");
    }

    #[test]
    fn an_interval_is_one_line_of_a_log() {
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
            "   1.0 s          0.00 rows/s       0.00 tx/s  no transaction finished · 2 errors"
        );
    }
}
