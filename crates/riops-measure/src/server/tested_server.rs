//! The server under test.

use std::time::{Duration, Instant};

use uuid::Uuid;

use super::connection::{Connection, ConnectionError};
use super::conninfo::ConnInfo;
use super::dialect::Feature;
use super::pooler::detect_pooler;
use crate::host::Interrupt;
use riops_model::record::diagnosis::Pooler;
use riops_model::units::Span;

/// Maximum length of `application_name`, in bytes (NAMEDATALEN − 1). The server truncates longer names.
const NAME_BYTES_MAX: usize = 63;
/// Pause between attempts to connect to a server that is still starting.
const RETRY_PAUSE: Duration = Duration::from_millis(200);

const FREE_CONNECTIONS: &str = include_str!("../../sql/target/free_connections.sql");

/// Why a server cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The connection failed.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
    /// Session locks and settings are unreliable in transaction mode.
    #[error(
        "preparing, verifying or dropping a dataset requires dedicated server connections, but riops is connected through {0}; connect to the server directly, or use a session-mode pool"
    )]
    TransactionPool(Pooler),
}

/// The server under test.
#[derive(Debug, Clone)]
pub struct Server {
    /// Connection settings.
    pub conninfo: ConnInfo,
    /// Whether it is the embedded server, which contains only data of riops.
    pub embedded: bool,
    /// How its settings may be changed.
    pub changes: Changes,
}

/// How riops may change the settings of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// The command that restarts it.
    pub restart: Option<String>,
    /// Whether they may be changed while others use it.
    pub of_shared: bool,
}

impl Server {
    /// Returns a server that riops did not start, whose settings it may change as long as it has no other sessions.
    pub fn external(conninfo: ConnInfo) -> Self {
        Self { conninfo, embedded: false, changes: Changes::default() }
    }

    /// Waits up to `within_s` seconds until the server accepts a connection, for databases that start
    /// together with riops. Does nothing if `within_s` is `None`.
    ///
    /// # Errors
    /// [`ConnectionError`] of the last attempt. Errors that a retry cannot resolve are returned at once.
    pub fn await_connection(
        &self,
        within_s: Option<f64>,
        interrupt: &Interrupt,
    ) -> Result<(), ConnectionError> {
        let Some(within_s) = within_s else {
            return Ok(());
        };
        let within = Span::of_seconds(within_s).0;
        self.connect_within(within, RETRY_PAUSE, interrupt).map(drop)
    }

    /// Opens a connection to a server that may still be starting.
    ///
    /// # Errors
    /// [`ConnectionError`] of the last attempt. Errors that a retry cannot resolve are returned at once.
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

    /// Returns the number of sessions that a run may have now, besides its other connections; `None` if it is unknown, as
    /// behind a pool in transaction mode.
    ///
    /// # Errors
    /// [`ConnectionError`] if the server cannot be reached.
    pub fn free_sessions(&self, interrupt: &Interrupt) -> Result<Option<u32>, ConnectionError> {
        let mut connection = Connection::open(&self.conninfo, interrupt)?;
        let pooler = detect_pooler(&mut connection, &self.conninfo, interrupt)?;
        let is_counted = connection.dialect().has(Feature::Heap);
        if !is_counted || pooler.is_some_and(|pooler| pooler.by_transaction) {
            return Ok(None);
        }
        // This connection ends; a run has two besides its sessions, and one that locks the dataset.
        let free = connection.query_value(FREE_CONNECTIONS)?;
        let free = free.and_then(|free| free.parse::<i64>().ok()).map(|free| free - 2);
        Ok(free.map(|free| u32::try_from(free.max(1)).unwrap_or(u32::MAX)))
    }

    /// Sets `application_name` to the name given by the user, or `riops`, followed by the id of the run. This
    /// distinguishes the sessions of a run from all others.
    pub fn name_sessions(&mut self, run: &Uuid) {
        let given = self.conninfo.application_name.take();
        self.conninfo.application_name = Some(session_name(given.as_deref(), run));
    }

    /// Checks that session-level locks, which protect a dataset, are reliable on this connection.
    ///
    /// # Errors
    /// [`ServerError::TransactionPool`] behind a pooler in transaction mode, or
    /// [`ServerError::Connection`] if connecting fails.
    pub fn require_dedicated_sessions(&self, interrupt: &Interrupt) -> Result<(), ServerError> {
        if self.embedded {
            return Ok(());
        }
        let mut connection = Connection::open(&self.conninfo, interrupt)?;
        match detect_pooler(&mut connection, &self.conninfo, interrupt)? {
            Some(pooler) if pooler.by_transaction => Err(ServerError::TransactionPool(pooler)),
            _ => Ok(()),
        }
    }
}

/// Returns the `application_name` of a run. The given name is shortened so that the id remains complete.
fn session_name(given: Option<&str>, run: &Uuid) -> String {
    let id = format!("/{run}");
    // The server replaces other characters by up to four bytes each.
    let printable = |character: char| {
        if character.is_ascii_graphic() || character == ' ' { character } else { '?' }
    };
    let given = given.unwrap_or("riops").chars().map(printable);
    let name: String = given.take(NAME_BYTES_MAX - id.len()).collect();
    name + &id
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_sessions_always_ends_with_the_id_of_the_run() {
        let run = Uuid::from_u128(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef);
        let name = |given: Option<&str>| session_name(given, &run);
        assert_eq!(name(None), "riops/01234567-89ab-cdef-0123-456789abcdef");
        assert_eq!(name(Some("shop")), "shop/01234567-89ab-cdef-0123-456789abcdef");
        for long in ["x".repeat(200), "ä".repeat(200)] {
            let name = name(Some(&long));
            assert_eq!(name.len(), NAME_BYTES_MAX);
            assert!(name.ends_with("/01234567-89ab-cdef-0123-456789abcdef"), "{name}");
        }
    }
}
