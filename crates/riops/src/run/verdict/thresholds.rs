//! Compares the thresholds of the plan with the result of a stage.

use crate::engine::StageResult;
use crate::metrics::Figures;
use crate::plan::{Metric, Part, Plan, Threshold, TimeKind};
use crate::record::{
    AtLeast, HistogramError, Latencies, QuerySeries, StageRecord, ThresholdRecord,
};
use crate::run::parts::Measured;

/// Returns each threshold with its measured value.
pub(super) fn thresholds_of(
    measured: &Measured,
    plan: &Plan,
    stage: Option<&str>,
) -> Result<Vec<ThresholdRecord>, HistogramError> {
    let result = &measured.result;
    let (service, response) = result.recorder.latencies()?;
    let figures = Figures {
        waiting: result.starts.map(|starts| starts.waiting),
        ..Figures::of_stage(&result.recorder, result.seconds, &service.observed)
    };
    let judge = |threshold: &Threshold| {
        let found = match (&threshold.part, threshold.metric) {
            (None, Metric::Time(kind, quantity)) => {
                let of_kind = of_kind(kind, &service, response.as_ref());
                of_kind.map(|of| of.figure(quantity)).transpose()?.flatten()
            }
            (None, metric) => exact(figures.get(metric)),
            (Some(Part { probe: Some(name), .. }), metric) => {
                exact(of_probe(&measured.usage.queries, name, metric))
            }
            (Some(part), metric) => figure_of_part(result, metric, part)?,
        };
        let ended_run = result.breached.as_ref() == Some(threshold);
        let is_met = |found: AtLeast| match threshold.is_met_from(found.value) {
            is_met if found.is_bound => is_met == Some(true),
            _ => threshold.is_met_by(found.value),
        };
        Ok(ThresholdRecord {
            stage: stage.map(str::to_owned),
            threshold: threshold.clone(),
            found: found.map(|found| found.value),
            at_least: found.is_some_and(|found| found.is_bound),
            // A threshold that ended the run stays breached, even if the last transactions met it again.
            held: !ended_run && found.is_some_and(is_met),
            ended_run,
        })
    };
    plan.thresholds.iter().map(judge).collect()
}

/// Returns each threshold with its value in a stage whose transactions riops did not send.
pub(super) fn thresholds_of_stage(stage: &StageRecord, plan: &Plan) -> Vec<ThresholdRecord> {
    let judge = |threshold: &Threshold| {
        let found = match (&threshold.part, threshold.metric) {
            (Some(Part { probe: Some(name), .. }), metric) => {
                of_probe(&stage.query_series, name, metric)
            }
            (None, Metric::TransactionsPerS) => Some(stage.throughput.transactions_per_s),
            _ => None,
        };
        ThresholdRecord {
            stage: None,
            threshold: threshold.clone(),
            found,
            at_least: false,
            held: found.is_some_and(|found| threshold.is_met_by(found)),
            ended_run: false,
        }
    };
    plan.thresholds.iter().map(judge).collect()
}

/// Returns the value of a metric for a query of the user.
fn of_probe(series: &[QuerySeries], name: &str, metric: Metric) -> Option<f64> {
    let found = series.iter().find(|each| each.name == name)?;
    if metric == Metric::ProbeMax { found.max() } else { found.mean() }
}

fn exact(value: Option<f64>) -> Option<AtLeast> {
    value.map(|value| AtLeast { value, is_bound: false })
}

/// Returns the latencies of a kind: the response times exist only with a rate.
fn of_kind<'a>(
    kind: TimeKind,
    service: &'a Latencies,
    response: Option<&'a Latencies>,
) -> Option<&'a Latencies> {
    match kind {
        TimeKind::Service => Some(service),
        TimeKind::Response => response,
        TimeKind::Either => response.or(Some(service)),
    }
}

/// Returns the value of a metric for a script or one of its commands.
fn figure_of_part(
    result: &StageResult,
    metric: Metric,
    part: &Part,
) -> Result<Option<AtLeast>, HistogramError> {
    let Some(script) = part.position(result.operations.iter().map(AsRef::as_ref)) else {
        return Ok(None);
    };
    let all = result.commands.iter().zip(result.recorder.commands.all());
    let mut own = all.filter(|(command, _)| {
        command.operation == script && part.command.is_none_or(|number| command.number == number)
    });
    let count = |number: u64| exact(Some(number as f64));
    Ok(match metric {
        Metric::Time(kind, quantity) if part.command.is_none() => {
            let Some(totals) = result.recorder.operations().get(script) else {
                return Ok(None);
            };
            // Without a rate, the response time is the service time.
            let of = of_kind(kind, &totals.service, totals.response.as_ref());
            of.unwrap_or(&totals.service).figure(quantity)?
        }
        Metric::Time(_, quantity) => {
            let service = own.next().and_then(|(_, totals)| totals.service.as_deref());
            exact(service.and_then(|service| service.figure(quantity)))
        }
        Metric::Errors => count(own.map(|(_, totals)| totals.failures).sum()),
        Metric::Retries => count(own.map(|(_, totals)| totals.retries).sum()),
        _ => None,
    })
}
