//! Finds what a server without the catalogs of PostgreSQL lacks, by the effect of statements, not by the absence of an
//! error: some servers accept statements that they do not execute.

use super::connection::{Connection, ConnectionError};
use super::dialect::Feature;

/// A source that riops reads beside the load: its name, a statement that needs it, how the last value of its row shows
/// that it was executed, and what is missing without it.
type Probe = (&'static str, &'static str, fn(&str) -> bool, &'static str);

const PROBES: [Probe; 6] = [
    (
        "pg_backend_pid()",
        "select pg_backend_pid()",
        is_number,
        "a connection pooler is not recognized",
    ),
    (
        "pg_settings",
        "select unit, setting from pg_settings where name = 'max_connections'",
        is_number,
        "no settings",
    ),
    ("pg_stat_activity", "select pid from pg_stat_activity limit 1", is_number, "no wait events"),
    (
        "pg_stat_database",
        "select blks_hit from pg_stat_database limit 1",
        is_number,
        "no block accesses, WAL or checkpoints",
    ),
    (
        "EXPLAIN (FORMAT JSON)",
        "explain (format json, costs off) select 1",
        |plan| plan.trim_start().starts_with('['),
        "no plan checks",
    ),
    (
        "pg_advisory_lock()",
        "select pg_advisory_lock_shared(1), pg_advisory_unlock_shared(1)",
        // Only if the lock was held.
        |unlocked| unlocked == "t",
        "no datasets of riops",
    ),
];

fn is_number(text: &str) -> bool {
    text.parse::<u64>().is_ok()
}

/// Something that a server lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lack {
    /// Name of the function, view or statement.
    pub name: &'static str,
    /// Measurements that are missing without it.
    pub cost: &'static str,
}

impl std::fmt::Display for Lack {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} ({})", self.name, self.cost)
    }
}

/// Returns what the server lacks. The load itself needs none of it. A server with the catalogs of PostgreSQL lacks
/// nothing, and is not probed.
///
/// # Errors
/// [`ConnectionError`] if the connection fails.
pub fn lacks(connection: &mut Connection) -> Result<Vec<Lack>, ConnectionError> {
    let mut lacking = Vec::new();
    if connection.dialect().has(Feature::Catalogs) {
        return Ok(lacking);
    }
    for (name, sql, proves, cost) in PROBES {
        let row = optional(connection.query(sql))?.and_then(|rows| rows.into_iter().next());
        let answer = row.and_then(|row| row.into_iter().last().flatten());
        if !answer.is_some_and(|answer| proves(&answer)) {
            lacking.push(Lack { name, cost });
        }
    }
    Ok(lacking)
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
