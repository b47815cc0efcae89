//! One interval of a run as a line.

use std::fmt::Write as _;

use riops_model::figure::Statistic;
use riops_model::plan::{Plan, Stop};
use riops_model::record::{LiveTotals, Point};
use riops_model::units::format::{count, duration_us, rate};

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
    for (value, what) in counts.iter().filter(|(value, _)| *value > 0) {
        let _ = write!(text, " · {} {what}", count(*value));
    }
    text
}

/// The latencies of an interval and what they are: response times if there is a rate. None if no transaction ended in the
/// interval.
pub(super) fn latencies(point: &Point, plan: &Plan) -> (&'static str, Vec<String>) {
    let has_rate = point.response_p50_us.is_some();
    let label = if has_rate { "response" } else { "latency" };
    let text = |name: &str, us: f64| format!("{name} {}", duration_us(us));
    if Statistic::of_series().next().and_then(|first| first.of_users(point)).is_none() {
        return (label, Vec::new());
    }
    let latencies = Statistic::of_series()
        .filter_map(|statistic| Some((statistic, statistic.of_users(point)?)));
    let latencies: Vec<_> = latencies.collect();
    let mut parts: Vec<_> =
        latencies.iter().map(|(statistic, us)| text(statistic.name, *us)).collect();
    let percent = plan.percentile;
    let is_shown = latencies.iter().any(|(statistic, _)| statistic.percent == Some(percent));
    if let Some(us) = point.percentile_us.filter(|_| !is_shown) {
        parts.insert(1, text(&format!("p{percent}"), us));
    }
    if has_rate {
        parts.extend(point.p99_us.map(|us| text("service p99", us)));
    }
    (label, parts)
}

/// Counts that are shown if they are not zero.
pub(super) fn counters(counts: &LiveTotals, backlog: Option<u64>) -> [(u64, &'static str); 6] {
    let noun = |value: u64, one, several| (value, if value == 1 { one } else { several });
    [
        noun(counts.errors, "error", "errors"),
        noun(counts.retries, "retry", "retries"),
        noun(counts.reconnects, "reconnect", "reconnects"),
        (counts.late, "late"),
        (counts.skipped, "skipped"),
        (backlog.unwrap_or(0), "waiting"),
    ]
}

pub(super) const NOTHING_FINISHED: &str = "no transaction finished";

/// One interval as a line of a log.
pub(super) fn interval_line(point: &Point, plan: &Plan) -> String {
    let (label, parts) = latencies(point, plan);
    let kind = if label == "response" { "response " } else { "" };
    let latency = match parts.as_slice() {
        [] => NOTHING_FINISHED.to_owned(),
        parts => format!("{kind}{}", parts.join(" · ")),
    };
    let mut counts = LiveTotals::default();
    counts.add(point);
    format!(
        "{:>6} s  {:>12} rows/s  {:>9} tx/s  {latency}{}",
        seconds(point.t_s, plan, 1),
        rate(point.rows as f64 / point.seconds),
        rate(point.transactions as f64 / point.seconds),
        asides(&counters(&counts, point.backlog)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example_record;

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
            [1.0, 2.0, 3.0].map(|intervals| seconds(intervals * interval_s, &every(interval_s), 0))
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
