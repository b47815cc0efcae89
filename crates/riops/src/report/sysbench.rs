//! Figures under sysbench's names and in its formats, for the text of `oltp` and for sysbench's report.

use crate::plan::Plan;
use crate::record::StageRecord;
use crate::record::{LatencySummary, Point};

/// What sysbench calls latency, and its sum in seconds: with a rate from the intended start, since
/// sysbench counts the time in its queue too.
pub(super) fn latency(stage: &StageRecord) -> Option<(&LatencySummary, f64)> {
    match (&stage.session_loop.response_us, &stage.session_loop.service_us) {
        (Some(response), _) => Some((response, response.mean * response.count as f64 / 1e6)),
        (None, Some(service)) => Some((service, stage.database_s.unwrap_or(0.0))),
        (None, None) => None,
    }
}

/// `95th percentile`.
pub(super) fn percentile_name(percentile: f64) -> String {
    format!("{percentile}th percentile")
}

/// One interval in exactly the words of sysbench.
pub(super) fn sysbench_interval(point: &Point, plan: &Plan) -> String {
    let per_s = |number: u64| number as f64 / point.seconds;
    let queries = point.queries;
    format!(
        "[ {}s ] thds: {} tps: {:.2} qps: {:.2} (r/w/o: {:.2}/{:.2}/{:.2}) lat (ms,{}%): {:.2} err/s: {:.2} reconn/s: {:.2}",
        seconds(point.t_s, plan),
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

/// Whole seconds, as sysbench has them; tenths where intervals are shorter.
fn seconds(t_s: f64, plan: &Plan) -> String {
    if plan.interval_s.fract() == 0.0 { format!("{t_s:.0}") } else { format!("{t_s:.1}") }
}
