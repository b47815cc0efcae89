//! One interval of a run as a line.

use std::fmt::Write as _;

use crate::figure::Statistic;
use crate::plan::{Plan, Stop};
use crate::record::Point;
use crate::units::format::{count, duration_us, rate};

/// The time series has at most this many decimals: `--interval` has a resolution of milliseconds.
const DECIMALS_MAX: usize = 3;

/// A time of the series, with as many decimals as the intervals need, and at least `decimals_min`.
pub(super) fn seconds(t_s: f64, plan: &Plan, decimals_min: usize) -> String {
    let end_s = match plan.stop {
        Stop::DurationS(seconds) => seconds,
        Stop::Transactions(_) | Stop::Rows(_) => 0.0,
    };
    let decimals = decimals(plan.interval_s).max(decimals(end_s)).max(decimals_min);
    format!("{t_s:.decimals$}")
}

/// The number of decimals of a number of seconds.
fn decimals(seconds: f64) -> usize {
    let is_whole = |decimals: &usize| {
        let scaled = (0..*decimals).fold(seconds, |scaled, _| scaled * 10.0);
        (scaled - scaled.round()).abs() < 1e-6
    };
    (0..DECIMALS_MAX).find(is_whole).unwrap_or(DECIMALS_MAX)
}

/// The counters that are not zero.
pub(super) fn asides(counts: &[(u64, &str)]) -> String {
    let mut text = String::new();
    for (number, what) in counts.iter().filter(|(number, _)| *number > 0) {
        let _ = write!(text, " · {} {what}", count(*number));
    }
    text
}

/// The latencies of an interval, each with its rank in a live line: response times if there is a rate. `None` if no
/// transaction ended in the interval.
fn latencies(point: &Point, plan: &Plan) -> Option<Vec<(u8, String)>> {
    let text = |name: &str, us: f64| format!("{name} {}", duration_us(us));
    Statistic::of_series().next()?.of_users(point)?;
    let found = Statistic::of_series().filter_map(|each| Some((each, each.of_users(point)?)));
    let found: Vec<_> = found.collect();
    let mut parts: Vec<_> =
        found.iter().map(|(each, us)| (rank(each), text(each.name, *us))).collect();
    let percent = plan.percentile;
    let is_shown = found.iter().any(|(each, _)| each.percent == Some(percent));
    if let Some(us) = point.percentile_us.filter(|_| !is_shown) {
        parts.insert(1, (8, text(&format!("p{percent}"), us)));
    }
    if point.response_p50_us.is_some() {
        parts.extend(point.p99_us.map(|us| (9, text("service p99", us))));
    }
    Some(parts)
}

fn rank(statistic: &Statistic) -> u8 {
    match statistic.key {
        "p99" => 4,
        "p50" => 6,
        "max" => 7,
        _ => 8,
    }
}

fn counters(point: &Point) -> [(u64, &'static str); 5] {
    let noun = |number: u64, one, several| (number, if number == 1 { one } else { several });
    [
        noun(point.errors, "error", "errors"),
        noun(point.retries, "retry", "retries"),
        (point.late, "late"),
        (point.skipped, "skipped"),
        (point.backlog.unwrap_or(0), "waiting"),
    ]
}

const NOTHING_FINISHED: &str = "no transaction finished";

/// One interval as a line of a log.
#[must_use]
pub(super) fn interval_line(point: &Point, plan: &Plan) -> String {
    let kind = if point.response_p50_us.is_some() { "response " } else { "" };
    let latency = latencies(point, plan).map_or_else(
        || NOTHING_FINISHED.to_owned(),
        |parts| {
            let parts: Vec<_> = parts.into_iter().map(|(_, text)| text).collect();
            format!("{kind}{}", parts.join(" · "))
        },
    );
    format!(
        "{:>6} s  {:>12} rows/s  {:>9} tx/s  {latency}{}",
        seconds(point.t_s, plan, 1),
        rate(point.rows as f64 / point.seconds),
        rate(point.transactions as f64 / point.seconds),
        asides(&counters(point)),
    )
}

/// The parts of a live line with their ranks: errors and the main result come before details.
pub(super) fn live_parts(
    (point, plan): (&Point, &Plan),
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
    let mut latencies =
        latencies(point, plan).unwrap_or_else(|| vec![(4, NOTHING_FINISHED.to_owned())]);
    if point.response_p50_us.is_some() {
        // The label is part of the one that is shown longest.
        latencies.sort_by_key(|(rank, _)| *rank != 4);
        latencies.iter_mut().take(1).for_each(|(_, text)| text.insert_str(0, "response "));
    }
    parts.extend(latencies);
    let counters = counters(point).into_iter().filter(|(number, _)| *number > 0);
    parts.extend(counters.map(|(number, name)| (2, format!("{} {name}", count(number)))));
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::example_record;

    fn with_response(mut point: Point) -> Point {
        point.response_p50_us = Some(2_850_000.0);
        point.response_p99_us = Some(3_100_000.0);
        point.response_max_us = Some(3_200_000.0);
        point.percentile_us = Some(3_000_000.0);
        point
    }

    fn every(interval_s: f64) -> Plan {
        Plan { interval_s, stop: Stop::DurationS(2.0), ..Plan::default() }
    }

    #[test]
    fn a_time_has_as_many_decimals_as_the_intervals_need() {
        let times = |interval_s: f64| {
            [1.0, 2.0, 3.0].map(|number| seconds(number * interval_s, &every(interval_s), 0))
        };
        assert_eq!(times(0.25), ["0.25", "0.50", "0.75"]);
        assert_eq!(times(0.1), ["0.1", "0.2", "0.3"]);
        assert_eq!(times(0.125), ["0.125", "0.250", "0.375"]);
        assert_eq!(times(1.0), ["1", "2", "3"]);
        let ends_early = Plan { stop: Stop::DurationS(1.25), ..every(1.0) };
        assert_eq!(seconds(1.25, &ends_early, 1), "1.25");
    }

    #[test]
    fn with_a_rate_the_lines_show_labeled_response_times_and_the_service_time() {
        let point = with_response(example_record().stages[0].session_loop.series[0].clone());
        let line = interval_line(&point, &every(1.0));
        assert!(
            line.ends_with(
                "response p50 2.85 s · p95 3.00 s · p99 3.10 s · max 3.20 s · service p99 2.90 ms"
            ),
            "{line}"
        );
        let shown = |width| {
            crate::report::fit(&live_parts((&point, &every(1.0)), false, true, "1/2 s"), width)
        };
        assert_eq!(shown(50), "1/2 s · 1,200,000 rows/s · response p99 3.10 s");
        assert!(shown(200).contains("response p99 3.10 s · p50 2.85 s"), "{}", shown(200));
        assert!(shown(200).ends_with("service p99 2.90 ms"), "{}", shown(200));
    }

    #[test]
    fn the_percentile_of_the_plan_is_part_of_the_lines_of_every_workload() {
        let mut point = example_record().stages[0].session_loop.series[0].clone();
        point.percentile_us = Some(2_700.0);
        let line = |percentile| interval_line(&point, &Plan { percentile, ..every(1.0) });
        assert!(line(97.5).contains("p50 1.60 ms · p97.5 2.70 ms · p99 2.90 ms"), "{}", line(97.5));
        assert!(line(99.0).contains("p50 1.60 ms · p99 2.90 ms"), "{}", line(99.0));
    }

    #[test]
    fn a_live_line_is_never_cut_inside_a_number_and_shows_errors_first() {
        let mut point = example_record().stages[0].session_loop.series[0].clone();
        point.percentile_us = None;
        point.errors = 2;
        let line = |width| {
            crate::report::fit(&live_parts((&point, &every(1.0)), false, true, "1/10 s"), width)
        };
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
        point.percentile_us = None;
        assert_eq!(
            interval_line(&point, &every(1.0)),
            "   1.0 s     1,200,000 rows/s      1,200 tx/s  p50 1.60 ms · p99 2.90 ms · max 4.10 ms"
        );
        point.transactions = 0;
        point.rows = 0;
        point.p50_us = None;
        point.errors = 2;
        assert_eq!(
            interval_line(&point, &every(1.0)),
            "   1.0 s          0.00 rows/s       0.00 tx/s  no transaction finished · 2 errors"
        );
        (point.errors, point.retries) = (1, 1);
        assert!(interval_line(&point, &every(1.0)).ends_with(" · 1 error · 1 retry"));
    }
}
