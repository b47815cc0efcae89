//! The advisory locks of a dataset in its target: shared by runs, exclusive for whoever makes, proves or
//! drops it.

use std::time::{Duration, Instant};

use riops_wire::sqlstate::SqlState;

use super::error::DatasetError;
use super::registry::{Entry, Registry, State};
use crate::host::Interrupt;
use crate::server::ConnectionError;

/// First half of the advisory lock's key: the letters `riop`.
pub(super) const LOCK_SPACE: i32 = 0x7269_6f70;
/// A killed riops's sessions end within this time, and with them its locks.
const LOCK_PATIENCE: Duration = Duration::from_secs(5);
const LOCK_LOOK_AGAIN: Duration = Duration::from_millis(50);

impl Registry<'_> {
    /// Keeps others from changing the dataset, and with `exclusive` from using it, until the
    /// connection ends.
    ///
    /// # Errors
    /// [`DatasetError::InUse`] where somebody keeps it longer than a killed riops would.
    pub fn lock(&mut self, exclusive: bool) -> Result<(), DatasetError> {
        let deadline = Instant::now() + LOCK_PATIENCE;
        while !self.try_lock(exclusive)? {
            if Instant::now() >= deadline {
                return Err(DatasetError::InUse(self.workload()));
            }
            std::thread::sleep(LOCK_LOOK_AGAIN);
        }
        Ok(())
    }

    pub(super) fn try_lock(&mut self, exclusive: bool) -> Result<bool, DatasetError> {
        let function =
            if exclusive { "pg_try_advisory_lock" } else { "pg_try_advisory_lock_shared" };
        let sql = format!("select {function}({LOCK_SPACE}, hashtext('{}'))", self.workload());
        match self.connection().query_value(&sql) {
            // YugabyteDB has no advisory locks before 2025.1: nobody is kept out there.
            Err(ConnectionError::Server(error))
                if error.sqlstate == SqlState::FEATURE_NOT_SUPPORTED =>
            {
                Ok(true)
            }
            answer => Ok(answer?.as_deref() == Some("t")),
        }
    }

    /// The shared lock of [`Self::lock`], held by a transaction that stays open as long as the
    /// connection: through a pooler a session's lock would stay behind, and hold nobody back.
    ///
    /// # Errors
    /// [`DatasetError::InUse`]
    pub fn lock_in_transaction(&mut self) -> Result<(), DatasetError> {
        self.connection().execute("begin; set local idle_in_transaction_session_timeout = 0")?;
        let sql = format!(
            "select pg_try_advisory_xact_lock_shared({LOCK_SPACE}, hashtext('{}'))",
            self.workload()
        );
        let deadline = Instant::now() + LOCK_PATIENCE;
        while self.connection().query_value(&sql)?.as_deref() != Some("t") {
            if Instant::now() >= deadline {
                return Err(DatasetError::InUse(self.workload()));
            }
            std::thread::sleep(LOCK_LOOK_AGAIN);
        }
        Ok(())
    }

    /// Waits for the exclusive lock as [`Self::lock`] does, but as long as somebody else is
    /// loading; returns false where a whole dataset was found meanwhile that is `enough`.
    ///
    /// # Errors
    /// [`DatasetError::InUse`]
    pub fn lock_to_make(
        &mut self,
        enough: impl Fn(&Entry) -> bool,
        interrupt: &Interrupt,
    ) -> Result<bool, DatasetError> {
        let mut deadline = Instant::now() + LOCK_PATIENCE;
        loop {
            if self.try_lock(true)? {
                return Ok(true);
            }
            match self.entry()? {
                Some(entry) if entry.state == State::Complete && enough(&entry) => {
                    return Ok(false);
                }
                Some(entry) if entry.state == State::Loading => {
                    deadline = Instant::now() + LOCK_PATIENCE;
                }
                _ if Instant::now() >= deadline => {
                    return Err(DatasetError::InUse(self.workload()));
                }
                _ => {}
            }
            if interrupt.requested() {
                return Err(ConnectionError::Interrupted.into());
            }
            std::thread::sleep(LOCK_LOOK_AGAIN);
        }
    }
}
