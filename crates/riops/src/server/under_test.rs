//! The server under test, as a run is given it.

use std::time::{Duration, Instant};

use uuid::Uuid;

use super::connection::{Connection, ConnectionError};
use super::conninfo::ConnInfo;
use super::pooler::Pooler;
use crate::host::Interrupt;

/// Between two attempts to connect to a server that is still starting.
const PAUSE: Duration = Duration::from_millis(200);

/// Why a server cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The connection failed.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// Session locks and settings cannot be relied on.
    #[error(
        "between riops and the server: {0}; preparing, verifying and dropping a dataset need sessions of their own: name the server itself, or use a session-mode pool"
    )]
    TransactionPool(Pooler),
}

/// Where the database is.
#[derive(Debug, Clone)]
pub struct Server {
    /// How to connect.
    pub conninfo: ConnInfo,
    /// Whether it is the embedded server: nobody else's data are there.
    pub embedded: bool,
}

impl Server {
    /// A server that its user named.
    #[must_use]
    pub fn named(conninfo: ConnInfo) -> Self {
        Self { conninfo, embedded: false }
    }

    /// Waits until a session is accepted, for so many seconds: a database that starts together with riops
    /// is not there at once. Without a time it does not connect at all.
    ///
    /// # Errors
    /// [`ConnectionError`] of the last attempt, or of one that no later attempt could change.
    pub fn await_connection(
        &self,
        within_s: Option<f64>,
        interrupt: &Interrupt,
    ) -> Result<(), ConnectionError> {
        let Some(within_s) = within_s else {
            return Ok(());
        };
        let within = Duration::try_from_secs_f64(within_s).unwrap_or_default();
        self.connect_within(within, PAUSE, interrupt).map(drop)
    }

    /// Opens a connection to a server that may not answer yet.
    ///
    /// # Errors
    /// [`ConnectionError`] of the last attempt, or of one that no later attempt could change.
    pub fn connect_within(
        &self,
        within: Duration,
        pause: Duration,
        interrupt: &Interrupt,
    ) -> Result<Connection, ConnectionError> {
        let deadline = Instant::now() + within;
        loop {
            match Connection::open(&self.conninfo, interrupt) {
                Err(error) if !error.is_final() && Instant::now() < deadline => {
                    std::thread::sleep(pause);
                }
                other => return other,
            }
        }
    }

    /// Makes the sessions of a run distinguishable on the server, unless the user has named them.
    pub fn name_sessions(&mut self, run: &Uuid) {
        self.conninfo.application_name.get_or_insert_with(|| format!("riops/{run}"));
    }

    /// Fails where the locks that protect a dataset could not be relied on.
    ///
    /// # Errors
    /// [`ServerError::TransactionPool`]
    pub fn require_own_sessions(&self, interrupt: &Interrupt) -> Result<(), ServerError> {
        if self.embedded {
            return Ok(());
        }
        let mut connection = Connection::open(&self.conninfo, interrupt)?;
        match Pooler::detect(&mut connection, &self.conninfo, interrupt)? {
            Some(pooler) if pooler.by_transaction => Err(ServerError::TransactionPool(pooler)),
            _ => Ok(()),
        }
    }
}
