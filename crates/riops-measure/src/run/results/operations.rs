//! Results by kind of transaction, by command of scripts, and by session.

use crate::engine::{SessionTally, StageResult};
use crate::metrics::{CommandTotals, Counter, Counters, OperationTotals};
use crate::workload::ScriptCommand;
use riops_model::record::{
    CommandRecord, DatabaseUse, Execution, HistogramError, Latencies, OperationRecord, Outcomes,
    SessionOperation, SessionRecord,
};

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
        result.workers.acknowledged.iter().map(|operation| operation.transactions as f64).collect();
    let blocks = database.and_then(|database| database.blocks);
    let total = blocks.map(|blocks| blocks.accesses() as f64).filter(|&total| total > 0.0);
    let mean = |total: f64, count: f64| (count > 0.0).then(|| total / count);
    match (total, counts.as_slice()) {
        (Some(total), &[reads, updates]) if reads > 0.0 && updates > 0.0 => {
            let per_read = database.and_then(|database| database.blocks_per_read);
            let rest = per_read.map(|per_read| (total - reads * per_read).max(0.0));
            vec![per_read, rest.and_then(|rest| mean(rest, updates))]
        }
        (Some(total), counts) => counts.iter().map(|&count| mean(total, count)).collect(),
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
        .zip(&result.workers.recorder.operations)
        .zip(result.workers.acknowledged.iter().zip(blocks))
        .zip(1..)
        .filter(|(((_, totals), (acknowledged, _)), _)| {
            let ended = [Counter::Transactions, Counter::Failed, Counter::Skipped];
            let ended = ended.map(|counter| totals.counters.get(counter)).iter().sum::<u64>();
            ended + acknowledged.transactions + acknowledged.transactions_unknown > 0
        })
        .map(|(((name, totals), (acknowledged, &blocks_per_transaction)), position)| {
            Ok(OperationRecord {
                number: position,
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
                ..times(totals, result.operations.len() > 1)?
            })
        })
        .collect()
}

/// Returns the latencies of one kind. If there is only one kind, it has the latencies of the stage.
fn times(
    totals: &OperationTotals,
    is_one_of_several: bool,
) -> Result<OperationRecord, HistogramError> {
    let OperationTotals { service, response, .. } = totals;
    let own = OperationRecord {
        response_us: response.as_ref().map(Latencies::summary).transpose()?.flatten(),
        service_us: service.summary()?,
        histogram: Some(service.observed.stored()?),
        ..OperationRecord::default()
    };
    // Without a success within the measurement, the response times have no values.
    let response = response.as_ref().filter(|_| own.response_us.is_some());
    Ok(match (is_one_of_several, response) {
        (false, _) => own,
        (true, None) => OperationRecord { unfinished_histogram: service.stored_bounds()?, ..own },
        (true, Some(response)) => OperationRecord {
            response_histogram: Some(response.observed.stored()?),
            unfinished_histogram: response.stored_bounds()?,
            unfinished_service_histogram: service.stored_bounds()?,
            ..own
        },
    })
}

/// Returns the results of each command.
pub(super) fn commands(result: &StageResult) -> Result<Vec<CommandRecord>, HistogramError> {
    let command = |(command, totals): (&ScriptCommand, &CommandTotals)| {
        let errors = totals.errors.iter();
        Ok(CommandRecord {
            script: command.operation + 1,
            number: command.ordinal,
            title: command.title.clone(),
            is_measured: command.is_measured,
            service_us: totals.service.as_ref().and_then(|service| service.summary()),
            histogram: totals.service.as_ref().map(|service| service.stored()).transpose()?,
            failures: totals.failures,
            retries: totals.retries,
            errors: errors.map(|(state, count)| (state.as_str().to_owned(), *count)).collect(),
        })
    };
    result.commands.iter().zip(&result.workers.recorder.commands.totals).map(command).collect()
}

/// Maximum number of sessions for which per-session results are stored.
pub(in crate::run) const SESSIONS_STORED_MAX: usize = 1_000;

pub(super) fn session_details(result: &StageResult) -> Vec<SessionRecord> {
    if result.workers.sessions.len() > SESSIONS_STORED_MAX {
        return Vec::new();
    }
    let record = |session: &SessionTally| SessionRecord {
        number: session.id + 1,
        server_process: session.process,
        node: (result.nodes.len() > 1)
            .then(|| result.nodes.get(session.node).map(|node| node.name.clone()))
            .flatten(),
        operations: result
            .operations
            .iter()
            .zip(&session.operations)
            .map(|(name, tally)| SessionOperation {
                name: name.clone().into_owned(),
                transactions: tally.transactions,
                rows: tally.rows,
                max_us: (tally.transactions > 0).then(|| tally.longest.as_micros()),
                execution_s: tally.busy.as_seconds(),
            })
            .collect(),
    };
    result.workers.sessions.iter().map(record).collect()
}

pub(super) fn execution(sessions: &[SessionTally]) -> Execution {
    let busy = |session: &SessionTally| {
        session.operations.iter().map(|tally| tally.busy.as_seconds()).sum::<f64>()
    };
    Execution::from_seconds(sessions.iter().map(busy))
}
