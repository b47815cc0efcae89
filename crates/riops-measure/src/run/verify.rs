//! Verifies a dataset, and reads it into the caches, outside of a run.

use super::error::RunError;
use super::find::{is_wanted, missing, plan_of, use_part};
use super::settle::settle_open_runs;
use crate::dataset::sysbench::adopt_where_needed;
use crate::dataset::{DatasetError, OnWait, Registry, State};
use crate::engine::History;
use crate::host::Interrupt;
use crate::probe::caches;
use crate::server::{Connection, Server};
use crate::{dataset, workload};
use riops_model::plan::{DatasetPlan, Parameters, Plan};
use riops_model::record::Check;
use riops_model::record::dataset::Warmed;

/// Reads the dataset with this name in the registry, and compares it with all changes acknowledged since it
/// was prepared. Waits for other processes that use the dataset, and names them to `on_wait`.
///
/// # Errors
/// [`RunError`] if the dataset does not exist or cannot be read.
pub fn verify(
    name: &'static str,
    server: &Server,
    interrupt: &Interrupt,
    history: &dyn History,
    on_wait: OnWait<'_>,
) -> Result<Vec<Check>, RunError> {
    server.require_dedicated_sessions(interrupt)?;
    let mut control = Connection::open(&server.conninfo, interrupt)?;
    let mut registry = Registry::new(&mut control, name);
    // No run may change rows between the count and the sum.
    registry.lock(true, on_wait)?;
    let entry = registry.entry()?.ok_or_else(|| missing(name, server))?;
    let workload = workload::on(&plan_of(name, &entry)?)?;
    registry.require(&workload.table_names(), entry.is_adopted())?;
    settle_open_runs(&mut registry, &entry, history)?;
    Ok(dataset::verify(&mut registry, workload.as_ref(), &entry)?)
}

/// Reads the dataset, or the part of it that `given` describes, into shared buffers and the page cache, as far as
/// it fits. `wanted` is the complete description. Waits for processes that change the dataset, and names them to
/// `notice`.
///
/// # Errors
/// [`RunError`] if the dataset does not exist, differs, or cannot be read.
pub fn warm(
    wanted: &DatasetPlan,
    given: &Parameters,
    server: &Server,
    interrupt: &Interrupt,
    notice: OnWait<'_>,
) -> Result<Warmed, RunError> {
    let name = wanted.traits().name;
    server.require_dedicated_sessions(interrupt)?;
    let mut control = Connection::open(&server.conninfo, interrupt)?;
    adopt_where_needed(wanted, given, &mut control, interrupt, notice)?;
    let mut registry = Registry::new(&mut control, name);
    registry.lock(false, notice)?;
    let entry = registry.entry()?.filter(|entry| is_wanted(entry, wanted));
    let entry = entry.ok_or_else(|| missing(name, server))?;
    if entry.state != State::Complete {
        return Err(DatasetError::Incomplete(name).into());
    }
    let mut plan = Plan { dataset: given.clone(), ..Plan::default() };
    let used = use_part(&mut plan, &entry, &plan_of(name, &entry)?)?;
    let workload = workload::on(&used)?;
    let tables = workload.table_names();
    registry.require(&tables, entry.is_adopted())?;
    let state = caches::warm(&mut control, &tables)?;
    Ok(Warmed { tables: tables.len(), state })
}
