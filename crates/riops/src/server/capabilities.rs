//! What a server of the PostgreSQL protocol lacks that is not PostgreSQL: catalogs, views and functions that riops reads
//! beside the load. The load itself needs none of them.

use super::connection::{Connection, ConnectionError};

/// A capability: its name, a statement that needs it, and what is missing without it.
const CAPABILITIES: [(&str, &str, &str); 6] = [
    ("pg_backend_pid()", "select pg_backend_pid()", "a connection pooler is not recognized"),
    ("pg_settings", "select name, setting, unit from pg_settings limit 1", "no settings"),
    ("pg_stat_activity", "select pid from pg_stat_activity limit 1", "no wait events"),
    (
        "pg_stat_database",
        "select blks_hit from pg_stat_database limit 1",
        "no block accesses, WAL or checkpoints",
    ),
    ("EXPLAIN (FORMAT JSON)", "explain (format json, costs off) select 1", "no plan checks"),
    (
        "pg_advisory_lock()",
        "select pg_advisory_lock_shared(1), pg_advisory_unlock_shared(1)",
        "no datasets of riops",
    ),
];

/// A capability that a server lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lack {
    /// Name of the function, view or statement.
    pub name: &'static str,
    /// What is missing without it.
    pub cost: &'static str,
}

impl std::fmt::Display for Lack {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} ({})", self.name, self.cost)
    }
}

/// Returns what the server lacks. A server with the catalogs of PostgreSQL lacks nothing, and is not asked.
///
/// # Errors
/// [`ConnectionError`] if the connection fails.
pub fn lacks(connection: &mut Connection) -> Result<Vec<Lack>, ConnectionError> {
    let mut found = Vec::new();
    if connection.has_catalogs() {
        return Ok(found);
    }
    for (name, sql, cost) in CAPABILITIES {
        if optional(connection.query(sql))?.is_none() {
            found.push(Lack { name, cost });
        }
    }
    Ok(found)
}

/// Maps an error of the server (no privilege, missing view or function) to `None`.
///
/// # Errors
/// All other errors.
pub fn optional<T>(answer: Result<T, ConnectionError>) -> Result<Option<T>, ConnectionError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(ConnectionError::Server(_)) => Ok(None),
        Err(error) => Err(error),
    }
}
