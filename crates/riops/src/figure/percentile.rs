//! Percentiles of one run and of several: from merged histograms, and only with enough samples.

use super::statistic::Statistic;
use crate::record::{Histogram, StageRecord};
use crate::stats::{effective_sample_size, percentile_shown};

/// Returns a percentile of the latency in one run, in microseconds.
pub(super) fn of(percent: f64, stage: &StageRecord) -> Option<f64> {
    let latency = stage.session_loop.latency_us()?;
    percentile_shown(latency.count, percent, effective_share(stage))
        .then(|| Statistic::percentile(percent)?.of(latency))?
}

/// Returns a percentile over several runs, in microseconds, from their merged histograms.
pub(super) fn of_all<'a>(
    percent: f64,
    mut stages: impl Iterator<Item = &'a StageRecord>,
) -> Option<f64> {
    let first = stages.next()?;
    let (mut all, mut share) = (histogram(first)?, effective_share(first));
    for stage in stages {
        all.merge(&histogram(stage)?).ok()?;
        share = share.min(effective_share(stage));
    }
    percentile_shown(all.count(), percent, share).then(|| all.percentile_us(percent))?
}

/// The histogram of the response times with a rate, otherwise of the service times.
fn histogram(stage: &StageRecord) -> Option<Histogram> {
    stage.session_loop.latency_histogram()?.decode().ok()
}

/// Effective samples per sample, 0 to 1: transactions of one stall are not independent. From the medians of the
/// intervals.
fn effective_share(stage: &StageRecord) -> f64 {
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
