//! Prepares a dataset.

use super::error::{Part as _, RunError};
use super::observer::Observer;
use crate::dataset::prepare::{Preparation, Prepared};
use crate::host::{Interrupt, machine};
use crate::plan::{DatasetPlan, Parameters};
use crate::server::Server;
use crate::workload;

/// What is to be prepared.
#[derive(Debug, Clone)]
pub struct Prepare {
    /// The dataset.
    pub dataset: DatasetPlan,
    /// The parameters that an existing dataset must share.
    pub compared: Parameters,
    /// Whether an existing dataset is dropped first.
    pub recreate: bool,
    /// Parallel connections; absent: one for each core.
    pub connections: Option<u32>,
}

/// Prepares a dataset, or keeps the one that is there.
///
/// # Errors
/// [`RunError`]; then nothing is left that looks complete.
pub fn prepare(
    order: &Prepare,
    server: &Server,
    interrupt: &Interrupt,
    observer: &mut dyn Observer,
) -> Result<Prepared, RunError> {
    server.require_own_sessions(interrupt)?;
    let cores = u32::try_from(machine::cpus()).unwrap_or(1);
    let workload = workload::on(&order.dataset)?;
    let progress = observer.preparing();
    let prepared = Preparation {
        target: &server.conninfo,
        workload: workload.as_ref(),
        compared: &order.compared,
        recreate: order.recreate,
        connections: order.connections.unwrap_or(cores),
        interrupt,
        progress: progress.as_ref(),
    }
    .run()
    .part(|| "the dataset was not prepared".to_owned())?;
    Ok(prepared)
}
