//! Extensions of the server that probes read.

use crate::server::capabilities::optional;
use crate::server::{Connection, ConnectionError};

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

/// Keeps the queries of a session, which do not belong to the load, out of the statistics of statements. Without the extension
/// or the privilege, the setting is refused.
///
/// # Errors
/// [`ConnectionError`] if the connection fails.
pub(super) fn leave_untracked(connection: &mut Connection) -> Result<(), ConnectionError> {
    optional(connection.execute("set pg_stat_statements.track = none")).map(drop)
}
