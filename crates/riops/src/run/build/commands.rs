//! The commands of scripts.

use super::latencies::summary;
use crate::engine::StageResult;
use crate::metrics::CommandTotals;
use crate::record::{CommandRecord, HistogramError};
use crate::workload::ScriptCommand;

/// Returns the results of each command.
pub(super) fn commands(result: &StageResult) -> Result<Vec<CommandRecord>, HistogramError> {
    result.commands.iter().zip(result.recorder.commands.all()).map(command).collect()
}

fn command(
    (command, totals): (&ScriptCommand, &CommandTotals),
) -> Result<CommandRecord, HistogramError> {
    let errors = totals.errors.iter();
    Ok(CommandRecord {
        script: command.operation + 1,
        number: command.number,
        title: command.title.clone(),
        is_measured: command.is_measured,
        service_us: totals.service.as_ref().and_then(|service| summary(service)),
        histogram: totals.service.as_ref().map(|service| service.stored()).transpose()?,
        failures: totals.failures,
        retries: totals.retries,
        errors: errors.map(|(sqlstate, count)| (sqlstate.as_str().to_owned(), *count)).collect(),
    })
}
