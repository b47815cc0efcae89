//! Ledger and verification after a run that changed rows. Also completes the ledger entries of earlier runs
//! that could not report their changes because the server failed.

use super::active::{ActiveRun, connect_with_retries};
use super::error::RunError;
use super::resolve::{FinishedLoop, resolve};
use super::stage::LoopStage;
use crate::dataset::{Changes, DatasetError, Entry, Registry, verify};
use crate::engine::{History, StageResult, WorkerReport};
use crate::host::Interrupt;
use crate::run::parts::{Ending, Part};
use crate::server::Connection;
use crate::workload::effects::{EffectsByTable, UNATTRIBUTED};
use crate::workload::unknown::Resolution;
use riops_model::plan::Traits;
use riops_model::record::{Check, Effects, OperationRecord, Record, UnknownOutcomes};

/// Data for the settlement of a run.
pub(super) struct Settlement<'a> {
    /// Name of the dataset.
    pub(super) dataset: &'static str,
    pub(super) entry: &'a Entry,
    /// Stages of the run, in order.
    pub(super) stages: &'a [LoopStage],
    /// Results of the stages that ran.
    pub(super) parts: &'a [Part],
    /// First transaction id that was assigned after the run began; `None` if the server has none.
    pub(super) first_xid: Option<u32>,
}

/// Enters the acknowledged changes, and the maximum of those with an unknown outcome, into the ledger, and
/// verifies them. If the server is no longer available, the run stays open in the ledger until a later run
/// or `verify` completes its entry from the record.
pub(super) fn settle(
    active: &mut ActiveRun<'_>,
    settlement: &Settlement<'_>,
    ending: &mut Ending,
) -> Vec<Check> {
    let Settlement { dataset, entry, stages, parts, .. } = *settlement;
    let traits = active.plan.work.traits();
    let measured = parts.iter().filter_map(|part| match part {
        Part::Loop(measured) => Some(measured.as_ref()),
        Part::Statement(_) | Part::Observed(_) => None,
    });
    let loops: Vec<FinishedLoop<'_>> = stages.iter().zip(measured).collect();
    let Some((stage, last)) = loops.last().filter(|_| traits.writes) else {
        return Vec::new();
    };
    let mut changed = Changes::default();
    for (_, measured) in &loops {
        changed.add(changes(&traits, &measured.result));
    }
    let interrupt =
        interrupt_after(last.result.interrupted || ending.interrupted, active.interrupt);
    let (id, verifies) = (active.id.to_string(), active.plan.verify);
    let unknown = &mut ending.unknown;
    let settled = (|| -> Result<Vec<Check>, RunError> {
        let mut connection = connect_with_retries(&active.server, &active.plan)?;
        *unknown = resolve_unknown(&mut connection, active, settlement, &loops, &mut changed);
        Registry::new(&mut connection, dataset).end_run(&id, &changed)?;
        if !verifies || !active.hooks.settled() {
            return Ok(Vec::new());
        }
        active.hooks.notice("verifying the data");
        connection.set_interrupt(&interrupt);
        let mut registry = Registry::new(&mut connection, dataset);
        Ok(verify(&mut registry, stage.workload.as_ref(), entry)?)
    })();
    checks_or_reason(settled, &interrupt, &last.result, ending)
}

/// Finds the outcomes of transactions that lost their connection, and moves those that the rows prove out of
/// the unknown changes. Returns `None` if there are no such transactions.
fn resolve_unknown(
    connection: &mut Connection,
    active: &ActiveRun<'_>,
    settlement: &Settlement<'_>,
    loops: &[FinishedLoop<'_>],
    changed: &mut Changes,
) -> Option<UnknownOutcomes> {
    let workers = loops.iter().map(|(_, measured)| &measured.result.workers);
    let all: u64 = workers.map(WorkerReport::unknown_transactions).sum();
    if all == 0 {
        return None;
    }
    let Settlement { dataset, entry, first_xid, .. } = *settlement;
    // Without an answer they remain unresolved.
    let resolved =
        resolve(connection, active, dataset, entry, loops, first_xid).unwrap_or_default();
    let mut outcomes = UnknownOutcomes::default();
    for (transaction, outcome) in &resolved {
        let operations =
            loops.get(transaction.origin.stage).map(|(_, measured)| &measured.result.operations);
        let operation = operations.and_then(|all| all.get(transaction.operation));
        let counts_rows = operation
            .is_some_and(|operation| active.plan.work.traits().counts_changes_of(operation));
        changed.resolve(transaction, *outcome, counts_rows);
        match outcome {
            Resolution::Applied => outcomes.applied += 1,
            Resolution::NotApplied => outcomes.not_applied += 1,
            Resolution::Unresolved => {}
        }
    }
    outcomes.unresolved = all.saturating_sub(outcomes.applied + outcomes.not_applied);
    Some(outcomes)
}

/// Returns the interrupt for ledger and verification. It ignores an interrupt that has already stopped the
/// measurement.
pub(super) fn interrupt_after(was_interrupted: bool, interrupt: &Interrupt) -> Interrupt {
    if was_interrupted { Interrupt::new() } else { interrupt.clone() }
}

/// Returns the checks, or a failed check if the verification itself failed.
pub(super) fn checks_or_reason(
    settled: Result<Vec<Check>, RunError>,
    interrupt: &Interrupt,
    result: &StageResult,
    ending: &mut Ending,
) -> Vec<Check> {
    match settled {
        Ok(checks) => checks,
        Err(_) if result.workers.failure.is_some() => Vec::new(),
        Err(_) if interrupt.is_requested() => {
            ending.interrupted = true;
            vec![not_verified("interrupted")]
        }
        // The results are kept, but the run is not valid.
        Err(error) => vec![not_verified(&error.to_string())],
    }
}

/// Returns the check of a verification that could not be completed.
pub(super) fn not_verified(reason: &str) -> Check {
    crate::workload::check::failed("verification of the data", "completed", reason)
}

/// Returns the changes for the ledger: acknowledged ones, and those with an unknown outcome.
pub(super) fn changes(traits: &Traits, result: &StageResult) -> Changes {
    let mut all = Changes::default();
    for (operation, acknowledged) in result.operations.iter().zip(&result.workers.acknowledged) {
        let rows = traits.counts_changes_of(operation);
        all.add(Changes {
            rows: if rows { acknowledged.rows } else { 0 },
            rows_unknown: if rows { acknowledged.rows_unknown } else { 0 },
            effects: acknowledged.effects.clone(),
            effects_unknown: acknowledged.effects_unknown.clone(),
            batches_unknown: Vec::new(),
        });
    }
    if traits.is_exact {
        let marks = result.workers.unknown.iter().flat_map(|transaction| &transaction.marks);
        all.batches_unknown = marks.map(|mark| (mark.first, mark.last)).collect();
    }
    all
}

/// Completes the ledger entries of runs that could not report their changes because the server failed, from
/// their records if those are stored.
pub(super) fn settle_open_runs(
    registry: &mut Registry<'_>,
    entry: &Entry,
    history: &dyn History,
) -> Result<(), DatasetError> {
    for id in registry.open_runs(&entry.id)? {
        let on_it = |record: &Record| {
            record.target.dataset.as_ref().is_some_and(|dataset| dataset.id == entry.id)
        };
        // Without a record, the run was killed, is in progress, or is stored elsewhere: it stays open. A
        // record of another generation of the dataset does not describe changes to this one.
        if let Some(record) = history.record(&id).filter(on_it) {
            registry.end_run(&id, &recorded_changes(&record))?;
        }
    }
    Ok(())
}

fn recorded_changes(record: &Record) -> Changes {
    let traits = record.plan.work.traits();
    // If each stage replaces the table, only the changes of the last stage are left.
    let replaced =
        if traits.replaces_its_table { record.stages.len().saturating_sub(1) } else { 0 };
    let operations =
        record.stages.iter().skip(replaced).flat_map(|stage| &stage.session_loop.operations);
    let mut all = Changes::default();
    for operation in operations {
        all.add(recorded_changes_of(operation, traits.counts_changes_of(&operation.name)));
    }
    all
}

fn recorded_changes_of(operation: &OperationRecord, counts_rows: bool) -> Changes {
    let (rows, rows_unknown) =
        if counts_rows { (operation.acknowledged_rows, operation.unknown_rows) } else { (0, 0) };
    let mut changes = Changes {
        rows,
        rows_unknown,
        effects: EffectsByTable::from_record(&operation.tables, operation.effects),
        effects_unknown: EffectsByTable::from_record(
            &operation.unknown_tables,
            operation.unknown_effects,
        ),
        batches_unknown: Vec::new(),
    };
    // Records of earlier versions contain only the number of increments.
    if changes.effects.is_none() && changes.effects_unknown.is_none() {
        let increments = |added| Effects { added, ..Effects::default() };
        changes.effects.add_to(UNATTRIBUTED, increments(rows));
        changes.effects_unknown.add_to(UNATTRIBUTED, increments(rows_unknown));
    }
    changes
}
