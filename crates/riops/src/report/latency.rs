//! Percentiles of a latency in one line.

use crate::figure::Statistic;
use crate::record::LatencySummary;
use crate::report::table::Cell;
use crate::units::format::duration_us;

pub(super) fn latency_text(latency: &LatencySummary) -> String {
    let text = |each: &Statistic| Some(format!("{} {}", each.name, duration_us(each.of(latency)?)));
    Statistic::percentiles().filter_map(text).collect::<Vec<_>>().join(" · ")
}

/// A statistic of a latency as a cell of a table.
pub(super) fn latency_cell(
    latency: Option<&LatencySummary>,
    pick: fn(&LatencySummary) -> f64,
) -> Cell {
    latency.map(|latency| duration_us(pick(latency))).into()
}
