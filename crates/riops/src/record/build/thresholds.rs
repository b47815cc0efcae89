//! Compares the thresholds of the plan with the result of a stage.

use super::latencies::merged;
use crate::engine::StageResult;
use crate::metrics::{Counter, Figures, Histogram, HistogramError};
use crate::plan::{Metric, Part, Plan, Threshold, TimeKind};
use crate::record::check::ThresholdRecord;

/// Returns each threshold with its measured value.
pub(super) fn thresholds_of(
    result: &StageResult,
    plan: &Plan,
    stage: Option<&str>,
) -> Result<Vec<ThresholdRecord>, HistogramError> {
    let totals = result.recorder.operations();
    let service = merged(totals, |totals| Some(&totals.service))?;
    let response = merged(totals, |totals| totals.response.as_ref())?;
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
    let Some(number) = part.command else {
        let totals = result.recorder.operations().get(script)?;
        return match metric {
            Metric::Time(kind, quantity) => {
                let response = totals.response.as_ref().filter(|_| kind != TimeKind::Service);
                response.unwrap_or(&totals.service).figure(quantity)
            }
            Metric::Errors => Some(totals.counters.get(Counter::Failed) as f64),
            _ => None,
        };
    };
    let is_it = |command: &crate::workload::ScriptCommand| {
        command.operation == script && command.number == number
    };
    let command = result.commands.iter().position(is_it)?;
    let totals = result.recorder.commands.all().get(command)?;
    match metric {
        Metric::Time(_, quantity) => {
            totals.service.as_deref().and_then(|times: &Histogram| times.figure(quantity))
        }
        Metric::Errors => Some(totals.failures as f64),
        Metric::Retries => Some(totals.retries as f64),
        _ => None,
    }
}
