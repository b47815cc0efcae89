//! Proof that nothing was lost: what the database acknowledged against what it holds.

use super::error::DatasetError;
use super::registry::{Entry, Registry, State};
use crate::workload::Workload;
use crate::workload::check::Check;

/// Reads the data and checks them against everything that was acknowledged since they were loaded.
///
/// # Errors
/// [`DatasetError`]
pub fn verify(
    registry: &mut Registry<'_>,
    workload: &dyn Workload,
    entry: &Entry,
) -> Result<Vec<Check>, DatasetError> {
    // One snapshot of data and ledger: a run that is open in it may have changed more, a run that
    // has ended in it has changed all it says, whatever other riops do meanwhile.
    registry.connection().execute("begin isolation level repeatable read, read only")?;
    let contents = registry.contents(&workload.contents_sql())?;
    let ledger = registry.history(&entry.id)?;
    registry.connection().execute("commit")?;
    Ok(match entry.state {
        State::Complete => workload.checks(&contents, &entry.baseline, &ledger),
        State::Loading => workload
            .checks_of_part(&contents, &ledger)
            .ok_or(DatasetError::Incomplete(workload.name()))?,
    })
}
