//! Ledger and verification after a run that changed rows. Also completes the ledger entries of earlier runs
//! that could not report their changes because the server failed.

use std::time::Duration;

use super::active::ActiveRun;
use super::error::RunError;
use super::observer::History;
use crate::dataset::{Changes, DatasetError, Entry, Registry, verify};
use crate::engine::{Acknowledged, StageResult};
use crate::host::Interrupt;
use crate::plan::{Plan, Spec};
use crate::record::{Ending, Measured, OperationRecord, Part, Record};
use crate::server::{Connection, ConnectionError, Server};
use crate::workload::Workload;
use crate::workload::check::Check;

/// Pause between two attempts to connect to a server that is recovering.
const PAUSE: Duration = Duration::from_millis(100);

/// Enters the acknowledged changes, and the maximum of those with an unknown outcome, into the ledger, and
/// verifies them. If the server is no longer available, the run stays open in the ledger until a later run
/// or `verify` completes its entry from the record.
pub(super) fn settle(
    active: &mut ActiveRun<'_>,
    dataset: &'static str,
    entry: &Entry,
    workload: &dyn Workload,
    (parts, ending): (&[Part], &mut Ending),
) -> Vec<Check> {
    let spec = active.plan.work.spec();
    let loops = || parts.iter().filter_map(measured_of);
    let Some(last) = loops().next_back().filter(|_| spec.writes()) else {
        return Vec::new();
    };
    let changed = loops().map(|stage| changes(spec, &stage.result));
    let changed = changed.fold(Changes::default(), Changes::and);
    let interrupt =
        interrupt_after(last.result.interrupted || ending.interrupted, active.interrupt);
    let (id, verifies) = (active.id.to_string(), active.plan.verify);
    let settled = (|| -> Result<Vec<Check>, RunError> {
        let mut connection = connect_with_retries(&active.server, &active.plan)?;
        Registry::new(&mut connection, dataset).end_run(&id, &changed)?;
        if !verifies {
            return Ok(Vec::new());
        }
        active.observer.notice("verifying the data");
        let mut connection = Connection::open(&active.server.conninfo, &interrupt)?;
        let mut registry = Registry::new(&mut connection, dataset);
        Ok(verify(&mut registry, workload, entry)?)
    })();
    checks_or_reason(settled, &interrupt, &last.result, ending)
}

fn measured_of(part: &Part) -> Option<&Measured> {
    match part {
        Part::Loop(measured) => Some(measured),
        Part::Statement(_) => None,
    }
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
        Err(_) if result.failure.is_some() => Vec::new(),
        Err(_) if interrupt.requested() => {
            ending.interrupted = true;
            Vec::new()
        }
        // The results are kept, but the run is not valid.
        Err(error) => vec![not_verified(&error.to_string())],
    }
}

/// Returns the check of a verification that could not be completed.
pub(super) fn not_verified(found: &str) -> Check {
    Check {
        name: "verification".to_owned(),
        expected: "completed".to_owned(),
        found: found.to_owned(),
        held: false,
    }
}

/// Returns the changes for the ledger: acknowledged ones, and those with an unknown outcome.
pub(super) fn changes(spec: &dyn Spec, result: &StageResult) -> Changes {
    let of = |(operation, each): (&&str, &Acknowledged)| {
        let rows = spec.counts_changes_of(operation);
        Changes {
            rows: if rows { each.rows } else { 0 },
            rows_unknown: if rows { each.rows_unknown } else { 0 },
            effects: each.effects,
            effects_unknown: each.effects_unknown,
        }
    };
    let operations = result.operations.iter().zip(&result.acknowledged);
    operations.map(of).fold(Changes::default(), Changes::and)
}

/// Opens a connection to a server that may still be recovering. The timeout is that of the sessions of the
/// run.
pub(super) fn connect_with_retries(
    server: &Server,
    plan: &Plan,
) -> Result<Connection, ConnectionError> {
    let timeout = Duration::try_from_secs_f64(plan.errors.reconnect_timeout_s).unwrap_or_default();
    server.connect_within(timeout, PAUSE, &Interrupt::new())
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
    let spec = record.plan.work.spec();
    // If each stage replaces the table, only the changes of the last stage are left.
    let replaced =
        if spec.replaces_its_table() { record.stages.len().saturating_sub(1) } else { 0 };
    let of = |each: &OperationRecord| {
        let rows = spec.counts_changes_of(&each.name);
        Changes {
            rows: if rows { each.acknowledged_rows } else { 0 },
            rows_unknown: if rows { each.unknown_rows } else { 0 },
            effects: each.effects.into(),
            effects_unknown: each.unknown_effects.into(),
        }
    };
    let operations =
        record.stages.iter().skip(replaced).flat_map(|stage| &stage.session_loop.operations);
    operations.map(of).fold(Changes::default(), Changes::and)
}
