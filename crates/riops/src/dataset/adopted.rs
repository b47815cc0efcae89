//! Datasets with a new baseline: tables that were not created by riops, and tables on which a run ended
//! without reporting its changes.

use serde_json::Value;

use super::error::DatasetError;
use super::holders::LOCK_SPACE;
use super::registry::{Entry, Registry, forget, register};

impl Registry<'_> {
    /// Registers existing tables as a complete dataset. Replaces the entry of the workload.
    ///
    /// # Errors
    /// [`DatasetError`] if a statement fails.
    pub fn adopt(
        &mut self,
        parameters: &Value,
        baseline: &[Vec<i128>],
    ) -> Result<(), DatasetError> {
        let workload = self.workload();
        let id = uuid::Uuid::now_v7().to_string();
        let parameters = parameters.to_string();
        self.in_transaction(|connection| {
            forget(connection, workload)?;
            register(connection, workload, &id, &parameters)
        })?;
        self.complete(&id, baseline)
    }

    /// Replaces the baseline by the current contents and deletes all runs from the ledger. This is for a
    /// dataset on which a run did not report its changes, so that earlier changes can no longer be
    /// verified. Returns false if another session is using the dataset.
    ///
    /// # Errors
    /// [`DatasetError`] if a statement fails.
    pub fn reset_baseline(
        &mut self,
        entry: &mut Entry,
        queries: &[String],
    ) -> Result<bool, DatasetError> {
        if !self.try_lock(true)? {
            return Ok(false);
        }
        let baseline = self.contents(queries)?;
        let id = entry.id.clone();
        self.in_transaction(|connection| {
            connection.query_with("delete from riops.run where dataset = $1", &[Some(&id)])?;
            Ok(())
        })?;
        self.complete(&id, &baseline)?;
        entry.baseline = baseline;
        // The shared lock of this session remains.
        let sql =
            format!("select pg_advisory_unlock({LOCK_SPACE}, hashtext('{}'))", self.workload());
        self.connection().query_value(&sql)?;
        Ok(true)
    }
}
