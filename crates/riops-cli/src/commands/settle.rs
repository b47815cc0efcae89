//! After a run that changed rows: the ledger, and the proof. And what a run whose server died could
//! not report any more.

use std::time::{Duration, Instant};

use anyhow::Result;
use riops::dataset::Changes;
use riops::dataset::{Entry, Registry};
use riops::engine::{Acknowledged, StageResult};
use riops::host::Interrupt;
use riops::plan::{RunPlan, WorkPlan};
use riops::record::{Measured, OperationRecord};
use riops::server::Connection;
use riops::store::SqliteStore;
use riops::workload::Workload;
use riops::workload::load::{Load, NAME};
use riops::{
    dataset::verify,
    workload::check::{Check, Ledger},
};

use super::run::Run;
use crate::target::Target;

/// After the measurement: notes how much was acknowledged to have changed, and how much more may
/// have, and proves that it is there. A server that
/// died in the run cannot be asked any more; then the run in its ledger stays open until somebody
/// settles it from the record.
pub(super) fn settle(
    run: &Run<'_>,
    workload: &dyn Workload,
    measured: &mut [Measured],
) -> Vec<Check> {
    let plan = &run.context.plan;
    if !plan.work.writes() {
        return Vec::new();
    }
    let changed = measured.iter().map(|stage| changes(&plan.work, &stage.result));
    let changed = changed.fold(Changes::default(), Changes::and);
    let Some(last) = measured.last_mut() else {
        return Vec::new();
    };
    // A wish to end that was for the measurement does not extend to the ledger and the proof.
    let wish = if last.result.interrupted { Interrupt::new() } else { run.interrupt.clone() };
    let settled = (|| -> Result<Vec<Check>> {
        let mut connection = open_patiently(run.target, plan)?;
        let mut registry = Registry::new(&mut connection, run.dataset_name);
        registry.end_run(&run.context.id.to_string(), &changed)?;
        if !plan.verify {
            return Ok(Vec::new());
        }
        run.ui.notice("reading the data to prove them");
        let mut connection = Connection::open(&run.target.conninfo, &wish)?;
        let mut registry = Registry::new(&mut connection, run.dataset_name);
        Ok(verify(&mut registry, workload, run.entry)?)
    })();
    or_not_settled(settled, &wish, &mut last.result)
}

/// After a load: the ledger, the end of the table, the proof, and only then the word "complete". What
/// a load that did not end has left stays as it is, for `verify`.
pub(super) fn settle_load(run: &Run<'_>, load: &Load, measured: &mut Measured) -> Vec<Check> {
    let plan = &run.context.plan;
    let result = &mut measured.result;
    let changed = changes(&plan.work, result);
    let wish = if result.interrupted { Interrupt::new() } else { run.interrupt.clone() };
    let whole = result.failure.is_none() && !result.interrupted && result.wrong_replies == 0;
    let id = run.context.id.to_string();
    if result.failure.is_some() {
        run.ui.notice("noting what was acknowledged, as soon as the server answers");
    }
    let settled = (|| -> Result<Vec<Check>> {
        let mut connection = open_patiently(run.target, plan)?;
        let mut registry = Registry::new(&mut connection, NAME);
        registry.end_run(&id, &changed)?;
        if !whole {
            return Ok(Vec::new());
        }
        run.ui.notice(if plan.verify {
            "statistics of the table, then reading it to prove it"
        } else {
            "statistics of the table"
        });
        let mut connection = Connection::open(&run.target.conninfo, &wish)?;
        connection.execute(&load.table().finish_sql())?;
        let mut registry = Registry::new(&mut connection, NAME);
        let (baseline, checks) = if plan.verify {
            let baseline = registry.contents(&load.contents_sql())?;
            // Texts that riops does not know can only be compared with themselves, which proves
            // nothing yet.
            let checks = load.checks(&baseline, &[], &Ledger::default());
            (baseline, checks)
        } else {
            (Vec::new(), Vec::new())
        };
        if checks.iter().all(|check| check.held) {
            registry.complete(&run.entry.id, &baseline)?;
            // Its rows are the dataset itself now, and no change of it.
            registry.forget_run(&id)?;
        }
        Ok(checks)
    })();
    if settled.is_err() && wish.requested() && whole {
        // The load was over, and nobody knows whether the table is whole.
        result.interrupted = true;
        return vec![not_proved("interrupted")];
    }
    or_not_settled(settled, &wish, result)
}

fn not_proved(found: &str) -> Check {
    Check {
        name: "verification".to_owned(),
        expected: "an answer".to_owned(),
        found: found.to_owned(),
        held: false,
    }
}

/// The rows whose changes count in the ledger: acknowledged, and of unknown outcome.
fn changes(work: &WorkPlan, result: &StageResult) -> Changes {
    let of = |(operation, each): (&&str, &Acknowledged)| {
        let rows = work.counts_changes_of(operation);
        Changes {
            rows: if rows { each.rows } else { 0 },
            rows_unknown: if rows { each.rows_unknown } else { 0 },
            effects: each.effects,
            effects_unknown: each.effects_unknown,
        }
    };
    result
        .operations
        .iter()
        .zip(&result.acknowledged)
        .map(of)
        .fold(Changes::default(), Changes::and)
}

/// What is said where ledger or proof came to nothing.
fn or_not_settled(
    settled: Result<Vec<Check>>,
    wish: &Interrupt,
    result: &mut StageResult,
) -> Vec<Check> {
    match settled {
        Ok(checks) => checks,
        Err(_) if result.failure.is_some() => Vec::new(),
        Err(_) if wish.requested() => {
            result.interrupted = true;
            Vec::new()
        }
        // What was measured is not thrown away, and not called valid.
        Err(error) => vec![not_proved(&format!("{error:#}"))],
    }
}

/// Opens a connection to a server that may still be recovering, as long as the sessions of the run
/// would have tried.
pub(super) fn open_patiently(target: &Target, plan: &RunPlan) -> Result<Connection> {
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
        // Without a record the run was killed, is under way, or was made elsewhere: it stays open. One
        // that speaks of another making of the dataset did not come to measuring this one.
        let Some(record) =
            store.find(&id).ok().filter(|record| record.target.dataset.id == entry.id)
        else {
            continue;
        };
        // Each stage of a load had a table of its own, and only the last one's is left.
        let gone = match &record.plan.work {
            WorkPlan::Load(_) => record.stages.len().saturating_sub(1),
            _ => 0,
        };
        let operations = record.stages.iter().skip(gone).flat_map(|stage| &stage.operations);
        let of = |each: &OperationRecord| {
            let rows = record.plan.work.counts_changes_of(&each.name);
            Changes {
                rows: if rows { each.acknowledged_rows } else { 0 },
                rows_unknown: if rows { each.unknown_rows } else { 0 },
                effects: each.effects,
                effects_unknown: each.unknown_effects,
            }
        };
        let changed = operations.map(of).fold(Changes::default(), Changes::and);
        registry.end_run(&id, &changed)?;
    }
    Ok(())
}
