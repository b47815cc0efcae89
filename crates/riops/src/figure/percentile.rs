//! Percentiles of one run and of several: from merged histograms, and only with enough samples.

use super::statistic::Statistic;
use crate::plan::Quantity;
use crate::record::{AtLeast, Latencies, StageRecord};
use crate::stats::{effective_sample_size, percentile_shown};

/// Returns a percentile of the latency in one run, in microseconds.
pub(super) fn of(percent: f64, stage: &StageRecord) -> Option<AtLeast> {
    let latency = stage.session_loop.latency_us()?;
    let statistic = Statistic::percentile(percent)?;
    percentile_shown(latency.count, percent, effective_share(percent, stage))
        .then(|| statistic.of(latency))?
        .map(|value| AtLeast { value, is_bound: statistic.is_bound(latency) })
}

/// Returns a percentile over several runs, in microseconds, from their merged histograms.
pub(super) fn of_all<'a>(
    percent: f64,
    mut stages: impl Iterator<Item = &'a StageRecord>,
) -> Option<AtLeast> {
    let first = stages.next()?;
    let (mut all, mut share): (Latencies, f64) =
        (first.session_loop.latencies()?, effective_share(percent, first));
    for stage in stages {
        all.merge(&stage.session_loop.latencies()?).ok()?;
        share = share.min(effective_share(percent, stage));
    }
    let is_shown = percentile_shown(all.observed.count(), percent, share);
    all.figure(Quantity::Percentile(percent)).ok()?.filter(|_| is_shown)
}

/// Effective samples per sample, 0 to 1: transactions of one stall are not independent. From the numbers of latencies
/// beyond the percentile over time; in records of earlier releases, from the medians of the intervals.
fn effective_share(percent: f64, stage: &StageRecord) -> f64 {
    let latency = stage.session_loop.latency_us();
    if let Some((heatmap, latency)) = stage.session_loop.latency_heatmap.as_ref().zip(latency) {
        let us = Statistic::percentile(percent).and_then(|statistic| statistic.of_any(latency));
        return us.map_or(1.0, |us| 1.0 / heatmap.dispersion(percent, us));
    }
    let medians: Vec<f64> = stage
        .session_loop
        .series
        .iter()
        .filter_map(|point| point.response_p50_us.or(point.p50_us))
        .collect();
    if medians.is_empty() {
        return 1.0;
    }
    effective_sample_size(&medians) / medians.len() as f64
}
