//! After a run that changed rows: the ledger, and the verification; and what a run whose server died could
//! not report.

use std::time::Duration;

use super::error::RunError;
use super::observer::History;
use super::scene::Scene;
use crate::dataset::{Changes, DatasetError, Entry, Registry, verify};
use crate::engine::{Acknowledged, StageResult};
use crate::host::Interrupt;
use crate::plan::{Plan, Spec};
use crate::record::{Ending, Measured, OperationRecord, Part, Record};
use crate::server::{Connection, ConnectionError, Server};
use crate::workload::Workload;
use crate::workload::check::Check;

/// Between two attempts to connect to a server that is recovering.
const PAUSE: Duration = Duration::from_millis(100);

/// After the measurement: enters into the ledger how much was acknowledged to have changed, and how much more
/// may have, and verifies that it is there. A server that died in the run cannot be asked any more; then the
/// run stays open in the ledger until somebody settles it from the record.
pub(super) fn settle(
    scene: &mut Scene<'_>,
    dataset: &'static str,
    entry: &Entry,
    workload: &dyn Workload,
    (parts, ending): (&[Part], &mut Ending),
) -> Vec<Check> {
    let spec = scene.plan.work.spec();
    let loops = || parts.iter().filter_map(measured_of);
    let Some(last) = loops().next_back().filter(|_| spec.writes()) else {
        return Vec::new();
    };
    let changed = loops().map(|stage| changes(spec, &stage.result));
    let changed = changed.fold(Changes::default(), Changes::and);
    let interrupt = interrupt_after(last.result.interrupted || ending.interrupted, scene.interrupt);
    let (id, verifies) = (scene.id.to_string(), scene.plan.verify);
    let settled = (|| -> Result<Vec<Check>, RunError> {
        let mut connection = connect_with_retries(&scene.server, &scene.plan)?;
        Registry::new(&mut connection, dataset).end_run(&id, &changed)?;
        if !verifies {
            return Ok(Vec::new());
        }
        scene.observer.notice("reading the data to verify them");
        let mut connection = Connection::open(&scene.server.conninfo, &interrupt)?;
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

/// What interrupts the ledger and the verification: not what has already interrupted the measurement.
pub(super) fn interrupt_after(was_interrupted: bool, interrupt: &Interrupt) -> Interrupt {
    if was_interrupted { Interrupt::new() } else { interrupt.clone() }
}

/// The checks; or what stands in their place where there are none.
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
        // What was measured is not thrown away, and not called valid.
        Err(error) => vec![not_verified(&error.to_string())],
    }
}

/// The check that stands for a verification without an answer.
pub(super) fn not_verified(found: &str) -> Check {
    Check {
        name: "verification".to_owned(),
        expected: "an answer".to_owned(),
        found: found.to_owned(),
        held: false,
    }
}

/// The rows whose changes count in the ledger: acknowledged, and of unknown outcome.
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

/// Opens a connection to a server that may still be recovering, as long as the sessions of the run would
/// have tried.
pub(super) fn connect_with_retries(
    server: &Server,
    plan: &Plan,
) -> Result<Connection, ConnectionError> {
    let within = Duration::try_from_secs_f64(plan.errors.reconnect_timeout_s).unwrap_or_default();
    server.connect_within(within, PAUSE, &Interrupt::new())
}

/// Settles the runs that could not report because their server had died, from their records where those are
/// known.
pub(super) fn settle_open_runs(
    registry: &mut Registry<'_>,
    entry: &Entry,
    history: &dyn History,
) -> Result<(), DatasetError> {
    for id in registry.open_runs(&entry.id)? {
        let on_it = |record: &Record| {
            record.target.dataset.as_ref().is_some_and(|dataset| dataset.id == entry.id)
        };
        // Without a record the run was killed, is in progress, or was made elsewhere: it stays open. One
        // on another generation of the dataset did not come to measuring this one.
        if let Some(record) = history.record(&id).filter(on_it) {
            registry.end_run(&id, &recorded_changes(&record))?;
        }
    }
    Ok(())
}

fn recorded_changes(record: &Record) -> Changes {
    let spec = record.plan.work.spec();
    // Of tables that each stage replaces only the last one's is left.
    let gone = if spec.replaces_its_table() { record.stages.len().saturating_sub(1) } else { 0 };
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
        record.stages.iter().skip(gone).flat_map(|stage| &stage.session_loop.operations);
    operations.map(of).fold(Changes::default(), Changes::and)
}
