//! Figures with sysbench's names and formats, for the text report of `oltp` and for `--output sysbench`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::interval::seconds;
use riops_model::plan::{OltpRun, OltpTest, Plan};
use riops_model::record::{LatencySummary, Point, StageRecord};
use riops_model::units::format::truncated;

/// Returns the latency as defined by sysbench, and its sum in seconds. With a rate this is the response time,
/// because sysbench includes the time in its queue.
pub(super) fn latency(stage: &StageRecord) -> Option<(&LatencySummary, f64)> {
    match (&stage.session_loop.response_us, &stage.session_loop.service_us) {
        (Some(response), _) => {
            Some((response, response.of_successful().mean * response.count as f64 / 1e6))
        }
        (None, Some(service)) => Some((service, stage.database_s.unwrap_or(0.0))),
        (None, None) => None,
    }
}

/// Returns the name of a percentile, for example `95th percentile`.
pub(super) fn percentile_name(percentile: f64) -> String {
    format!("{percentile}th percentile")
}

/// sysbench's buckets: their number, and the bounds in milliseconds. The centers are evenly spaced on a logarithmic
/// scale.
const BUCKETS: f64 = 1_024.0;
const SHORTEST_MS: f64 = 0.001;
const LONGEST_MS: f64 = 100_000.0;
/// Length of the longest bar.
const BAR: usize = 40;

/// Returns sysbench's latency histogram; `None` if no latency was stored.
pub(super) fn histogram(stage: &StageRecord) -> Option<String> {
    let histogram = stage.session_loop.latency_histogram()?.decode().ok()?;
    let per_bucket = (LONGEST_MS / SHORTEST_MS).ln() / (BUCKETS - 1.0);
    let mut buckets: BTreeMap<usize, u64> = BTreeMap::new();
    for (latency, count) in histogram.recorded() {
        let ms = (latency.as_micros() / 1e3).clamp(SHORTEST_MS, LONGEST_MS);
        let bucket = truncated((ms / SHORTEST_MS).ln() / per_bucket + 0.5);
        *buckets.entry(bucket).or_default() += count;
    }
    let most = buckets.values().copied().max()?;
    let mut text = "Latency histogram (values are in milliseconds)\n       value  ------------- distribution ------------- count\n".to_owned();
    for (bucket, count) in buckets {
        let ms = SHORTEST_MS * (bucket as f64 * per_bucket).exp();
        let bar = "*"
            .repeat(usize::try_from((count * BAR as u64 * 2 + most) / (most * 2)).unwrap_or(BAR));
        let _ = writeln!(text, "{ms:>12.3} |{bar:<BAR$} {count}");
    }
    text.push_str(" \n");
    Some(text)
}

/// Returns the number of sysbench's events in a transaction: with `bulk-insert`, each row is one.
pub(super) fn events_per_transaction(plan: &Plan) -> u64 {
    let bulk = plan.work.get::<OltpRun>().filter(|run| run.test == OltpTest::BulkInsert);
    bulk.map_or(1, |run| run.batch_insert_count.into())
}

/// Formats one interval exactly as sysbench does.
pub(super) fn sysbench_interval(point: &Point, plan: &Plan) -> String {
    let per_s = |count: u64| count as f64 / point.seconds;
    let queries = point.queries;
    format!(
        "[ {}s ] thds: {} tps: {:.2} qps: {:.2} (r/w/o: {:.2}/{:.2}/{:.2}) lat (ms,{}%): {:.2} err/s: {:.2} reconn/s: {:.2}",
        seconds(point.t_s, plan, 0),
        plan.sessions,
        per_s(point.transactions * events_per_transaction(plan)),
        per_s(queries.total()),
        per_s(queries.read),
        per_s(queries.write),
        per_s(queries.other),
        plan.percentile,
        point.percentile_us.unwrap_or(0.0) / 1e3,
        per_s(point.errors),
        per_s(point.reconnects)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example_oltp;

    #[test]
    fn intervals_have_the_format_of_sysbench() {
        let record = example_oltp();
        let point = &record.stages[0].session_loop.series[0];
        assert_eq!(
            sysbench_interval(point, &record.plan),
            "[ 1s ] thds: 2 tps: 1200.00 qps: 24000.00 (r/w/o: 16800.00/4800.00/2400.00) lat (ms,95%): 2.30 err/s: 2.00 reconn/s: 0.00"
        );
    }
}
