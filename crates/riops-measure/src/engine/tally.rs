//! Work of the sessions, and the identity of the server process of each: its process id alone may belong to another session
//! later.

use crate::server::{Connection, ConnectionError};
use riops_model::units::Nanos;

/// Work of one session for one operation within the measurement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// Number of transactions.
    pub transactions: u64,
    /// Number of rows.
    pub rows: u64,
    /// Longest service time, in nanoseconds.
    pub longest: Nanos,
    /// Sum of the service times, in nanoseconds.
    pub busy: Nanos,
}

/// Work of one session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionTally {
    /// Number of the session in the stage, from 0.
    pub id: u64,
    /// Number of the node of its last connection, from 0.
    pub node: usize,
    /// Process id of the backend of its last connection.
    pub process: i32,
    /// The same backend with its start time, if the workload terminates sessions.
    pub backend: Option<Backend>,
    /// Number of transactions that were started in all phases.
    pub started: u64,
    /// Work by operation.
    pub operations: Vec<Tally>,
}

impl SessionTally {
    /// Returns the number of transactions of all operations.
    pub fn transactions(&self) -> u64 {
        self.operations.iter().map(|tally| tally.transactions).sum()
    }
}

/// Start time of a backend as text, to the microsecond, in any session with any settings.
const STARTED: &str = "to_char(backend_start at time zone 'UTC', 'YYYYMMDDHH24MISSUS')";

/// The server process of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backend {
    /// Process id.
    pub process: i32,
    /// Start time: digits only.
    pub started: String,
}

impl Backend {
    /// Returns the backend of a connection; `None` if the server does not show it.
    ///
    /// # Errors
    /// [`ConnectionError`] if the query fails.
    pub fn read(connection: &mut Connection) -> Result<Option<Self>, ConnectionError> {
        let sql =
            format!("select pid, {STARTED} from pg_stat_activity where pid = pg_backend_pid()");
        let row = connection.query(&sql)?.into_iter().next().unwrap_or_default();
        Ok(match row.as_slice() {
            [Some(process), Some(started)] if started.bytes().all(|byte| byte.is_ascii_digit()) => {
                let process = process.parse().ok();
                process.map(|process| Self { process, started: started.clone() })
            }
            _ => None,
        })
    }

    /// Returns the condition that selects it from `pg_stat_activity`, and no other session that has reused its
    /// process id.
    pub fn condition(&self) -> String {
        format!("pid = {} and {STARTED} = '{}'", self.process, self.started)
    }

    /// Terminates it, unless it has ended. Returns whether it was alive.
    ///
    /// # Errors
    /// [`ConnectionError`] if the statement fails.
    pub fn terminate(&self, connection: &mut Connection) -> Result<bool, ConnectionError> {
        let condition = self.condition();
        let sql =
            format!("select pg_terminate_backend(pid) from pg_stat_activity where {condition}");
        Ok(connection.query_value(&sql)?.is_some())
    }
}
