//! Creates the routines that run the loop of a workload in the server.
//!
//! Only routines of riops are replaced, never others of the same name. They have its comment or, after an interrupted
//! installation on YugabyteDB, its text.

use super::catalog::{change, drop_routines, statements};
use super::error::{DatasetError, Result};
use super::lock::advisory;
use super::registry::Registry;
use crate::server::{Connection, PINNED};
use crate::workload::tables::{ROUTINE_MARK, Routines};

/// Number of characters of its body by which a routine without a comment is recognized.
const BODY_START: usize = 500;

impl Registry<'_> {
    /// Creates the routines in the schema, unless they exist in the version of this riops.
    ///
    /// # Errors
    /// [`DatasetError::ForeignRoutine`] if a routine of the same name was not created by riops.
    pub fn install(&mut self, routines: &Routines) -> Result<()> {
        let mark = routines.mark();
        let sql = "select p.proname, coalesce(obj_description(p.oid, 'pg_proc'), ''), p.prosrc
                     from pg_proc p join pg_namespace n on n.oid = p.pronamespace
                    where n.nspname = 'riops'";
        let mut current = 0;
        for row in self.connection().query(sql)? {
            let [Some(name), Some(comment), Some(body)] = row.as_slice() else {
                continue;
            };
            let Some(name) = routines.names.iter().find(|own| *own == name) else {
                continue;
            };
            // Where each statement commits separately, an interrupted installation leaves it without a comment.
            let start: String = body.chars().take(BODY_START).collect();
            let is_unfinished =
                comment.is_empty() && self.commits_each_change() && routines.sql.contains(&start);
            if !comment.starts_with(ROUTINE_MARK) && !is_unfinished {
                return Err(DatasetError::ForeignRoutine(name));
            }
            current += usize::from(*comment == mark);
        }
        if current == routines.names.len() {
            return Ok(());
        }
        if self.commits_each_change() {
            // The settings of the session put the routines into the schema.
            let connection = self.connection();
            drop_routines(connection, routines.names)?;
            connection.execute("set search_path = riops, pg_catalog")?;
            create(connection, routines, &mark)?;
            return Ok(connection.execute(PINNED)?);
        }
        self.in_transaction(|connection| {
            // Two runs may create them at the same time.
            connection.execute("savepoint lock")?;
            if advisory(connection, "pg_advisory_xact_lock", "routines")?.is_none() {
                connection.execute("rollback to savepoint lock")?;
            }
            drop_routines(connection, routines.names)?;
            connection.execute("set local search_path = riops, pg_catalog")?;
            create(connection, routines, &mark)
        })
    }
}

/// Creates the routines in the current schema.
fn create(connection: &mut Connection, routines: &Routines, mark: &str) -> Result<()> {
    statements(&routines.sql).iter().try_for_each(|sql| change(connection, sql))?;
    for name in routines.names {
        change(connection, &format!("comment on routine riops.{name} is '{mark}'"))?;
    }
    Ok(())
}
