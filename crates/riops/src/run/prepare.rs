//! Prepares a dataset.

use super::error::{Context as _, RunError};
use crate::dataset::prepare::{Preparation, Prepared};
use crate::engine::Observer;
use crate::host::{Interrupt, machine};
use crate::plan::{DatasetPlan, Parameters};
use crate::server::Server;
use crate::workload;

/// The parameters of a preparation.
#[derive(Debug, Clone)]
pub struct Prepare {
    /// Dataset to prepare.
    pub dataset: DatasetPlan,
    /// Parameters that an existing dataset must match.
    pub compared: Parameters,
    /// Whether an existing dataset is dropped first.
    pub recreate: bool,
    /// Number of parallel connections; absent: one per core.
    pub connections: Option<u32>,
    /// Whether the free space of the server is not checked.
    pub skip_space_check: bool,
}

/// Prepares a dataset, or keeps an existing one with the same parameters.
///
/// # Errors
/// [`RunError`]. A failed preparation leaves nothing that looks complete.
pub fn prepare(
    request: &Prepare,
    server: &Server,
    interrupt: &Interrupt,
    observer: &mut dyn Observer,
) -> Result<Prepared, RunError> {
    server.require_dedicated_sessions(interrupt)?;
    let cores = u32::try_from(machine::cpus()).unwrap_or(1);
    let workload = workload::on(&request.dataset)?;
    let progress = observer.preparing();
    let prepared = Preparation {
        target: &server.conninfo,
        workload: workload.as_ref(),
        name: request.dataset.traits().name,
        compared: &request.compared,
        recreate: request.recreate,
        connections: request.connections.unwrap_or(cores),
        skip_space_check: request.skip_space_check,
        interrupt,
        progress: progress.as_ref(),
    }
    .run(&mut |text| observer.notice(text))
    .with_context(|| "cannot prepare the dataset".to_owned())?;
    Ok(prepared)
}
