//! Statistics of a latency as text.

use crate::figure::Statistic;
use crate::record::LatencySummary;
use crate::report::table::Cell;
use crate::units::format::{bounded, duration_us};

/// All percentiles in one line.
pub(super) fn latency_text(latency: &LatencySummary) -> String {
    let text = |each: &Statistic| Some(format!("{} {}", each.name, statistic_text(each, latency)?));
    Statistic::percentiles().filter_map(text).collect::<Vec<_>>().join(" · ")
}

/// A statistic, marked if it is only a lower bound.
pub(super) fn statistic_text(statistic: &Statistic, latency: &LatencySummary) -> Option<String> {
    let value = duration_us(statistic.of(latency)?);
    Some(bounded(value, statistic.is_bound(latency)))
}

/// The statistic with this key.
pub(super) fn latency_named(latency: &LatencySummary, key: &str) -> Option<String> {
    statistic_text(Statistic::named(key)?, latency)
}

/// The statistic with this key as a cell of a table.
pub(super) fn latency_cell(latency: Option<&LatencySummary>, key: &str) -> Cell {
    latency.and_then(|latency| latency_named(latency, key)).into()
}
