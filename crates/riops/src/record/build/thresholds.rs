//! Compares the thresholds of the plan with the result of a stage.

use super::latencies::merged;
use crate::engine::StageResult;
use crate::metrics::{Figures, HistogramError};
use crate::plan::{Plan, Threshold};
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
        let found = figures.get(threshold.metric);
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
