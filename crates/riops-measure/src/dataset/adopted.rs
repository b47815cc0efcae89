//! Datasets with a new baseline: tables that were not created by riops, and tables on which a run ended
//! without reporting its changes.

use std::time::Instant;

use serde_json::Value;

use super::error::Result;
use super::ledger::verify;
use super::lock::{LOCK_POLL_INTERVAL, LOCK_TIMEOUT, OnWait};
use super::registry::{Entry, Registry, forget, register, set_complete};
use crate::workload::Workload;
use crate::workload::check::ROWS_UNBOUNDED;

impl Registry<'_> {
    /// Registers existing tables as a complete dataset. Replaces the entry of the workload.
    ///
    /// # Errors
    /// [`DatasetError`](super::DatasetError) if a statement fails.
    pub fn adopt(&mut self, parameters: &Value, baseline: &[Vec<i128>]) -> Result<()> {
        let workload = self.workload;
        let id = uuid::Uuid::now_v7().to_string();
        let parameters = parameters.to_string();
        self.in_transaction(|connection| {
            forget(connection, workload)?;
            register(connection, workload, &id, &parameters)
        })?;
        self.complete(&id, baseline)
    }

    /// Replaces the baseline by the current contents and deletes all runs from the ledger, because earlier changes can
    /// no longer be verified. Returns false if another session is using the dataset.
    ///
    /// # Errors
    /// [`DatasetError`](super::DatasetError) if a statement fails.
    pub fn reset_baseline(&mut self, entry: &mut Entry, queries: &[String]) -> Result<bool> {
        Ok(self.alone(|registry| registry.replace_baseline(entry, queries))?.is_some())
    }

    /// Does the same for a dataset on which a run did not report all its changes, if the contents do not contradict what
    /// is known about them. `notice` receives a text before the tables are read.
    ///
    /// # Errors
    /// [`DatasetError`](super::DatasetError) if a statement fails.
    pub fn reset_unreported(
        &mut self,
        entry: &mut Entry,
        workload: &dyn Workload,
        run: &str,
        notice: OnWait<'_>,
    ) -> Result<Unreported> {
        let reset = self.alone(|registry| {
            if !registry.await_end_of_unreported(&entry.id, run)? {
                return Ok(Unreported::InUse);
            }
            notice("an earlier run did not report all its changes: reading the tables");
            let checks = verify(registry, workload, entry)?;
            if checks.iter().any(|check| !check.held && !check.unknown) {
                return Ok(Unreported::Contradicted);
            }
            registry.replace_baseline(entry, &workload.contents_sql())?;
            Ok(Unreported::Reset)
        })?;
        Ok(reset.unwrap_or(Unreported::InUse))
    }

    /// Does `work` under the exclusive lock. Returns `None` if another session is using the dataset.
    fn alone<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<Option<T>> {
        if !self.try_lock(true)? {
            return Ok(None);
        }
        let done = work(self)?;
        // The shared lock of this session remains.
        self.unlock(true)?;
        Ok(Some(done))
    }

    fn replace_baseline(&mut self, entry: &mut Entry, queries: &[String]) -> Result<()> {
        let baseline = self.contents(queries)?;
        let (workload, id) = (self.workload, entry.id.clone());
        self.in_transaction(|connection| {
            connection.query_with("delete from riops.run where dataset = $1", &[Some(&id)])?;
            set_complete(connection, workload, &id, &baseline).map(drop)
        })?;
        entry.baseline = baseline;
        Ok(())
    }

    /// Waits until the server has ended the sessions of runs that did not report all their changes: such a run holds no
    /// lock, but its last statements, or its loops in the server, may still change rows. Returns false if they have not
    /// ended within the timeout, or if sessions are not known by their names. `run` is the id of this run.
    fn await_end_of_unreported(&mut self, dataset: &str, run: &str) -> Result<bool> {
        // A pooler may hide the names.
        let name = self.connection.query_value("select current_setting('application_name')")?;
        if !name.is_some_and(|name| name.ends_with(run)) {
            return Ok(false);
        }
        let deadline = Instant::now() + LOCK_TIMEOUT;
        while self.has_sessions_of_unreported(dataset)? {
            if Instant::now() >= deadline {
                return Ok(false);
            }
            std::thread::sleep(LOCK_POLL_INTERVAL);
        }
        Ok(true)
    }

    fn has_sessions_of_unreported(&mut self, dataset: &str) -> Result<bool> {
        // The name of a session ends with the id of its run. Idle connections of a pooler keep the name of the last one.
        let sessions = self.connection.query_with(
            "select 1 from pg_stat_activity as session, riops.run as run
              where run.dataset = $1 and (run.ended_at is null or run.rows_unknown >= $2::bigint)
                and session.application_name like '%/' || run.id
                and not coalesce(session.state = 'idle'
                                 and session.state_change < clock_timestamp() - interval '1 second', false)",
            &[Some(dataset), Some(&ROWS_UNBOUNDED.to_string())],
        )?;
        Ok(!sessions.is_empty())
    }
}

/// State of a dataset on which a run did not report all its changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unreported {
    /// Its contents are the new baseline.
    Reset,
    /// It has lost changes that are known. It remains as it is, so that every verification shows this.
    Contradicted,
    /// Others may still change it. It remains as it is.
    InUse,
}
