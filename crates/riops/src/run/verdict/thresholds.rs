//! Compares the thresholds of the plan with the result of a stage.

use crate::engine::StageResult;
use crate::metrics::Figures;
use crate::plan::{Metric, Part, Plan, Threshold, TimeKind};
use crate::record::{HistogramError, ThresholdRecord};

/// Returns each threshold with its measured value.
pub(super) fn thresholds_of(
    result: &StageResult,
    plan: &Plan,
    stage: Option<&str>,
) -> Result<Vec<ThresholdRecord>, HistogramError> {
    let (service, response) = result.recorder.latencies()?;
    let response = plan.schedule.per_s().map(|_| &response);
    let figures = Figures {
        waiting: result.starts.map(|starts| starts.waiting),
        ..Figures::of_stage(&result.recorder, result.seconds, &service, response)
    };
    let judge = |threshold: &Threshold| {
        let found = match &threshold.part {
            None => figures.get(threshold.metric),
            Some(part) => figure_of_part(result, threshold.metric, part),
        };
        let ended_run = result.breached.as_ref() == Some(threshold);
        ThresholdRecord {
            stage: stage.map(str::to_owned),
            threshold: threshold.clone(),
            found,
            // A threshold that ended the run stays breached, even if the last transactions met it again.
            held: !ended_run && found.is_some_and(|found| threshold.is_met_by(found)),
            ended_run,
        }
    };
    Ok(plan.thresholds.iter().map(judge).collect())
}

/// Returns the value of a metric for a script or one of its commands.
fn figure_of_part(result: &StageResult, metric: Metric, part: &Part) -> Option<f64> {
    let script = part.position(result.operations.iter().map(AsRef::as_ref))?;
    let all = result.commands.iter().zip(result.recorder.commands.all());
    let mut own = all.filter(|(command, _)| {
        command.operation == script && part.command.is_none_or(|number| command.number == number)
    });
    match metric {
        Metric::Time(kind, quantity) if part.command.is_none() => {
            let totals = result.recorder.operations().get(script)?;
            let response = totals.response.as_ref().filter(|_| kind != TimeKind::Service);
            response.unwrap_or(&totals.service).figure(quantity)
        }
        Metric::Time(_, quantity) => own.next()?.1.service.as_deref()?.figure(quantity),
        Metric::Errors => Some(own.map(|(_, totals)| totals.failures).sum::<u64>() as f64),
        Metric::Retries => Some(own.map(|(_, totals)| totals.retries).sum::<u64>() as f64),
        _ => None,
    }
}
