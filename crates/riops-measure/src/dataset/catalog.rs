//! Statements that change the catalog: they create and drop tables, indexes and routines.
//!
//! PostgreSQL executes several of them in one transaction. On YugabyteDB each commits separately, also within a
//! transaction, and increments the version of the catalog of the whole cluster: concurrent changes fail, and so do
//! transactions that began before.
//!
//! Only routines with the comment of riops are dropped or, by name, those that the caller has recognized.

use std::time::Duration;

use super::error::Result;
use crate::server::{Connection, ConnectionError, Feature};
use crate::workload::tables::ROUTINE_MARK;

/// Maximum number of attempts of a statement on YugabyteDB.
const ATTEMPTS_MAX: u32 = 10;
/// Pause after the first attempt. Each further one is longer by the same time.
const PAUSE: Duration = Duration::from_millis(50);

/// Executes one statement that changes the catalog. On YugabyteDB it is repeated after a concurrent change.
///
/// # Errors
/// [`ConnectionError`] if it fails, on YugabyteDB repeatedly.
pub(super) fn change(connection: &mut Connection, sql: &str) -> Result<(), ConnectionError> {
    let is_disturbed = !connection.dialect().has(Feature::TransactionalDdl);
    let attempts = if is_disturbed { ATTEMPTS_MAX } else { 1 };
    for attempt in 1..attempts {
        match connection.execute(sql) {
            Err(ConnectionError::Server(error)) if error.is_retryable() => {
                std::thread::sleep(PAUSE * attempt);
            }
            other => return other,
        }
    }
    connection.execute(sql)
}

/// Turns an error reported by the server, such as a missing privilege or a timeout, into `None`.
pub(super) fn unless_refused<T>(
    result: Result<T, ConnectionError>,
) -> Result<Option<T>, ConnectionError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(ConnectionError::Server(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Drops the temporary views on a table that server-side loops left when their server was killed. They would
/// prevent the table from being dropped.
pub(super) fn drop_leftover_views(connection: &mut Connection, table: &str) -> Result<()> {
    let sql = "select distinct format('%I.%I', n.nspname, v.relname)
                 from pg_depend d join pg_rewrite r on r.oid = d.objid
                   join pg_class v on v.oid = r.ev_class join pg_namespace n on n.oid = v.relnamespace
                   join pg_class t on t.oid = d.refobjid
                where d.refclassid = 'pg_class'::regclass and t.oid = to_regclass($1) and v.relkind = 'v'
                  and v.relname = 'ybio_rows' and n.nspname like 'pg_temp%'
                  and (select string_agg(attname, ' ' order by attnum) from pg_attribute
                        where attrelid = v.oid and attnum > 0) = 'mykey scratch'";
    for view in connection.query_with(sql, &[Some(table)])?.into_iter().flatten().flatten() {
        change(connection, &format!("drop view {view}"))?;
    }
    Ok(())
}

/// Drops the routines with these names that riops created, or all of them if no names are given.
pub(super) fn drop_routines(connection: &mut Connection, names: &[&str]) -> Result<()> {
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

/// Returns the statements of a text in which each ends with a semicolon at the end of a line. The bodies of routines
/// are between dollar-quoted tags.
pub(super) fn statements(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut current = String::new();
    let mut in_body = false;
    for line in text.lines() {
        if line.trim_start().starts_with("--") && current.trim().is_empty() {
            continue;
        }
        in_body ^= tags(line) % 2 == 1;
        current.push_str(line);
        current.push('\n');
        if !in_body && line.trim_end().ends_with(';') {
            let statement = std::mem::take(&mut current);
            all.push(statement.trim().trim_end_matches(';').to_owned());
        }
    }
    if !current.trim().is_empty() {
        all.push(current.trim().to_owned());
    }
    all
}

/// Returns the number of tags such as `$body$` in a line. `$1` is a parameter.
fn tags(line: &str) -> usize {
    let is_tag = |text: &&str| text.chars().all(|c| c.is_alphabetic() || c == '_');
    let mut parts = line.split('$');
    // Before the first sign and after the last one.
    let _ = (parts.next(), parts.next_back());
    parts.filter(is_tag).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_a_text_into_statements_but_not_the_bodies_of_routines() {
        let text = "\n-- why;\ncreate table a (\n  b int\n);\ncreate procedure p() as $p$\nbegin\n  execute '$1, $2';\nend;\n$p$;\ncomment on table a is 'x'";
        assert_eq!(
            statements(text),
            [
                "create table a (\n  b int\n)",
                "create procedure p() as $p$\nbegin\n  execute '$1, $2';\nend;\n$p$",
                "comment on table a is 'x'",
            ]
        );
    }
}
