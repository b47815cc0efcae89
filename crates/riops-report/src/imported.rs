//! What the report of an imported run shows instead of the parts that only riops measures.

use crate::document::Document;
use riops_model::plan::ImportedRun;
use riops_model::record::{LatencyKind, Record, ReportedLatency, StageRecord, StartSource};
use riops_model::units::format::duration_us;

/// Why the run is neither valid nor invalid.
pub(super) fn not_verified(record: &Record) -> String {
    let reasons = record.verdict.reasons.join("; ");
    format!("not verified: {reasons}")
}

/// The start of the run, and where it comes from if it was not recorded.
pub(super) fn started(record: &Record) -> String {
    let text = record.started_at.strftime("%F %T UTC").to_string();
    match record.imported.as_ref().map(|imported| imported.start) {
        Some(StartSource::FileTime) => format!("{text} (estimated from the time of the file)"),
        Some(StartSource::ImportTime) => format!("{text} (unknown; the time of the import)"),
        Some(StartSource::Results | StartSource::User) | None => text,
    }
}

/// Name and version of the tool.
pub(super) fn tool(run: &ImportedRun) -> String {
    match &run.version {
        Some(version) => format!("{} {version}", run.tool),
        None => run.tool.clone(),
    }
}

/// The latency without a histogram.
pub(super) fn reported_latency(document: &mut Document, stage: &StageRecord) {
    if let Some(reported) = &stage.session_loop.reported_latency {
        let label = match reported.kind {
            LatencyKind::Service => "latency",
            LatencyKind::Response => "response",
        };
        document.line(label, reported_text(reported));
    }
}

fn reported_text(reported: &ReportedLatency) -> String {
    let named = |name: &str, us: Option<f64>| us.map(|us| format!("{name} {}", duration_us(us)));
    let mut parts: Vec<_> = [
        named("min", reported.min_us),
        named("mean", reported.mean_us),
        named("stdev", reported.stdev_us),
    ]
    .into_iter()
    .flatten()
    .collect();
    let percentiles = reported.percentiles.iter();
    parts.extend(
        percentiles
            .map(|percentile| format!("p{} {}", percentile.percent, duration_us(percentile.us))),
    );
    parts.extend(named("max", reported.max_us));
    parts.join(" · ")
}
