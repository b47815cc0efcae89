//! Detects connection poolers between riops and the server by their behavior, not by their name.

use std::time::Instant;

use super::connection::{Connection, ConnectionError};
use super::conninfo::ConnInfo;
use super::dialect::Feature;
use super::search_path::SearchPath;
use crate::host::Interrupt;
use riops_model::record::diagnosis::Pooler;

/// How often the backends of two sessions are compared. A busy pool may assign different backends by
/// chance.
const COMPARISONS: usize = 8;
/// The detection may take this many times the connect timeout.
const CONNECT_TIMEOUTS: u32 = 6;
/// Name of a prepared statement that no other program uses.
const PROBE_NAME: &str = "riops_probe";

/// Detects a pooler on the path of `connection`; `None` for a direct connection to the server.
///
/// # Errors
/// [`ConnectionError`] if a query or the second connection fails.
pub fn detect_pooler(
    connection: &mut Connection,
    target: &ConnInfo,
    interrupt: &Interrupt,
) -> Result<Option<Pooler>, ConnectionError> {
    // Behind a pooler, nothing tells a lost reply from one that takes long.
    if connection.search_path == SearchPath::Transaction {
        let limit = CONNECT_TIMEOUTS * target.connect_timeout;
        connection.set_deadline(Some(Instant::now() + limit));
    }
    let result = compare(connection, target, interrupt);
    connection.set_deadline(None);
    result
}

fn compare(
    connection: &mut Connection,
    target: &ConnInfo,
    interrupt: &Interrupt,
) -> Result<Option<Pooler>, ConnectionError> {
    // A pooler forwards to PostgreSQL. Other servers may have one process for all sessions.
    if !connection.dialect().has(Feature::Catalogs) {
        return Ok(None);
    }
    // A pooler sends its own cancel key, whose process id differs from the id of the backend.
    let reported = connection.session_info().process.to_string();
    if server_process(connection)? == Some(reported) {
        return Ok(None);
    }
    let mut second = match Connection::open(target, interrupt) {
        // In session mode, a pool of one connection has none for a second session.
        Err(error) if error.is_for_want_of_connections() => {
            return Ok(Some(session_pooler()));
        }
        opened => opened?,
    };
    second.set_deadline(Some(Instant::now() + CONNECT_TIMEOUTS * target.connect_timeout));
    let mut by_transaction = false;
    let first = server_process(connection)?;
    for _ in 0..COMPARISONS {
        // In session mode a session never changes its backend and never shares it. The backend is
        // queried twice, because a pool of two backends in rotation would return the same one.
        let process = server_process(connection)?;
        by_transaction |= process != first || process == server_process(&mut second)?;
        by_transaction |= server_process(connection)? != first;
    }
    if !by_transaction {
        return Ok(Some(session_pooler()));
    }
    // In statement mode, this ends the second connection.
    let tracks = tracks_statements(&mut second)?;
    let (by_statement, prepared_statements) = (tracks.is_none(), tracks.unwrap_or(false));
    Ok(Some(Pooler { by_transaction, by_statement, prepared_statements }))
}

fn session_pooler() -> Pooler {
    Pooler { by_transaction: false, by_statement: false, prepared_statements: true }
}

fn server_process(connection: &mut Connection) -> Result<Option<String>, ConnectionError> {
    connection.query_value("select pg_backend_pid()")
}

/// Returns whether the pooler tracks prepared statements: it then renames them on the backend. `None` if it permits no
/// transactions. All queries are in one transaction, so that the statement is closed on the same backend.
fn tracks_statements(connection: &mut Connection) -> Result<Option<bool>, ConnectionError> {
    match connection.execute("begin") {
        Err(ConnectionError::Server(_) | ConnectionError::Closed(Some(_))) => return Ok(None),
        begun => begun?,
    }
    connection.prepare(PROBE_NAME, "select 1", &[])?;
    let statements = connection.query_value(&format!(
        "select count(*) from pg_prepared_statements where name = '{PROBE_NAME}'"
    ))?;
    connection.close_statement(PROBE_NAME)?;
    connection.execute("commit")?;
    Ok(Some(statements.as_deref() == Some("0")))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use riops_testkit::{FakeServer, PORT, Reply, Request};

    use super::*;

    /// Returns the detected pooler if the backend's process id is `process(session, query)`, and if the
    /// probe statement has its original name on the backend or not. The startup reports process 1.
    fn detected(process: fn(u64, u64) -> u64, same_name: bool) -> Option<Pooler> {
        let queries = AtomicU64::new(0);
        let text = |value: u64| Reply::Row(vec![Some(value.to_string().into_bytes())]);
        let server = FakeServer::start(move |session, request| match request {
            Request::Query("select pg_backend_pid()") => {
                text(process(session, queries.fetch_add(1, Ordering::Relaxed)))
            }
            Request::Query(sql) if sql.contains("pg_prepared_statements") => {
                text(u64::from(same_name))
            }
            _ => Reply::Done,
        })
        .unwrap();
        let target = ConnInfo::unix(server.folder(), PORT, "riops", "test");
        let mut connection = Connection::open(&target, &Interrupt::new()).unwrap();
        detect_pooler(&mut connection, &target, &Interrupt::new()).unwrap()
    }

    fn pooler(by_transaction: bool, prepared_statements: bool) -> Pooler {
        Pooler { by_transaction, by_statement: false, prepared_statements }
    }

    #[test]
    fn a_direct_connection_has_no_pooler() {
        assert_eq!(detected(|_, _| 1, true), None);
    }

    #[test]
    fn a_session_that_keeps_its_backend_is_in_session_mode() {
        assert_eq!(detected(|session, _| 100 + session, true), Some(pooler(false, true)));
    }

    #[test]
    fn sessions_that_share_or_change_backends_are_in_transaction_mode() {
        assert_eq!(detected(|_, _| 100, true), Some(pooler(true, false)));
        // Two backends in rotation, for all sessions.
        assert_eq!(detected(|_, query| 100 + query % 2, true), Some(pooler(true, false)));
    }

    #[test]
    fn a_pooler_that_renames_statements_supports_them() {
        assert_eq!(detected(|_, _| 100, false), Some(pooler(true, true)));
    }
}
