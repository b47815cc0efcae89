//! Figures with sysbench's names and formats, for the text report of `oltp` and for `--output sysbench`.

use super::interval::seconds;
use crate::plan::Plan;
use crate::record::StageRecord;
use crate::record::{LatencySummary, Point};

/// Returns the latency as defined by sysbench, and its sum in seconds. With a rate this is the response time,
/// because sysbench includes the time in its queue.
pub(super) fn latency(stage: &StageRecord) -> Option<(&LatencySummary, f64)> {
    match (&stage.session_loop.response_us, &stage.session_loop.service_us) {
        (Some(response), _) => Some((response, response.mean * response.count as f64 / 1e6)),
        (None, Some(service)) => Some((service, stage.database_s.unwrap_or(0.0))),
        (None, None) => None,
    }
}

/// Returns the name of a percentile, for example `95th percentile`.
pub(super) fn percentile_name(percentile: f64) -> String {
    format!("{percentile}th percentile")
}

/// Formats one interval exactly as sysbench does.
pub(super) fn sysbench_interval(point: &Point, plan: &Plan) -> String {
    let per_s = |number: u64| number as f64 / point.seconds;
    let queries = point.queries;
    format!(
        "[ {}s ] thds: {} tps: {:.2} qps: {:.2} (r/w/o: {:.2}/{:.2}/{:.2}) lat (ms,{}%): {:.2} err/s: {:.2} reconn/s: {:.2}",
        seconds(point.t_s, plan, 0),
        plan.sessions,
        per_s(point.transactions),
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
