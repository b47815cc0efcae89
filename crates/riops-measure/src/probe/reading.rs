//! Reads values that several probes need: integers of the server, its extensions, and counters that only grow.

use crate::server::capabilities::optional;
use crate::server::connection::{Connection, ConnectionError, TextRow};

/// Returns the integers of the first row of a result; `None` if the server does not provide all of them.
pub(super) fn integers<const COUNT: usize>(rows: Vec<TextRow>) -> Option<[u64; COUNT]> {
    let values = rows.into_iter().next()?.into_iter().map(|value| value?.parse().ok());
    values.collect::<Option<Vec<u64>>>()?.try_into().ok()
}

/// Returns the integers of a column, such as the ids of processes.
pub(super) fn column(rows: Vec<TextRow>) -> Vec<i32> {
    rows.into_iter().flatten().flatten().filter_map(|value| value.parse().ok()).collect()
}

/// Returns how much each counter has grown. One that was reset counts as 0.
pub(super) fn since<const COUNT: usize>(now: [u64; COUNT], earlier: [u64; COUNT]) -> [u64; COUNT] {
    let mut change = now;
    for (change, earlier) in change.iter_mut().zip(earlier) {
        *change = change.saturating_sub(earlier);
    }
    change
}

/// Returns the schema of an extension, quoted; `None` if it is not installed in this database.
///
/// # Errors
/// [`ConnectionError`] if the query fails.
pub(super) fn schema(
    connection: &mut Connection,
    name: &str,
) -> Result<Option<String>, ConnectionError> {
    connection.query_value(&format!(
        "select quote_ident(n.nspname) from pg_extension e join pg_namespace n on n.oid = e.extnamespace
          where e.extname = '{name}'"
    ))
}

/// Prepares a query that is sent often, to be parsed and planned once, if no other client gets the session. Returns what
/// executes it.
///
/// # Errors
/// [`ConnectionError`] if the server refuses the query.
pub(super) fn prepared(
    connection: &mut Connection,
    is_dedicated: bool,
    name: &str,
    sql: &str,
) -> Result<String, ConnectionError> {
    if !is_dedicated {
        return Ok(sql.to_owned());
    }
    connection.execute(&format!("prepare {name} as {sql}"))?;
    Ok(format!("execute {name}"))
}

/// Keeps the queries of a session, which do not belong to the load, out of the statistics of statements. Without the extension
/// or the privilege, the setting is refused.
///
/// # Errors
/// [`ConnectionError`] if the connection fails.
pub(super) fn leave_untracked(connection: &mut Connection) -> Result<(), ConnectionError> {
    optional(connection.execute("set pg_stat_statements.track = none")).map(drop)
}
