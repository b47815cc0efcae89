//! Percentiles of a latency in one line.

use super::format::duration_us;
use crate::record::LatencySummary;

pub(super) fn latency_text(latency: &LatencySummary) -> String {
    let parts = [
        ("p50", latency.p50),
        ("p90", latency.p90),
        ("p95", latency.p95),
        ("p99", latency.p99),
        ("p99.9", latency.p999),
        ("max", latency.max),
    ];
    let parts: Vec<_> =
        parts.iter().map(|(name, value)| format!("{name} {}", duration_us(*value))).collect();
    parts.join(" · ")
}
