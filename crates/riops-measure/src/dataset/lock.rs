//! The advisory locks of a dataset: shared for runs, exclusive for preparing, verifying and dropping it.

use std::time::{Duration, Instant};

use riops_wire::sqlstate::SqlState;
use serde_json::Value;

use super::error::{DatasetError, Holders, LOCK_SPACE, Result};
use super::registry::{Entry, Registry, State};
use crate::host::Interrupt;
use crate::server::{Connection, ConnectionError};

/// Timeout for a lock and for other sessions. The server ends the sessions of a killed riops, with their locks, within this
/// time.
pub(super) const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
pub(super) const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Shorter waits are not reported: the session of an earlier command may be about to exit.
const REPORT_AFTER: Duration = Duration::from_millis(500);

/// Receives a notice that names the sessions for which a lock has to wait.
pub type OnWait<'a> = &'a mut dyn FnMut(&str);

/// Calls a function of advisory locks for the lock of this name, and returns its result. `None` if the server has no such
/// locks (YugabyteDB before 2025.1): what they protect is not protected there.
pub(super) fn advisory(
    connection: &mut Connection,
    function: &str,
    name: &str,
) -> Result<Option<bool>, ConnectionError> {
    let sql = format!("select {function}({LOCK_SPACE}, hashtext('{name}'))");
    match connection.query_value(&sql) {
        Err(ConnectionError::Server(error))
            if error.sqlstate == SqlState::FEATURE_NOT_SUPPORTED =>
        {
            Ok(None)
        }
        reply => Ok(Some(reply?.as_deref() == Some("t"))),
    }
}

impl Registry<'_> {
    /// Locks the dataset until the connection is closed: against changes, or with `exclusive` against any
    /// use. If it has to wait, calls `on_wait` once.
    ///
    /// # Errors
    /// [`DatasetError::InUse`] if another session holds a conflicting lock until the timeout.
    pub fn lock(&mut self, exclusive: bool, on_wait: OnWait<'_>) -> Result<()> {
        let mut waiting = Waiting::new(self.workload, REPORT_AFTER);
        while !self.try_lock(exclusive)? {
            self.wait(&mut waiting, on_wait)?;
        }
        Ok(())
    }

    /// Exchanges the lock that this connection holds. The shared one is released before it waits for the exclusive one:
    /// of two connections that hold it, none would get the exclusive one.
    ///
    /// # Errors
    /// [`DatasetError::InUse`] as in [`Self::lock`].
    pub fn exchange_lock(&mut self, exclusive: bool, on_wait: OnWait<'_>) -> Result<()> {
        if exclusive {
            self.unlock(false)?;
            return self.lock(true, on_wait);
        }
        self.lock(false, on_wait)?;
        self.unlock(true)
    }

    /// Releases the lock. A lock in the other mode remains.
    pub(super) fn unlock(&mut self, exclusive: bool) -> Result<()> {
        let function = if exclusive { "pg_advisory_unlock" } else { "pg_advisory_unlock_shared" };
        advisory(self.connection, function, self.workload)?;
        Ok(())
    }

    /// Returns the other sessions that hold a lock on the dataset.
    pub fn other_users(&mut self) -> Holders {
        Holders::for_lock(self.connection, self.workload)
    }

    pub(super) fn try_lock(&mut self, exclusive: bool) -> Result<bool> {
        let function =
            if exclusive { "pg_try_advisory_lock" } else { "pg_try_advisory_lock_shared" };
        self.is_known = false;
        Ok(advisory(self.connection, function, self.workload)? != Some(false))
    }

    /// Takes the shared lock of [`Self::lock`] in a transaction that stays open until the connection is
    /// closed. Through a pooler, a session-level lock would stay with the server connection and not protect
    /// the dataset.
    ///
    /// # Errors
    /// [`DatasetError::InUse`] if another session holds a conflicting lock until the timeout.
    pub fn lock_in_transaction(&mut self, on_wait: OnWait<'_>) -> Result<()> {
        self.connection.execute("begin; set local idle_in_transaction_session_timeout = 0")?;
        self.is_known = false;
        let mut waiting = Waiting::new(self.workload, REPORT_AFTER);
        loop {
            match advisory(self.connection, "pg_try_advisory_xact_lock_shared", self.workload)? {
                Some(true) => return Ok(()),
                Some(false) => self.wait(&mut waiting, on_wait)?,
                None => return Ok(self.connection.execute("rollback")?),
            }
        }
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
        on_wait: OnWait<'_>,
    ) -> Result<bool> {
        let mut waiting = Waiting::new(self.workload, REPORT_AFTER);
        loop {
            if self.try_lock(true)? {
                return Ok(true);
            }
            match self.entry()? {
                Some(entry) if entry.state == State::Complete && sufficient(&entry) => {
                    return Ok(false);
                }
                Some(entry) if entry.state == State::Loading => waiting.extend(),
                _ => {}
            }
            if interrupt.is_requested() {
                return Err(ConnectionError::Interrupted.into());
            }
            self.wait(&mut waiting, on_wait)?;
        }
    }

    fn wait(&mut self, waiting: &mut Waiting, on_wait: OnWait<'_>) -> Result<()> {
        let workload = self.workload;
        let what = format!("the dataset for the workload {workload}");
        let waited = waiting.wait(self.connection, &what, on_wait);
        self.is_known = false;
        waited.map_err(|holders| DatasetError::InUse { workload, holders })
    }

    /// Takes the exclusive lock to examine and register tables of this schema that riops did not create. Returns false if
    /// other runs use them, which have registered them.
    ///
    /// # Errors
    /// [`DatasetError::InUse`] as in [`Self::lock_to_prepare`].
    pub(super) fn lock_to_adopt(
        &mut self,
        schema: &str,
        interrupt: &Interrupt,
        on_wait: OnWait<'_>,
    ) -> Result<bool> {
        let is_registered = |entry: &Entry| {
            let adopted_schema = entry.parameters.get("schema").and_then(Value::as_str);
            entry.is_adopted() && adopted_schema == Some(schema)
        };
        self.lock_to_prepare(is_registered, interrupt, on_wait)
    }
}

/// The wait for a lock.
pub(super) struct Waiting {
    /// Name of the lock.
    lock: &'static str,
    deadline: Instant,
    /// When the wait is reported; `None` if it was.
    report_at: Option<Instant>,
}

impl Waiting {
    pub(super) fn new(lock: &'static str, report_after: Duration) -> Self {
        let now = Instant::now();
        Self { lock, deadline: now + LOCK_TIMEOUT, report_at: Some(now + report_after) }
    }

    fn extend(&mut self) {
        self.deadline = Instant::now() + LOCK_TIMEOUT;
    }

    /// Waits until the next attempt to lock `what`. Reports a wait that is not short, and fails after the deadline; both with
    /// the sessions that hold the lock.
    pub(super) fn wait(
        &mut self,
        connection: &mut Connection,
        what: &str,
        on_wait: OnWait<'_>,
    ) -> Result<(), Holders> {
        if Instant::now() >= self.deadline {
            return Err(Holders::for_lock(connection, self.lock));
        }
        if self.report_at.take_if(|at| Instant::now() >= *at).is_some() {
            let holders = Holders::for_lock(connection, self.lock);
            on_wait(&format!("waiting for the lock on {what}{holders}"));
        }
        std::thread::sleep(LOCK_POLL_INTERVAL);
        Ok(())
    }
}
