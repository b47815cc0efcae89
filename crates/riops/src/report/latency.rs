//! Percentiles of a latency in one line.

use crate::figure::Statistic;
use crate::record::LatencySummary;
use crate::units::format::duration_us;

pub(super) fn latency_text(latency: &LatencySummary) -> String {
    let text = |each: &Statistic| Some(format!("{} {}", each.name, duration_us(each.of(latency)?)));
    Statistic::percentiles().filter_map(text).collect::<Vec<_>>().join(" · ")
}
