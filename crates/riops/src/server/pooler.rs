//! What stands between riops and the server: found out by asking, never by name.

use serde::Serialize;

use super::connection::{Connection, ConnectionError};
use super::conninfo::ConnInfo;
use crate::host::Interrupt;

/// How often two sessions are compared: a busy pool may give them different servers now and then.
const LOOKS: usize = 8;
/// A statement that nobody else prepares.
const PROBE_NAME: &str = "riops_probe";

/// A connection pooler on the way to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Pooler {
    /// Whether the transactions of one session may run on different servers' sessions: then
    /// neither settings nor locks of a session can be relied on, and would stay behind.
    pub by_transaction: bool,
    /// Whether it keeps track of prepared statements.
    pub prepared_statements: bool,
}

impl std::fmt::Display for Pooler {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match (self.by_transaction, self.prepared_statements) {
            (false, _) => "a pooler, session by session",
            (true, true) => "a pooler, transaction by transaction, with prepared statements",
            (true, false) => "a pooler, transaction by transaction, without prepared statements",
        })
    }
}

impl Pooler {
    /// Looks for one on the way of `connection`; `None` where the server itself has answered.
    ///
    /// # Errors
    /// [`ConnectionError`]
    pub fn detect(
        connection: &mut Connection,
        target: &ConnInfo,
        interrupt: &Interrupt,
    ) -> Result<Option<Self>, ConnectionError> {
        // A pooler makes up what a request to cancel has to name: it serves many servers' sessions.
        let told = connection.greeting().process.to_string();
        if server_process(connection)? == Some(told) {
            return Ok(None);
        }
        let mut second = Connection::open(target, interrupt)?;
        let mut by_transaction = false;
        let first = server_process(connection)?;
        for _ in 0..LOOKS {
            // A session that keeps its server to itself never changes it, and never shares it with
            // another. Asked twice, since a pool of two that takes turns would look the same.
            let process = server_process(connection)?;
            by_transaction |= process != first || process == server_process(&mut second)?;
            by_transaction |= server_process(connection)? != first;
        }
        if !by_transaction {
            return Ok(Some(Self { by_transaction, prepared_statements: true }));
        }
        let prepared_statements = keeps_statements(connection)?;
        Ok(Some(Self { by_transaction, prepared_statements }))
    }
}

fn server_process(connection: &mut Connection) -> Result<Option<String>, ConnectionError> {
    connection.query_value("select pg_backend_pid()")
}

/// One that keeps track of prepared statements gives them names of its own on the server. All in
/// one transaction, so that the statement is closed where it was prepared.
fn keeps_statements(connection: &mut Connection) -> Result<bool, ConnectionError> {
    connection.execute("begin")?;
    connection.prepare(PROBE_NAME, "select 1", &[])?;
    let found = connection.query_value(&format!(
        "select count(*) from pg_prepared_statements where name = '{PROBE_NAME}'"
    ))?;
    connection.close_statement(PROBE_NAME)?;
    connection.execute("commit")?;
    Ok(found.as_deref() == Some("0"))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use riops_testkit::{FakeServer, PORT, Reply, Request};

    use super::*;

    /// What is found where the server's process is `process(session, question)`, and where it has
    /// the probe's statement under its own name or not. The greeting names process 1.
    fn found(process: fn(u64, u64) -> u64, own_name: bool) -> Option<Pooler> {
        let asked = AtomicU64::new(0);
        let text = |number: u64| Reply::Row(vec![Some(number.to_string().into_bytes())]);
        let server = FakeServer::start(move |session, request| match request {
            Request::Query("select pg_backend_pid()") => {
                text(process(session, asked.fetch_add(1, Ordering::Relaxed)))
            }
            Request::Query(sql) if sql.contains("pg_prepared_statements") => {
                text(u64::from(own_name))
            }
            _ => Reply::Done,
        })
        .unwrap();
        let target = ConnInfo::unix(server.folder(), PORT, "riops", "test");
        let mut connection = Connection::open(&target, &Interrupt::new()).unwrap();
        Pooler::detect(&mut connection, &target, &Interrupt::new()).unwrap()
    }

    fn pooler(by_transaction: bool, prepared_statements: bool) -> Pooler {
        Pooler { by_transaction, prepared_statements }
    }

    #[test]
    fn the_server_itself_is_no_pooler() {
        assert_eq!(found(|_, _| 1, true), None);
    }

    #[test]
    fn a_session_that_keeps_its_server_is_pooled_by_session() {
        assert_eq!(found(|session, _| 100 + session, true), Some(pooler(false, true)));
    }

    #[test]
    fn sessions_that_share_or_change_servers_are_pooled_by_transaction() {
        assert_eq!(found(|_, _| 100, true), Some(pooler(true, false)));
        // Two servers in turns, whoever asks.
        assert_eq!(found(|_, question| 100 + question % 2, true), Some(pooler(true, false)));
    }

    #[test]
    fn a_pooler_that_renames_statements_keeps_track_of_them() {
        assert_eq!(found(|_, _| 100, false), Some(pooler(true, true)));
    }
}
