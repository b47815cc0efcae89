//! The advisory locks of a dataset: shared for runs, exclusive for preparing, verifying and dropping it.

use std::time::{Duration, Instant};

use riops_wire::sqlstate::SqlState;

use super::error::DatasetError;
use super::registry::{Entry, Registry, State};
use crate::host::Interrupt;
use crate::server::ConnectionError;

/// First key of the advisory locks: the letters `riop`.
pub(super) const LOCK_SPACE: i32 = 0x7269_6f70;
/// Timeout for a lock. The server ends the sessions of a killed riops, with their locks, within this time.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(50);

impl Registry<'_> {
    /// Locks the dataset until the connection is closed: against changes, or with `exclusive` against any
    /// use.
    ///
    /// # Errors
    /// [`DatasetError::InUse`] if another session holds a conflicting lock until the timeout.
    pub fn lock(&mut self, exclusive: bool) -> Result<(), DatasetError> {
        let deadline = Instant::now() + LOCK_TIMEOUT;
        while !self.try_lock(exclusive)? {
            if Instant::now() >= deadline {
                return Err(DatasetError::InUse(self.workload()));
            }
            std::thread::sleep(LOCK_POLL_INTERVAL);
        }
        Ok(())
    }

    pub(super) fn try_lock(&mut self, exclusive: bool) -> Result<bool, DatasetError> {
        let function =
            if exclusive { "pg_try_advisory_lock" } else { "pg_try_advisory_lock_shared" };
        let sql = format!("select {function}({LOCK_SPACE}, hashtext('{}'))", self.workload());
        match self.connection().query_value(&sql) {
            // YugabyteDB does not support advisory locks before 2025.1: the dataset is not protected there.
            Err(ConnectionError::Server(error))
                if error.sqlstate == SqlState::FEATURE_NOT_SUPPORTED =>
            {
                Ok(true)
            }
            reply => Ok(reply?.as_deref() == Some("t")),
        }
    }

    /// Takes the shared lock of [`Self::lock`] in a transaction that stays open until the connection is
    /// closed. Through a pooler, a session-level lock would stay with the server connection and not protect
    /// the dataset.
    ///
    /// # Errors
    /// [`DatasetError::InUse`] if another session holds a conflicting lock until the timeout.
    pub fn lock_in_transaction(&mut self) -> Result<(), DatasetError> {
        self.connection().execute("begin; set local idle_in_transaction_session_timeout = 0")?;
        let sql = format!(
            "select pg_try_advisory_xact_lock_shared({LOCK_SPACE}, hashtext('{}'))",
            self.workload()
        );
        let deadline = Instant::now() + LOCK_TIMEOUT;
        while self.connection().query_value(&sql)?.as_deref() != Some("t") {
            if Instant::now() >= deadline {
                return Err(DatasetError::InUse(self.workload()));
            }
            std::thread::sleep(LOCK_POLL_INTERVAL);
        }
        Ok(())
    }

    /// Takes the exclusive lock. While another session is loading the dataset, the timeout is extended.
    /// Returns false if that session completes a dataset that is `sufficient`.
    ///
    /// # Errors
    /// [`DatasetError::InUse`] if another session holds a conflicting lock until the timeout.
    pub fn lock_to_prepare(
        &mut self,
        sufficient: impl Fn(&Entry) -> bool,
        interrupt: &Interrupt,
    ) -> Result<bool, DatasetError> {
        let mut deadline = Instant::now() + LOCK_TIMEOUT;
        loop {
            if self.try_lock(true)? {
                return Ok(true);
            }
            match self.entry()? {
                Some(entry) if entry.state == State::Complete && sufficient(&entry) => {
                    return Ok(false);
                }
                Some(entry) if entry.state == State::Loading => {
                    deadline = Instant::now() + LOCK_TIMEOUT;
                }
                _ if Instant::now() >= deadline => {
                    return Err(DatasetError::InUse(self.workload()));
                }
                _ => {}
            }
            if interrupt.requested() {
                return Err(ConnectionError::Interrupted.into());
            }
            std::thread::sleep(LOCK_POLL_INTERVAL);
        }
    }
}
