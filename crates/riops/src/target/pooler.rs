//! What stands between riops and the server: found out by asking, never by name.

use serde::{Deserialize, Serialize};

use super::connection::{Connection, ConnectionError};
use super::conninfo::ConnInfo;
use super::interrupt::Interrupt;

/// How often two sessions are compared: a busy pool may give them different servers now and then.
const LOOKS: usize = 8;
/// A statement that nobody else prepares.
const PROBE_NAME: &str = "riops_probe";

/// A connection pooler on the way to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
