//! After a run that changed rows: the ledger, and the proof. And what a run whose server died could
//! not report any more.

use std::time::{Duration, Instant};

use anyhow::Result;
use riops::engine::StageResult;
use riops::plan::{RowsRun, RunPlan};
use riops::store::SqliteStore;
use riops::target::{Connection, Interrupt};
use riops::workload::dataset::{Entry, Registry};
use riops::workload::rows::{NAME, Rows};
use riops::workload::verify::{Check, verify};

use super::run::Run;
use crate::target::Target;

/// After the measurement: notes how much was acknowledged to have changed, and how much more may
/// have, and proves that it is there. A server that
/// died in the run cannot be asked any more; then the run in its ledger stays open until somebody
/// settles it from the record.
pub(super) fn settle(
    run: &Run<'_>,
    workload: &Rows,
    (changed, unknown): (u64, u64),
    result: &mut StageResult,
) -> Vec<Check> {
    let Run { target, entry, context, interrupt, ui, .. } = run;
    if !context.plan.rows.updates() {
        return Vec::new();
    }
    // A wish to end that was for the measurement does not extend to the ledger and the proof.
    let wish = if result.interrupted { Interrupt::new() } else { (*interrupt).clone() };
    let settled = (|| -> Result<Vec<Check>> {
        let mut connection = open_patiently(target, &context.plan)?;
        let mut registry = Registry::new(&mut connection, NAME);
        registry.end_run(&context.id.to_string(), changed, unknown)?;
        if !context.plan.verify {
            return Ok(Vec::new());
        }
        ui.notice("summing up the data");
        let mut connection = Connection::open(&target.conninfo, &wish)?;
        Ok(verify(&mut Registry::new(&mut connection, NAME), workload, entry)?)
    })();
    match settled {
        Ok(checks) => checks,
        Err(_) if result.failure.is_some() => Vec::new(),
        Err(_) if wish.requested() => {
            result.interrupted = true;
            Vec::new()
        }
        // What was measured is not thrown away, and not called valid.
        Err(error) => vec![Check {
            name: "verification".to_owned(),
            expected: "an answer".to_owned(),
            found: error.to_string(),
            held: false,
        }],
    }
}

/// Opens a connection to a server that may still be recovering, as long as the sessions of the run
/// would have tried.
fn open_patiently(target: &Target, plan: &RunPlan) -> Result<Connection> {
    const PAUSE: Duration = Duration::from_millis(100);
    let patience = Duration::try_from_secs_f64(plan.errors.reconnect_timeout_s).unwrap_or_default();
    let deadline = Instant::now() + patience;
    loop {
        match Connection::open(&target.conninfo, &Interrupt::new()) {
            Err(error) if !error.is_final() && Instant::now() < deadline => {
                std::thread::sleep(PAUSE);
            }
            other => return Ok(other?),
        }
    }
}

/// What updates of these rows add to `scratch`: nothing where they stay in the index.
pub(super) fn increments(run: &RowsRun, acknowledged: u64, unknown: u64) -> (u64, u64) {
    if run.index_only { (0, 0) } else { (acknowledged, unknown) }
}

/// Settles the runs that could not report because their server had died, from their records where
/// those were kept here. What was acknowledged then is not forgotten.
pub(crate) fn settle_open_runs(
    registry: &mut Registry<'_>,
    entry: &Entry,
    store: Option<&SqliteStore>,
) -> Result<()> {
    let Some(store) = store else {
        return Ok(());
    };
    for id in registry.open_runs(&entry.id)? {
        // Without a record the run was killed, is under way, or was made elsewhere: it stays open.
        let Ok(record) = store.find(&id) else {
            continue;
        };
        let operations = record.stages.iter().flat_map(|stage| &stage.operations);
        let (acknowledged, unknown) = operations
            .filter(|each| each.name == "update")
            .fold((0, 0), |all, each| (all.0 + each.acknowledged_rows, all.1 + each.unknown_rows));
        let (changed, unknown) = increments(&record.plan.rows, acknowledged, unknown);
        registry.end_run(&id, changed, unknown)?;
    }
    Ok(())
}
