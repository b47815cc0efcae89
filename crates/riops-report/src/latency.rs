//! Statistics of a latency as text.

use crate::table::Cell;
use riops_model::figure::Statistic;
use riops_model::record::LatencySummary;
use riops_model::units::format::{bounded, duration_us};

/// All percentiles in one line, and which ones a few stalls hide.
pub(super) fn latency_text(latency: &LatencySummary) -> String {
    let text = |statistic: &Statistic| {
        Some(format!("{} {}", statistic.name, statistic_text(statistic, latency)?))
    };
    let shown = Statistic::percentiles().filter_map(text).collect::<Vec<_>>().join(" · ");
    let is_hidden = |statistic: &&Statistic| {
        statistic.percent.is_some_and(|percent| latency.is_hidden_by_stalls(percent))
    };
    let hidden: Vec<_> =
        Statistic::percentiles().filter(is_hidden).map(|statistic| statistic.name).collect();
    let hidden = match *hidden {
        [] => return shown,
        [only] => only.to_owned(),
        [first, .., last] => format!("{first} to {last}"),
    };
    format!("{shown} ({hidden} not shown: the slow transactions belong to a few stalls)")
}

/// A statistic, marked if it is only a lower bound.
pub(super) fn statistic_text(statistic: &Statistic, latency: &LatencySummary) -> Option<String> {
    let value = duration_us(statistic.value(latency)?);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_that_stalls_hide_are_named() {
        let mut latency = LatencySummary::for_test(1_000.0, 2_000.0);
        latency.count = 12_000;
        assert!(!latency_text(&latency).contains("not shown"));
        latency.shown_to = Some(50.0);
        let text = latency_text(&latency);
        // The number is too small for p99.99.
        let hidden = "(p90 to p99.9 not shown: the slow transactions belong to a few stalls)";
        assert!(text.ends_with(hidden) && text.contains("p50"), "{text}");
        latency.shown_to = Some(99.0);
        assert!(latency_text(&latency).contains("(p99.9 not shown"));
    }
}
