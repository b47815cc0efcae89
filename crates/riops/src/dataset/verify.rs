//! Verification of the data: compares the acknowledged changes with the contents of the database.

use super::error::DatasetError;
use super::registry::{Entry, Registry, State};
use crate::record::Check;
use crate::workload::Workload;

/// Reads the data and compares them with all changes acknowledged since the load.
///
/// # Errors
/// [`DatasetError`] if the data cannot be read, or if an incomplete dataset cannot be verified.
pub fn verify(
    registry: &mut Registry<'_>,
    workload: &dyn Workload,
    entry: &Entry,
) -> Result<Vec<Check>, DatasetError> {
    // One snapshot of data and ledger, so that runs of other riops processes do not interfere: a run that
    // is open in the snapshot may have changed more rows, a closed one has changed exactly what it
    // reported.
    registry.connection().execute("begin isolation level repeatable read, read only")?;
    let ledger = registry.history(&entry.id)?;
    let mut queries = workload.contents_sql();
    queries.extend(workload.ledger_sql(&ledger));
    let contents = registry.contents(&queries)?;
    registry.connection().execute("commit")?;
    Ok(match entry.state {
        State::Complete => workload.checks(&contents, &entry.baseline, &ledger),
        State::Loading => workload
            .checks_of_incomplete_load(&contents, &ledger)
            .ok_or(DatasetError::Incomplete(registry.workload()))?,
    })
}
