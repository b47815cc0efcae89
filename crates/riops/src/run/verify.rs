//! Verifies a dataset outside a run.

use super::error::RunError;
use super::find::plan_of;
use super::settle::settle_open_runs;
use crate::dataset::{DatasetError, OnWait, Registry};
use crate::engine::History;
use crate::host::Interrupt;
use crate::record::Check;
use crate::server::{Connection, Server};
use crate::{dataset, workload};

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
    let entry = registry.entry()?.ok_or_else(|| DatasetError::Missing {
        workload: name,
        target: server.conninfo.to_string(),
    })?;
    let workload = workload::on(&plan_of(name, &entry)?)?;
    registry.require(&workload.table_names(), entry.is_adopted())?;
    settle_open_runs(&mut registry, &entry, history)?;
    Ok(dataset::verify(&mut registry, workload.as_ref(), &entry)?)
}
