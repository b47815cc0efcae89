//! Drops the objects that riops created besides tables: routines, and views left by killed server-side loops.
//!
//! Only routines with the comment of riops are dropped or, by name, those that the caller has recognized.

use super::catalog::change;
use crate::server::{Connection, ConnectionError, Feature};
use crate::workload::routines::ROUTINE_MARK;

/// Drops the temporary views on a table that server-side loops left when their server was killed. They would
/// prevent the table from being dropped.
pub(super) fn drop_leftover_views(
    connection: &mut Connection,
    table: &str,
) -> Result<(), ConnectionError> {
    let sql = "select distinct format('%I.%I', n.nspname, v.relname)
                 from pg_depend d join pg_rewrite r on r.oid = d.objid
                   join pg_class v on v.oid = r.ev_class join pg_namespace n on n.oid = v.relnamespace
                   join pg_class t on t.oid = d.refobjid
                where t.oid = to_regclass($1) and v.relkind = 'v'
                  and v.relname = 'ybio_rows' and n.nspname like 'pg_temp%'
                  and (select string_agg(attname, ' ' order by attnum) from pg_attribute
                        where attrelid = v.oid and attnum > 0) = 'mykey scratch'";
    for view in connection.query_with(sql, &[Some(table)])?.into_iter().flatten().flatten() {
        change(connection, &format!("drop view {view}"))?;
    }
    Ok(())
}

/// Drops the routines with these names that riops created, or all of them if no names are given.
pub(super) fn drop_routines(
    connection: &mut Connection,
    names: &[&str],
) -> Result<(), ConnectionError> {
    let sql =
        "select p.oid::regprocedure from pg_proc p join pg_namespace n on n.oid = p.pronamespace
                where n.nspname = 'riops'";
    let marked = format!("obj_description(p.oid, 'pg_proc') like '{ROUTINE_MARK}%'");
    let is_named = format!("p.proname in ('{}')", names.join("', '"));
    let condition = match (names.is_empty(), connection.dialect().has(Feature::TransactionalDdl)) {
        (true, _) => marked,
        (false, true) => format!("{marked} and {is_named}"),
        // An interrupted installation leaves them without a comment.
        (false, false) => {
            format!("({marked} or obj_description(p.oid, 'pg_proc') is null) and {is_named}")
        }
    };
    let sql = format!("{sql} and {condition}");
    for routine in connection.query(&sql)?.into_iter().flatten().flatten() {
        change(connection, &format!("drop routine {routine}"))?;
    }
    Ok(())
}
