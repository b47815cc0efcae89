//! Common behavior of all blocking connections.
//!
//! Functions, operators and types of other roles must not be executed by the SQL of riops: anyone with the privilege to
//! create objects in a schema of the search path could define a better match. And a server that has stopped responding
//! must not block riops for ever, although a statement may take hours. Nor must the defaults of a role end a statement.

use std::time::Instant;

use super::capabilities::optional;
use super::connection::{Connection, ConnectionError};
use super::dialect::Feature;
use super::own_settings::Purpose;
use super::search_path::{PINNED, SearchPath, pin};

const SCHEMA_OWNER: &str = include_str!("../../sql/target/schema_owner.sql");

impl Connection {
    /// Sets what a connection for this purpose needs, unless a pooler would pass it to other clients, and pins the
    /// search path: for the session, or for each transaction if the session has a pooler. A pooler sends a process id
    /// that differs from the id of the server process.
    pub(super) fn pin_settings(&mut self, purpose: Purpose) -> Result<(), ConnectionError> {
        let sql = pin(self.session_info().process, &purpose.columns());
        let path = match self.query_value(&sql) {
            Ok(Some(_)) => SearchPath::Session,
            Ok(None) => SearchPath::Transaction,
            // Not PostgreSQL: the server does not have these functions, or cannot parse this.
            Err(ConnectionError::Server(error)) if is_unsupported(error.sqlstate.as_str()) => {
                SearchPath::Unsupported
            }
            Err(error) => return Err(error),
        };
        self.set_search_path(path);
        Ok(())
    }

    /// Returns whether transactions are read-only: by a default of the role, the database or the connection, or because the
    /// server is a standby.
    ///
    /// # Errors
    /// As [`Self::query`].
    pub fn is_read_only(&mut self) -> Result<bool, ConnectionError> {
        let value = optional(self.query_value("show transaction_read_only"))?;
        Ok(matches!(value.flatten().as_deref(), Some("on" | "t")))
    }

    /// Returns the existing schemas in the search path of the role, in their order, without the implicit ones.
    ///
    /// # Errors
    /// As [`Self::query`].
    pub fn schemas_of_role(&mut self) -> Result<Vec<String>, ConnectionError> {
        let path = self.search_path;
        self.set_search_path(SearchPath::Unpinned);
        if path == SearchPath::Session {
            self.execute("reset search_path")?;
        }
        let rows = self.query("select pg_catalog.unnest(pg_catalog.current_schemas(false))");
        self.set_search_path(path);
        if path == SearchPath::Session {
            self.execute(PINNED)?;
        }
        Ok(rows?.into_iter().flatten().flatten().collect())
    }

    /// Calls `check` with these settings of the search path, and undoes them: the path is pinned again, or the settings
    /// are rolled back if a pooler would pass them to other clients.
    ///
    /// # Errors
    /// Same as [`Self::query`], and the errors of `check`.
    pub fn with_path<T>(
        &mut self,
        settings: &[String],
        check: impl FnOnce(&mut Self) -> Result<T, ConnectionError>,
    ) -> Result<T, ConnectionError> {
        let settings = settings.join("; ");
        let undo = match self.search_path {
            SearchPath::Session => PINNED,
            SearchPath::Transaction => {
                self.execute("begin")?;
                "rollback"
            }
            SearchPath::Unpinned | SearchPath::Unsupported => return check(self),
        };
        self.execute(&settings)?;
        let result = check(self);
        self.execute(undo)?;
        result
    }

    /// Returns whether a schema exists and, if a superuser would use objects of a role with fewer rights, the name of its
    /// owner: triggers and rules are executed with the rights of the role that uses the table.
    ///
    /// # Errors
    /// As [`Self::query`].
    pub fn schema_owner(
        &mut self,
        schema: &str,
    ) -> Result<(bool, Option<String>), ConnectionError> {
        let row = self.query_with(SCHEMA_OWNER, &[Some(schema)])?.into_iter().next();
        let exists = row.is_some();
        Ok((exists, row.and_then(|row| row.into_iter().nth(1).flatten())))
    }

    /// Fails if the server has been silent for long and, as two checks find, no reply will come: it does not respond on
    /// another connection, or has completed the statement.
    ///
    /// # Errors
    /// [`ConnectionError::NoReply`] with the statement, [`ConnectionError::Interrupted`].
    pub(super) fn check_silence(&mut self) -> Result<(), ConnectionError> {
        if !self.silence.is_too_long() {
            return Ok(());
        }
        let source = match self.responds() {
            Err(ConnectionError::Interrupted) => return Err(ConnectionError::Interrupted),
            // Also if it refuses the connection, for example because there are too many.
            Ok(()) | Err(ConnectionError::Startup { .. } | ConnectionError::Server(_)) => None,
            Err(source) => Some(source),
        };
        let is_certain = self.silence.note_check(source.is_none());
        match source {
            Some(source) if is_certain => {
                let (statement, seconds) = self.silence.describe();
                Err(ConnectionError::NoReply { statement, seconds, source: Box::new(source) })
            }
            _ => Ok(()),
        }
    }

    /// Fails if the server does not respond on another connection, or its process has completed the statement.
    fn responds(&self) -> Result<(), ConnectionError> {
        // A pooler may have no other connection to the server, and its process id differs from the id of the server
        // process.
        if matches!(self.search_path, SearchPath::Transaction | SearchPath::Unpinned) {
            return self.second_connection().map(drop);
        }
        let mut info = self.info.clone();
        info.servers = vec![self.server.clone()];
        let mut connection = Self::open(&info, &self.interrupt)?;
        if !connection.dialect().has(Feature::Catalogs) {
            return Ok(());
        }
        connection.silence.max = None;
        connection.set_deadline(Some(Instant::now() + info.connect_timeout));
        let sql = format!(
            "select 1 from pg_stat_activity where pid = {} and state like 'idle%'",
            self.session_info().process
        );
        match connection.query_value(&sql)? {
            Some(_) => Err(ConnectionError::Protocol("its reply was lost".to_owned())),
            None => Ok(()),
        }
    }
}

/// Returns whether a server that is not PostgreSQL answers a statement that it does not support with this SQLSTATE: a
/// syntax error, an unknown name, or a code of H2 (`9…`), `QuestDB` (`00000`) or `DataFusion` (`XX000`).
fn is_unsupported(sqlstate: &str) -> bool {
    ["42", "0A", "3F", "9", "00", "XX000"].iter().any(|start| sqlstate.starts_with(start))
}
