//! Percentiles of a latency in one line.

use super::format::duration_us;
use crate::figure::Statistic;
use crate::record::LatencySummary;

pub(super) fn latency_text(latency: &LatencySummary) -> String {
    let text = |each: &Statistic| Some(format!("{} {}", each.name, duration_us(each.of(latency)?)));
    Statistic::percentiles().filter_map(text).collect::<Vec<_>>().join(" · ")
}
