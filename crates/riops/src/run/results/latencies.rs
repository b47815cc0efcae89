//! The latencies of a session loop, and how steady it was.

use crate::engine::StageResult;
use crate::metrics::{Counter, Slot, steadiness};
use crate::plan::{Plan, Quantity, Traits};
use crate::record::{HistogramError, Latencies, LoopRecord, SteadinessRecord};

/// Returns the part of the record with the service times, and with the response times of a run with a rate.
pub(super) fn latencies(
    service: &Latencies,
    response: Option<&Latencies>,
    plan: &Plan,
) -> Result<LoopRecord, HistogramError> {
    let service_us = service.summary()?;
    let response_us = response.map(Latencies::summary).transpose()?.flatten();
    // Without a success within the measurement, the response times have no values.
    let response = response.filter(|_| response_us.is_some());
    let of_users = response.unwrap_or(service);
    let bounds = of_users.bounds();
    let percentile = of_users.figure(Quantity::Percentile(plan.percentile))?;
    Ok(LoopRecord {
        service_us,
        response_us,
        histogram: Some(service.observed.stored()?),
        response_histogram: response.map(|of| of.observed.stored()).transpose()?,
        unfinished_histogram: (bounds.count() > 0).then(|| bounds.stored()).transpose()?,
        percentile_us: percentile.filter(|_| plan.percentile > 0.0).map(|found| found.value),
        ..LoopRecord::default()
    })
}

/// Returns how steady the rate was or, with a requested rate, the response time; `None` if the requested rate changes.
pub(super) fn steadiness_of(result: &StageResult, traits: &Traits) -> Option<SteadinessRecord> {
    let recorder = &result.recorder;
    if !recorder.steps.totals().is_empty() {
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
    steadiness(&slots, rows_each, result.starts.is_some())
}
