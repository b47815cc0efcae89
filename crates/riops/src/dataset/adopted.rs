//! Datasets with a new baseline: tables that were not created by riops, and tables on which a run ended
//! without reporting its changes.

use std::time::Instant;

use serde_json::Value;

use super::error::DatasetError;
use super::holders::LOCK_SPACE;
use super::lock::{LOCK_POLL_INTERVAL, LOCK_TIMEOUT};
use super::registry::{Entry, Registry, forget, register, set_complete};

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
    /// dataset on which a run did not report all its changes, so that earlier changes can no longer be
    /// verified. Returns false if another session is using the dataset, also after a while.
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
        let are_gone = self.await_sessions_of_runs(&entry.id)?;
        if are_gone {
            let baseline = self.contents(queries)?;
            let (workload, id) = (self.workload(), entry.id.clone());
            self.in_transaction(|connection| {
                connection.query_with("delete from riops.run where dataset = $1", &[Some(&id)])?;
                set_complete(connection, workload, &id, &baseline).map(drop)
            })?;
            entry.baseline = baseline;
        }
        // The shared lock of this session remains.
        let sql =
            format!("select pg_advisory_unlock({LOCK_SPACE}, hashtext('{}'))", self.workload());
        self.connection().query_value(&sql)?;
        Ok(are_gone)
    }

    /// Waits until the server has ended the sessions of earlier runs: a killed run holds no lock, but its last statements,
    /// or its loops in the server, may still change rows. Returns whether they have ended within the timeout. Sessions of
    /// roles that this role cannot see are not noticed.
    fn await_sessions_of_runs(&mut self, dataset: &str) -> Result<bool, DatasetError> {
        let deadline = Instant::now() + LOCK_TIMEOUT;
        while self.has_sessions_of_runs(dataset)? {
            if Instant::now() >= deadline {
                return Ok(false);
            }
            std::thread::sleep(LOCK_POLL_INTERVAL);
        }
        Ok(true)
    }

    fn has_sessions_of_runs(&mut self, dataset: &str) -> Result<bool, DatasetError> {
        // The name of the sessions of a run ends with its id.
        let sessions = self.connection().query_with(
            "select 1 from pg_stat_activity as session, riops.run as run
              where run.dataset = $1 and session.application_name like '%/' || run.id",
            &[Some(dataset)],
        )?;
        Ok(!sessions.is_empty())
    }
}
