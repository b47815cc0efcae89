//! Results by kind of transaction, and by command of scripts.

use crate::engine::StageResult;
use crate::metrics::{CommandTotals, Counter, Counters};
use crate::record::{CommandRecord, DatabaseUse, HistogramError, OperationRecord, Outcomes};
use crate::workload::ScriptCommand;

pub(super) fn outcomes(counters: &Counters) -> Outcomes {
    let succeeded = counters.get(Counter::Transactions);
    let failed = counters.get(Counter::Failed);
    let unknown = counters.get(Counter::Unknown);
    Outcomes { attempted: succeeded + failed + unknown, succeeded, failed, unknown }
}

/// Returns the block accesses per transaction, by kind. With one kind: the block accesses of the stage
/// divided by its transactions. With reads and updates: the blocks of a read were measured separately, and
/// the remainder belongs to the updates.
pub(super) fn blocks_per_transaction(
    result: &StageResult,
    database: Option<&DatabaseUse>,
) -> Vec<Option<f64>> {
    let counts: Vec<f64> =
        result.acknowledged.iter().map(|each| each.transactions as f64).collect();
    let blocks = database.and_then(|database| database.blocks);
    let total = blocks.map(|blocks| blocks.accesses() as f64).filter(|&total| total > 0.0);
    let each = |total: f64, count: f64| (count > 0.0).then(|| total / count);
    match (total, counts.as_slice()) {
        (Some(total), &[reads, updates]) if reads > 0.0 && updates > 0.0 => {
            let per_read = database.and_then(|database| database.blocks_per_read);
            let rest = per_read.map(|per_read| (total - reads * per_read).max(0.0));
            vec![per_read, rest.and_then(|rest| each(rest, updates))]
        }
        (Some(total), counts) => counts.iter().map(|&count| each(total, count)).collect(),
        (None, counts) => vec![None; counts.len()],
    }
}

/// Returns the kinds of transactions that occurred.
pub(super) fn operations(
    result: &StageResult,
    blocks: &[Option<f64>],
) -> Result<Vec<OperationRecord>, HistogramError> {
    result
        .operations
        .iter()
        .zip(&result.recorder.operations)
        .zip(result.acknowledged.iter().zip(blocks))
        .zip(1..)
        .filter(|(((_, totals), (acknowledged, _)), _)| {
            totals.counters.get(Counter::Transactions)
                + totals.counters.get(Counter::Failed)
                + totals.counters.get(Counter::Skipped)
                + acknowledged.transactions
                + acknowledged.transactions_unknown
                > 0
        })
        .map(|(((name, totals), (acknowledged, &blocks_per_transaction)), number)| {
            Ok(OperationRecord {
                number,
                blocks_per_transaction,
                name: name.clone().into_owned(),
                transactions: totals.counters.get(Counter::Transactions),
                rows: totals.counters.get(Counter::Rows),
                acknowledged_transactions: acknowledged.transactions,
                acknowledged_rows: acknowledged.rows,
                unknown_rows: acknowledged.rows_unknown,
                effects: acknowledged.effects.total(),
                unknown_effects: acknowledged.effects_unknown.total(),
                tables: acknowledged.effects.recorded(),
                unknown_tables: acknowledged.effects_unknown.recorded(),
                failed: totals.counters.get(Counter::Failed),
                retried: totals.counters.get(Counter::Retried),
                unknown: totals.counters.get(Counter::Unknown),
                skipped: totals.counters.get(Counter::Skipped),
                response_us: match &totals.response {
                    Some(response) => response.summary()?,
                    None => None,
                },
                service_us: totals.service.summary()?,
                histogram: Some(totals.service.observed.stored()?),
            })
        })
        .collect()
}

/// Returns the results of each command.
pub(super) fn commands(result: &StageResult) -> Result<Vec<CommandRecord>, HistogramError> {
    result.commands.iter().zip(&result.recorder.commands.totals).map(command).collect()
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
        service_us: totals.service.as_ref().and_then(|service| service.summary()),
        histogram: totals.service.as_ref().map(|service| service.stored()).transpose()?,
        failures: totals.failures,
        retries: totals.retries,
        errors: errors.map(|(sqlstate, count)| (sqlstate.as_str().to_owned(), *count)).collect(),
    })
}
