//! The latencies of a session loop, and how steady it was.

use crate::engine::StageResult;
use crate::metrics::{Counter, Slot, steadiness};
use riops_model::plan::{Plan, Quantity, Traits};
use riops_model::record::{
    HeatmapRecord, Histogram, HistogramError, Latencies, LatencySummary, LoopRecord,
    PercentileInterval, SLOTS_MIN, SteadinessRecord,
};

/// Percentiles in order of preference: the first one that is shown gets an interval.
const WITH_INTERVAL: [f64; 3] = [99.0, 95.0, 50.0];
/// Quantile of the normal distribution for an interval of 95%.
const NORMAL_95: f64 = 1.96;

/// Returns the part of the record with the service times and, for a run with a rate, the response times. The heatmap
/// then contains the response times.
pub(in crate::run) fn latencies(
    service: &Latencies,
    response: Option<&Latencies>,
    heatmap: Option<HeatmapRecord>,
    plan: &Plan,
) -> Result<LoopRecord, HistogramError> {
    let mut service_us = service.summary()?;
    let mut response_us = response.map(Latencies::summary).transpose()?.flatten();
    let main = response_us.as_mut().or(service_us.as_mut());
    let mut percentile_interval = None;
    if let Some((heatmap, summary)) = heatmap.as_ref().zip(main) {
        summary.limit_percentiles(heatmap);
        let observed = &response.unwrap_or(service).observed;
        percentile_interval = interval(observed, summary, heatmap);
    }
    // Without a success within the measurement, the response times have no values.
    let response = response.filter(|_| response_us.is_some());
    let of_users = response.unwrap_or(service);
    let percentile = of_users.figure(Quantity::Percentile(plan.percentile))?;
    Ok(LoopRecord {
        service_us,
        response_us,
        histogram: Some(service.observed.stored()?),
        response_histogram: response.map(|response| response.observed.stored()).transpose()?,
        unfinished_histogram: of_users.stored_bounds()?,
        unfinished_service_histogram: match response {
            Some(_) => service.stored_bounds()?,
            None => None,
        },
        latency_heatmap: heatmap,
        percentile_interval,
        percentile_us: percentile.filter(|_| plan.percentile > 0.0).map(|figure| figure.value),
        ..LoopRecord::default()
    })
}

/// Returns the interval of a percentile: its share is known as exactly as the number of effective latencies beyond it,
/// and its limits are the percentiles at the limits of the share (Woodruff, "Confidence intervals for medians and other
/// position measures", JASA 47, 1952). The interval describes this run; other runs differ by more.
fn interval(
    observed: &Histogram,
    summary: &LatencySummary,
    heatmap: &HeatmapRecord,
) -> Option<PercentileInterval> {
    let is_exact = |percent: &f64| summary.is_shown(*percent) && !summary.is_bound(Some(*percent));
    let percent = WITH_INTERVAL.into_iter().find(is_exact)?;
    if heatmap.slots.len() < SLOTS_MIN {
        return None;
    }
    let (share, count) = (percent / 100.0, observed.count() as f64);
    let dispersion = heatmap.dispersion(percent, observed.percentile_us(percent)?);
    let error = NORMAL_95 * (share * (1.0 - share) * dispersion / count).sqrt();
    let at = |share: f64| observed.percentile_us(share.clamp(0.0, 1.0) * 100.0);
    Some(PercentileInterval { percent, low_us: at(share - error)?, high_us: at(share + error)? })
}

/// Returns how steady the rate was or, with a requested rate, the response time; `None` if the requested rate changes.
pub(super) fn steadiness_of(result: &StageResult, traits: &Traits) -> Option<SteadinessRecord> {
    let recorder = &result.workers.recorder;
    if !recorder.steps.totals.is_empty() {
        return None;
    }
    // A loop in the server reports its transactions once per interval.
    let slots = if traits.has_server_loop {
        Slot::of_series(&result.series)
    } else {
        recorder.slots.clone().finish(result.seconds)
    };
    let count = |counter| recorder.counters().get(counter) as f64;
    let rows_each = count(Counter::Rows) / count(Counter::Transactions).max(1.0);
    steadiness(&slots, rows_each, result.workers.starts.is_some())
}
