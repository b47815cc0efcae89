//! Datasets whose account begins anew: tables that somebody else has made, and those on which a run did
//! not report.

use serde_json::Value;

use super::error::DatasetError;
use super::lock::LOCK_SPACE;
use super::registry::{Entry, Registry, forget, register};

impl Registry<'_> {
    /// Registers tables that somebody else has made as a whole dataset, in the place of what was
    /// registered.
    ///
    /// # Errors
    /// [`DatasetError`]
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

    /// Takes what is there now for what was loaded, and forgets all runs until now: one of them did not
    /// report, and nothing can be proved any more. False where somebody else is using the dataset.
    ///
    /// # Errors
    /// [`DatasetError`]
    pub fn count_anew(
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
        // The shared lock stays.
        let sql =
            format!("select pg_advisory_unlock({LOCK_SPACE}, hashtext('{}'))", self.workload());
        self.connection().query_value(&sql)?;
        Ok(true)
    }
}
