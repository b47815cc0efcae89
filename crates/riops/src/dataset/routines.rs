//! What riops makes in a target beside tables: routines that run a workload's loop in the server, and
//! the views that such a loop may leave.
//!
//! Its own is what has its comment: anything else of the same name is neither replaced nor dropped.

use riops_wire::sqlstate::SqlState;

use super::lock::LOCK_SPACE;
use super::registry::{DatasetError, Registry};
use crate::server::{Connection, ConnectionError};
use crate::workload::routines::{ROUTINE_MARK, Routines};

impl Registry<'_> {
    /// Makes sure that these routines are in the schema, as this riops has them.
    ///
    /// # Errors
    /// [`DatasetError::ForeignRoutine`] where somebody else's has the name of one.
    pub fn install(&mut self, routines: &Routines) -> Result<(), DatasetError> {
        let mark = routines.mark();
        let sql = "select p.proname, coalesce(obj_description(p.oid, 'pg_proc'), '')
                     from pg_proc p join pg_namespace n on n.oid = p.pronamespace
                    where n.nspname = 'riops'";
        let mut found = 0;
        for row in self.connection().query(sql)? {
            let [Some(name), Some(comment)] = row.as_slice() else {
                continue;
            };
            let Some(name) = routines.names.iter().find(|own| *own == name) else {
                continue;
            };
            if !comment.starts_with(ROUTINE_MARK) {
                return Err(DatasetError::ForeignRoutine(name));
            }
            found += usize::from(*comment == mark);
        }
        if found == routines.names.len() {
            return Ok(());
        }
        self.in_transaction(|connection| {
            // Two runs may want to make them at the same time.
            let lock = format!("select pg_advisory_xact_lock({LOCK_SPACE}, hashtext('routines'))");
            match connection.query_value(&format!("savepoint lock; {lock}")) {
                Err(ConnectionError::Server(error))
                    if error.sqlstate == SqlState::FEATURE_NOT_SUPPORTED =>
                {
                    connection.execute("rollback to savepoint lock")?;
                }
                other => drop(other?),
            }
            drop_routines(connection, routines.names)?;
            connection.execute("set local search_path = riops, pg_catalog")?;
            connection.execute(&routines.sql)?;
            for name in routines.names {
                connection.execute(&format!("comment on routine riops.{name} is '{mark}'"))?;
            }
            Ok(())
        })
    }
}

/// Drops the views that loops in a server that was killed have left on a table, and that would keep it.
pub(super) fn drop_leftover_views(
    connection: &mut Connection,
    table: &str,
) -> Result<(), ConnectionError> {
    let sql = "select distinct format('%I.%I', n.nspname, v.relname)
                 from pg_depend d join pg_rewrite r on r.oid = d.objid
                   join pg_class v on v.oid = r.ev_class join pg_namespace n on n.oid = v.relnamespace
                   join pg_class t on t.oid = d.refobjid
                where t.oid = to_regclass($1) and v.relkind = 'v'
                  and v.relname = 'ybio_rows' and n.nspname like 'pg_temp%'";
    for view in connection.query_with(sql, &[Some(table)])?.into_iter().flatten().flatten() {
        connection.execute(&format!("drop view {view}"))?;
    }
    Ok(())
}

/// Drops the routines of these names that riops has made; without a name, all of them.
pub(super) fn drop_routines(
    connection: &mut Connection,
    names: &[&str],
) -> Result<(), ConnectionError> {
    let mut sql = format!(
        "select p.oid::regprocedure from pg_proc p join pg_namespace n on n.oid = p.pronamespace
          where n.nspname = 'riops' and obj_description(p.oid, 'pg_proc') like '{ROUTINE_MARK}%'"
    );
    if !names.is_empty() {
        sql = format!("{sql} and p.proname in ('{}')", names.join("', '"));
    }
    for routine in connection.query(&sql)?.into_iter().flatten().flatten() {
        connection.execute(&format!("drop routine {routine}"))?;
    }
    Ok(())
}
